"""Environments, keywords and actions that a ``ParallelVectorEnv`` takes, and those it refuses."""

import math
import pickle
import re
import sys
import weakref

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import cartwheel
from tests.multiagent.environments import (
    Anonymous,
    Crowd,
    Done,
    Duel,
    Empty,
    Guests,
    Infoless,
    Misshapen,
    Switches,
    Talkers,
    Walkers,
)
from tests.multiagent.oracle import MODES, Alone, check_reset
from tests.support.environments import was_asked_for_its_dict


def make(env_fns, **keywords):
    return cartwheel.ParallelVectorEnv(env_fns, executor="inline", **keywords)


def actions_of(envs, value=0.0):
    return {name: np.full((envs.num_envs, 1), value) for name in envs.possible_agents}


@pytest.mark.parametrize(
    ("env_fns", "error", "text"),
    [
        ([], IndexError, "env_fns"),
        ([Anonymous], ValueError, "Anonymous has no `possible_agents`: set it to the list"),
        (
            [Walkers, lambda: Walkers(2)],
            ValueError,
            "row 0 has ['walker_0', 'walker_1', 'walker_2'], row 1 has ['walker_0', 'walker_1']",
        ),
        (
            [lambda: Walkers(2), lambda: Renamed(2)],
            ValueError,
            "the observation_space of agent 'walker_0' must be the same in all environments",
        ),
        (
            [lambda: gym.make("CartPole-v1")],
            TypeError,
            "a parallel or an AEC environment of PettingZoo, got",
        ),
        ([lambda: Guests(("a", "a"))], ValueError, "has an agent twice: ['a', 'a']"),
        ([lambda: Guests(("a", "present"))], ValueError, "agents cannot be named ['present']"),
    ],
)
def test_environments_that_do_not_fit_are_refused(env_fns, error, text):
    with pytest.raises(error, match=re.escape(text)):
        make(env_fns)


def reset_and_step(envs):
    envs.reset(seed=0)
    envs.step(actions_of(envs))


class Renamed(Walkers):
    def observation_space(self, agent):  # noqa: ARG002
        return gym.spaces.Box(0, 1, (3,), np.float32)


@pytest.mark.parametrize(
    ("keywords", "error", "text"),
    [
        ({"absent": 1.0}, ValueError, "`absent` must be 0 or math.nan, got 1.0"),
        ({"state": True}, ValueError, "`state=True` needs `state_space`, which Walkers lacks"),
        ({"state": 1}, TypeError, "state"),
        (
            {"ignore_terminations": True},
            TypeError,
            "`ignore_terminations` is not a keyword of ParallelVectorEnv: an environment cannot be",
        ),
        (
            {"max_episode_steps": 7, "action_repeat": 2},
            ValueError,
            "must be a multiple of action_repeat=2, got 7: pass 6",
        ),
        ({"autoreset_mode": "nope"}, ValueError, "nope"),
    ],
)
def test_keywords_that_cannot_be_are_refused(keywords, error, text):
    with pytest.raises(error, match=re.escape(text)):
        make([Walkers] * 2, **keywords)


def test_one_environment_for_two_rows_is_refused():
    env = Walkers()
    with pytest.raises(ValueError, match="returned the same environment"):
        make([lambda: env] * 2)
    duel = Duel()
    with pytest.raises(ValueError, match="returned the same environment"):
        make([lambda: duel] * 2)


def test_agents_are_in_the_order_of_the_first_row_whatever_that_of_the_others():
    with make([Walkers, lambda: Walkers(order=-1)]) as envs:
        observations, _ = envs.reset(seed=0)
        assert list(observations) == ["walker_0", "walker_1", "walker_2"]
        assert [observations[name][:, 0].tolist() for name in observations] == [
            [0, 0],
            [1, 1],
            [2, 2],
        ]
        rewards = envs.step(actions_of(envs))[1]
    assert [rewards[name].tolist() for name in rewards] == [[0, 0], [10, 10], [20, 20]]


def test_spaces_are_by_agent_and_keep_the_order():
    with make([Guests] * 3) as envs:
        names = ["host", "guest_10", "guest_2", 7]
        for space in (envs.single_observation_space, envs.action_space):
            assert list(space) == names
        assert envs.observation_space["guest_2"].shape == (3, 2, 3)
        assert envs.action_space[7] == gym.spaces.MultiDiscrete([5, 5, 5])
        assert repr(envs) == (
            "ParallelVectorEnv(agents=4, num_envs=3, autoreset_mode='next_step', executor='inline')"
        )
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(envs)
    assert envs.closed


