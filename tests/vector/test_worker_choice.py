"""``num_workers="auto"`` measures one environment first, and does not change results."""

import functools
import logging
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

import cartwheel
from cartwheel._internal import arguments
from cartwheel.vector import worker_choice
from cartwheel.workers.serving import trial
from cartwheel.workers.serving.trial import Measured
from tests.multiagent.environments import Walkers
from tests.support.comparison import assert_identical, text_of
from tests.support.environments import CountedEnv
from tests.support.executors import FORK_FIRST
from tests.support.faulty import FaultyEnv, build_faulty
from tests.support.processes import residue

TRIAL_S = 0.06


@pytest.fixture
def use_processors(monkeypatch):
    """Lets the choice be that of a machine with so many processors, however many there are."""

    def use(number):
        for module in (arguments, worker_choice):
            monkeypatch.setattr(module, "usable_cpus", lambda: number)

    return use


@pytest.fixture(autouse=True)
def two_processors(use_processors, monkeypatch):
    """As on a machine with two processors, with short measurements."""
    use_processors(2)
    monkeypatch.setattr(worker_choice, "_TRIAL_S", TRIAL_S)


class Waiting(gym.Env):
    """Waits in each step."""

    observation_space = Box(0, 1, (2,), np.float64)
    action_space = Discrete(2)

    def reset(self, *, seed=None, options=None):  # noqa: ARG002 - Gymnasium's signature
        super().reset(seed=seed)
        return self.np_random.random(2), {}

    def step(self, action):  # noqa: ARG002 - Gymnasium's signature
        self.wait()
        return self.np_random.random(2), 1.0, False, False, {}

    def wait(self):
        time.sleep(0.02)


class WaitingForChild(Waiting):
    """Waits for a process that computes."""

    def __init__(self):
        program = "for _ in open(0): print(sum(range(1_000_000)), flush=True)"
        self.child = subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def wait(self):
        self.child.stdin.write(b"\n")
        self.child.stdin.flush()
        self.child.stdout.readline()

    def close(self):
        self.child.stdin.close()
        self.child.wait()
        self.child.stdout.close()


class Failing(FaultyEnv):
    """Commits a fault in each step."""

    action_space = Discrete(2)

    def __init__(self, name):
        super().__init__()
        self.name = name

    def step(self, action):  # noqa: ARG002 - Gymnasium's signature
        self.commit(self.name)
        return super().step(0)


def opened(env_fns, **keywords):
    return cartwheel.VectorEnv(env_fns, num_workers="auto", **keywords)


def choice_of(measured, *, cores=2, num_envs=16, limit=None, is_remote=True):
    limit = num_envs if limit is None else limit
    chosen = worker_choice._choose(measured, cores, num_envs, limit, is_remote=is_remote)
    return chosen.num_workers


def measured(cpu_share, memory=2**20, own_share=None):
    return Measured(0.1, 10, 1.0, cpu_share, cpu_share if own_share is None else own_share, memory)


@pytest.mark.parametrize("executor", ["process", "thread"])
def test_environments_that_wait_get_more_workers_than_processors(executor):
    with opened([Waiting] * 5, executor=executor) as envs:
        choice = envs.stats().worker_choice
        assert envs.num_workers == choice.num_workers == 5
        assert choice.cpu_share < 0.5
        assert choice.seconds >= TRIAL_S
        assert choice.steps >= 1
        assert (choice.memory > 2**20) == (executor == "process")


@pytest.mark.parametrize("executor", ["process", "thread"])
def test_a_child_process_that_computes_is_counted_and_its_worker_waits(executor, monkeypatch):
    found = []
    measure = worker_choice._measure
    monkeypatch.setattr(worker_choice, "_measure", lambda *a: found.append(measure(*a)) or found[0])
    with opened([WaitingForChild] * 5, executor=executor) as envs:
        choice = envs.stats().worker_choice
        assert choice.cpu_share > 0.3
        assert found[0].own_share < 0.3
        assert envs.num_workers > 2  # another one asks its child meanwhile


