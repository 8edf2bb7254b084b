"""Environments of several players: PettingZoo's parallel environments with a row per player."""

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Box, Dict, Discrete, Graph, OneOf, Sequence, Text, Tuple

from cartwheel import envpool
from cartwheel.envpool.players import Players
from tests.envpool.parallel_env import CountdownEnv
from tests.envpool.tasks import COUNTDOWN, CURT_COUNTDOWN


def play_alone(seed, rounds):
    """Rows of one environment played alone: number, steps, reward, terminated of each player."""
    env, rows = CountdownEnv(), []
    observations, _ = env.reset(seed=seed)
    rows.append([(*observation, 0.0, False) for observation in observations.values()])
    over = False
    for step in range(rounds):
        if over:
            observations, _ = env.reset()
            rows.append([(*observation, 0.0, False) for observation in observations.values()])
            over = False
            continue
        actions = {agent: 1 + (step + env.number(agent)) % 5 for agent in env.agents}
        observations, rewards, terminations, _, _ = env.step(actions)
        rows.append([(*observations[a], rewards[a], terminations[a]) for a in observations])
        over = not env.agents
    return rows


def numbered_actions(info, step):
    """The actions of :func:`play_alone` for the players of a batch."""
    return 1 + (step + info["players"]["id"]) % 5


@pytest.mark.parametrize("executor", ["inline", "process"])
def test_rows_are_those_of_each_environment_played_alone(make, executor):
    seeds, rounds = [4, 0, 2], 17
    envs = make(COUNTDOWN, num_envs=3, seed=seeds, executor=executor)
    alone = [play_alone(seed, rounds) for seed in seeds]
    observations, info = envs.reset()
    rewards, step = np.zeros(len(observations)), 0
    while True:
        players = info["players"]
        owners = np.repeat([0, 1, 2], [len(rows[step]) for rows in alone])
        assert players["env_id"].tolist() == owners.tolist()
        expected = np.array([row for rows in alone for row in rows[step]])
        np.testing.assert_array_equal(observations, expected[:, :2])
        np.testing.assert_array_equal(players["id"], expected[:, 0])
        np.testing.assert_array_equal(rewards, expected[:, 2])
        np.testing.assert_array_equal(players["terminated"], expected[:, 3])
        if step == rounds:
            break
        observations, rewards, terminations, _, info = envs.step(numbered_actions(info, step))
        assert terminations.shape == info["env_id"].shape == (3,)
        step += 1
    assert players["env_id"].dtype == players["id"].dtype == np.int32


def test_agents_without_an_observation_keep_their_rewards_flags_and_actions(make):
    """Rewards depend on the actions, so unobserved agents must get the caller's actions too."""
    seeds, rounds = [4, 0, 2], 17
    envs = make(CURT_COUNTDOWN, num_envs=3, seed=seeds, executor="inline")
    alone = [play_alone(seed, rounds) for seed in seeds]
    _, info = envs.reset()
    for step in range(rounds):
        actions = numbered_actions(info, step)
        observations, rewards, _, _, info = envs.step(actions)
        expected = np.array([row for rows in alone for row in rows[step + 1]])
        number, elapsed, reward, terminated = expected.T
        blank = (terminated == 1) | ((number == 1) & (elapsed > 0))
        np.testing.assert_array_equal(info["players"]["id"], number)
        np.testing.assert_array_equal(rewards, reward)
        np.testing.assert_array_equal(info["players"]["terminated"], terminated)
        np.testing.assert_array_equal(observations, expected[:, :2] * ~blank[:, None])
        assert blank.any()


def test_an_environment_is_over_when_its_last_player_is(make):
    envs = make(COUNTDOWN, num_envs=1, seed=0)
    _, info = envs.reset()
    over = []
    for step in range(5):
        _, _, terminations, _, info = envs.step(numbered_actions(info, step))
        over.append((len(info["players"]["id"]), terminations.tolist(), *info["elapsed_step"]))
    assert over == [
        (3, [False], 1),
        (3, [False], 2),
        (2, [False], 3),
        (1, [True], 4),
        (3, [False], 0),
    ]


