"""``stats()`` counts what was done, in every executor and mode, and can be read at any time."""

import dataclasses
import json
import re
import threading
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box

import cartwheel
from tests.support.cases import POLE, Case
from tests.support.environments import PuppetEnv, SleepingEnv, TranscriptEnv, transcripts
from tests.support.executors import INLINE, THREAD
from tests.support.faulty import FaultyEnv, fault

MODES = ["NextStep", "SameStep", "Disabled"]
LENGTHS = [1, 2, 3, 5, 8]
#: Native shards time their ninth task, and every seventeenth after it.
FIRST_SAMPLED, SAMPLED = 8, 17


def assert_consistent(stats):
    """Checks invariants after any calls, however long they took."""
    assert stats.waiting.min() >= 0
    assert stats.working.min() >= 0
    assert (stats.working + stats.waiting).sum() <= stats.elapsed * len(stats.worker_rows) * (
        1 + 1e-9
    )
    assert 0 <= stats.waited <= stats.elapsed
    assert stats.worker_rows[0, 0] == 0
    assert stats.worker_rows[-1, 1] == len(stats.steps)
    assert stats.bucket_edges.shape == (stats.step_times.shape[1] + 1,)
    for shard, (first, last) in enumerate(stats.worker_rows):
        assert stats.step_seconds[first:last].sum() <= stats.working[shard] + 1e-6
    shortest = stats.step_times @ stats.bucket_edges[:-1]  # each bucket ends at twice its beginning
    assert (shortest <= stats.timed_seconds * (1 + 1e-9)).all()
    assert (stats.timed_seconds <= 2 * shortest + 2e-9 * stats.step_times.sum(axis=1)).all()
    for field in ("steps", "resets", "replacements", "worker_rows", "step_times", "restarts"):
        assert getattr(stats, field).dtype == np.int64


def assert_every_step_was_timed(stats):
    rows = [stats.steps[first:last].sum() for first, last in stats.worker_rows]
    assert stats.step_times.sum(axis=1).tolist() == rows
    assert (stats.slowest_step <= stats.step_seconds).all()
    assert ((stats.step_seconds > 0) == (stats.steps > 0)).all()


def reset_over(envs, terminations):
    """Resets rows that are over in mode ``Disabled``; returns whether there were any."""
    if envs.autoreset_mode.value == "Disabled" and terminations.any():
        envs.reset(options={"reset_mask": terminations})
        return True
    return False


@pytest.mark.parametrize("mode", MODES)
def test_steps_count_calls_and_resets_count_resets_of_environments(build_everywhere, mode):
    envs = build_everywhere(transcripts(*LENGTHS), autoreset_mode=mode)
    assert envs.stats().steps.tolist() == [0] * 5
    envs.reset(seed=3)
    batches = 1
    for steps in range(1, 12):
        _, _, terminations, _, _ = envs.step(np.zeros(5, np.int64))
        batches += 1 + reset_over(envs, terminations)
        stats = envs.stats()
        assert stats.steps.tolist() == [steps] * 5
        assert stats.resets.tolist() == list(envs.get_attr("episodes"))
        assert_every_step_was_timed(stats)
    assert stats.batches == batches
    assert stats.observation_bytes == batches * 5 * 4
    assert len(stats.worker_rows) == envs.num_workers
    assert_consistent(stats)


def test_a_frozen_row_is_stepped_and_not_reset(build):
    envs = build(transcripts(1, 9), autoreset_mode="Disabled", on_done="freeze")
    envs.reset()
    for _ in range(4):
        envs.step(np.zeros(2, np.int64))
    stats = envs.stats()
    assert stats.steps.tolist() == [4, 4]
    assert stats.resets.tolist() == [1, 1]
    assert_every_step_was_timed(stats)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("batch_size", [5, 2])