@pytest.mark.parametrize("env", [Walkers, Guests], ids=["walkers", "guests with states"])
def test_environments_are_freed_with_their_rows_without_a_garbage_collection(env):
    with make([env] * 2) as envs:
        envs.reset(seed=0)
        known = [weakref.ref(one) for one in envs.envs]
    del envs
    assert [one() for one in known] == [None, None]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="each object has a dictionary")
@pytest.mark.parametrize("env", [Walkers, Guests, Duel])
def test_rows_and_environments_read_their_own_attributes_as_fast_as_alone(env):
    """As those of one agent: ``tests/vector/test_attributes.py``."""
    with make([env] * 2) as envs:
        envs.reset(seed=0)
        envs.step(envs.action_space.sample())
        envs.set_attr("render_mode", envs.get_attr("render_mode"))
        rows = [*envs._pool.envs, *envs.envs]
    assert [was_asked_for_its_dict(one) for one in rows] == [False] * 4


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (lambda actions: list(actions.values()), TypeError, "must be a dictionary with the agents"),
        (
            lambda actions: {name: actions[name] for name in ("walker_0", "walker_2")},
            ValueError,
            "also for absent ones: ['walker_1'] are missing",
        ),
        (lambda actions: actions | {"walker": 0}, ValueError, "['walker'] are unknown"),
        (
            lambda actions: actions | {"walker_1": np.zeros(2)},
            ValueError,
            "`actions['walker_1']` must have the shape (2, 1), got the shape (2,)",
        ),
        (
            lambda actions: actions | {"walker_2": np.zeros((2, 1), complex)},
            TypeError,
            "`actions['walker_2']` must be float32, got complex128",
        ),
        (
            lambda actions: actions | {"walker_0": [[0.0], [0.0, 1.0]]},
            ValueError,
            "`actions['walker_0']` is not an array: setting an array element with a sequence",
        ),
    ],
)
def test_actions_that_do_not_fit_name_the_agent_and_step_nothing(change, error, text):
    with make([Walkers] * 2) as envs:
        envs.reset(seed=0)
        actions = actions_of(envs)
        with pytest.raises(error, match=re.escape(text)):
            envs.step(change(actions))
        assert envs.step(actions)[0]["walker_0"][:, 1].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("env_fn", "agent", "action", "text"),
    [
        (Switches, "walker_1", [[0, 1], [257, 0]], "['walker_1']` must fit into int8, got 257"),
        (Guests, 7, np.array([1, 2**64 - 3], np.uint64), "[7]` must fit into int64, got 184"),
    ],
)
def test_integers_that_a_cast_would_change_are_refused(env_fn, agent, action, text):
    with make([env_fn] * 2) as envs:
        envs.reset(seed=0)
        actions = envs.action_space.sample()
        with pytest.raises(ValueError, match=re.escape(text)):
            envs.step(actions | {agent: action})
        envs.step(actions | {agent: np.ones_like(action, np.uint8)})


def test_nested_and_textual_actions_are_checked_by_agent():
    with make([Guests] * 2) as envs:
        envs.reset(seed=0)
        actions = envs.action_space.sample()
        with pytest.raises(ValueError, match=r"`actions\['host'\]` must have the parts \[0, 1\]"):
            envs.step(actions | {"host": np.zeros(2)})
        moves, (_, pushes) = np.zeros(3, int), actions["host"]
        with pytest.raises(
            ValueError, match=r"`actions\['host'\]\[0\]` must have the shape \(2,\)"
        ):
            envs.step(actions | {"host": (moves, pushes)})
    with make([Talkers] * 2) as envs:
        envs.reset(seed=0)
        with pytest.raises(ValueError, match=r"`actions\['b'\]` must have a batch of 2 actions"):
            envs.step({"a": ("x", "y"), "b": ("z",)})


@pytest.mark.parametrize(
    ("env", "error", "text"),
    [
        (Empty, ValueError, "no agent is in `agents` after a reset"),
        (Misshapen, ValueError, "the observation of agent 'walker_1' must have the shape (3,)"),
        (Crowd, ValueError, "`agents` has ['stranger'], which `possible_agents` does not"),
        (
            Infoless,
            ValueError,
            "reset() must return dictionaries by agent (observations, infos), got dict",
        ),
        (
            Done,
            ValueError,
            "step() must return dictionaries by agent (observations, rewards, terminations, "
            "truncations, infos), got (dict, dict, dict, dict)",
        ),
    ],
)
def test_wrong_results_of_environments_name_the_agent_and_the_row(env, error, text):
    with make([Walkers, env]) as envs:
        with pytest.raises(error, match=re.escape(text)) as caught:
            reset_and_step(envs)
        assert any("1" in note for note in caught.value.__notes__)