class VanishingEnv(CountdownEnv):
    """Its players go without a flag."""

    def step(self, actions):
        observations, rewards, terminations, truncations, infos = super().step(actions)
        return observations, rewards, dict.fromkeys(terminations, False), truncations, infos


def test_an_environment_whose_last_player_goes_without_a_flag_terminates(make):
    if "tests/Vanishing-v0" not in envpool.list_all_envs():
        envpool.register("tests/Vanishing-v0", VanishingEnv, parallel=True)
    envs = make("tests/Vanishing-v0", num_envs=1, seed=0)
    _, info = envs.reset()
    for step in range(4):
        _, _, terminations, truncations, info = envs.step(numbered_actions(info, step))
        assert terminations.tolist() == [step == 3]
        assert not truncations.any()


def test_a_step_limit_truncates_all_players(make):
    envs = make(COUNTDOWN, num_envs=2, seed=2, max_episode_steps=1)
    envs.reset()
    _, _, terminations, truncations, info = envs.step(np.ones(6, np.int64))
    assert not terminations.any()
    assert truncations.all()
    assert info["players"]["truncated"].tolist() == [True] * 6


def test_actions_may_come_in_any_order_of_environments(make):
    """Players of one environment keep their order; ``players.env_id`` has their environments."""
    pools = [make(COUNTDOWN, num_envs=3, seed=0) for _ in range(2)]
    for envs in pools:
        envs.reset()
    actions = np.array([1, 2, 3, 4, 5, 1, 2, 3, 4])
    owners = np.repeat([2, 0, 1], 3)
    mixed = np.array([3, 0, 6, 7, 1, 4, 5, 8, 2])
    straight = pools[0].step(actions, [2, 0, 1])
    action = {"action": actions[mixed], "players.env_id": owners[mixed], "env_id": [2, 0, 1]}
    shuffled = pools[1].step(action)
    assert straight[4]["env_id"].tolist() == shuffled[4]["env_id"].tolist() == [2, 0, 1]
    assert straight[4]["players"]["env_id"].tolist() == owners.tolist()
    assert straight[1].tolist() == [1, 12, 23, 4, 15, 21, 2, 13, 24]
    assert shuffled[1].tolist() == expected_rewards(actions[mixed], owners[mixed], [2, 0, 1])


def expected_rewards(actions, owners, ids):
    """Rewards by a loop: the players of each environment take its actions in their order."""
    rewards = []
    for env_id in ids:
        own = [action for action, owner in zip(actions, owners, strict=True) if owner == env_id]
        rewards += [action + 10 * number for number, action in enumerate(own)]
    return rewards


def test_asynchronous_mode_has_players_too(make):
    envs = make(COUNTDOWN, num_envs=4, batch_size=2, seed=0, num_threads=2)
    envs.async_reset()
    for step in range(20):
        observations, _, _, _, info = envs.recv()
        assert set(info["players"]["env_id"]) == set(info["env_id"])
        of_player = dict(zip(info["env_id"], info["elapsed_step"], strict=True))
        elapsed = [of_player[env_id] for env_id in info["players"]["env_id"]]
        np.testing.assert_array_equal(observations[:, 1], elapsed)
        envs.send(numbered_actions(info, step), info["env_id"])


def test_infos_of_agents_are_under_their_names(make):
    envs = make(COUNTDOWN, num_envs=2, seed=0)
    envs.reset()
    info = envs.step(np.array([1, 2, 3, 4, 5, 1]))[4]
    assert info["agent_1"]["doubled"].tolist() == [4, 10]


def test_time_steps_have_rows_of_players(make):
    envs = make(COUNTDOWN, "dm", num_envs=2, seed=0)
    step = envs.reset()
    assert step.observation.obs.shape == (6, 2)
    assert step.step_type.tolist() == [0, 0]
    assert envs.step(np.ones(6, np.int64)).reward.tolist() == [1, 11, 21] * 2


