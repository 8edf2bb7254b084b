"""Wrappers that are made around environments that were stepped before say nothing wrong.

Whether a wrapper calls the environments itself, or shares what a wrapper inside knows of them, they
show the next episodes as they are. The present episode is none of theirs, unless it only begins.
"""

from functools import partial

import numpy as np
import pytest

from cartwheel.recorder import RecordEpisode
from cartwheel.wrappers import (
    AutoresetAdapter,
    ClipReward,
    FrameStack,
    NormalizeObservation,
    RecordEpisodeStatistics,
    RecordMetrics,
)
from tests.support.environments import TranscriptEnv
from tests.support.recordings import recorded_episodes
from tests.support.wrapping import MODES, D, N, S, build

LENGTH = 3


def clipped(envs):
    """A wrapper that other ones share a source with."""
    return ClipReward(envs, -1, 1)


#: What is around the environments before they are stepped.
INNER = [lambda envs: envs, clipped]


def made(mode, steps, inner=lambda envs: envs, kind="inline"):
    """Environments with so many steps since their reset; they wait where they are over."""
    keywords = {} if kind == "sync" else {"states": "pickle"}
    if mode is D and keywords:
        keywords["on_done"] = "freeze"
    envs = inner(build(kind, partial(TranscriptEnv, LENGTH), mode, 2, **keywords))
    envs.reset(seed=1)
    for _ in range(steps):
        envs.step([1, 1])
    return envs


def go_on(envs, count=9):
    """The results of some steps; rows that rest are reset by a mask."""
    results = []
    for _ in range(count):
        results.append(envs.step([1, 1]))
        if envs.metadata["autoreset_mode"] is D and (results[-1][2] | results[-1][3]).any():
            envs.reset(options={"reset_mask": np.ones(2, np.bool_)})
    return results


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("inner", INNER)
def test_episodes_that_are_over_are_not_counted_again(mode, inner):
    envs = RecordMetrics(made(mode, LENGTH, inner))
    reported = [infos["_episode"].any() for *_, infos in go_on(envs)]
    assert not any(reported[: LENGTH - (mode is S)])
    assert set(envs.finished()["episode_len"].tolist()) == {LENGTH}
    envs.close()


def lengths_of(results):
    """The lengths of the episodes that each step reports, by either wrapper."""
    found = []
    for *_, infos in results:
        for key, name in (("episode", "episode_len"), ("s", "l")):
            if f"_{key}" in infos:
                found += infos[key][name][infos[f"_{key}"]].tolist()
    return found


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["inline", "process"])
@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("steps", [1, LENGTH - 1])
def test_the_rest_of_an_episode_is_not_reported(mode, kind, inner, steps):
    envs = RecordEpisodeStatistics(made(mode, steps, inner, kind), stats_key="s")
    outer = RecordMetrics(envs)
    rest = go_on(outer, LENGTH - steps)
    assert (rest[-1][2] | rest[-1][3]).all()
    assert lengths_of(rest) == []
    assert not any(infos["episode"]["episode_len"].any() for *_, infos in rest)
    assert (envs.episode_count, envs.failed_count, len(envs.length_queue)) == (0, 2, 0)
    assert lengths_of(go_on(outer, LENGTH + 1)) == [LENGTH] * 4
    assert outer.finished()["episode_len"].tolist() == [LENGTH] * 2
    assert (envs.episode_count, envs.failed_count) == (2, 2)
    outer.close()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["inline", "process", "sync"])
@pytest.mark.parametrize("inner", INNER)
def test_an_episode_that_only_begins_is_reported(mode, kind, inner):
    envs = made(mode, LENGTH - 1, inner, kind)
    envs.reset(seed=2)
    envs = RecordMetrics(RecordEpisodeStatistics(envs, stats_key="s"))
    assert lengths_of(go_on(envs, LENGTH)) == [LENGTH] * 4
    envs.close()


@pytest.mark.parametrize("mode", MODES)
def test_of_environments_of_gymnasium_an_inner_wrapper_knows_the_steps(mode):
    envs = RecordMetrics(made(mode, 1, clipped, "sync"))
    results = [envs.step([1, 1]) for _ in range(LENGTH - 1)]
    assert (results[-1][2] | results[-1][3]).all()
    assert lengths_of(results) == []
    envs.close()


@pytest.mark.parametrize("mode", MODES)
def test_a_wrapper_inside_reports_the_episodes_that_it_has_seen(mode):
    inner = made(mode, 1, lambda envs: RecordEpisodeStatistics(envs, stats_key="s"))
    envs = RecordMetrics(inner)
    results = go_on(envs, LENGTH - 1)
    assert lengths_of(results) == [LENGTH] * 2
    assert not any(infos["_episode"].any() for *_, infos in results)
    assert (inner.episode_count, inner.failed_count) == (2, 0)
    envs.close()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("sends", [False, True])