@pytest.mark.parametrize(
    ("waits", "cpu_share"), [([0, 0], 1.0), ([0, 1], 0.5), ([None, None], 0.5)]
)
def test_a_processor_that_a_host_takes_away_is_not_waited_for(monkeypatch, waits, cpu_share):
    env = trial.MakesTrial(functools.partial(gym.make, "CartPole-v1"), is_remote=False)()
    # For half of this second, the thread did not run, and the system does not know why.
    own, clock = iter([(0.0, 0.0), (0.5, 0.0)]), iter([0.0, 1.0])
    monkeypatch.setattr(trial._Usage, "own", lambda _: next(own))
    monkeypatch.setattr(trial, "time", SimpleNamespace(perf_counter=clock.__next__))
    monkeypatch.setattr(trial, "_waits", iter(waits).__next__)
    assert env.measure(1.0).cpu_share == cpu_share


@pytest.mark.parametrize(
    ("cpu_share", "cores", "num_envs", "expected"),
    [
        *((1.0, 2, 16, 2), (0.95, 4, 16, 4), (0.5, 2, 16, 8), (0.2, 2, 16, 16), (0.0, 2, 16, 16)),
        *((0.3, 2, 16, 16), (0.4, 2, 16, 8), (0.5, 4, 5, 5), (0.85, 2, 5, 5), (0.01, 8, 9, 9)),
    ],
)
def test_the_number_follows_from_the_share_of_processor_time(cpu_share, cores, num_envs, expected):
    assert choice_of(measured(cpu_share), cores=cores, num_envs=num_envs) == expected


@pytest.mark.parametrize(
    ("cpu_share", "own_share", "cores", "num_envs", "expected"),
    [
        *((1.0, 0.02, 2, 16, 4), (1.0, 0.02, 4, 64, 8), (0.95, 0.5, 2, 3, 3)),
        *((1.0, 0.95, 2, 16, 2), (0.5, 0.02, 2, 16, 8)),
    ],
)
def test_workers_whose_children_compute_wait_for_them(
    cpu_share, own_share, cores, num_envs, expected
):
    waits = measured(cpu_share, own_share=own_share)
    assert choice_of(waits, cores=cores, num_envs=num_envs) == expected


def test_the_number_is_bounded_by_the_caller_memory_and_descriptors(monkeypatch):
    waits = measured(0.01, memory=2**30)
    assert choice_of(waits, limit=7) == 7
    monkeypatch.setattr(worker_choice, "memory_left", lambda: 10 * 2**30)
    assert choice_of(waits) == 8
    monkeypatch.setattr(worker_choice, "affordable_workers", lambda: 5)
    assert choice_of(waits) == 5
    assert choice_of(waits, is_remote=False) == 16
    monkeypatch.setattr(worker_choice, "memory_left", lambda: 0)
    assert choice_of(waits) == 2  # as by default


def test_nothing_is_measured_where_the_number_is_known(tmp_path):
    path = tmp_path / "events"
    make = functools.partial(CountedEnv, path)
    for num_envs, keywords, expected in (
        (2, {}, 2),
        (3, {"executor": "inline"}, 1),
        (3, {"max_concurrency": 1, "executor": "thread"}, 1),
        (3, {"max_episodes_per_worker": 5}, 3),
    ):
        path.unlink(missing_ok=True)
        with opened([make] * num_envs, **keywords) as envs:
            assert envs.num_workers == envs.stats().worker_choice.num_workers == expected
            assert path.read_text().count("built") == num_envs
    with cartwheel.VectorEnv([make] * 3, executor="inline") as envs:
        assert envs.stats().worker_choice is None


def test_one_environment_more_is_made_and_closed_before_the_others(tmp_path):
    path = tmp_path / "events"
    with opened([functools.partial(CountedEnv, path)] * 3, executor="thread") as envs:
        events = [line.split()[0] for line in path.read_text().splitlines()]
        assert events == ["built", "closed", *["built"] * 3]
        # Where others take processors, what only computes may seem to wait.
        assert envs.num_workers == envs.stats().worker_choice.num_workers >= 2


