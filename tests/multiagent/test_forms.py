"""Other forms of a ``ParallelVectorEnv``: by group, a row for each agent, one of PettingZoo's."""

import math
import re
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Tuple
from gymnasium.vector import AutoresetMode

import cartwheel
from tests.multiagent.environments import Guests, Stated, Talkers, Walkers, rock_paper_scissors
from tests.multiagent.oracle import MODES, check_equal

EVERY_MODE = pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)


def make(env_fns, **keywords):
    keywords.setdefault("executor", "inline")
    return cartwheel.ParallelVectorEnv(env_fns, **keywords)


def test_groups_are_arrays_with_a_dimension_of_agents_in_their_order():
    with make([lambda: Walkers(4)] * 3) as envs, make([lambda: Walkers(4)] * 3) as others:
        groups = envs.by_group({"odd": ["walker_1", "walker_3"], "even": ["walker_2", "walker_0"]})
        assert groups.observation_spaces["odd"].shape == (3, 2, 3)
        assert groups.action_spaces["even"].shape == (3, 2, 1)
        observations, infos = groups.reset(seed=0)
        by_agent, _ = others.reset(seed=0)
        assert observations["odd"].shape == (3, 2, 3)
        assert infos["present"]["even"].tolist() == [[True, True]] * 3
        for step in range(12):
            actions = {name: space.sample() for name, space in groups.action_spaces.items()}
            results = groups.step(actions)
            expected = others.step(
                {
                    agent: actions[name][:, at]
                    for name, members in groups.groups.items()
                    for at, agent in enumerate(members)
                }
            )
            for name, members in groups.groups.items():
                for at, agent in enumerate(members):
                    for one, other in zip(results[:4], expected[:4], strict=True):
                        check_equal(one[name][:, at], other[agent], (step, name, agent))
                    for mask in ("present", "acted"):
                        one, other = results[4][mask], expected[4][mask]
                        check_equal(one[name][:, at], other[agent], (step, mask, agent))
            assert results[4]["episode_over"].tolist() == expected[4]["episode_over"].tolist()
    assert by_agent["walker_2"][0].tolist() == observations["even"][0, 0].tolist()


def test_observations_of_groups_are_views_where_agents_are_at_equal_distances():
    with make([lambda: Walkers(4)] * 2) as envs:
        names = envs.possible_agents
        for members, is_view in (
            (names[:4], True),
            ([names[0], names[2]], True),
            (names[1:], True),
            (names[::-1], False),
            ([names[0], names[1], names[3]], False),
        ):
            rest = [name for name in names if name not in members]
            groups = envs.by_group({"all": members} | ({"rest": rest} if rest else {}))
            observations, _ = groups.reset(seed=0)
            own = envs.reset(seed=0)[0]
            assert observations["all"][0, :, 0].tolist() == [int(name[-1]) for name in members]
            assert (observations["all"].base is not None) == is_view
            assert own["walker_0"].base is not None


def test_final_observations_are_by_group():
    with make([Walkers] * 2, autoreset_mode="same_step") as envs:
        groups = envs.by_group({"all": envs.possible_agents})
        groups.reset(seed=[0, 0])
        for _ in range(4):
            _, _, terminations, _, infos = groups.step({"all": np.ones((2, 3, 1))})
        assert infos["final_obs"]["all"][:, 2].tolist() == [[2, 4, 1]] * 2
        assert infos["_final_obs"]["all"].tolist() == [[False, False, True]] * 2
        assert terminations["all"].tolist() == [[False, False, True]] * 2


@pytest.mark.parametrize(
    ("groups", "error", "text"),
    [
        (["walker_0"], TypeError, "must be a dictionary of lists of the agents"),
        ({"all": "walker_0"}, TypeError, "must be a dictionary of lists of the agents"),
        ({"all": ["walker_0", "walker_1"]}, ValueError, "['walker_2'] are in no group"),
        (
            {"all": ["walker_0", "walker_1", "walker_2", "walker_0"]},
            ValueError,
            "['walker_0'] are in several places",
        ),
        ({"all": ["walker_0", "walker_1", "x"]}, ValueError, "['x'] are unknown"),
        (
            {"all": ["walker_0", "walker_1", "walker_2"], "none": []},
            ValueError,
            "the groups ['none'] have no agents",
        ),
    ],
)
def test_groups_that_do_not_divide_the_agents_are_refused(groups, error, text):
    with make([Walkers]) as envs, pytest.raises(error, match=re.escape(text)):
        envs.by_group(groups)