def test_each_row_counts_as_often_as_it_is_sent(build_everywhere, mode, batch_size):
    envs = build_everywhere(transcripts(*LENGTHS), autoreset_mode=mode, batch_size=batch_size)
    envs.send_reset(seed=3)
    sent, received = np.zeros(5, np.int64), 0
    for batches in range(1, 25):
        _, _, terminations, _, infos = envs.recv()
        rows = infos["env_index"]
        received += len(rows)
        stats = envs.stats()  # the other rows may be in flight
        assert stats.steps[rows].tolist() == sent[rows].tolist()
        assert (stats.batches, stats.observation_bytes) == (batches, received * 4)
        over = rows[terminations] if mode == "Disabled" else rows[:0]
        if len(over):
            envs.send_reset(options={"env_index": over})
        stepped = np.setdiff1d(rows, over)
        if len(stepped):
            envs.send(np.zeros(len(stepped), np.int64), stepped)
        sent[stepped] += 1
    while envs.in_flight:
        envs.recv()
    stats = envs.stats()
    assert stats.steps.tolist() == sent.tolist()
    assert stats.resets.tolist() == list(envs.get_attr("episodes"))
    assert_every_step_was_timed(stats)
    assert_consistent(stats)


def test_a_slow_row_has_long_times_and_the_slowest_is_first_in_the_table(build):
    envs = build([SleepingEnv] * 3)
    envs.reset()
    for _ in range(4):
        envs.step(np.array([0.0, 0.03, 0.0]))
    stats = envs.stats()
    worker = int(np.flatnonzero(stats.worker_rows[:, 1] > 1)[0])
    assert stats.slowest_step[1] >= 0.03
    assert stats.mean_step[1] >= 0.03
    assert stats.working[worker] >= 4 * 0.03
    assert stats.step_times[worker, stats.bucket_edges[1:] > 0.03].sum() >= 4
    waited = stats.waited
    assert waited == 0 if build.executor == "inline" else waited > 0
    lines = str(stats).splitlines()
    rows = lines[next(at for at, line in enumerate(lines) if line.split()[:1] == ["row"]) + 1 :]
    # On a busy machine, another row may have been even slower.
    slowest_first = np.argsort(-stats.mean_step, kind="stable").tolist()
    assert [int(line.split()[0]) for line in rows] == slowest_first
    assert sorted(slowest_first) == [0, 1, 2]
    assert_consistent(stats)


def test_replacements_are_counted_for_the_row_that_failed(build_everywhere):
    envs = build_everywhere([partial(FaultyEnv, row) for row in range(5)], on_error="restart")
    envs.reset(seed=1)
    for row in (3, 1, 3):
        actions = np.full(5, fault("none"))
        envs.step(actions)
        actions[row] = fault("value error")
        envs.step(actions)
    stats = envs.stats()
    assert stats.replacements.tolist() == [0, 1, 0, 2, 0]
    assert stats.steps.tolist() == [6] * 5
    assert stats.restarts.sum() == 0
    assert_every_step_was_timed(stats)


@pytest.mark.parametrize("name", ["exit 3", "kill"])
def test_counts_survive_a_worker_and_its_restart_is_counted(build_processes, name):
    rows = [partial(FaultyEnv, row) for row in range(5)]
    envs = build_processes(rows, on_worker_death="restart")
    envs.reset(seed=1)
    for _ in range(2):
        actions = np.full(5, fault("none"))
        envs.step(actions)
        actions[3] = fault(name)  # the first row of its worker: none is stepped twice
        envs.step(actions)
    stats = envs.stats()
    assert stats.worker_rows.tolist() == [[0, 3], [3, 5]]
    assert stats.restarts.tolist() == [0, 2]
    assert stats.steps.tolist() == [4] * 5
    assert stats.resets.tolist()[:3] == [1] * 3
    assert stats.replacements.sum() == 0
    assert_every_step_was_timed(stats)
    assert_consistent(stats)


def test_stats_can_be_read_while_a_worker_is_dead(build_processes):
    envs = build_processes([partial(FaultyEnv, row) for row in range(5)])
    envs.reset(seed=1)
    envs.step(np.full(5, fault("none")))
    actions = np.full(5, fault("none"))
    actions[3] = fault("kill")
    with pytest.raises(cartwheel.WorkerDiedError):
        envs.step(actions)
    stats = envs.stats()
    assert stats.steps[3:].tolist() == [1, 1]
    assert set(stats.steps[:3].tolist()) <= {1, 2}


