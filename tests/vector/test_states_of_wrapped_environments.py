"""States have what wrappers of environments keep, and refuse what cannot be restored."""

import threading
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils import EzPickle
from gymnasium.wrappers import (
    Autoreset,
    DelayObservation,
    FrameStackObservation,
    MaxAndSkipObservation,
    NormalizeObservation,
    NormalizeReward,
    OrderEnforcing,
    RecordEpisodeStatistics,
    StickyAction,
    TimeAwareObservation,
    TimeLimit,
)

from cartwheel.wrappers import CachedReset
from tests.support.comparison import assert_identical
from tests.support.executors import INLINE, PROCESS
from tests.support.oracle import S
from tests.support.runs import stepped
from tests.support.stateful import OneArgument, PlainWalkEnv, WalkEnv, walk
from tests.vector.test_states import KINDS, TwoArguments, actions_of


def _wrapped():
    return OneArgument(TwoArguments())


#: Gymnasium's wrappers with values of their own.
STATEFUL = {
    "FrameStackObservation": partial(FrameStackObservation, stack_size=2),
    "DelayObservation": partial(DelayObservation, delay=1),
    "TimeAwareObservation": TimeAwareObservation,
    "MaxAndSkipObservation": partial(MaxAndSkipObservation, skip=2),
    "NormalizeObservation": NormalizeObservation,
    "NormalizeReward": NormalizeReward,
    "RecordEpisodeStatistics": RecordEpisodeStatistics,
    "StickyAction": partial(StickyAction, repeat_action_probability=0.5),
    "Autoreset": Autoreset,
}


def _stateful(name):
    return STATEFUL[name](TimeLimit(OrderEnforcing(WalkEnv()), 9))


def without_durations(results):
    for *_, infos in results:
        infos.get("final_info", {}).get("episode", {}).pop("t", None)
    return results


@pytest.mark.parametrize("executor", [INLINE, PROCESS], ids=str)
@pytest.mark.parametrize("name", STATEFUL)
def test_values_of_wrappers_of_gymnasium_are_saved(name, executor):
    envs = executor([partial(_stateful, name)] * 2, autoreset_mode=S)
    envs.reset(seed=1)
    stepped(envs, actions_of(5, 2, seed=4))
    state, actions = envs.state_dict(), actions_of(20, 2)
    expected = without_durations(stepped(envs, actions))
    envs.load_state_dict(state)
    assert_identical(without_durations(stepped(envs, actions)), expected)
    envs.close()
    fresh = INLINE([partial(_stateful, name)] * 2, autoreset_mode=S)
    fresh.load_state_dict(state)
    assert_identical(without_durations(stepped(fresh, actions)), expected)
    fresh.close()


@pytest.mark.parametrize("name", ["NormalizeObservation", "NormalizeReward"])
def test_cached_resets_do_not_turn_moments_back(name):
    envs = INLINE([partial(_stateful, name)] * 2)
    with pytest.raises(ValueError, match=rf"row 0 .*{name} .*Use cartwheel.wrappers.{name}"):
        CachedReset(envs, 2)
    envs.close()


def test_a_state_is_not_restored_into_a_row_with_other_wrappers():
    envs = INLINE([WalkEnv, lambda: RecordEpisodeStatistics(WalkEnv()), WalkEnv])
    envs.reset(seed=1)
    (state,) = envs.get_state([0])
    shown = envs.step(np.zeros(3, int))
    with pytest.raises(ValueError, match=r"wrappers \[\], .* of row 1 has .*Statistics"):
        envs.set_state([2, 1], [state, state])
    envs.set_state([0], [state])
    again = envs.step(np.zeros(3, int))
    assert_identical(again[0][0], shown[0][0])
    assert not np.array_equal(again[0][2], shown[0][2]), "row 2 has gone on"
    envs.close()


class HoldsALock(gym.Wrapper):
    def __init__(self, env):
        super().__init__(env)
        self.guard = threading.Lock()


@KINDS
def test_attributes_of_wrappers_that_cannot_be_pickled_are_named(executor):
    envs = executor([walk, lambda: HoldsALock(walk())])
    before = envs.state_dict()  # an environment that was never reset has no values
    envs.reset(seed=1)
    with pytest.raises(ValueError, match=r"row 1, .*: `guard` of the wrapper HoldsALock .* cannot"):
        envs.state_dict()
    with pytest.raises(ValueError, match="`guard` of the wrapper HoldsALock"):
        envs.load_state_dict(before)
    envs.close()