@pytest.mark.parametrize("context", FORK_FIRST)
def test_results_are_those_of_any_number_of_workers(context):
    seen = []
    for num_workers in ("auto", None):
        with cartwheel.VectorEnv([Waiting] * 3, num_workers=num_workers, context=context) as envs:
            results = [envs.reset(seed=5), *(envs.step([0] * 3) for _ in range(2)), envs.reset()]
            seen.append([envs.num_workers, results])
    assert [workers for workers, _ in seen] == [3, 2]
    assert_identical(seen[0][1], seen[1][1])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("value error", "ValueError: ('boom', 7)"),
        ("system exit", "SystemExit: 3"),
        ("keyboard interrupt", "KeyboardInterrupt"),
        ("unprintable", "tests.support.faulty.UnprintableError: <"),
    ],
)
def test_a_step_that_raises_leaves_one_worker_for_each_processor(name, text, caplog):
    with opened([functools.partial(Failing, name)] * 3, executor="thread") as envs:
        choice = envs.stats().worker_choice
    assert choice.num_workers == 2
    assert choice.cpu_share is None
    assert f"failed: {text}" in choice.reason
    (record,) = [each for each in caplog.records if each.levelno == logging.WARNING]
    assert record.cartwheel == {"event": "workers", **vars(choice)}
    assert choice.reason in record.getMessage()


@pytest.mark.parametrize(
    ("name", "reason"),
    [("exit 3", "it exited with code 3"), ("hang", "did not finish a reset and two steps in")],
)
def test_a_process_that_dies_or_hangs_leaves_one_worker_for_each_processor(name, reason):
    make = functools.partial(Failing, name)
    # `fork` starts workers within the limit, also on a busy machine.
    with opened([make] * 3, timeout=3 if name == "hang" else None, context="fork") as envs:
        assert reason in envs.stats().worker_choice.reason
        assert envs.num_workers == 2
        envs.reset()


@pytest.mark.parametrize("executor", ["process", "thread"])
def test_an_environment_that_cannot_be_made_is_an_error_at_once(executor):
    with pytest.raises(ValueError, match="boom") as caught:
        opened([functools.partial(build_faulty, 0, "value error")] * 3, executor=executor)
    assert "num_workers='auto'" in text_of(caught.value)


def test_ctrl_c_leaves_nothing_behind(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    before = residue()
    monkeypatch.setattr(cartwheel.VectorEnv, "call_wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        opened([Waiting] * 3)
    assert not {one for one in residue() - before if one.startswith("process")}


@pytest.mark.parametrize(("make", "executor"), [(Waiting, "process"), (None, "inline")])
def test_on_one_processor_only_environments_that_wait_get_processes(use_processors, make, executor):
    use_processors(1)
    with opened([make or functools.partial(gym.make, "CartPole-v1")] * 3) as envs:
        assert envs.executor == executor
        assert envs.num_workers == (3 if executor == "process" else 1)


def test_the_choice_is_in_every_form_of_the_stats():
    with opened([Waiting] * 3, executor="thread") as envs:
        stats = envs.stats()
    choice = stats.worker_choice
    assert stats.to_dict()["worker_choice"] == vars(choice)
    assert "\ncartwheel_chosen_workers 3\n" in stats.prometheus()
    assert f"3 workers: {choice.reason}" in str(stats)


def test_every_way_to_make_environments_takes_it():
    gym.register("Waiting-v0", Waiting, disable_env_checker=True)
    try:
        made = cartwheel.make_vec("Waiting-v0", 3, executor="thread", num_workers="auto")
        again = cartwheel.make_vec(made.spec)
    finally:
        del gym.registry["Waiting-v0"]
    agents = cartwheel.ParallelVectorEnv([Walkers] * 3, executor="thread", num_workers="auto")
    for envs, expected in ((made, 3), (again, 3)):
        assert envs.num_workers == expected
        envs.close()
    assert agents.stats().worker_choice.steps >= 1
    agents.close()


def test_processes_that_were_there_before_are_not_counted():
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        usage = trial._Usage(is_remote=False)
        cpu, _ = usage.of_children()
        used = Path(f"/proc/{busy.pid}/schedstat")
        while int(used.read_text().split()[0]) < 30e6:  # nanoseconds
            time.sleep(0.005)
        assert usage.of_children()[0] == cpu
        busy.kill()
