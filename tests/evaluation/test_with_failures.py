"""Episodes that were cut short by a failure are dropped, counted and replaced by others."""
# ruff: noqa: ARG001, ARG002 (signatures are Gymnasium's)

import os
import signal
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

import cartwheel
from cartwheel.evaluation.result import mean_interval
from tests.support.environments import TranscriptEnv, transcripts
from tests.support.evaluations import HopelessEnv, assert_at_rest, kept_time
from tests.support.executors import INLINE, PROCESS, THREAD

MODES = ["next_step", "same_step", "disabled"]
NUM_ENVS, EPISODES, SEED = 5, 4, 3

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


class CrashingEnv(gym.Env):
    """Crashes in a third of its episodes, after it has given a large reward."""

    observation_space = Box(-np.inf, np.inf, (2,), np.float64)
    action_space = Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t, self.length = 0, int(self.np_random.integers(2, 7))
        self.crashes_at = self.length if self.np_random.random() < 1 / 3 else None
        return self.np_random.normal(size=2), {}

    def step(self, action):
        self.t += 1
        if self.t == self.crashes_at:
            raise ArithmeticError("lost a wheel")
        over, how = self.t == self.length, bool(self.np_random.integers(2))
        info = {"is_success": how} if over else {}
        reward = self.np_random.normal() + 1000 * (self.crashes_at is not None) + action
        return self.np_random.normal(size=2), reward, over and how, over and not how, info


def alone(row):
    """The complete episodes of a row that is stepped alone, and how many episodes crashed."""
    env, replaced, episodes = CrashingEnv(), 0, []
    observation, _ = env.reset(seed=SEED + row)
    while len(episodes) < EPISODES:
        total, length, over = 0.0, 0, False
        try:
            while not over:
                step = env.step(int(observation[0] > 0))
                observation, total, length = step[0], total + step[1], length + 1
                over = step[2] or step[3]
            episodes.append((total, length, step[2], step[3], step[4]["is_success"]))
        except ArithmeticError:
            env, replaced = CrashingEnv(), replaced + 1
            seeds = np.random.SeedSequence([SEED + row, replaced])
            env.reset(seed=int(seeds.generate_state(1)[0]))
        observation, _ = env.reset()
    return [np.array(column) for column in zip(*episodes, strict=True)], replaced


def policy(observations):
    return (observations[:, 0] > 0).astype(np.int64)


def named(build):
    """The name of an executor or function, the same in every process."""
    return getattr(build, "__name__", None) or str(build)


def wrapped(env_fns, **keywords):
    """A wrapped vector environment, which can only be stepped as a whole."""
    return gym.vector.VectorWrapper(INLINE(env_fns, **keywords))


@pytest.mark.parametrize("build", [INLINE, THREAD, PROCESS, wrapped], ids=named)
@pytest.mark.parametrize("mode", MODES)
def test_every_crashed_episode_is_replaced_by_another(mode, build):
    rows = [alone(row) for row in range(NUM_ENVS)]
    envs = build(
        [CrashingEnv] * NUM_ENVS, autoreset_mode=mode, on_error="restart", max_restarts=None
    )
    reports = []
    evaluation = cartwheel.evaluate(
        envs,
        policy,
        episodes_per_env=EPISODES,
        seed=SEED,
        progress=lambda *report: reports.append(report),
    )
    envs.close()
    names = ["returns", "lengths", "terminated", "truncated", "success_at_end"]
    for place, name in enumerate(names):
        expected = np.stack([columns[place] for columns, _ in rows])
        assert getattr(evaluation, name).tolist() == expected.tolist(), name
    assert evaluation.failures.dtype == np.int64
    assert evaluation.failures.tolist() == [failures for _, failures in rows]
    assert evaluation.returns.max() < 1000, "no reward of a crashed episode counts"
    # Rows crashed a different number of times, and still have the same weight.
    assert len(set(evaluation.failures.tolist())) > 1
    assert evaluation.return_interval == mean_interval(evaluation.returns, 0.95)
    done = [report[0] for report in reports]
    assert done == sorted(set(done))
    assert reports[-1] == (NUM_ENVS * EPISODES, NUM_ENVS * EPISODES)
    failures = int(evaluation.failures.sum())
    assert f"failures {failures} more episodes were cut" in evaluation.summary()
    assert f"failures={failures}" in repr(evaluation)
    with pytest.raises(ValueError, match="read-only"):
        evaluation.failures[0] = 0