class RefersToItsChain(gym.Wrapper):
    """Its attributes are members of the chain, and functions."""

    def __init__(self, env):
        super().__init__(env)
        self.inner, self.twice = env.unwrapped, lambda number: 2 * number

    def step(self, action):
        observation, _, *rest = super().step(action)
        return observation, self.twice(float(self.inner.steps)), *rest


@KINDS
def test_references_within_the_chain_are_restored_as_references(executor):
    def chain():
        return RefersToItsChain(walk(PlainWalkEnv))

    envs = executor([chain] * 2, autoreset_mode=S, states="pickle")
    envs.reset(seed=1)
    stepped(envs, actions_of(4, 2, seed=4))
    state, actions = envs.state_dict(), actions_of(20, 2)
    expected = stepped(envs, actions)
    envs.close()
    fresh = INLINE([chain] * 2, autoreset_mode=S, states="pickle")
    fresh.load_state_dict(state)
    assert fresh.envs[0].inner is fresh.envs[0].unwrapped
    assert_identical(stepped(fresh, actions), expected)
    fresh.close()


def test_the_duration_of_an_episode_goes_on_from_its_seconds(monkeypatch):
    envs, others = (INLINE([partial(_stateful, "RecordEpisodeStatistics")]) for _ in range(2))
    envs.reset(seed=1)
    began = envs.envs[0].episode_start_time
    monkeypatch.setattr("time.perf_counter", lambda: began + 60)
    state = envs.state_dict()
    monkeypatch.setattr("time.perf_counter", lambda: 1000.0)  # of a machine that began later
    others.load_state_dict(state)
    assert others.envs[0].episode_start_time == pytest.approx(940)
    monkeypatch.undo()
    for each in (envs, others):
        each.close()


class Counts(gym.Wrapper):
    """Has its attribute from its first step on."""

    def step(self, action):
        self.count = getattr(self, "count", 0) + 1
        observation, _, *rest = super().step(action)
        return observation, float(self.count), *rest


def test_attributes_that_a_wrapper_did_not_have_are_gone_after_a_load():
    envs = INLINE([lambda: Counts(walk())], autoreset_mode=S)
    envs.reset(seed=1)
    state = envs.state_dict()
    expected = stepped(envs, actions_of(4, 1))
    envs.load_state_dict(state)
    assert_identical(stepped(envs, actions_of(4, 1)), expected)
    envs.close()


class Rebuilt(PlainWalkEnv, EzPickle):
    def __init__(self):
        EzPickle.__init__(self)
        PlainWalkEnv.__init__(self)


class Reduced(PlainWalkEnv):
    def __reduce__(self):
        return type(self), ()


@pytest.mark.parametrize(
    ("kind", "words"), [(Rebuilt, "EzPickle"), (Reduced, "`__reduce__` of its own")]
)
def test_environments_whose_pickle_leaves_parts_out_are_refused(kind, words):
    envs = INLINE([partial(walk, kind)], states="pickle")
    envs.reset(seed=1)
    with pytest.raises(ValueError, match=f"row 0, .*{kind.__name__}, cannot be saved .*{words}"):
        envs.state_dict()
    envs.close()


class SavesItsStack(gym.Wrapper):
    """Saves the frames of the wrapper inside, too."""

    def get_state(self):
        return [frame.copy() for frame in self.env.obs_queue], self.unwrapped.get_state()

    def set_state(self, state):
        frames, walk_state = state
        self.env.obs_queue.extend(frames)
        self.unwrapped.set_state(walk_state)


def _stacked():
    return TimeLimit(SavesItsStack(FrameStackObservation(WalkEnv(), 3)), 9)


@KINDS
def test_a_wrapper_around_them_can_save_their_values(executor):
    envs = executor([_stacked] * 2, autoreset_mode=S)
    envs.reset(seed=1)
    stepped(envs, actions_of(3, 2, seed=4))
    states, actions = envs.get_state(), actions_of(20, 2)
    expected = stepped(envs, actions)
    envs.set_state([0, 1], states)
    assert_identical(stepped(envs, actions), expected)
    envs.close()


@KINDS
def test_a_wrapper_can_have_the_methods(executor):
    envs = executor([_wrapped] * 2, autoreset_mode=S)
    envs.reset(seed=1)
    envs.step(np.zeros(2, int))
    states, actions = envs.get_state(), actions_of(20, 2)
    expected = stepped(envs, actions)
    envs.set_state([0, 1], states)
    assert_identical(stepped(envs, actions), expected)
    envs.close()
