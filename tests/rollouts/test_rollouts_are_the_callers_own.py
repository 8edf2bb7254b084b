"""Writing into a rollout, or into observations of a reset, does not change later rollouts."""

import dataclasses

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import cartwheel
from cartwheel._internal import nested
from tests.support.cases import Case
from tests.support.collecting import ARRAYS, assert_same
from tests.support.comparison import assert_identical
from tests.support.environments import LargeNestedEnv, NestedEnv
from tests.support.executors import EXECUTORS, INLINE, NATIVE

NUM_ENVS = 3
WAYS = [{"num_steps": 4}, {"until": "all_done"}]


def wrapped(env_fns, **keywords):
    return gym.vector.VectorWrapper(INLINE(env_fns, **keywords))


def in_place(env_fns, **keywords):
    """Returns the same array again and again."""
    return SyncVectorEnv(env_fns, copy=False, **keywords)


#: So many that their batches are not copied.
POLES = [Case("CartPole-v1", {"max_episode_steps": 12})] * 512


def builders():
    """Ways to build vector environments, with small and large observations."""
    for build in (*EXECUTORS, SyncVectorEnv, in_place, wrapped):
        for env in (NestedEnv, LargeNestedEnv):
            name = getattr(build, "__name__", None) or str(build)
            yield pytest.param(build, [env] * NUM_ENVS, id=f"{name}-{env.__name__}")
    yield pytest.param(NATIVE, POLES, id="native")


class Seeing:
    """A policy whose actions depend on whole observations, of which it keeps copies."""

    def __init__(self):
        self.seen = []

    def __call__(self, observations):
        self.seen.append(nested.apply(np.copy, observations))
        leaf = observations["walk"] if isinstance(observations, dict) else observations
        leaf = leaf.reshape(len(leaf), -1)
        return (leaf.sum(axis=1) > 0).astype(np.int64), {"first": leaf[:, 0].copy()}


def overwrite(tree):
    """Overwrites every array with other values."""
    for _, array in nested.named(tree, ""):
        array[...] = ~array if array.dtype == bool else array // 2 + 77


def run(build, env_fns, mode, way, *, writes):
    """Three rollouts: the second continues the first, the third begins with a reset.

    Each is compared with the observations that the policy got.
    """
    envs, policy = build(env_fns, autoreset_mode=mode), Seeing()
    collector = cartwheel.Collector(envs, policy, seed=1, **way)
    kept = []
    for number in range(3):
        if number == 2:
            observations, _ = collector.reset(seed=5)
            if writes:
                overwrite(observations)
        policy.seen.clear()
        rollout = collector.collect()
        shown = nested.apply(lambda *seen: np.stack(seen), *policy.seen)
        nested.apply(assert_identical, shown, nested.at(rollout.observations, slice(-1)))
        arrays = {name: getattr(rollout, name) for name in ARRAYS}
        copies = {name: nested.apply(np.copy, tree) for name, tree in arrays.items()}
        kept.append(dataclasses.replace(rollout, **copies))
        if writes:
            for tree in arrays.values():
                overwrite(tree)
    envs.close()
    return kept


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize(("build", "env_fns"), list(builders()))
def test_writes_of_the_caller_reach_neither_the_policy_nor_later_rollouts(
    build, env_fns, mode, way
):
    undisturbed = run(build, env_fns, mode, way, writes=False)
    for rollout, wanted in zip(
        run(build, env_fns, mode, way, writes=True), undisturbed, strict=True
    ):
        assert_same(rollout, wanted)
