"""Collectors over simulated episodes, and what is compared of their rollouts."""

import contextlib

import numpy as np

import cartwheel
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
    """Actions and extras that tell which observation they belong to."""
    states = observations[:, 0]
    return (states % 1000).astype(np.int64), {"half": states / 2}


@contextlib.contextmanager
def collector_of(mode, num_steps, *, num_envs=5, seed=0, build=INLINE, **keywords):
    """A collector in the mode, or in the way of the mode ``FROZEN``."""
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
    """Both hold the same bits."""
    for name in ARRAYS:
        assert_identical(getattr(rollout, name), getattr(other, name))
    for name, array in vars(other.carry).items():
        assert_identical(getattr(rollout.carry, name), array)


def states_of(observations):
    """The numbers of simulated states."""
    return observations[..., 0].astype(int)


def with_values(rollout, table):
    """The rollout, after one call of the value function that the table is."""
    rollout.set_values(table[states_of(rollout.value_inputs())])
    return rollout