def test_a_reset_of_some_repeats_no_reward_and_no_flag_of_the_others(make):
    envs = make(COUNTDOWN, "dm", num_envs=2, seed=[0, 0])
    envs.reset()
    for _ in range(2):
        last = envs.step(np.ones(6, np.int64))
    assert last.observation.players.terminated.tolist() == [True, False, False] * 2
    step = envs.reset(options={"reset_mask": np.array([False, True])})
    np.testing.assert_array_equal(step.observation.obs[:3], last.observation.obs[:3])
    assert step.observation.obs[3:, 1].tolist() == [0, 0, 0]
    assert step.reward.tolist() == [0] * 6
    assert step.observation.players.terminated.tolist() == [False] * 6
    assert step.observation.players.truncated.tolist() == [False] * 6
    assert step.observation.elapsed_step.tolist() == [2, 0]
    # Agent 0 of the first environment is over but still has a place among the actions.
    assert envs.step(np.ones(6, np.int64)).reward.tolist() == [11, 21, 1, 11, 21]


OWNERS = {"a number": 0, "two dimensions": [[0, 0, 0, 1, 1, 1]], "floats": [0.0] * 6, "text": "0"}


def test_owners_must_be_a_one_dimensional_array_of_integers(make):
    envs = make(COUNTDOWN, num_envs=2, seed=0)
    envs.reset()
    for owners in OWNERS.values():
        with pytest.raises(TypeError, match=r"`players.env_id` must be a one-dimensional array"):
            envs.step({"action": np.ones(6, np.int64), "players.env_id": owners})
    assert envs.step(np.ones(6, np.int64))[4]["elapsed_step"].tolist() == [1, 1]


MISUSES = {
    "too few actions": (np.ones(5, np.int64), None, ValueError, "5 rows for 6"),
    "too many actions": (np.ones(7, np.int64), None, ValueError, "7 rows for 6"),
    "a single value": (np.array(1), None, ValueError, "single value"),
    "an action out of range": (np.array([1, 1, 1, 1, 6, 1]), None, ValueError, "environment 1.* 6"),
    "an action below the start": (np.array([0, 1, 1, 1, 1, 1]), None, ValueError, "from 1 to 5"),
    "floats": (np.ones(6), None, TypeError, "float64"),
    "wrong owners": (
        {"action": np.ones(6, np.int64), "players.env_id": [0, 0, 0, 0, 1, 1]},
        None,
        ValueError,
        r"have \[3, 3\]",
    ),
    "owners that are not in the batch": (
        {"action": np.ones(3, np.int64), "players.env_id": [1, 1, 1], "env_id": [0]},
        None,
        ValueError,
        "players.env_id",
    ),
    "an id that does not exist": (np.ones(3, np.int64), [5], IndexError, "environment 5"),
}


def test_bad_actions_of_players_are_refused_before_anything_is_stepped(make):
    envs = make(COUNTDOWN, num_envs=2, seed=0)
    envs.reset()
    for action, env_id, error, words in MISUSES.values():
        with pytest.raises(error, match=words):
            envs.step(action, env_id)
    assert envs.step(np.ones(6, np.int64))[4]["elapsed_step"].tolist() == [1, 1]


def test_players_are_known_only_after_a_reset(make):
    envs = make(COUNTDOWN, num_envs=2, seed=0)
    envs.reset([1])
    with pytest.raises(ResetNeeded, match=r"\[0\]"):
        envs.step(np.ones(6, np.int64))
    assert envs.step(np.ones(3, np.int64), [1])[4]["elapsed_step"].tolist() == [1]


def test_more_agents_than_players_are_refused():
    with pytest.raises(ValueError, match=r"max_num_players=2, .* up to 3 agents"):
        envpool.make(COUNTDOWN, max_num_players=2)
    with pytest.raises(ValueError, match="several players"):
        envpool.make(COUNTDOWN, autoreset_mode="same_step")


