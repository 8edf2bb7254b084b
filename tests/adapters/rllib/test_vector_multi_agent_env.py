"""Multi-agent environments in workers return what they return in RLlib's own vector environment."""

import importlib
import multiprocessing
from functools import partial

import numpy as np
import pytest

import cartwheel
from tests.support.comparison import assert_identical, assert_names_row, text_of
from tests.support.restarts import end

pytestmark = pytest.mark.ray

#: Name of a function of `tests.adapters.rllib.agents`, keywords and the number of environments.
CASES = {
    "two poles": ("two_poles", 5),
    "agents that leave": ("countdown", 3),
    "on turns, of different spaces": ("TurnsEnv", 4),
    "one step": ("OneStepEnv", 3),
    "one environment": ("TurnsEnv", 1),
}
EXECUTORS = [("inline", None), ("thread", 7), ("process", 2)]


@pytest.fixture
def build(rllib):
    """Builds an ``AsyncVectorMultiAgentEnv``, which is closed after the test."""
    built = []

    def build(env_fns, **keywords):
        built.append(rllib.AsyncVectorMultiAgentEnv(env_fns, **keywords))
        return built[-1]

    yield build
    for envs in built:
        envs.close()


@pytest.fixture
def oracle():
    return importlib.import_module("ray.rllib.env.vector.sync_vector_multi_agent_env")


def acting(envs, results):
    """Random actions of the agents that act next: those with an observation that are not over."""
    observations, flags = results[0], results[2:4] if len(results) == 5 else ()
    over = [
        {agent for flag in flags for agent, is_over in flag[row].items() if is_over}
        for row in range(len(observations))
    ]
    return [
        {
            agent: envs.envs[row].unwrapped.get_action_space(agent).sample()
            for agent in observations[row]
            if "__all__" not in over[row] and agent not in over[row]
        }
        for row in range(len(observations))
    ]


def plain(results):
    """Results as lists of dictionaries; RLlib's own are partly arrays of them."""
    return [list(part) for part in results]


@pytest.mark.parametrize(("executor", "num_workers"), EXECUTORS)
@pytest.mark.parametrize("case", CASES)
def test_every_step_equals_that_of_rllibs_own(build, oracle, agents, case, executor, num_workers):
    name, num_envs = CASES[case]
    make = getattr(agents, name)
    theirs = oracle.SyncVectorMultiAgentEnv([make] * num_envs)
    ours = build([make] * num_envs, executor=executor, num_workers=num_workers)
    for options in (None, {"a": 1}):
        expected = theirs.reset(seed=7, options=options)
        assert_identical(plain(ours.reset(seed=7, options=options)), plain(expected))
        for _ in range(60):
            actions = acting(theirs, expected)
            expected, found = theirs.step(actions), ours.step(actions)
            assert_identical(plain(found), plain(expected))
            for row in range(num_envs):  # connectors batch agents in this order
                for ours_part, their_part in zip(found, expected, strict=True):
                    assert list(ours_part[row]) == list(their_part[row])
    theirs.close()


def test_spaces_and_attributes_are_those_of_rllibs_own(build, oracle, agents):
    theirs = oracle.SyncVectorMultiAgentEnv([agents.TurnsEnv] * 2)
    ours = build([agents.TurnsEnv] * 2, executor="process")
    for name in (
        *("num_envs", "single_observation_space", "single_action_space", "render_mode"),
        *("single_observation_spaces", "single_action_spaces", "observation_space", "metadata"),
    ):
        assert getattr(ours, name) == getattr(theirs, name), name
    for ours_env, their_env in zip(ours.envs, theirs.envs, strict=True):
        assert ours_env.unwrapped.possible_agents == their_env.possible_agents
        for agent in their_env.possible_agents:
            own = ours_env.get_observation_space(agent), ours_env.get_action_space(agent)
            assert own == (their_env.get_observation_space(agent), their_env.action_spaces[agent])
    assert ours.unwrapped is ours
    assert repr(ours) == "AsyncVectorMultiAgentEnv(num_envs=2)"
    assert ours.stats().steps.tolist() == [0, 0]
    ours.reset(seed=1)
    theirs.reset(seed=1)
    assert ours.get_attr("more") == theirs.get_attr("more") == (1, 2)
    assert ours.call("get_observation_space", "a") == theirs.call("get_observation_space", "a")
    assert_identical(ours.render(), theirs.render())
    theirs.close()


def test_a_parallel_environment_of_pettingzoo_needs_no_wrapper(build, agents):
    wrapped, raw = (
        build([make] * 3, executor="process") for make in (agents.countdown, agents.raw_countdown)
    )
    results = wrapped.reset(seed=4)
    assert_identical(raw.reset(seed=4), results)
    for _ in range(20):
        actions = acting(wrapped, results)
        results = wrapped.step(actions)
        assert_identical(raw.step(actions), results)


@pytest.mark.parametrize("executor", ["inline", "process"])
def test_no_observation_is_overwritten(build, agents, executor):
    envs = build([agents.TurnsEnv] * 2, executor=executor)
    results = envs.reset(seed=0)
    kept = []
    for _ in range(30):
        results = envs.step(acting(envs, results))
        kept += [(row[7], row[7].copy()) for row in results[0] if 7 in row]
    assert len({int(image[0, 0, 0]) for image, _ in kept}) > 2
    assert all(np.array_equal(image, copy) for image, copy in kept)