def test_without_failures_the_summary_does_not_mention_them():
    envs = INLINE(transcripts(2, 3), on_error="restart")
    evaluation = cartwheel.evaluate(envs, lambda seen: np.ones(len(seen), np.int64))
    envs.close()
    assert evaluation.failures.tolist() == [0, 0]
    assert "failures" not in evaluation.summary() + repr(evaluation)


class KillingEnv(TranscriptEnv):
    """If a file exists, removes it and kills its process, in the third step or in a reset.

    Without a path nothing is killed.
    """

    def __init__(self, length, path=None, where="step"):
        super().__init__(length)
        self.path, self.where = path, where

    def reset(self, *, seed=None, options=None):
        self._may_die("reset", is_time=self.episodes > 0)
        return super().reset(seed=seed, options=options)

    def step(self, action):
        self._may_die("step", is_time=self.t == 2)
        return super().step(action)

    def _may_die(self, where, *, is_time):
        if is_time and where == self.where and self.path is not None and self.path.exists():
            self.path.unlink()
            os.kill(os.getpid(), signal.SIGKILL)


def wrapped_processes(env_fns, **keywords):
    return gym.vector.VectorWrapper(PROCESS(env_fns, **keywords))


@pytest.mark.parametrize(
    ("build", "order", "where"),
    [
        (PROCESS, "lockstep", "step"),
        (wrapped_processes, "lockstep", "step"),
        (PROCESS, "free", "step"),
        (PROCESS, "free", "reset"),
    ],
    ids=named,
)
@pytest.mark.parametrize("mode", MODES)
def test_episodes_that_died_with_their_worker_are_played_again(build, order, where, mode, tmp_path):
    path = tmp_path / "kill"
    path.touch()
    lengths = [2, 4, 3, 5, 6]
    env_fns = transcripts(*lengths[:4])  # rows 3 and 4 share a worker
    envs = build(
        [*env_fns, partial(KillingEnv, 6, path, where)],
        autoreset_mode=mode,
        on_worker_death="restart",
    )
    policy = {"policy": kept_time(5), "recurrent": True, "order": order}
    evaluation = cartwheel.evaluate(envs, episodes_per_env=3, **policy)
    assert not path.exists()
    assert evaluation.lengths.tolist() == [[length] * 3 for length in lengths]
    assert evaluation.returns.tolist() == evaluation.lengths.tolist()
    assert evaluation.terminated.all()
    assert not evaluation.truncated.any()
    assert not evaluation.failures[:3].any()
    if where == "step":
        assert evaluation.failures[4] == 1
    if order == "lockstep":  # otherwise row 3 may rest when its worker dies
        assert evaluation.failures[3] == 1
    assert_at_rest(envs)
    # Nothing remains from the first evaluation.
    again = cartwheel.evaluate(envs, episodes_per_env=2, **policy)
    assert again.lengths.tolist() == [[length] * 2 for length in lengths]
    assert not again.failures.any()
    envs.close()


@pytest.mark.parametrize("mode", MODES)
def test_rows_that_have_finished_are_not_played_again_when_their_worker_dies(mode, tmp_path):
    path = tmp_path / "kill"
    path.touch()
    env_fns = [*transcripts(9, 9, 9), partial(KillingEnv, 1), partial(KillingEnv, 4, path)]
    envs = PROCESS(env_fns, autoreset_mode=mode, on_worker_death="restart")
    evaluation = cartwheel.evaluate(envs, kept_time(5), recurrent=True)
    assert evaluation.lengths[:, 0].tolist() == [9, 9, 9, 1, 4]
    assert evaluation.failures.tolist() == [0, 0, 0, 0, 1]
    envs.close()


@pytest.mark.parametrize("mode", MODES)
def test_a_worker_that_dies_between_two_steps_is_noticed(mode):
    envs = PROCESS(transcripts(4, 4, 4, 4), autoreset_mode=mode, on_worker_death="restart")
    tell, asked = kept_time(4), []

    def policy(observations, rows, first):
        asked.append(rows.tolist())
        if len(asked) == 3:
            envs.processes[0].kill()
            envs.processes[0].join()
        return tell(observations, rows, first)

    evaluation = cartwheel.evaluate(envs, policy, recurrent=True)
    assert evaluation.lengths[:, 0].tolist() == [4] * 4
    assert evaluation.failures.tolist() == [1, 1, 0, 0]
    assert asked[-1] == [0, 1]
    envs.close()