def test_rows_of_players_cannot_freeze():
    with pytest.raises(ValueError, match=r"on_done='freeze' .* several players"):
        envpool.make(COUNTDOWN, autoreset_mode="disabled", on_done="freeze")


def test_agents_with_different_spaces_are_refused():
    with pytest.raises(TypeError, match="'agent_1' has Discrete"):
        envpool.make(COUNTDOWN, mixed=True)


SHAPELESS = [
    Text(3),
    Sequence(Discrete(2)),
    Graph(Discrete(2), None),
    OneOf([Discrete(2), Discrete(3)]),
    Dict(a=Discrete(2), b=Text(3)),
    Tuple([Discrete(2), Dict(c=Sequence(Discrete(2)))]),
]


@pytest.mark.parametrize("space", SHAPELESS, ids=lambda space: type(space).__name__)
@pytest.mark.parametrize("name", ["observation_space", "action_space"])
@pytest.mark.parametrize("call", [envpool.make, envpool.make_spec])
def test_spaces_without_a_fixed_shape_are_refused(call, name, space):
    with pytest.raises(TypeError, match=rf"{name} of 'agent_0' must be .* fixed shape"):
        call(COUNTDOWN, **{name: space})


def test_batches_of_tuple_actions_of_players_may_be_lists():
    space = Tuple([Discrete(3), Dict(deep=Box(-1, 1, (2,)))])
    ids, actions = np.array([1]), [[2, 1], {"deep": [[0, 1], [1, 0]]}]
    players = Players(space, 3, 2)
    batch = {"obs": np.zeros((1, 3)), "reward": np.zeros((1, 3)), "present": np.array([[1, 0, 1]])}
    batch |= dict.fromkeys(("terminated", "truncated"), np.zeros((1, 3)))
    players.rows(ids, batch, np.zeros(1, np.bool_))
    number, deep = players.places_of(ids, actions, None)
    assert number.tolist() == [[2, 0, 1]]
    assert deep["deep"].tolist() == [[[0, 1], [0, 0], [1, 0]]]
    for short in ((), ([2], actions[1]), (actions[0], {"deep": [[0, 1]]}), 5):
        with pytest.raises(ValueError, match=r"^action|^deep"):
            players.places_of(ids, short, None)


def test_spaces_are_those_of_one_player(make):
    envs = make(COUNTDOWN, num_envs=2, max_num_players=3)
    spec = envpool.make_spec(COUNTDOWN)
    env = CountdownEnv()
    for holder in (envs.spec, spec):
        assert holder.observation_space == env.observation_space("agent_0")
        assert holder.action_space == env.action_space("agent_0")
    assert envs.observation_space == envs.single_observation_space == spec.observation_space
    assert envs.action_space == envs.single_action_space == spec.action_space


def test_a_real_pettingzoo_environment_plays_as_it_does_alone(make):
    rps = pytest.importorskip("pettingzoo.classic.rps_v2")
    task_id = "tests/RockPaperScissors-v0"
    if task_id not in envpool.list_all_envs():
        envpool.register(task_id, rps.parallel_env, parallel=True)
    envs = make(task_id, num_envs=3, num_threads=2, max_cycles=4)
    alone = [rps.parallel_env(max_cycles=4) for _ in range(3)]
    for env in alone:
        env.reset()
    _, info = envs.reset()
    source = np.random.default_rng(1)
    for _ in range(4):
        actions = source.integers(3, size=6)
        observations, rewards, terminations, truncations, info = envs.step(actions)
        assert not terminations.any()
        for row, env in enumerate(alone):
            own = dict(zip(env.possible_agents, actions[2 * row : 2 * row + 2], strict=True))
            expected = env.step(own)
            for place, agent in enumerate(env.possible_agents, 2 * row):
                np.testing.assert_array_equal(observations[place], expected[0][agent])
                assert rewards[place] == expected[1][agent]
                assert info["players"]["truncated"][place] == expected[3][agent]
    assert truncations.all()
