"""`gymnasium.wrappers.vector` give the oracle's results, in each mode that upstream allows."""

import re
from copy import deepcopy

import numpy as np
import pytest
from gymnasium.spaces import Box
from gymnasium.vector import SyncVectorEnv
from gymnasium.wrappers import vector as wrappers

import cartwheel.wrappers
from tests.support.cases import Case
from tests.support.comparison import assert_identical
from tests.support.environments import NestedEnv, samplers
from tests.support.executors import EVERY_KIND, EXECUTORS, INLINE, NATIVE
from tests.support.gymnasium_versions import ASSERTS, CLOSES_WHAT_IS_DROPPED
from tests.support.oracle import D, N, S, assert_same_reset, with_oracle

CART_POLE = [Case("CartPole-v1", {"max_episode_steps": 9})] * 3
PENDULUM = [Case("Pendulum-v1", {"max_episode_steps": 7})] * 3
CARS = [Case("MountainCarContinuous-v0", {"max_episode_steps": 9})] * 3
TAXIS = [Case("Taxi-v4", {"max_episode_steps": 9})] * 3
BLACKJACK = [Case("Blackjack-v1")] * 3
IMAGES = samplers(Box(0, 255, (8, 6, 3), np.uint8), 3)
NESTED = [NestedEnv] * 3

#: The environments, the wrapper, and the modes in which upstream accepts it.
WRAPPERS = {
    "RecordEpisodeStatistics": (CART_POLE, wrappers.RecordEpisodeStatistics, {N, S, D}),
    "RecordEpisodeStatistics of infos": (TAXIS, wrappers.RecordEpisodeStatistics, {N, S, D}),
    "DictInfoToList": (NESTED, wrappers.DictInfoToList, {N, S, D}),
    "DictInfoToList of numbers": (TAXIS, wrappers.DictInfoToList, {N, S, D}),
    "NormalizeReward": (PENDULUM, wrappers.NormalizeReward, {N, S, D}),
    "TransformReward": (
        PENDULUM,
        lambda envs: wrappers.TransformReward(envs, lambda rewards: rewards * 2),
        {N, S, D},
    ),
    "ClipReward": (PENDULUM, lambda envs: wrappers.ClipReward(envs, -3, -1), {N, S, D}),
    "TransformAction": (
        PENDULUM,
        lambda envs: wrappers.TransformAction(envs, lambda actions: actions / 2),
        {N, S, D},
    ),
    "ClipAction": (CARS, wrappers.ClipAction, {N, S, D}),
    "RescaleAction": (
        PENDULUM,
        lambda envs: wrappers.RescaleAction(envs, -np.ones(1, np.float32), np.ones(1, np.float32)),
        {N, S, D},
    ),
    "TransformObservation": (
        CART_POLE,
        lambda envs: wrappers.TransformObservation(envs, lambda observations: observations * 2),
        {N, D},
    ),
    "FlattenObservation": (NESTED, wrappers.FlattenObservation, {N, D}),
    "FlattenObservation of a pair": (BLACKJACK, wrappers.FlattenObservation, {N, D}),
    "FilterObservation": (
        NESTED,
        lambda envs: wrappers.FilterObservation(envs, ["walk", "pixels"]),
        {N, D},
    ),
    "ReshapeObservation": (
        CART_POLE,
        lambda envs: wrappers.ReshapeObservation(envs, (2, 2)),
        {N, D},
    ),
    "RescaleObservation": (
        PENDULUM,
        lambda envs: wrappers.RescaleObservation(envs, np.float32(0), np.float32(1)),
        {N, D},
    ),
    "DtypeObservation": (
        CART_POLE,
        lambda envs: wrappers.DtypeObservation(envs, np.float64),
        {N, D},
    ),
    "GrayscaleObservation": (IMAGES, wrappers.GrayscaleObservation, {N, D}),
    "NormalizeObservation": (CART_POLE, wrappers.NormalizeObservation, {N}),
}
CASES = pytest.mark.parametrize(
    ("build_any", "env_fns", "wrap", "mode", "allowed"),
    [
        pytest.param(kind, env_fns, wrap, mode, mode in allowed, id=f"{kind}-{name}-{mode.value}")
        for name, (env_fns, wrap, allowed) in WRAPPERS.items()
        for mode in (N, S, D)
        # Upstream's classes hide the mask from the wrapper; `test_resets` has the right values.
        if (wrap, mode) != (wrappers.RecordEpisodeStatistics, D)
        for kind in (EVERY_KIND if isinstance(env_fns[0], Case) else EXECUTORS)
        if mode in allowed or kind in (INLINE, NATIVE)  # the mode alone decides what is refused
    ],
    indirect=["build_any"],
)


