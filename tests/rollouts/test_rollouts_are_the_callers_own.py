"""Whatever is written into a rollout, or into what a reset gave, the next one is what it was."""

import dataclasses

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import cartwheel
from cartwheel.spaces import nested
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
    """Gives out one and the same array again and again."""
    return SyncVectorEnv(env_fns, copy=False, **keywords)


#: So many that batches of them are shown in place.
POLES = [Case("CartPole-v1", {"max_episode_steps": 12})] * 512


def builders():
    """Ways to build vector environments, and of what: small and large observations."""
    for build in (*EXECUTORS, SyncVectorEnv, in_place, wrapped):
        for env in (NestedEnv, LargeNestedEnv):
            name = getattr(build, "__name__", None) or str(build)
            yield pytest.param(build, [env] * NUM_ENVS, id=f"{name}-{env.__name__}")
    yield pytest.param(NATIVE, POLES, id="native")


class Seeing:
    """A policy that acts on all that it sees, and keeps copies."""

    def __init__(self):
        self.seen = []

    def __call__(self, observations):
        self.seen.append(nested.apply(np.copy, observations))
        leaf = observations["walk"] if isinstance(observations, dict) else observations
        leaf = leaf.reshape(len(leaf), -1)
        return (leaf.sum(axis=1) > 0).astype(np.int64), {"first": leaf[:, 0].copy()}


def overwrite(tree):
    """Writes something else into every array."""
    for _, array in nested.named(tree, ""):
        array[...] = ~array if array.dtype == bool else array // 2 + 77


def run(build, env_fns, mode, way, *, writes):
    """Three rollouts, of which the second begins where the first ends, and a third after a reset.

    Each is compared with what the policy saw.
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
def test_what_the_caller_writes_is_never_shown_to_the_policy_or_recorded(build, env_fns, mode, way):
    undisturbed = run(build, env_fns, mode, way, writes=False)
    for rollout, wanted in zip(
        run(build, env_fns, mode, way, writes=True), undisturbed, strict=True
    ):
        assert_same(rollout, wanted)