def test_groups_of_different_spaces_are_refused_and_wrong_actions_name_the_group():
    with make([Guests]) as envs:
        host, *guests = envs.possible_agents
        with pytest.raises(
            ValueError,
            match="the group 'all' needs agents with the same observation space: 'host' has",
        ):
            envs.by_group({"all": [host, *guests]})
        with pytest.raises(
            ValueError, match="'guests' needs agents with the same action space: 'guest_10' has"
        ):
            envs.by_group({"host": [host], "guests": guests})
    with (
        make([Talkers]) as envs,
        pytest.raises(ValueError, match="needs observations of fixed shape"),
    ):
        envs.by_group({"a": ["a"], "b": ["b"]})
    with make([Walkers] * 2) as envs:
        groups = envs.by_group({"all": envs.possible_agents})
        groups.reset(seed=0)
        with pytest.raises(ValueError, match=r"shape \(num_envs, 3, ...\) for the 3 agents"):
            groups.step({"all": np.zeros((2, 2, 1))})
        with pytest.raises(ValueError, match=r"for each of the groups \['all'\], .*are missing"):
            groups.step({"a": 0})


@EVERY_MODE
def test_rows_of_agents_are_the_columns_of_the_batch(mode):
    with (
        make([Walkers] * 3, autoreset_mode=mode) as envs,
        make([Walkers] * 3, autoreset_mode=mode) as others,
    ):
        rows = envs.as_rows()
        assert isinstance(rows, gym.vector.VectorEnv)
        assert rows.num_envs == 9
        assert rows.metadata["autoreset_mode"] == mode
        assert rows.observation_space.shape == (9, 3)
        rows.action_space.seed(1)
        observations, infos = rows.reset(seed=0)
        names = others.possible_agents
        others.reset(seed=0)
        assert observations[:, 0].tolist() == [0, 1, 2] * 3
        assert not infos["acted"].any()
        for step in range(14):
            actions = rows.action_space.sample()
            by_agent = {name: actions[place::3] for place, name in enumerate(names)}
            one, other = rows.step(actions), others.step(by_agent)
            over = other[4]["episode_over"]
            for place, name in enumerate(names):
                for flat, columns in zip(one[1:4], other[1:4], strict=True):
                    assert flat[place::3].tolist() == columns[name].tolist(), (step, name)
                assert one[4]["acted"][place::3].tolist() == other[4]["acted"][name].tolist()
                assert one[4]["episode_over"][place::3].tolist() == over.tolist()
                early = (other[2][name] | other[3][name]) & ~over
                expected = np.where(early[:, None], 0, other[0][name])
                present = other[4]["present"][name] & ~early
                if mode != AutoresetMode.SAME_STEP:
                    expected, present = other[0][name], other[4]["present"][name]
                assert one[0][place::3].tolist() == expected.tolist(), (step, name)
                assert one[4]["present"][place::3].tolist() == present.tolist()
                if mode == AutoresetMode.SAME_STEP:
                    check_finals(one[4], other, name, place, early)
            if mode == AutoresetMode.DISABLED and over.any():
                rows.reset(options={"reset_mask": one[4]["episode_over"]})
                others.reset(options={"reset_mask": over})


def check_finals(infos, other, name, place, early):
    """Checks that last observations are in ``final_obs``, of agents that end early, too."""
    last = np.zeros(len(early), bool)
    if "final_obs" in other[4]:
        last = other[4]["_final_obs"][name]
    mask = early | last
    if not mask.any():
        assert "final_obs" not in infos or not infos["_final_obs"][place::3].any()
        return
    assert infos["_final_obs"][place::3].tolist() == mask.tolist()
    for row in np.flatnonzero(mask):
        source = other[4]["final_obs"] if last[row] else other[0]
        found = infos["final_obs"][place::3][row]
        assert found.tolist() == source[name][row].tolist()
        for there, final in (
            (infos, infos["final_info"]),
            (infos.get(7, {}), infos["final_info"][7]),
        ):
            assert final["t"][place::3][row] == found[1]
            assert final["_t"][place::3][row]
            assert not there.get("_t", np.zeros(3 * len(mask), bool))[place::3][row]