def test_stats_can_be_read_while_calls_are_pending(build):
    envs = build(transcripts(*LENGTHS))
    envs.reset_async()
    assert set(envs.stats().resets.tolist()) <= {0, 1}
    envs.reset_wait()
    envs.step_async(np.zeros(5, np.int64))
    assert set(envs.stats().steps.tolist()) <= {0, 1}
    envs.step_wait()
    assert envs.stats().steps.tolist() == [1] * 5


class GatedEnv(TranscriptEnv):
    """Its step sets ``entered``, then waits for ``gate``."""

    entered, gate = threading.Event(), threading.Event()

    def step(self, action):
        self.entered.set()
        assert self.gate.wait(30)
        return super().step(action)


@pytest.mark.parametrize("executor", [INLINE, THREAD], ids=str)
def test_another_thread_can_read_stats_during_a_step(executor):
    GatedEnv.entered.clear()
    GatedEnv.gate.clear()
    envs = executor([partial(GatedEnv, 9)])
    envs.reset()
    stepping = threading.Thread(target=envs.step, args=(np.zeros(1, np.int64),))
    stepping.start()
    try:
        assert GatedEnv.entered.wait(30)
        assert envs.stats().steps.tolist() == [0]
    finally:
        GatedEnv.gate.set()
        stepping.join()
    assert envs.stats().steps.tolist() == [1]
    envs.close()


def test_stats_cannot_be_read_after_close(build):
    envs = build(transcripts(2))
    envs.reset()
    kept = envs.stats()
    envs.close()
    with pytest.raises(gym.error.ClosedEnvironmentError):
        envs.stats()
    assert kept.resets.tolist() == [1]


IMAGE = Box(0, 255, (128, 64), np.uint8)  # too large to be copied out of its slab


@pytest.mark.filterwarnings("ignore:.*max_batches")
def test_slabs_and_copies_are_those_of_the_batches_that_are_kept(build):
    image = np.zeros(IMAGE.shape, np.uint8)
    envs = build([partial(PuppetEnv, IMAGE, image)] * 2, max_batches=6)
    kept = [envs.reset()[0]]
    while not envs.stats().copies:
        stats = envs.stats()
        assert stats.batches_kept == len(kept) < stats.batches_reserved <= 6 + 1  # one in reserve
        kept.append(envs.step(np.zeros(2, np.int64))[0])
    leased = envs.stats().batches_kept
    assert leased == len(kept) - 1  # the last one is a copy
    assert envs.stats().observation_bytes == len(kept) * 2 * 128 * 64
    envs.step(np.zeros(2, np.int64))
    assert envs.stats().copies == 2
    kept.clear()
    assert envs.stats().batches_kept == 0


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("num_workers", [1, 2, 3])
def test_native_rows_are_counted_and_a_sample_of_their_tasks_is_timed(
    build_native, mode, num_workers
):
    envs = build_native([POLE] * 40, autoreset_mode=mode, num_workers=num_workers)
    envs.reset(seed=7)
    over, resets, batches = np.zeros(40, bool), np.ones(40, np.int64), 1
    for steps in range(1, 111):
        _, _, terminations, _, _ = envs.step(np.ones(40, np.int64))
        resets += terminations if mode == "SameStep" else over
        over = terminations
        if mode == "Disabled":
            batches += reset_over(envs, terminations)
        stats = envs.stats()
        assert stats.steps.tolist() == [steps] * 40
        if mode != "Disabled":
            assert stats.resets.tolist() == resets.tolist()
    if mode == "Disabled":
        assert stats.resets.tolist() == (resets + over).tolist()
    assert resets.min() > 1
    assert stats.batches == 110 + batches
    timed = len(range(FIRST_SAMPLED, 110, SAMPLED))
    assert stats.step_times.sum(axis=1).tolist() == [
        timed * (last - first) for first, last in stats.worker_rows
    ]
    assert (stats.mean_step > 0).all()
    assert_consistent(stats)
    _, values = parsed(stats.prometheus())
    histogram = "cartwheel_step_duration_seconds"
    assert values[f"{histogram}_count", ()] == stats.step_times.sum()
    assert values[f"{histogram}_sum", ()] == stats.timed_seconds.sum()  # of the timed steps alone


