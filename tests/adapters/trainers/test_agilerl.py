"""AgileRL's loops with several agents. `make test-trainers` runs this file.

`python -m tools.trainers_tests agilerl CHECKOUT` runs AgileRL's own tests of its vector class.
"""

import functools
import gc
import importlib
import random

import gymnasium as gym
import numpy as np
import pytest

from tests.multiagent.environments import Talkers, Walkers
from tests.support.one_thread import one_thread

pytestmark = pytest.mark.trainers

ROWS = 3


@pytest.fixture
def ours():
    return importlib.import_module("cartwheel.agilerl").CartwheelPettingZooVecEnv


@pytest.fixture
def theirs():
    return importlib.import_module("agilerl.vector").AsyncPettingZooVecEnv


def spread(seed):
    """An environment that is seeded when it is made, because AgileRL's loops do not seed."""
    env = importlib.import_module("mpe2.simple_spread_v3").parallel_env(max_cycles=7)
    env.reset(seed=seed)
    return env


class Leavers(Walkers):
    """Walkers with discrete actions: AgileRL's class loses the dimension of an array of one."""

    def action_space(self, _agent):
        return gym.spaces.Discrete(5)

    def step(self, actions):
        return super().step({name: [action] for name, action in actions.items()})


def equal(found, expected):
    """Compares results by agent: values, dtypes and where they are NaN."""
    assert found.keys() >= expected.keys()
    for agent, values in expected.items():
        if isinstance(values, dict):
            equal(found[agent], values)
        else:
            assert found[agent].dtype == values.dtype, agent
            np.testing.assert_array_equal(found[agent], values)


def drawn(envs, draw, observations):
    """Actions of agents; NaN where an agent is absent, as AgileRL's algorithms return them."""
    actions = {}
    for agent in envs.agents:
        space = envs.single_action_space(agent)
        values = draw.integers(0, space.n, ROWS)
        absent = np.isnan(observations[agent]).all(axis=1)
        actions[agent] = np.where(absent, np.nan, values) if absent.any() else values
    return actions


@pytest.mark.parametrize("executor", ["inline", "thread", "process"])
@pytest.mark.parametrize("make", [functools.partial(spread, 5), Leavers])
def test_steps_are_those_of_AgileRLs_class(ours, theirs, make, executor):
    envs, expected = ours([make] * ROWS, executor=executor), theirs([make] * ROWS)
    shown, infos = envs.reset(seed=4)
    wanted, wanted_infos = expected.reset(seed=4)
    equal(shown, wanted)
    equal(infos, wanted_infos)
    draw, absent = np.random.default_rng(1), 0
    for _ in range(40):
        actions = drawn(envs, draw, shown)
        shown, *found, infos = envs.step(actions)
        wanted, *rest, wanted_infos = expected.step(actions)
        equal(shown, wanted)
        for mine, of_theirs in zip(found, rest, strict=True):
            equal(mine, of_theirs)
        equal(infos, wanted_infos)
        absent += sum(np.isnan(rewards).sum() for rewards in found[0].values())
    assert bool(absent) == (make is Leavers)
    for agent in envs.agents:
        for kind in ("single_observation_space", "observation_space", "action_space"):
            assert getattr(envs, kind)(agent) == getattr(expected, kind)(agent)
    envs.close()
    envs.close()
    expected.close()
    assert envs.closed


