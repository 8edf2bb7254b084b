"""Infos of environments may have names that a pool uses, too: wrappers leave them alone."""

from functools import partial

import gymnasium as gym
import numpy as np
import pytest

from cartwheel.wrappers import (
    AutoresetAdapter,
    DtypeObservation,
    FrameStack,
    NormalizeObservation,
)
from tests.support.comparison import assert_identical
from tests.support.environments import TranscriptEnv
from tests.support.wrapping import MODES, D, S, build


class Misnamed(gym.Wrapper):
    """Has infos of these names in every step, and perhaps in resets."""

    def __init__(self, names, in_resets, length):
        super().__init__(TranscriptEnv(length))
        self.names, self.in_resets = names, in_resets

    def reset(self, **keywords):
        observation, info = self.env.reset(**keywords)
        names = self.names if self.in_resets else ()
        return observation, {**info, **dict.fromkeys(names, 7)}

    def step(self, action):
        *results, info = self.env.step(action)
        return *results, {**info, **dict.fromkeys(self.names, 7)}


def played(names, mode, executor):
    """All results of some steps under wrappers of observations."""
    # In SAME_STEP the info of the reset replaces the final observation, as in Gymnasium.
    envs = build(executor, partial(Misnamed, names, mode is not S, 3), mode)
    envs = DtypeObservation(FrameStack(NormalizeObservation(envs), 2), np.float64)
    results = [envs.reset(seed=1)]
    for step in range(9):
        results.append(envs.step((np.arange(3) + step) % 10))
        over = results[-1][2] | results[-1][3]
        if step == 3:  # rows are at different steps from now on
            results.append(envs.reset(options={"reset_mask": np.arange(3) == 0}))
        elif mode is D and over.any():
            results.append(envs.reset(options={"reset_mask": over}))
    envs.close()
    return results


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("executor", ["inline", "process"])
@pytest.mark.parametrize(
    "names", [("final_obs",), ("final_observation",), ("final_obs", "final_observation")]
)
def test_observations_are_those_of_environments_without_such_infos(names, mode, executor):
    ends = 0
    pairs = zip(played(names, mode, executor), played((), mode, executor), strict=True)
    for (*results, infos), (*plain_results, plain_infos) in pairs:
        assert_identical(results, plain_results)
        over = plain_infos.get("_final_obs", np.zeros(3, np.bool_))
        ends += over.sum()
        for row in np.flatnonzero(over):
            assert_identical(infos["final_obs"][row], plain_infos["final_obs"][row])
        if not over.any() and not (mode is S and len(results) == 1):
            for name in names:
                assert set(infos[name][infos[f"_{name}"]]) == {7}
    assert (ends > 0) == (mode is S)


@pytest.mark.parametrize("adapts", [False, True])
def test_an_info_env_index_is_not_taken_for_the_rows_of_a_full_batch(adapts):
    environment = partial(Misnamed, ("env_index",), True, 3)
    envs = build("inline", environment, D, full_batch=True)
    envs = FrameStack(AutoresetAdapter(envs, S) if adapts else envs, 2)
    envs.reset(seed=1)
    before = envs.step(np.arange(3))[0]
    observations, infos = envs.reset(options={"env_index": [1]})
    assert infos["env_index"].tolist() == [0, 7, 0]
    assert_identical(observations[[0, 2]], before[[0, 2]])
    assert_identical(observations[1, 0], observations[1, 1])
    envs.close()