def test_each_row_reports_from_its_own_next_episode_on(mode, inner, sends):
    envs = RecordMetrics(made(mode, 1, inner))

    def step(row):
        if not sends:
            return envs.step([1], [row])
        envs.send([1], [row])
        return envs.recv()

    ends = [step(0) for _ in range(LENGTH - 1)][-1]
    assert ends[2].all()
    envs.reset(options={"env_index": [0]})
    assert lengths_of([step(0) for _ in range(LENGTH)]) == [LENGTH]
    assert lengths_of([step(1) for _ in range(LENGTH - 1)]) == []
    assert envs.finished()["env_index"].tolist() == [0]
    envs.close()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("inner", INNER)
def test_a_loaded_state_knows_what_no_wrapper_has_seen(mode, inner):
    def new(envs):
        return RecordMetrics(inner(envs))

    saved = RecordMetrics(made(mode, 1, inner))
    saved.step([1, 1])
    loaded = made(mode, 0, new)
    loaded.load_state_dict(saved.state_dict())
    for envs in (saved, loaded):
        assert lengths_of(go_on(envs, 1)) == []
        assert lengths_of(go_on(envs, LENGTH + 1)) == [LENGTH] * 2
        envs.close()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("inner", INNER)
def test_the_rest_of_an_episode_is_not_recorded(mode, inner, tmp_path):
    envs = made(mode, 1, inner)
    envs = RecordEpisode(envs, tmp_path, trajectory_name="demo", save_video=False)
    go_on(envs, 2 * LENGTH + 1)
    envs.close()
    for row in recorded_episodes(tmp_path, 2):
        observations = [arrays["obs"].ravel().tolist() for arrays, _ in row]
        assert observations[0] == list(range(LENGTH + 1))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("steps", [0, 1, LENGTH - 1, LENGTH])
@pytest.mark.parametrize("shares", [False, True])
def test_stacks_begin_with_the_first_observation_that_is_seen(mode, steps, shares):
    envs = made(mode, steps, clipped) if shares else clipped(made(mode, steps))
    envs = FrameStack(envs, 3)
    stack = []
    for observations, _, _, _, infos in go_on(envs, 1):
        final = infos.get("final_obs", [None])[0]
        stack = [final if final is not None else observations[0], observations[0]]
    is_over = steps == LENGTH
    now = {N: 0, S: 1, D: LENGTH}[mode] if is_over else steps + 1
    assert stack[0].ravel().tolist() == [now] * 3
    shown = 0 if mode is S and steps == LENGTH - 1 else now
    assert stack[1].ravel().tolist() == [shown] * 3
    envs.close()


@pytest.mark.parametrize("inner", INNER)
def test_normalized_observations_of_rows_that_rest_are_those_that_they_show(inner):
    envs = NormalizeObservation(made(D, LENGTH, inner), epsilon=1e-4)
    shown = envs.step([1, 1])[0]
    moments = envs.obs_rms
    assert round(moments.count) == 2
    expected = (LENGTH - moments.mean) / np.sqrt(moments.var + 1e-4)
    np.testing.assert_allclose(shown, [expected] * 2, rtol=1e-6)
    np.testing.assert_array_equal(envs.step([1, 1])[0], shown)
    envs.close()


@pytest.mark.parametrize("mode", [N, S])
def test_an_adapter_resets_rows_that_are_over(mode):
    adapter = AutoresetAdapter(made(D, LENGTH), mode)
    envs = RecordMetrics(adapter)
    observations, rewards, terminations, *_ = envs.step([1, 1])
    assert observations.tolist() == [[0], [0]]
    assert rewards.tolist() == [0, 0]
    assert not terminations.any()
    for _ in range(LENGTH):
        terminations = envs.step([1, 1])[2]
    assert terminations.all()
    assert envs.finished()["episode_len"].tolist() == [LENGTH] * 2
    envs.close()


@pytest.mark.parametrize("mode", MODES)
def test_after_a_reset_nothing_is_left_of_the_steps_before(mode):
    late = RecordMetrics(FrameStack(made(mode, LENGTH), 2))
    early = made(mode, 0, lambda envs: RecordMetrics(FrameStack(envs, 2)))
    results = []
    for envs in (late, early):
        envs.reset(seed=3)
        results.append([(*step[:4], step[4]["episode"]["return"]) for step in go_on(envs, 4)])
        assert not envs._source.unseen.flag.is_set
        envs.close()
    for one, other in zip(*results, strict=True):
        for ours, theirs in zip(one, other, strict=True):
            np.testing.assert_array_equal(ours, theirs)
