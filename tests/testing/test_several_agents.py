"""Environments of several agents are checked row by row."""
# ruff: noqa: ARG002 (signatures are PettingZoo's)

import math
from contextlib import closing

import numpy as np
import pytest
from gymnasium.spaces import Box

import cartwheel
from cartwheel.testing import EnvCheckError, check_vector_env
from tests.multiagent.environments import Counted, Talkers, Walkers
from tests.support.oracle import MODE
from tests.testing.walk import only


def check(env, checks, **keywords):
    with closing(cartwheel.ParallelVectorEnv([env] * 3, executor="inline", **keywords)) as envs:
        report = check_vector_env(envs, steps=8, skip=only(*checks))
        observations, _ = envs.reset(seed=0)
        assert list(observations) == envs.possible_agents
    return report


@MODE
def test_agents_that_behave_pass_in_every_mode(mode):
    checks = {"spaces", "same_seed", "infos", "rows", "modes"}
    report = check(Walkers, checks | {"states"}, autoreset_mode=mode)
    assert set(report.passed) == checks
    assert report.skipped["states"] == "the environment cannot be saved"


class Sharing(Walkers):
    """All rows count their steps together."""

    steps = 0

    def observe(self, agent, action):
        Sharing.steps += 1
        return super().observe(agent, action) + np.float32(Sharing.steps)


class Positive(Walkers):
    """Zeros, which absent agents show, are outside of the space."""

    def observation_space(self, agent):
        return Box(1, 99, (3,), np.float32)

    def observe(self, agent, action):
        return super().observe(agent, 1) + np.float32(1)


def test_rows_that_share_something_are_found_by_agent_and_named_as_their_environment():
    text = r"observation\['agents'\]\['0'\].* of row 0 .*"
    with pytest.raises(EnvCheckError, match=text) as caught:
        check(Sharing, ["rows"])
    assert caught.value.env == Walkers.metadata["name"]


def test_bounds_are_not_checked_where_absent_agents_are_outside():
    for env, keywords in ((Positive, {}), (Counted, {}), (Walkers, {"absent": math.nan})):
        report = check(env, ["spaces", "rows"], **keywords)
        assert report.skipped["spaces"] == "absent agents show values that a space excludes"
        assert "rows" in report.passed


def test_observations_that_are_no_columns_are_refused(monkeypatch):
    with pytest.raises(ValueError, match="the observations of agent 'a' have no fixed shape"):
        check(Talkers, ["rows"])
    envs = cartwheel.ParallelVectorEnv([Walkers], executor="inline")
    with closing(envs), pytest.raises(TypeError, match="pass the ParallelVectorEnv"):
        check_vector_env(envs.as_rows())
    monkeypatch.setattr(cartwheel.multiagent.pool, "MAX_DENSE_BYTES", 0)
    with pytest.raises(ValueError, match="make it with autoreset_mode='next_step'"):
        check(Walkers, ["rows"], autoreset_mode="same_step")