class Silent(Walkers):
    """Agents leave without a flag."""

    def step(self, actions):
        observations, rewards, over, truncations, infos = super().step(actions)
        return observations, rewards, dict.fromkeys(over, False), truncations, infos


class Reporting(Walkers):
    """Infos of agents have several shapes, and whole numbers until an agent ends before row 0."""

    def step(self, actions):
        observations, rewards, over, truncations, _ = super().step(actions)
        infos = {
            name: {
                "hand": np.arange(1 + self.number(name)),
                "share": 0.5 if over[name] and self.late == 1 else self.t,
            }
            for name in actions
        }
        return observations, rewards, over, truncations, infos


def test_rows_of_agents_have_the_infos_of_each_agent_whatever_their_shapes_and_dtypes():
    with make([Reporting] * 2, autoreset_mode="same_step") as envs:
        rows = envs.as_rows()
        rows.reset(seed=[0, 1])
        for step in range(1, 5):
            infos = rows.step(np.zeros((6, 1)))[4]
            assert {"0", "_0"}.isdisjoint(infos)  # as which those of an agent reach the pool
            lasts = infos.get("final_info", {})
            for row in range(6):
                number, late = row % 3, row // 3
                found = lasts if lasts and infos["_final_obs"][row] else infos
                is_over = step == 2 + number + late
                assert infos["acted"][row] == (step <= 2 + number + late)
                if infos["acted"][row]:
                    assert found["_share"][row]
                    assert found["share"][row] == (0.5 if is_over and late == 1 else step)
                    assert found["hand"][row].tolist() == list(range(1 + number))
        # Row 2 ended with its environment, and reports a whole number next to the half of row 4.
        assert (lasts["share"][2], lasts["share"][4]) == (4, 0.5)


def test_a_row_whose_agent_leaves_without_a_flag_is_terminated():
    with make([Silent], autoreset_mode="same_step") as envs:
        rows = envs.as_rows()
        rows.reset(seed=[0])
        ends = [rows.step(np.zeros((3, 1)))[2].tolist() for _ in range(4)]
        assert ends[1:] == [[True, False, False], [False, True, False], [False, False, True]]
        envs.reset(seed=[0])
        flags = [envs.step({name: np.zeros((1, 1)) for name in envs.possible_agents})[2]]
        assert not any(flag.any() for flag in flags[0].values())


def test_rows_whose_agent_is_absent_have_the_value_of_absent_agents():
    with make([Walkers], autoreset_mode="same_step", absent=math.nan) as envs:
        rows = envs.as_rows()
        rows.reset(seed=[0])
        absent = []
        for _ in range(3):
            observations, _, _, _, infos = rows.step(np.zeros((3, 1)))
            assert np.isnan(observations).all(axis=1).tolist() == (~infos["present"]).tolist()
            absent.append(int((~infos["present"]).sum()))
        assert absent == [0, 1, 2]


class Hollow(Walkers):
    """A part of an observation has a dimension without elements."""

    def observation_space(self, agent):
        return Dict({"x": super().observation_space(agent), "none": Box(0, 1, (0, 2), np.float32)})

    def observe(self, agent, action):
        return {"x": super().observe(agent, action), "none": np.zeros((0, 2), np.float32)}


def test_rows_have_parts_without_elements():
    with make([Hollow] * 2, autoreset_mode="same_step") as envs:
        rows = envs.as_rows()
        shown = [rows.reset(seed=0)[0]]
        for _ in range(4):
            observations, *_, infos = rows.step(np.zeros((6, 1)))
            shown.append(observations)
        assert {observed["none"].shape for observed in shown} == {(6, 0, 2)}
        assert infos["final_obs"][2]["none"].shape == (0, 2)


class Paired(Stated):
    """Its state is a tuple."""

    state_space = Tuple([Stated.state_space, Discrete(99)])

    def state(self):
        return super().state(), self.late