@pytest.mark.parametrize("action_repeat", [1, 2])
@pytest.mark.parametrize("part", [0, 1, 4])
def test_steps_that_return_something_other_than_dictionaries_say_so(part, action_repeat):
    class Partial(Walkers):
        def step(self, actions):
            results = super().step(actions)
            return (*results[:part], None, *results[part + 1 :])

    with make([Partial], action_repeat=action_repeat) as envs:
        names = ["dict"] * 5
        names[part] = "NoneType"
        with pytest.raises(ValueError, match=re.escape(f"got ({', '.join(names)})")):
            reset_and_step(envs)


def test_absent_agents_are_zeros_or_nan_where_they_can_be():
    for absent, expected in ((0, 0.0), (math.nan, math.nan)):
        with make([Walkers] * 2, absent=absent) as envs:
            envs.reset(seed=[0, 0])
            for _ in range(3):
                observations, _, _, _, infos = envs.step(actions_of(envs, 0.5))
            assert infos["present"]["walker_0"].tolist() == [False, False]
            np.testing.assert_array_equal(observations["walker_0"], np.full((2, 3), expected))
            assert observations["walker_2"][0].tolist() == [2, 3, 0.5]


def test_the_state_of_environments_is_shown_and_the_last_one_of_rows_that_end():
    with make([lambda: Guests(limit=3)] * 2, state=True, autoreset_mode="same_step") as envs:
        assert envs.state_space.shape == (2,)
        _, infos = envs.reset(seed=0, options={"total": 5})
        assert infos["state"].tolist() == [[0, 5], [0, 5]]
        ended = 0
        for _ in range(6):
            infos = envs.step(envs.action_space.sample())[4]
            over = infos["episode_over"]
            assert (infos["state"][over] == 0).all()
            if over.any():
                ended += 1
                assert infos["_final_state"].tolist() == over.tolist()
                assert (infos["final_state"][over][:, 0] >= 1).all()
    assert ended


class Titled(Walkers):
    env = "of the class, and no environment inside"


def test_attributes_and_calls_reach_the_environment_that_the_function_returned():
    with make([Walkers, Walkers]) as envs:
        envs.reset(seed=[0, 1])
        assert envs.get_attr("late") == (0, 1)
        envs.set_attr("late", [2, 2])
        assert envs.call("number", "walker_2", env_index=[1]) == (2,)
        assert envs.apply(lambda env: (type(env), env.late)) == ((Walkers, 2), (Walkers, 2))
        assert [type(env) for env in envs.envs] == [Walkers, Walkers]
        with pytest.raises(AttributeError, match="Walkers has no attribute 'speed'"):
            envs.get_attr("speed")
    with make([Titled]) as envs:
        envs.set_attr("speed", 3)
        assert envs.envs[0].speed == 3
    with make([Duel]) as envs:
        envs.reset()
        assert envs.get_attr("left") == (7,)
    with make([Guests]) as envs:
        envs.reset(seed=0)
        assert envs.render()[0].startswith("0: ")


def test_actions_are_repeated_until_each_agent_ends():
    with make([Walkers] * 2, action_repeat=3, autoreset_mode="disabled") as envs:
        envs.reset(seed=[0, 2])
        observations, rewards, terminations, _, infos = envs.step(actions_of(envs, 1.0))
        # Row 0: the walkers end at 2, 3 and 4 steps; row 1: at 4, 5 and 6.
        assert observations["walker_0"].tolist() == [[0, 2, 1], [0, 3, 1]]
        assert rewards["walker_0"].tolist() == [2, 3]
        assert rewards["walker_1"].tolist() == [33, 33]
        assert terminations["walker_0"].tolist() == [True, False]
        assert terminations["walker_1"].tolist() == [True, False]
        assert infos["walker_0"]["t"].tolist() == [2, 3]
        rewards, _, _, infos = envs.step(actions_of(envs, 1.0))[1:]
        assert rewards["walker_2"].tolist() == [21, 63]
        assert infos["acted"]["walker_0"].tolist() == [False, True]
        assert infos["episode_over"].tolist() == [True, True]


class Reusing(Walkers):
    """All observations are parts of one array, which each step writes."""

    def __init__(self):
        super().__init__()
        self.seen = np.zeros((3, 3), np.float32)

    def step(self, actions):
        observations, *rest = super().step(actions)
        self.seen[:] = -1
        for name, observed in observations.items():
            self.seen[self.number(name)] = observed
        return {name: self.seen[self.number(name)] for name in observations}, *rest


def test_the_last_observation_of_an_agent_stays_while_others_repeat_their_actions():
    with make([Reusing], action_repeat=4) as envs:
        envs.reset(seed=[0])
        observations = envs.step(actions_of(envs, 1.0))[0]
        assert [shown[0, 1] for shown in observations.values()] == [2, 3, 4]