def results(envs, mode):
    """The results of a wrapped environment; in mode ``DISABLED``, rows that are over are reset."""
    envs.action_space.seed(3)
    yield envs.reset(seed=1)
    for _ in range(25):
        result = envs.step(envs.action_space.sample())
        yield without_clock(result)
        over = result[2] | result[3]
        if mode is D and over.any():
            yield envs.reset(options={"reset_mask": over})


def without_clock(result):
    """Removes the time that an episode took from the statistics."""
    if isinstance(result[4], dict) and "episode" in result[4]:
        result = deepcopy(result)
        del result[4]["episode"]["t"]
    return result


def assert_refused(wrap, envs, oracle):
    """Both are refused for their autoreset mode; older versions of Gymnasium assert it."""
    with pytest.raises(AssertionError if ASSERTS else ValueError) as expected:
        wrap(oracle)
    assert ASSERTS or "autoreset_mode" in str(expected.value)
    with pytest.raises(expected.type, match=f"^{re.escape(str(expected.value))}$"):
        wrap(envs)


@CASES
def test_wrappers_give_the_same_results_as_on_the_oracle(build_any, env_fns, wrap, mode, allowed):
    envs = build_any(env_fns, autoreset_mode=mode)
    if not allowed:
        assert_refused(wrap, envs, SyncVectorEnv(env_fns, autoreset_mode=mode))
        return
    wrapped, oracle = wrap(envs), SyncVectorEnv(env_fns, autoreset_mode=mode)
    pairs = zip(results(wrapped, mode), results(wrap(oracle), mode), strict=True)
    for call, (result, expected) in enumerate(pairs):
        assert_identical(result, expected, f"call {call}")
    wrapped.close()
    assert envs.closed


def test_statistics_without_autoreset_are_those_of_gymnasium(build_any):
    """All rows are reset, because upstream's class hides the mask from the wrapper."""
    envs, oracle = with_oracle(build_any, Case("CartPole-v1"), 2, D)
    ours, theirs = map(wrappers.RecordEpisodeStatistics, (envs, oracle))
    episodes = 0
    for seed in range(12):
        assert_same_reset(ours, theirs, seed=seed)
        over = np.zeros(2, bool)
        while not over.any():
            actions = np.array([seed % 2, episodes % 2])
            result, expected = ours.step(actions), theirs.step(actions)
            assert_identical(without_clock(result), without_clock(expected))
            over = result[2] | result[3]
        episodes += over.sum()
    assert ours.episode_count == theirs.episode_count == episodes
    assert list(ours.return_queue) == list(theirs.return_queue)
    assert list(ours.length_queue) == list(theirs.length_queue)


def masked_lengths(envs):
    """Lengths of episodes in the mode ``DISABLED``; rows that are over are reset by a mask."""
    envs.reset(seed=1)
    lengths = [[], [], []]
    for _ in range(25):
        *_, terminations, truncations, infos = envs.step(np.ones(3, np.int64))
        over = terminations | truncations
        if over.any():
            for row in np.flatnonzero(infos["_episode"]):
                lengths[row].append(int(infos["episode"]["l"][row]))
            options = {"reset_mask": over}
            envs.reset(options=options)
            assert options == {}  # the wrapper removes the mask
    return lengths