@pytest.mark.parametrize("executor", ["thread", "process"])
def test_environments_are_stepped_at_once(build, agents, executor, tmp_path):
    """Each waits in its step until all three are in theirs: one after another, none would end."""
    make = partial(agents.MeetingEnv, tmp_path, 3)
    envs = build([make] * 3, executor=executor, num_workers=3)
    envs.reset()
    _, rewards, *_ = envs.step([{"a": 0}] * 3)
    assert rewards == [{"a": 1.0}] * 3


@pytest.mark.parametrize("executor", ["inline", "thread", "process"])
def test_a_failure_names_its_row_and_a_reset_recovers(build, agents, executor, tmp_path):
    config = {"fixed": tmp_path / "fixed"}
    fns = [agents.two_poles, partial(agents.FailingEnv, config), agents.two_poles]
    envs = build(fns, executor=executor)
    envs.reset(seed=1)
    actions = [{0: 0, 1: 0}] * 3
    envs.step(actions)
    envs.step(actions)
    with pytest.raises(RuntimeError, match="a wheel came off") as caught:
        envs.step(actions)
    assert_names_row(caught.value, 1)
    envs.reset(seed=1)
    assert envs.step(actions)[1] == [{0: 1.0, 1: 1.0}] * 3


def test_the_death_of_a_worker_is_an_error_and_the_rest_closes(build, agents):
    envs = build([agents.two_poles] * 2, executor="process", num_workers=2)
    envs.reset()
    end(multiprocessing.active_children()[0].pid)
    with pytest.raises(cartwheel.WorkerDiedError):
        envs.step([{0: 0, 1: 0}] * 2)
    envs.close()
    envs.close()


def test_wrong_actions_are_refused_and_nothing_is_stepped(build, agents):
    envs = build([agents.TurnsEnv] * 2, executor="inline")
    envs.reset()
    with pytest.raises(ValueError, match="expected 2 actions"):
        envs.step([{"z": 1}])
    for actions in ({0: {"z": 1}, 1: {}}, [{"z": 1}, 1], 3):
        with pytest.raises(TypeError, match="`actions` must be a list with a dictionary for each"):
            envs.step(actions)
    assert envs.get_attr("t") == (0, 0)


def test_options_that_choose_rows_are_refused_before_anything_is_reset(build, agents):
    envs = build([agents.TurnsEnv] * 2, executor="inline")
    envs.reset()
    for name, rows in (("env_index", [1]), ("reset_mask", np.array([True, False]))):
        with pytest.raises(ValueError, match=rf"must not choose rows, got \['{name}'\]"):
            envs.reset(options={name: rows})
    assert envs.stats().resets.tolist() == [1, 1]


class TurnBased:
    """A turn-based environment of PettingZoo, as far as it is looked at."""

    possible_agents = ("a",)

    def agent_iter(self):
        """PettingZoo's."""


def single_agent():
    return importlib.import_module("gymnasium").make("CartPole-v1")


def without_agents():
    return importlib.import_module("ray.rllib.env.multi_agent_env").MultiAgentEnv()


def three_poles():
    return importlib.import_module("tests.adapters.rllib.agents").TwoPoles({"num_agents": 3})


@pytest.mark.parametrize(
    ("second", "error", "message"),
    [
        (single_agent, TypeError, "must be a .*MultiAgentEnv or a parallel environment of Petting"),
        (TurnBased, TypeError, "turn-based environment of PettingZoo: wrap it in .*PettingZooEnv"),
        (without_agents, ValueError, "must name all its agents in `possible_agents`"),
        (three_poles, RuntimeError, "observation spaces are not equivalent"),
    ],
)
def test_what_is_no_fitting_environment_is_refused(build, agents, second, error, message):
    with pytest.raises(error, match=message) as caught:
        build([agents.two_poles, second], executor="thread")
    assert "AgentsEnv" not in text_of(caught.value)


def test_other_agents_of_the_same_spaces_are_refused(build, agents):
    class Named(agents.TurnsEnv):
        def __init__(self, name):
            super().__init__()
            self.possible_agents = self.agents = [name]
            self.observation_spaces = {name: self.observation_spaces["a"]}
            self.action_spaces = {name: self.action_spaces["a"]}

    with pytest.raises(ValueError, match=r"the same possible agents: row 0 has \['a'\], row 1 has"):
        build([partial(Named, "a"), partial(Named, "b")], executor="inline")


def test_keywords_that_do_not_exist_are_refused(build, agents):
    with pytest.raises(TypeError, match=r"did you mean `num_workers`\?"):
        build([agents.two_poles], num_worker=2)
    with pytest.raises(TypeError, match="`autoreset_mode` is not a keyword of AsyncVectorMulti"):
        build([agents.two_poles], autoreset_mode="same_step")
    with pytest.raises(IndexError, match="`env_fns` is empty"):
        build([])


def test_rows_of_several_agents_refuse_them_and_name_the_class_that_takes_them(agents):
    with pytest.raises(TypeError, match=r"cartwheel\.rllib\.AsyncVectorMultiAgentEnv"):
        cartwheel.ParallelVectorEnv([agents.two_poles], executor="inline")