@pytest.mark.parametrize("num_workers", [1, 2])
@pytest.mark.parametrize("batch_size", [12, 5])
def test_native_rows_that_are_sent_are_counted(build_native, num_workers, batch_size):
    envs = build_native([POLE] * 12, num_workers=num_workers, batch_size=batch_size)
    envs.send_reset(seed=7)
    sent, over, resets = np.zeros(12, np.int64), np.zeros(12, bool), np.zeros(12, np.int64)
    for _ in range(200):
        _, _, terminations, _, infos = envs.recv()
        rows = infos["env_index"]
        resets[rows] += over[rows] | (sent[rows] == 0)
        over[rows] = terminations
        stats = envs.stats()
        assert stats.steps[rows].tolist() == sent[rows].tolist()
        assert stats.resets[rows].tolist() == resets[rows].tolist()
        envs.send(np.ones(len(rows), np.int64), rows)
        sent[rows] += 1
    while envs.in_flight:
        envs.recv()
    stats = envs.stats()
    assert stats.steps.tolist() == sent.tolist()
    assert 0 < stats.step_times.sum() < stats.steps.sum()
    assert_consistent(stats)


def test_the_table_of_many_rows_says_how_many_it_leaves_out(build_native):
    envs = build_native([POLE] * 100)
    assert "92 more rows" in str(envs.stats())
    assert "nan" not in str(envs.stats())
    envs.reset()
    envs.step(np.ones(100, np.int64))
    assert np.isnan(envs.stats().mean_step).all()  # of native rows, the first steps are not timed
    assert " 0 ns" not in str(envs.stats())


@pytest.mark.parametrize("mode", MODES)
def test_native_environments_that_panic_count_as_replaced(build_native, mode):
    envs = build_native(
        [Case("Acrobot-v1")] * 4, autoreset_mode=mode, on_error="restart", num_workers=1
    )
    envs.reset(seed=3)
    states = list(envs.get_attr("state"))
    states[2] = np.full(4, np.inf)
    envs.set_attr("state", states)
    _, _, _, truncations, _ = envs.step([0, 1, 2, 0])
    assert truncations.tolist() == [False, False, True, False]
    stats = envs.stats()
    assert stats.replacements.tolist() == [0, 0, 1, 0]
    assert stats.steps.tolist() == [1] * 4
    assert stats.resets[[0, 1, 3]].tolist() == [1] * 3


def parsed(text):
    """Returns the kinds and the values of a text for Prometheus, by name and labels."""
    kinds, values = {}, {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            name, kind = line.removeprefix("# TYPE ").split()
            kinds[name] = kind
        elif not line.startswith("#"):
            found = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line)
            labels = re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', found[2] or "")
            values[found[1], tuple(labels)] = float(found[3])
    return kinds, values


def test_stats_are_written_for_json_and_for_prometheus():
    with INLINE([lambda length=length: TranscriptEnv(length) for length in LENGTHS]) as envs:
        envs.reset()
        for _ in range(4):
            envs.step([0] * len(LENGTHS))
        stats = envs.stats()
    assert json.loads(json.dumps(stats.to_dict())) == stats.to_dict()
    assert stats.to_dict()["steps"] == [4] * 5
    assert stats.to_dict().keys() == {field.name for field in dataclasses.fields(stats)}
    text = stats.prometheus(task='a "b"\n')
    assert text.endswith("\n")
    kinds, values = parsed(text)
    label = ("task", r"a \"b\"\n")
    rows = ("rows", "0-4")
    assert kinds["cartwheel_steps_total"] == "counter"
    assert values["cartwheel_steps_total", (label, rows)] == 20
    assert values["cartwheel_resets_total", (label, rows)] == stats.resets.sum()
    assert values["cartwheel_elapsed_seconds", (label,)] == stats.elapsed
    histogram = "cartwheel_step_duration_seconds"
    buckets = [value for (name, _), value in values.items() if name == f"{histogram}_bucket"]
    assert kinds[histogram] == "histogram"
    assert buckets == sorted(buckets)
    assert buckets[-1] == values[f"{histogram}_count", (label,)] == 20
    assert values[f"{histogram}_bucket", (label, ("le", "+Inf"))] == 20
    assert values[f"{histogram}_sum", (label,)] == pytest.approx(stats.step_seconds.sum())
    with pytest.raises(ValueError, match="'rows' cannot be the name of a label"):
        stats.prometheus(rows=1)