def trained(cls, algorithm):
    """Trains by AgileRL's own loop; returns weights and scores."""
    torch = one_thread()
    algorithms = importlib.import_module("agilerl.algorithms")
    envs = cls([functools.partial(spread, row) for row in range(ROWS)])
    spaces = [
        [of(agent) for agent in envs.agents]
        for of in (envs.single_observation_space, envs.single_action_space)
    ]
    for seed in (random.seed, np.random.seed, torch.manual_seed):
        seed(1)
    keywords = {"agent_ids": envs.agents, "batch_size": 32}
    if algorithm == "IPPO":
        agent = algorithms.IPPO(*spaces, learn_step=48, update_epochs=2, **keywords)
        loop, more = "train_multi_agent_on_policy", ()
    else:
        agent = getattr(algorithms, algorithm)(*spaces, learn_step=12, vect_noise_dim=3, **keywords)
        buffer = importlib.import_module("agilerl.components.replay_buffer").ReplayBuffer
        loop, more = "train_multi_agent_off_policy", (buffer(max_size=1000),)
    train = getattr(importlib.import_module(f"agilerl.training.{loop}"), loop)
    settings = {"max_steps": 120, "evo_steps": 60, "eval_steps": 14, "verbose": False}
    population, scores = train(envs, "spread", algorithm, [agent], *more, **settings)
    envs.close()
    del envs
    gc.collect()  # AgileRL's class is in cycles, with its pipes
    actors = population[0].actors.values()
    return [weights.detach().numpy() for actor in actors for weights in actor.parameters()], scores