@pytest.mark.parametrize("env", [Stated, Paired])
def test_rows_have_every_part_of_the_state_of_their_environment(env):
    with make([env] * 2, state=True, autoreset_mode="same_step") as envs:
        rows = envs.as_rows()
        _, infos = rows.reset(seed=[0, 1])
        late = [0] * 3 + [1] * 3
        for step in range(1, 5):
            shown = infos["state"]
            if env is Paired:
                shown, other = shown
                assert other.tolist() == late
            assert shown["t"].tolist() == [[step - 1]] * 6
            assert shown["late"].tolist() == late
            infos = rows.step(np.zeros((6, 1)))[4]
        assert infos["_final_state"].tolist() == [True] * 3 + [False] * 3
        last, shown = infos["final_state"], infos["state"]
        if env is Paired:
            last, shown = last[0], shown[0]
        assert last["t"][:3].tolist() == [[4]] * 3
        assert shown["t"].tolist() == [[0]] * 3 + [[4]] * 3


def test_rows_share_what_their_environment_returns_to_a_call():
    with make([Stated] * 2) as envs:
        rows = envs.as_rows()
        rows.reset(seed=[0, 1])
        assert rows.get_attr("late") == (0, 0, 0, 1, 1, 1)
        assert rows.call("number", agent="walker_2") == (2,) * 6
        states = rows.call("state")
        assert states[0] is states[2]
        assert states[3]["late"] == 1


def test_rows_set_an_attribute_of_their_environment():
    with make([Stated] * 2) as envs:
        rows = envs.as_rows()
        rows.set_attr("late", np.array([1, 2]))
        assert [value.tolist() for value in envs.get_attr("late")] == [[1, 2]] * 2
        rows.set_attr("late", rows.get_attr("late"))
        rows.set_attr("late", [4] * 3 + [5] * 3)
        assert envs.get_attr("late") == (4, 5)
        with pytest.raises(ValueError, match="all 3 rows of environment 1, got 5 and 6"):
            rows.set_attr("late", [9] * 3 + [5, 5, 6])
        with pytest.raises(ValueError, match="Got `2` values for 6"):
            rows.set_attr("late", [4, 5])
        assert envs.get_attr("late") == (4, 5)


def test_rows_of_environments_are_reset_together():
    with make([Walkers] * 2, autoreset_mode="disabled") as envs:
        rows = envs.as_rows()
        rows.reset(seed=0)
        rows.step(np.zeros((6, 1)))
        mask = np.array([True] * 3 + [False] * 3)
        assert rows.reset(options={"reset_mask": mask})[0][:, 1].tolist() == [0] * 3 + [1] * 3
        with pytest.raises(ValueError, match=r"some of the agents of the environments \[0\]"):
            rows.reset(options={"reset_mask": np.arange(6) < 2})
        with pytest.raises(ValueError, match=r"must have the shape \(6,\), got \(2,\)"):
            rows.reset(options={"reset_mask": np.ones(2, bool)})
        with pytest.raises(ValueError, match="reset by 'reset_mask'"):
            rows.reset(options={"env_index": [0]})
        with pytest.raises(ValueError, match="one entry for each of the 6 rows"):
            rows.step(np.zeros((2, 1)))


@EVERY_MODE
def test_a_masked_reset_shows_other_rows_as_the_last_step_did(mode):
    with make([Walkers] * 2, autoreset_mode=mode) as envs:
        rows = envs.as_rows()
        rows.reset(seed=0)
        ended = 0
        for _ in range(4):
            shown, _, terminated, _, before = rows.step(np.ones((6, 1)))
            ended += np.count_nonzero(terminated[:3])
            observations, infos = rows.reset(options={"reset_mask": np.arange(6) > 2})
            assert observations[:3].tolist() == shown[:3].tolist()
            assert infos["present"].tolist() == before["present"][:3].tolist() + [True] * 3
            assert observations[3:, 1].tolist() == [0] * 3
        assert ended == 3


def test_rows_take_actions_in_lists_and_tuples():
    with make([Walkers] * 2) as envs:
        rows = envs.as_rows()
        for actions in ([[1.0]] * 6, ([1.0],) * 6, ((1.0,),) * 6):
            rows.reset(seed=0)
            assert rows.step(actions)[1].tolist() == [1, 11, 21] * 2