@pytest.mark.parametrize("build", [INLINE, PROCESS, wrapped], ids=named)
@pytest.mark.parametrize("mode", MODES)
def test_an_environment_that_crashes_in_every_episode_raises_its_own_exception(mode, build):
    envs = build(
        [*transcripts(3), HopelessEnv], autoreset_mode=mode, on_error="restart", max_restarts=4
    )
    with pytest.raises(ArithmeticError, match="lost a wheel") as failure:
        cartwheel.evaluate(envs, lambda seen: np.ones(len(seen), np.int64))
    notes = failure.value.__notes__
    assert any("replaced 4 times before (max_restarts)" in note for note in notes)
    assert any("row 1" in note for note in notes)
    assert not envs.unwrapped.in_flight
    envs.close()


@pytest.mark.parametrize("mode", MODES)
def test_a_worker_that_dies_in_every_episode_raises_an_exception(mode):
    envs = PROCESS(
        [*transcripts(3), partial(HopelessEnv, kills=True)],
        autoreset_mode=mode,
        on_worker_death="restart",
        max_restarts=2,
    )
    with pytest.raises(cartwheel.WorkerDiedError, match="SIGKILL") as failure:
        cartwheel.evaluate(envs, lambda seen: np.ones(len(seen), np.int64))
    assert any("restarted 2 times" in note for note in failure.value.__notes__)
    envs.close()


@pytest.mark.parametrize("build", [INLINE, wrapped], ids=named)
@pytest.mark.parametrize("mode", MODES)
def test_an_environment_that_always_fails_raises_even_without_max_restarts(mode, build):
    made = []

    def failing():
        made.append(None)
        return HopelessEnv()

    envs = build(
        [*transcripts(3), failing], autoreset_mode=mode, on_error="restart", max_restarts=None
    )
    text = "row 1 failed in 100 episodes in a row, the last time by ArithmeticError: lost a wheel"
    with pytest.raises(RuntimeError, match=text):
        cartwheel.evaluate(envs, lambda seen: np.ones(len(seen), np.int64))
    assert len(made) == 101
    assert not envs.unwrapped.in_flight
    envs.reset()
    envs.close()


class FailsToResetOnceEnv(TranscriptEnv):
    """The first reset without a seed in this process fails."""

    failed = False

    def reset(self, *, seed=None, options=None):
        if seed is None and not FailsToResetOnceEnv.failed:
            FailsToResetOnceEnv.failed = True
            raise ArithmeticError("lost the key")
        return super().reset(seed=seed, options=options)


@pytest.mark.parametrize("mode", MODES)
def test_an_episode_is_complete_even_if_the_next_reset_fails(mode):
    FailsToResetOnceEnv.failed = False
    envs = INLINE([partial(FailsToResetOnceEnv, 3)] * 2, autoreset_mode=mode, on_error="restart")
    evaluation = cartwheel.evaluate(
        envs, lambda seen: np.ones(len(seen), np.int64), episodes_per_env=2
    )
    envs.close()
    assert FailsToResetOnceEnv.failed
    assert evaluation.lengths.tolist() == [[3, 3], [3, 3]]
    assert not evaluation.failures.any()


@pytest.mark.parametrize("mode", MODES)
def test_a_panicked_native_environment_plays_another_episode(mode):
    envs = cartwheel.NativeVectorEnv("Acrobot-v1", 3, autoreset_mode=mode, on_error="restart")
    steps = []

    def swing(observations, rows, first):
        steps.append(len(rows))
        if len(steps) == 20:
            states = list(envs.get_attr("state"))
            states[1] = np.full(4, np.inf)
            envs.set_attr("state", states)
        return np.where(observations[:, 4] > 0, 2, 0)  # with the swing of the first joint

    evaluation = cartwheel.evaluate(envs, swing, recurrent=True, seed=SEED)
    undisturbed = cartwheel.evaluate(envs, swing, recurrent=True, seed=SEED)
    envs.close()
    assert evaluation.failures.tolist() == [0, 1, 0]
    assert not undisturbed.failures.any()
    assert evaluation.returns[[0, 2]].tolist() == undisturbed.returns[[0, 2]].tolist()
    assert evaluation.lengths[1] > 20, "the failed episode is not among the complete ones"
