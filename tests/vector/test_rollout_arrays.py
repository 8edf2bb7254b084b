"""A rollout slab holds what its steps returned, in one piece, in every mode and executor."""

from copy import deepcopy

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete, Text
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import cartwheel
from tests.support.cases import Case
from tests.support.comparison import assert_identical
from tests.support.environments import LargeNestedEnv, NestedEnv, SamplingEnv
from tests.support.executors import EVERY_EXECUTOR, EVERY_NATIVE, EXECUTORS, INLINE, PROCESS
from tests.support.faulty import FaultyEnv, fault
from tests.support.oracle import MODE
from tests.support.processes import open_descriptors

STEPS = 9


SHORT_POLE = Case("CartPole-v1", {"max_episode_steps": 7})


def masked_reset(envs, oracle, flags):
    """Resets the rows that are over, in mode ``DISABLED``; returns the oracle's observations."""
    over = flags[0] | flags[1]
    if envs.autoreset_mode != AutoresetMode.DISABLED or not over.any():
        return None
    observations, _ = envs.reset(options={"reset_mask": over})
    expected, _ = oracle.reset(options={"reset_mask": over})
    assert_identical(observations, expected)
    return expected


@MODE
@pytest.mark.parametrize("num_envs", [1, 5, 30])
def test_rollouts_hold_what_the_steps_return_in_contiguous_arrays(build_anywhere, num_envs, mode):
    if num_envs == 30 and build_anywhere.executor == "native":
        num_envs = 300  # so many that batches are views
    envs = build_anywhere([SHORT_POLE] * num_envs, autoreset_mode=mode)
    oracle = SyncVectorEnv([SHORT_POLE] * num_envs, autoreset_mode=mode)
    envs.reset(seed=3)
    now, _ = oracle.reset(seed=3)
    rng, kept = np.random.default_rng(0), []
    for _ in range(3):
        rollout = envs.rollout(STEPS)
        assert rollout.num_steps == STEPS
        rows, outcomes = [now.copy()], []
        for _ in range(STEPS):
            actions = rng.integers(0, 2, num_envs)
            step, expected = envs.step(actions), oracle.step(actions)
            assert_identical(step[:4], expected[:4])
            rows.append(expected[0].copy())
            outcomes.append([part.copy() for part in expected[1:4]])
            now = expected[0]
            after_reset = masked_reset(envs, oracle, expected[2:4])
            now = now if after_reset is None else after_reset
        rewards, terminations, truncations = map(np.array, zip(*outcomes, strict=True))
        kept.append((rollout, np.array(rows), rewards, terminations, truncations))
    for rollout, *expected in kept:
        arrays = (rollout.observations, rollout.rewards, rollout.terminated, rollout.truncated)
        for array, values in zip(arrays, expected, strict=True):
            assert_identical(array, values)
            assert array.flags.c_contiguous
            assert array.flags.writeable
            assert np.shares_memory(array, array.reshape(-1, *array.shape[2:]))
    envs.close()
    assert_identical(kept[0][0].observations, kept[0][1])


@pytest.mark.parametrize("executor", EXECUTORS, ids=str)
@pytest.mark.parametrize("env", [NestedEnv, LargeNestedEnv])
def test_every_leaf_of_a_nested_space_has_a_time_axis(executor, env):
    envs, oracle = executor([env] * 3), SyncVectorEnv([env] * 3)
    first, _ = envs.reset(seed=1)
    oracle.reset(seed=1)
    envs.action_space.seed(2)
    rollout = envs.rollout(4)
    batches = [first]
    for _ in range(4):
        actions = envs.action_space.sample()
        batches.append(envs.step(actions)[0])
        assert_identical(batches[-1], oracle.step(actions)[0])
    for time, batch in enumerate(batches):
        assert_identical(at(rollout.observations, time), batch)
    envs.close()


def at(observations, time):
    if isinstance(observations, dict):
        return {key: at(part, time) for key, part in observations.items()}
    if isinstance(observations, tuple):
        return tuple(at(part, time) for part in observations)
    return observations[time]


def test_memory_of_a_rollout_is_reused_when_nothing_refers_to_it(build_anywhere):
    envs = build_anywhere([SHORT_POLE] * 4)
    envs.reset(seed=0)
    addresses = set()
    for _ in range(6):
        rollout = envs.rollout(3)
        addresses.add(rollout.observations.ctypes.data)
        for _ in range(3):
            envs.step(np.zeros(4, np.int64))
        del rollout
    assert len(addresses) <= 2


def test_a_reset_before_the_first_step_is_the_first_observation(build_anywhere):
    envs = build_anywhere([SHORT_POLE] * 3)
    rollout = envs.rollout(2)
    assert_identical(rollout.observations[0], np.zeros((3, 4), np.float32))
    observations, _ = envs.reset(seed=5)
    assert_identical(rollout.observations[0], observations)
    after, *_ = envs.step(np.ones(3, np.int64))
    assert_identical(rollout.observations[1], after)


LARGE = [
    *[(executor, LargeNestedEnv, 3) for executor in EVERY_EXECUTOR],
    *[(executor, SHORT_POLE, 300) for executor in EVERY_NATIVE],
]


