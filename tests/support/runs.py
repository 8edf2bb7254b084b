"""Runs whose calls depend only on the results and fixed seeds, and the same with Gymnasium."""

from functools import cache

import numpy as np

from tests.support.cases import Case, choose, twins
from tests.support.comparison import assert_identical
from tests.support.oracle import D


def play(envs, env_fn, mode, steps):
    """Yields every result of a run of rows of ``env_fn``.

    The actions of a `Case` are chosen, others are sampled. Without autoreset, rows that are over
    are reset explicitly. Late in the run, rows are reset in every other way: with some seeds and
    some ``None``, with a mask, with a seed and a mask, and without arguments.
    """
    num_envs = envs.num_envs
    random = np.random.default_rng(4321)
    rows = np.arange(num_envs)
    seeds = [None if row % 2 else 7 * row for row in range(num_envs)]
    resets = {
        steps - 60: {"seed": seeds},
        steps - 50: {"options": {"reset_mask": rows % 3 == 0}},
        steps - 40: {"seed": 2**40, "options": {"reset_mask": rows % 2 == 0}},
        steps - 30: {},
        steps - 20: {"seed": tuple(reversed(seeds)), "options": {}},
    }
    envs.action_space.seed(1234)
    result = envs.reset(seed=100)
    yield result
    for step in range(steps):
        if isinstance(env_fn, Case):
            actions = choose(env_fn, result[0], random, num_envs)
        else:
            actions = envs.action_space.sample()
        result = envs.step(actions)
        yield result
        over = result[2] | result[3]
        if mode is D and over.any():
            result = envs.reset(options={"reset_mask": over})
            yield result
        if step in resets:
            result = envs.reset(**resets[step])
            yield result


@cache
def recording(env_fn, num_envs, mode, steps):
    """The results of Gymnasium."""
    envs = twins(env_fn, num_envs, mode)
    results = list(play(envs, env_fn, mode, steps))
    envs.close()
    return results


def assert_same_run(envs, env_fn, mode, steps):
    """Checks that every result equals Gymnasium's; closes ``envs``."""
    expected = recording(env_fn, envs.num_envs, mode, steps)
    for call, result in enumerate(play(envs, env_fn, mode, steps)):
        assert_identical(result, expected[call], f"call {call}")
    assert call == len(expected) - 1
    envs.close()


def stepped(envs, actions):
    """The results of steps; in ``DISABLED``, rows that are over are reset before the next step."""
    results = []
    for action in actions:
        results.append(envs.step(action))
        over = results[-1][2] | results[-1][3]
        if envs.metadata["autoreset_mode"] == D and over.any():
            results.append(envs.reset(options={"reset_mask": over}))
    return results


def endings(results):
    """The numbers of terminated and of truncated episodes in these results."""
    frames = [result for result in results if len(result) == 5]
    return [sum(int(frame[kind].sum()) for frame in frames) for kind in (2, 3)]
