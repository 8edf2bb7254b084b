"""Gymnasium's results as the expected ones."""

import numpy as np
import pytest
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

from tests.support.comparison import assert_identical

N, S, D = AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED
MODE = pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.value)


def flags(*values):
    return np.array(values, np.bool_)


def objects(*values):
    array = np.empty(len(values), object)
    array[:] = values
    return array


def batched(rows):
    """The infos of all rows, batched by Gymnasium."""
    oracle, infos = VectorEnv(), {}
    oracle.num_envs = len(rows)
    for row, info in enumerate(rows):
        infos = oracle._add_info(infos, info, row)
    return infos


def outcome(function):
    """The result and the exception of a call; one of them is ``None``."""
    try:
        return function(), None
    except Exception as error:
        return None, error


def with_oracle(build, env_fn, num_envs, mode=N, *, seed=1, **keywords):
    """Rows of ``env_fn``, built by ``build`` and by Gymnasium; both are reset with the same seed.

    If ``seed`` is ``None``, neither is reset.
    """
    envs = build([env_fn] * num_envs, autoreset_mode=mode, **keywords)
    oracle = SyncVectorEnv([env_fn] * num_envs, autoreset_mode=mode)
    if seed is not None:
        assert_same_reset(envs, oracle, seed=seed)
    return envs, oracle


def assert_same_reset(envs, oracle, *, seed=None, options=None):
    """Resets both. Each gets its own options, because Gymnasium removes the mask from them."""
    ours, theirs = (None if options is None else dict(options) for _ in range(2))
    result = envs.reset(seed=seed, options=ours)
    assert_identical(result, oracle.reset(seed=seed, options=theirs))
    return result


def assert_same_steps(envs, oracle, steps, *, seed=5):
    """Steps both; in ``DISABLED``, resets rows that are over. Returns the results of the steps."""
    oracle.action_space.seed(seed)
    results = []
    for _ in range(steps):
        actions = oracle.action_space.sample()
        results.append(envs.step(actions))
        assert_identical(results[-1], oracle.step(actions))
        over = results[-1][2] | results[-1][3]
        if oracle.metadata["autoreset_mode"] is D and over.any():
            assert_same_reset(envs, oracle, options={"reset_mask": over})
    return results


def assert_same_spaces(envs, oracle, prefixes=("", "single_")):
    """The same spaces, with the same texts, bounds and samples."""
    for name in ("observation_space", "action_space"):
        for prefix in prefixes:
            ours, theirs = getattr(envs, prefix + name), getattr(oracle, prefix + name)
            assert ours == theirs
            assert repr(ours) == repr(theirs)
            assert ours.dtype == theirs.dtype
            if isinstance(theirs, Box):
                assert_identical((ours.low, ours.high), (theirs.low, theirs.high))
            ours.seed(3)
            theirs.seed(3)
            assert_identical(ours.sample(), theirs.sample())


def assert_like(envs, env_fns, mode=N, steps=60):
    """The same spaces and results as Gymnasium's rows of ``env_fns``; closes ``envs``."""
    oracle = SyncVectorEnv(env_fns, autoreset_mode=mode)
    assert envs.num_envs == len(env_fns)
    assert envs.observation_space == oracle.observation_space
    assert envs.action_space == oracle.action_space
    assert envs.metadata["autoreset_mode"] is mode
    assert_same_reset(envs, oracle, seed=3)
    assert_same_steps(envs, oracle, steps)
    envs.close()


class FrozenOracle:
    """The results that ``on_done="freeze"`` must give, from Gymnasium's single environments."""

    def __init__(self, env_fn, num_envs):
        self.envs = [env_fn() for _ in range(num_envs)]
        self.last = [None] * num_envs  # observation, terminated, truncated

    def reset(self, mask, seed=None):
        infos = [{}] * len(self.envs)
        for row, env in enumerate(self.envs):
            if mask[row]:
                observation, infos[row] = env.reset(seed=None if seed is None else seed + row)
                self.last[row] = (observation, False, False)
        return self._observations(), batched(infos)

    def step(self, actions):
        infos, rewards = [{}] * len(self.envs), np.zeros(len(self.envs))
        for row, env in enumerate(self.envs):
            if not any(self.last[row][1:]):
                observation, rewards[row], *over, infos[row] = env.step(actions[row])
                self.last[row] = (observation, *over)
        terminations, truncations = (flags(*[last[at] for last in self.last]) for at in (1, 2))
        return self._observations(), rewards, terminations, truncations, batched(infos)

    def _observations(self):
        observations = [last[0] for last in self.last]
        if isinstance(observations[0], tuple):
            return tuple(np.array(leaf) for leaf in zip(*observations, strict=True))
        return np.array(observations)