def test_actions_of_rows_that_do_not_fit_are_named_by_rows():
    with make([Walkers] * 2) as envs:
        rows = envs.as_rows()
        rows.reset(seed=0)
        for shape in [(6,), (6, 2), (6, 1, 1)]:
            match = rf"must have the shape \(6, 1\), got {re.escape(str(shape))}"
            with pytest.raises(ValueError, match=match):
                rows.step(np.zeros(shape))
        with pytest.raises(ValueError, match=r"one entry for each of the 6 rows.* \(2, 1\)"):
            rows.step(np.zeros((2, 1)))
        assert rows.step(np.zeros((6, 1)))[0][:, 1].tolist() == [1] * 6


def test_rows_need_agents_with_equal_spaces_and_whole_batches():
    with make([Guests]) as envs, pytest.raises(ValueError, match="'host' has Dict"):
        envs.as_rows()
    with make([Walkers] * 2, batch_size=1) as envs, pytest.raises(ValueError, match="batch_size=1"):
        envs.as_rows()


def test_wrappers_of_gymnasium_take_the_rows_of_agents():
    with make([Walkers] * 2) as envs:
        wrapped = gym.wrappers.vector.RescaleAction(envs.as_rows(), -2, 2)
        assert wrapped.reset(seed=0)[0].shape == (6, 3)
        assert wrapped.step(np.full((6, 1), 2.0))[0][:, 2].tolist() == [1.0] * 6


def one(env_fn):
    return make([env_fn], autoreset_mode="disabled").as_parallel_env()


@pytest.mark.parametrize("env", [rock_paper_scissors, Walkers], ids=["rps", "walkers"])
def test_one_environment_passes_the_tests_of_pettingzoo(env):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of old names of environments
        from pettingzoo.test import parallel_api_test, parallel_seed_test

        single = one(env)
        parallel_api_test(single, 20)
        single.close()
        parallel_seed_test(lambda: one(env), 20)


def test_one_environment_is_that_of_pettingzoo_agent_by_agent():
    single, alone = one(Guests), Guests()
    results, expected = single.reset(seed=4), alone.reset(seed=4)
    for _ in range(30):
        assert single.agents == [name for name in alone.possible_agents if name in alone.agents]
        assert np.array_equal(single.state(), alone.state())
        assert single.render() == alone.render()
        for name, observation in results[0].items():
            check_equal(observation, expected[0][name], (name,))
        if not alone.agents:
            results, expected = single.reset(), alone.reset()
            continue
        acting = list(alone.agents)
        actions = {name: single.action_space(name).sample() for name in acting}
        with pytest.raises(ValueError, match="have none"):
            single.step({})
        results, expected = single.step(actions), alone.step(actions)
        known = {*acting, *alone.agents}
        assert set(results[0]) == {name for name in expected[0] if name in known}
        for name in acting:
            assert [part[name] for part in results[1:4]] == [part[name] for part in expected[1:4]]
            assert results[4][name] == expected[4].get(name, {})
    single.close()


@pytest.mark.parametrize(
    ("fails_at", "keywords"),
    [
        (None, {"max_episode_steps": 3}),
        (3, {"on_error": "restart"}),
        (None, {"max_episode_steps": 3, "on_done": "freeze"}),
    ],
    ids=["limit", "failure", "frozen"],
)
def test_one_environment_has_no_agents_once_its_episode_was_cut(fails_at, keywords):
    envs = make([lambda: Walkers(fails_at=fails_at)], autoreset_mode="disabled", **keywords)
    with envs:
        single = envs.as_parallel_env()
        single.reset(seed=2)
        steps = 0
        while single.agents and steps < 9:
            actions = {name: np.zeros(1, np.float32) for name in single.agents}
            *_, truncations, infos = single.step(actions)
            steps += 1
        assert steps == 3
        assert truncations == dict.fromkeys(envs.possible_agents, True)
        assert infos.keys() == truncations.keys()
        if "on_done" in keywords:
            single.step({})
            assert single.agents == []
        single.reset()
        assert single.agents == envs.possible_agents


def test_one_environment_needs_one_row_and_a_caller_that_resets():
    with make([Walkers] * 2) as envs, pytest.raises(ValueError, match="got num_envs=2"):
        envs.as_parallel_env()
    with make([Walkers]) as envs, pytest.raises(ValueError, match="autoreset_mode='disabled'"):
        envs.as_parallel_env()