@pytest.mark.filterwarnings("ignore")  # of AgileRL's loops
@pytest.mark.parametrize("algorithm", ["IPPO", "MADDPG"])
def test_loops_learn_the_same_weights_as_with_AgileRLs_class(ours, theirs, algorithm):
    weights, scores = trained(ours, algorithm)
    expected, expected_scores = trained(theirs, algorithm)
    assert scores == expected_scores
    for found, wanted in zip(weights, expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_a_step_by_rows_is_the_step_by_agents(ours):
    one, other = (ours([Leavers] * ROWS, executor="inline") for _ in range(2))
    one.reset(seed=4)
    shown, _ = other.reset(seed=4)
    draw = np.random.default_rng(2)
    for _ in range(12):
        actions = drawn(other, draw, shown)
        rows = [
            {agent: value[row] for agent, value in actions.items() if not np.isnan(value[row])}
            for row in range(ROWS)
        ]
        one.step_async(rows)
        found = one.step_wait()
        shown, *rest = other.step(actions)
        for mine, wanted in zip(found, (shown, *rest), strict=True):
            equal(mine, wanted)
    one.close()
    other.close()


def test_options_columns_of_actions_and_limits_of_waits_are_handed_on(ours):
    told = []

    class Noted(Leavers):
        def reset(self, seed=None, options=None):
            told.append((seed, options))
            return super().reset(seed=seed, options=options)

    with ours([Noted] * 2, executor="inline") as envs:
        envs.reset(seed=4, options={"level": 1})
        assert told == [(4, {"level": 1}), (5, {"level": 1})]
        envs.step({agent: np.ones((2, 1), int) for agent in envs.agents})
        envs.step_async([dict.fromkeys(envs.agents, 1)] * 2)
        with pytest.raises(ValueError, match="timeout"):
            envs.step_wait(-1)
        envs.step_wait(1)


def test_last_observations_are_in_the_infos_of_the_environment(ours):
    with ours([Leavers] * ROWS, False, executor="inline") as envs:
        observations, _ = envs.reset(seed=4)
        ended = 0
        draw = np.random.default_rng(3)
        for _ in range(20):
            observations, *_ = envs.step(drawn(envs, draw, observations))
            over = envs.infos["episode_over"]
            ended += over.sum()
            if over.any():
                last = envs.infos["final_obs"][envs.agents[-1]]
                assert not np.array_equal(last[over], observations[envs.agents[-1]][over])
        assert ended


def test_agents_of_a_row_that_failed_are_truncated(ours):
    makes = [functools.partial(Leavers, fails_at=fails_at) for fails_at in (3, None)]
    with ours(makes, executor="inline", on_error="restart") as envs:
        envs.reset(seed=[0, 2])
        for _ in range(3):
            _, rewards, terminations, truncations, _ = envs.step(
                {agent: np.ones(2, int) for agent in envs.agents}
            )
        first, *others = envs.agents  # the first one of row 0 has ended in step 2
        for values in (rewards, terminations, truncations):
            assert np.isnan(values[first]).tolist() == [True, False]
        for agent in others:
            assert rewards[agent].tolist()[0] == 0
            assert terminations[agent].tolist() == [False, False]
            assert truncations[agent].tolist() == [True, False]


def test_attributes_calls_and_frames_are_those_of_the_environments(ours):
    with ours([functools.partial(spread, 1)] * ROWS, executor="process", num_workers=2) as envs:
        assert envs.get_attr("max_num_agents") == envs.call("max_num_agents") == (3, 3, 3)
        envs.set_attr("more", [1, 2, 3])
        assert envs.get_attr("more") == (1, 2, 3)
        assert envs.unwrapped is envs
        assert (envs.num_envs, envs.num_agents, len(envs.processes)) == (3, 3, 2)
        assert repr(envs).startswith(
            "CartwheelPettingZooVecEnv(ParallelVectorEnv(agents=3, num_envs=3"
        )


def test_misuse_is_refused_and_nothing_is_stepped(ours):
    with ours([Leavers] * ROWS, executor="inline") as envs:
        envs.reset(seed=1)
        first, *others = envs.agents
        good = {agent: np.ones(ROWS, int) for agent in envs.agents}
        for actions, error, message in (
            ({**good, first: [1, np.nan, 1]}, ValueError, r"NaN in rows \[1\], in which the agent"),
            (
                {agent: good[agent] for agent in others},
                ValueError,
                r"missing or NaN in rows \[0, 1",
            ),
            ({**good, "walkr": [1] * ROWS}, ValueError, r"\['walkr'\] are unknown"),
            (
                {**good, first: [1, 1]},
                ValueError,
                r"must have the shape \(3,\), got the shape \(2,",
            ),
            ({**good, first: [1, np.nan]}, ValueError, r"must have the shape \(3,\), got the sh"),
            ({**good, first: [1, 0.5, 1]}, ValueError, r"\['.*'\]` must be integers, got 0.5"),
            ([1, 2], TypeError, "`actions` must be a dictionary by agent"),
        ):
            with pytest.raises(error, match=message):
                envs.step(actions)
        with pytest.raises(ValueError, match="a dictionary for each of 3 rows, got 2"):
            envs.step_async([{}, {}])
        rows = [dict.fromkeys(others, 1)] * ROWS
        for actions, message in (
            (rows, r"missing or NaN in rows \[0, 1, 2\], in which the agent"),
            ([{**row, first: 1, "walkr": 1} for row in rows], r"\['walkr'\] are unknown"),
        ):
            with pytest.raises(ValueError, match=message):
                envs.step_async(actions)
        assert envs.vector_env.stats().steps.tolist() == [0] * ROWS
    with pytest.raises(gym.error.ClosedEnvironmentError):
        envs.step(good)
    for keywords, error, message in (
        ({"autoreset_mode": "next_step"}, ValueError, "AgileRL restarts rows .*Leave it out.$"),
        ({"batch_size": 2}, ValueError, "AgileRL steps all rows at once"),
        ({"num_worker": 2}, TypeError, r"did you mean `num_workers`\?"),
        ({"executor": "process", "context": "thread"}, ValueError, "context"),
    ):
        with pytest.raises(error, match=message):
            ours([Leavers] * ROWS, **keywords)
    closed = []

    class Ends(Talkers):
        def action_space(self, _agent):
            return gym.spaces.Discrete(5)

        def close(self):
            closed.append(self)

    with pytest.raises(ValueError, match="observations and actions of fixed shape") as raised:
        ours([Ends] * ROWS, executor="inline")
    assert len(closed) == ROWS, raised  # though the error has frames that have the environments


def test_options_that_choose_rows_are_refused_before_anything_is_reset(ours):
    with ours([Leavers] * ROWS, executor="inline") as envs:
        envs.reset(seed=1)
        for name, rows in (("env_index", [1]), ("reset_mask", np.eye(ROWS, dtype=bool)[1])):
            with pytest.raises(ValueError, match=rf"must not choose rows, got \['{name}'\]"):
                envs.reset(options={name: rows})
        assert envs.vector_env.stats().resets.tolist() == [1] * ROWS