@pytest.mark.parametrize(
    ("build_anywhere", "env_fn", "num_envs"), LARGE, indirect=["build_anywhere"], ids=str
)
def test_a_further_reset_overwrites_nothing_that_an_earlier_one_returned(
    build_anywhere, env_fn, num_envs
):
    envs = build_anywhere([env_fn] * num_envs)
    envs.reset(seed=1)
    rollout = envs.rollout(2)
    kept = [envs.reset(seed=2)[0]]
    copies = deepcopy(kept)
    mask = np.arange(envs.num_envs) % 2 == 0
    for keywords in ({"seed": 3}, {"seed": 4, "options": {"reset_mask": mask}}):
        kept.append(envs.reset(**keywords)[0])
        copies.append(deepcopy(kept[-1]))
        assert_identical(kept, copies)
    assert_identical(at(rollout.observations, 0), copies[-1])


def test_some_rows_cannot_be_stepped_alone_while_a_rollout_is_recorded(build_anywhere):
    envs, oracle = build_anywhere([SHORT_POLE] * 3), SyncVectorEnv([SHORT_POLE] * 3)
    oracle.reset(seed=1)
    envs.reset(seed=1)
    rollout = envs.rollout(2)
    steps = [lambda: envs.send([0, 0, 0], [0, 1, 2]), lambda: envs.step([0], env_index=[1])]
    resets = [envs.send_reset, lambda: envs.reset(options={"env_index": [0]})]
    expected = []
    for done, refused in enumerate([steps + resets, steps]):
        for call in refused:
            with pytest.raises(RuntimeError, match=f"{done} of 2 steps.*end_rollout"):
                call()
        expected.append(oracle.step([1, 0, 1]))
        assert_identical(envs.step([1, 0, 1]), expected[-1])
    assert_identical(rollout.observations[1:], np.stack([step[0] for step in expected]))
    assert_identical(rollout.rewards, np.stack([step[1] for step in expected]))
    assert envs.step([0], env_index=[1])[4]["env_index"] == [1]


def test_a_rollout_may_be_ended_before_it_has_its_steps(build_anywhere):
    envs = build_anywhere([SHORT_POLE] * 3)
    envs.end_rollout()  # there is none
    first, _ = envs.reset(seed=1)
    rollout = envs.rollout(4)
    second = envs.step([1, 0, 1])[0]
    envs.end_rollout()
    kept = rollout.observations[:2].copy()
    assert_identical(kept, np.stack([first, second]))
    envs.step([0], env_index=[1])
    envs.step([1, 0, 1])
    envs.reset()
    assert_identical(rollout.observations[:2], kept)


def test_steps_after_the_last_one_leave_the_rollout_alone(build_anywhere):
    envs = build_anywhere([SHORT_POLE] * 3)
    envs.reset(seed=5)
    rollout = envs.rollout(2)
    for _ in range(2):
        envs.step(np.ones(3, np.int64))
    before = rollout.observations.copy()
    for _ in range(5):
        envs.step(np.zeros(3, np.int64))
    assert_identical(rollout.observations, before)


def test_an_exception_of_an_environment_ends_the_rollout():
    envs = INLINE([FaultyEnv] * 2)
    envs.reset(seed=0)
    rollout = envs.rollout(4)
    envs.step(np.array([fault("none")] * 2))
    with pytest.raises(ValueError, match="boom"):
        envs.step(np.array([fault("none"), fault("value error")]))
    envs.reset(seed=0)
    before = rollout.observations.copy()
    envs.step(np.array([fault("none")] * 2))
    assert_identical(rollout.observations, before)
    envs.close()


def test_an_invalid_number_of_steps_is_refused(build_anywhere):
    envs = build_anywhere([SHORT_POLE] * 2)
    envs.reset(seed=0)
    for num_steps in (0, -1, 1.5, 65535, "3", True):
        with pytest.raises(ValueError, match=r"num_steps|steps"):
            envs.rollout(num_steps)
    envs.step(np.zeros(2, np.int64))


def test_rollouts_need_batches_of_all_rows_and_fixed_shapes():
    envs = INLINE([SHORT_POLE] * 4, batch_size=2)
    with pytest.raises(ValueError, match="batch_size"):
        envs.rollout(3)
    envs.close()
    envs = INLINE([lambda: SamplingEnv(Text(5))] * 2)
    with pytest.raises(ValueError, match="fixed shape"):
        envs.rollout(3)
    envs.close()


class ViewEnv(gym.Env):
    """Observes a part of the rollout that its observation will overlap."""

    observation_space = Box(-np.inf, np.inf, (4,), np.float32)
    action_space = Discrete(2)

    def reset(self, **_):
        return np.zeros(4, np.float32), {}

    def step(self, _):
        self.view = self.rollout.observations.reshape(-1)[3:7]
        self.view[:] = range(4)
        return self.view, 0.0, False, False, {}


def test_an_environment_may_observe_what_its_rollout_has():
    envs = cartwheel.VectorEnv([ViewEnv], executor="inline")
    envs.reset()
    rollout = envs.rollout(2)
    envs.set_attr("rollout", rollout)
    assert envs.step([0])[0].tolist() == [[0, 1, 2, 3]]
    assert rollout.observations[1].tolist() == [[0, 1, 2, 3]]
    envs.close()


def test_rollouts_leave_no_descriptor_behind():
    """Each rollout keeps one descriptor, with which a forked child makes its memory private."""
    without = open_descriptors()
    envs = PROCESS([SHORT_POLE] * 3)
    envs.reset(seed=0)
    before = open_descriptors()
    for _ in range(3):
        kept = [envs.rollout(steps) for steps in (2, 3, 4, 5)]
        assert open_descriptors() == before + len(kept)
        kept.clear()
    kept = envs.rollout(2)
    envs.close()
    assert open_descriptors() == without
    del kept