class Returning(Walkers):
    """Walker 0 ends with step 2, and comes again with step 3."""

    def step(self, actions):
        observations, *rest = super().step(actions)
        if self.t == 3:
            self.agents.append("walker_0")
            observations["walker_0"] = self.observe("walker_0", 9)
        return observations, *rest


def test_an_agent_that_ends_and_comes_again_within_a_step_has_its_end_and_shows_its_beginning():
    with make([Returning], action_repeat=3) as envs:
        envs.reset(seed=[0])
        observations, rewards, terminations, _, infos = envs.step(actions_of(envs, 1.0))
        assert observations["walker_0"].tolist() == [[0, 3, 9]]
        assert (rewards["walker_0"][0], terminations["walker_0"][0]) == (2, True)
        assert infos["present"]["walker_0"][0]
        assert envs.step(actions_of(envs))[4]["acted"]["walker_0"][0]


class Announced(Returning):
    """Walker 0 says that it is back."""

    def step(self, actions):
        *results, infos = super().step(actions)
        return *results, infos | ({"walker_0": {"back": True}} if self.t == 3 else {})


def test_its_row_shows_its_beginning_and_final_infos_are_those_of_its_last_step():
    with make([Announced], action_repeat=3, autoreset_mode="same_step") as envs:
        rows = envs.as_rows()
        rows.reset(seed=[0])
        observations, _, terminated, _, infos = rows.step(np.ones((3, 1)))
        assert terminated.tolist() == infos["_final_obs"].tolist() == [True, True, False]
        assert infos["present"].tolist() == [True, False, True]
        assert observations.tolist() == [[0, 3, 9], [0, 0, 0], [2, 3, 1]]
        assert infos["final_info"]["_back"].tolist() == [True, False, False]
        assert not infos["_back"].any()


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
def test_seeds_and_options_reach_the_environments_of_their_rows(mode):
    with cartwheel.ParallelVectorEnv(
        [Guests] * 3, autoreset_mode=mode, executor="inline", state=True
    ) as envs:
        alone = [Alone(Guests(), mode) for _ in range(3)]
        seeds, options = [5, 1, 9], {"total": 40}
        rows = [env.reset(seed, options) for env, seed in zip(alone, seeds, strict=True)]
        result = envs.reset(seed=seeds, options=options)
        check_reset(envs, result, rows)
        assert result[1]["state"].tolist() == [[0, 40]] * 3
        if mode == AutoresetMode.DISABLED:
            with pytest.raises(RuntimeError, match="is for automatic resets"):
                envs.next_reset(seed=[4], env_index=[1])
            return
        envs.next_reset(seed=[4], options={"total": 7}, env_index=[1])
        again = Guests()
        expected = again.reset(seed=4, options={"total": 7})[0]
        for _ in range(30):
            observations, *_, infos = envs.step(envs.action_space.sample())
            if infos["state"][1][0] == 0:  # the row was reset
                break
        assert infos["state"][1].tolist() == [0, 7]
        present = {name for name in envs.possible_agents if infos["present"][name][1]}
        assert present == set(expected)
        for name in present - {"host"}:
            np.testing.assert_array_equal(observations[name][1], expected[name])


def test_a_property_that_raises_keeps_its_text():
    with (
        cartwheel.ParallelVectorEnv([Guests], executor="thread") as envs,
        pytest.raises(AttributeError, match="are not in this thread; use call"),
    ):
        envs.envs  # noqa: B018


def test_the_mode_can_be_read_and_not_set():
    with make([Walkers], autoreset_mode="same_step") as envs:
        for seen in (envs, envs.as_rows()):
            with pytest.raises(AttributeError):
                seen.autoreset_mode = AutoresetMode.NEXT_STEP
            assert seen.autoreset_mode is AutoresetMode.SAME_STEP


def test_names_of_other_interfaces_are_answered_with_ours():
    with cartwheel.ParallelVectorEnv([Guests], executor="inline") as envs:
        for name, text in {
            "agents": "infos\\['present'\\]",
            "rollout": "as_rows",
            "observation_spaces": "single_observation_space",
            "unwrapped": "has no attribute 'unwrapped'$",
        }.items():
            with pytest.raises(AttributeError, match=text):
                getattr(envs, name)
    for given in ("rps-v2", "mine/Relay-v0"):
        with pytest.raises(TypeError, match=r"ParallelVectorEnv\.native\(env_id, num_envs\)"):
            cartwheel.ParallelVectorEnv(given)


def test_errors_have_the_name_of_the_class_that_was_made():
    envs = make([Guests])
    envs.close()
    with pytest.raises(
        gym.error.ClosedEnvironmentError, match="operate on `ParallelVectorEnv`, after"
    ):
        envs.reset()