def test_statistics_after_masked_resets_are_right(build_any):
    """Over `SyncVectorEnv` they are not: it removes the mask before the wrapper reads it."""
    poles = [Case("CartPole-v1")] * 3
    wrapped = wrappers.RecordEpisodeStatistics(build_any(poles, autoreset_mode=D))
    assert masked_lengths(wrapped) == [[9, 10], [10, 8], [10, 9]]
    oracle = wrappers.RecordEpisodeStatistics(SyncVectorEnv(poles, autoreset_mode=D))
    assert masked_lengths(oracle) == [[9, 1], [1, 8], [1, 1]]


def test_statistics_count_steps_of_frozen_rows_as_episodes(build_any):
    poles = [Case("CartPole-v1")] * 3
    envs = build_any(poles, autoreset_mode=D, on_done="freeze")
    wrapped = wrappers.RecordEpisodeStatistics(envs)
    wrapped.reset(seed=1)
    for _ in range(9):
        wrapped.step(np.ones(3, np.int64))
    assert wrapped.episode_count == 1
    for _ in range(3):
        wrapped.step(np.ones(3, np.int64))
    assert wrapped.episode_count == 1 + 3 + 2 * 3
    assert list(wrapped.length_queue) == [9, 0, 10, 10, 0, 0, 0, 0, 0, 0]


def test_statistics_take_a_reset_of_some_rows_for_a_reset_of_all(build_any):
    wrapped = wrappers.RecordEpisodeStatistics(build_any(CART_POLE, autoreset_mode=D))
    wrapped.reset(seed=1)
    wrapped.step(np.ones(3, np.int64))
    assert wrapped.episode_lengths.tolist() == [1, 1, 1]
    wrapped.reset(options={"env_index": [1]})
    assert wrapped.episode_lengths.tolist() == [0, 0, 0]


def test_wrappers_that_write_in_place_reach_no_later_result(build_any):
    """Wrappers clip rewards and transform observations in the arrays that were returned."""
    envs, oracle = build_any(PENDULUM, copy=False), SyncVectorEnv(PENDULUM)
    wrapped = wrappers.RescaleObservation(
        wrappers.ClipReward(envs, -1, 0), np.float32(0), np.float32(1)
    )
    wrapped.reset(seed=1)
    oracle.reset(seed=1)
    actions = np.ones((3, 1), np.float32)
    for turn in range(30):
        if turn % 3 == 0:
            wrapped.step(actions)
            oracle.step(actions)
        mask = {"reset_mask": np.array([turn % 2 == 0, True, False])}
        assert_identical(envs.reset(options=dict(mask)), oracle.reset(options=dict(mask)))
    oracle.close()


def test_wrappers_reach_our_methods_through_unwrapped(build_any):
    envs = build_any(CART_POLE)
    wrapped = wrappers.RecordEpisodeStatistics(wrappers.NormalizeReward(envs))
    assert wrapped.unwrapped is envs
    assert wrapped.spec == envs.spec
    wrapped.reset(seed=1)
    assert wrapped.unwrapped.get_attr("gravity") == (9.8,) * 3
    assert wrapped.num_envs == 3
    assert wrapped.metadata is envs.metadata
    assert wrapped.np_random_seed == (1, 2, 3)
    wrapped.close()
    assert envs.closed


def test_collecting_a_wrapper_does_not_close_its_environments(build_any):
    """Unless the wrapper is one of Gymnasium's, and that is what they do."""
    for wrap in (wrappers.NormalizeReward, cartwheel.wrappers.NormalizeReward):
        envs = build_any(CART_POLE)
        wrapped = wrap(envs)
        wrapped.reset(seed=1)
        del wrapped
        assert envs.closed == (wrap is wrappers.NormalizeReward and CLOSES_WHAT_IS_DROPPED)
        if not envs.closed:
            envs.step([0, 0, 0])
