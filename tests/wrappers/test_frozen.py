"""`envs.frozen()` keeps what wrappers know of the training, in loops of one's own."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import AlreadyPendingCallError
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv
from gymnasium.wrappers.vector import NormalizeObservation as GymnasiumNormalizeObservation

import cartwheel
from cartwheel.wrappers import (
    ClipReward,
    FrameStack,
    NormalizeObservation,
    NormalizeReward,
    NumpyToTorch,
    RecordEpisodeStatistics,
    RecordMetrics,
    StickyAction,
    VectorWrapper,
)
from tests.support.comparison import assert_identical
from tests.support.wrapping import MODES, D, S, build


class Stack:
    """All wrappers that know something of the training, with others between them."""

    def __init__(self, mode, kind="native"):
        self.metrics = RecordMetrics(build(kind, "pole", mode), stats_key="metrics")
        self.statistics = RecordEpisodeStatistics(ClipReward(self.metrics, 0, 0.5))
        self.rewards = NormalizeReward(self.statistics)
        self.observations = NormalizeObservation(self.rewards)
        self.envs = FrameStack(self.observations, 2)

    def play(self, steps=40):
        """Steps through some episodes; returns the infos that reported one."""
        reports = []
        self.envs.reset(seed=3)
        for step in range(steps):
            *_, terminations, truncations, infos = self.envs.step(np.full(3, step % 2))
            reports += [infos["episode"]] if "episode" in infos else []
            over = terminations | truncations
            if over.any() and self.envs.autoreset_mode == D:
                self.envs.reset(options={"reset_mask": over})
        return reports

    def known(self):
        """The statistics of the training; takes nothing."""
        metrics = self.metrics.get_own_state()
        moments = [
            (rms.mean, rms.var, rms.count)
            for rms in (self.observations.obs_rms, self.rewards.return_rms)
        ]
        ended = [metrics[name] for name in ("window", "finished", "episode_count", "dropped")]
        statistics = self.statistics
        queues = statistics.return_queue, statistics.length_queue, statistics.time_queue
        counts = statistics.episode_count, statistics.failed_count
        return [moments, ended, [list(queue) for queue in queues], counts, self.metrics.mean()]


@pytest.mark.parametrize("mode", MODES)
def test_a_loop_in_the_context_changes_nothing_that_is_known_of_the_training(mode):
    stack = Stack(mode)
    stack.play()
    before = stack.known()
    with stack.envs.frozen() as envs:
        assert envs is stack.envs
        reports = stack.play()
        assert_identical(stack.known(), before, "within the context")
    assert len(reports) >= 3
    assert_identical(stack.known(), before, "after the context")
    assert len(stack.metrics.finished()["seed"]) == before[1][2] > 5
    stack.play()
    moments, _, _, counts, _ = stack.known()
    assert [one[2] for one in moments] > [one[2] for one in before[0]]
    assert counts > before[3]
    assert len(stack.metrics.finished()["seed"]) > 5
    stack.envs.close()


def test_finished_episodes_can_be_taken_within_the_context():
    stack = Stack(S)
    stack.play()
    count = stack.metrics.get_own_state()["episode_count"]
    with stack.envs.frozen():
        stack.play()
        assert len(stack.metrics.finished()["seed"]) == count
    assert len(stack.metrics.finished()["seed"]) == 0
    stack.envs.close()


def test_contexts_nest_in_any_order_and_end_with_an_exception():
    stack = Stack(S)
    envs, inner = stack.envs, stack.observations
    first, second = envs.frozen(), inner.frozen()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert (envs.is_frozen, inner.is_frozen, stack.metrics.is_frozen) == (False, True, True)
    stack.play()
    assert inner.obs_rms.count == pytest.approx(1e-4)
    second.__exit__(None, None, None)
    assert not stack.metrics.is_frozen
    with pytest.raises(ZeroDivisionError), envs.frozen(), envs.frozen():
        raise ZeroDivisionError
    assert not envs.is_frozen
    stack.play()
    assert inner.obs_rms.count > 40
    envs.close()


def test_the_context_and_update_running_mean_do_not_change_each_other():
    envs = NormalizeObservation(build("native", "pole", S))
    with envs.frozen():
        assert envs.update_running_mean
        envs.update_running_mean = False
        envs.update_running_mean = True
        envs.reset(seed=1)
        assert envs.obs_rms.count < 1
        envs.update_running_mean = False
    assert not envs.update_running_mean
    envs.reset(seed=1)
    assert envs.obs_rms.count < 1
    envs.update_running_mean = True
    envs.reset(seed=1)
    assert envs.obs_rms.count > 2
    envs.close()


@pytest.mark.parametrize("wrap", [lambda envs: envs, NormalizeObservation], ids=["bare", "wrapped"])
def test_nothing_is_in_flight_at_both_ends(wrap):
    envs = wrap(build("inline", "pole", S))
    actions = np.zeros(3, np.int64)
    envs.reset(seed=1)
    envs.send(actions[:1], [0])
    with pytest.raises(AlreadyPendingCallError, match="frozen"), envs.frozen():
        pytest.fail("rows are in flight")
    envs.recv()
    with pytest.raises(AlreadyPendingCallError, match="frozen"), envs.frozen():
        envs.send(actions, None)
    assert not getattr(envs, "is_frozen", False)
    while envs.in_flight:
        envs.recv()
    with envs.frozen():
        envs.close()


def test_a_pending_call_of_gymnasiums_environments_is_found():
    envs = NormalizeObservation(AsyncVectorEnv([lambda: gym.make("CartPole-v1")] * 2))
    envs.reset(seed=1)
    envs.step_async(np.zeros(2, np.int64))
    with pytest.raises(AlreadyPendingCallError, match="step"), envs.frozen():
        pytest.fail("a step is pending")
    envs.step_wait()
    with envs.frozen():
        envs.step(np.zeros(2, np.int64))
    assert envs.obs_rms.count == pytest.approx(4, abs=1e-3)
    envs.close()


def test_gymnasiums_wrappers_inside_are_kept_too():
    inner = GymnasiumNormalizeObservation(SyncVectorEnv([lambda: gym.make("CartPole-v1")] * 2))
    envs = ClipReward(inner, 0, 1)
    with envs.frozen():
        envs.reset(seed=1)
    assert inner.obs_rms.count < 1
    envs.reset(seed=1)
    assert inner.obs_rms.count > 1
    envs.close()


def test_a_wrapper_of_ones_own_is_told():
    class Counting(VectorWrapper):
        counted = 0

        def transform(self, batch):
            self.counted += 0 if self.is_frozen else len(batch.rows)

    counting = Counting(build("native", "pole", S))
    envs = ClipReward(counting, 0, 1)
    with envs.frozen():
        envs.reset(seed=1)
    envs.reset(seed=1)
    assert counting.counted == 3
    cartwheel.evaluate(envs, lambda seen: np.zeros(len(seen), np.int64), progress=False)
    assert counting.counted == 3
    envs.close()


@pytest.mark.parametrize("mode", MODES)
def test_a_second_environment_is_evaluated_with_the_moments_of_the_first(mode):
    def wrapped(num_envs):
        inner = NormalizeObservation(build("native", "pole", mode, num_envs), clip=2.0)
        return inner, StickyAction(FrameStack(inner, 2), 0.3, seed=1)

    training, envs = wrapped(5)
    envs.reset(seed=1)
    for step in range(30):
        over = np.logical_or(*envs.step(np.full(5, step % 2))[2:4])
        if mode == D and over.any():
            envs.reset(options={"reset_mask": over})
    second, evaluated = wrapped(3)
    evaluated.load_state_dict(envs.state_dict(envs=False))
    rms, seen = training.obs_rms, []

    def policy(observations):
        seen.append(observations[:, -1])
        return np.zeros(len(observations), np.int64)

    cartwheel.evaluate(evaluated, policy, seed=7, progress=False)
    plain = build("native", "pole", mode)
    raw, _ = plain.reset(seed=7)
    normal = (raw - rms.mean) / np.sqrt(rms.var + 1e-8)
    np.testing.assert_allclose(seen[0], np.clip(normal, -2, 2), rtol=1e-6)
    assert_identical(second.obs_rms.mean, rms.mean)
    assert second.obs_rms.count == rms.count > 100
    for one in (envs, evaluated, plain):
        one.close()


def test_tensors_are_returned_within_the_context():
    torch = pytest.importorskip("torch")
    inner = NormalizeObservation(build("native", "pole", S))
    envs = NumpyToTorch(inner)
    envs.reset(seed=1)
    count = inner.obs_rms.count
    with envs.frozen() as same:
        observations, _ = same.reset(seed=1)
    assert isinstance(observations, torch.Tensor)

    def policy(seen):
        assert isinstance(seen, torch.Tensor)
        return torch.zeros(len(seen), dtype=torch.int64)

    cartwheel.evaluate(envs, policy, progress=False)
    assert inner.obs_rms.count == count
    envs.close()
