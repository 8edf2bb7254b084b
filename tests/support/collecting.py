"""Collectors over simulated episodes, and comparisons of their rollouts."""

import contextlib

import numpy as np

import cartwheel
from cartwheel._internal import nested
from tests.support.comparison import assert_identical
from tests.support.executors import INLINE
from tests.support.simulated_rollouts import FROZEN, simulated_envs

ARRAYS = (
    "observations",
    "actions",
    "rewards",
    "terminated",
    "truncated",
    "valid",
    "is_first",
    "final_observations",
    "final_index",
    "extras",
)


def policy(observations):
    """Actions and extras that identify the observation to which they belong."""
    states = observations[:, 0]
    return (states % 1000).astype(np.int64), {"half": states / 2}


@contextlib.contextmanager
def collector_of(mode, num_steps, *, num_envs=5, seed=0, build=INLINE, **keywords):
    """A collector in an autoreset mode; ``FROZEN`` is ``Disabled`` with ``on_done="freeze"``."""
    where = {"autoreset_mode": mode}
    if mode == FROZEN:
        where = {"autoreset_mode": "disabled", "on_done": "freeze"}
        keywords = {"until": "all_done", **keywords}
    envs = build(simulated_envs(num_envs, seed), **where)
    try:
        yield cartwheel.Collector(envs, policy, num_steps, **keywords)
    finally:
        envs.close()


def assert_same(rollout, other):
    """Both rollouts have the same bits."""
    for name in ARRAYS:
        assert_identical(getattr(rollout, name), getattr(other, name))
    for name, array in vars(other.carry).items():
        assert_identical(getattr(rollout.carry, name), array)


def states_of(observations):
    """The state numbers in observations."""
    return observations[..., 0].astype(int)


def with_values(rollout, table):
    """The rollout, with the values that ``table`` has for its states."""
    rollout.set_values(table[states_of(rollout.value_inputs())])
    return rollout


def assert_same_steps(rollout, other):
    """Both rollouts are the same, but for actions and extras of steps that only reset."""
    for name in ARRAYS:
        one, two = getattr(rollout, name), getattr(other, name)
        if name in ("actions", "extras"):
            one, two = nested.at(one, rollout.valid), nested.at(two, other.valid)
        assert_identical(one, two)
    for name, array in vars(other.carry).items():
        assert_identical(getattr(rollout.carry, name), array)
    assert_identical(rollout.env_index, other.env_index)


def in_lockstep(count, mode, num_steps, **keywords):
    """The first rollouts of a collector in lockstep."""
    with collector_of(mode, num_steps, **keywords) as collector:
        return [collector.collect() for _ in range(count)]
