"""Results have the forms of Gymnasium, of old gym and of dm_env."""

import copy
import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from cartwheel import envpool
from tests.envpool.tasks import KEYED, NESTED, RECORDING, SHOWN, TRANSCRIPT, single

NATIVE, PYTHON = "CartPole-v1", "gymnasium.envs.classic_control:CartPole-v1"
KINDS = pytest.mark.parametrize("task_id", [NATIVE, PYTHON], ids=["native", "python"])


@KINDS
def test_the_documented_example_has_the_documented_results(make, task_id):
    """CartPole with a limit of 3, five steps and no reset: the first and the fifth are resets."""
    envs = make(task_id, "gymnasium", num_envs=2, seed=7, max_episode_steps=3)
    steps = [envs.step(np.array([0, 1])) for _ in range(5)]
    observations, rewards, terminations, truncations, infos = zip(*steps, strict=True)
    assert [reward.tolist() for reward in rewards] == [[0] * 2, *[[1] * 2] * 3, [0] * 2]
    assert not np.any(terminations)
    assert [flags.tolist() for flags in truncations] == [
        [False] * 2,
        [False] * 2,
        [False] * 2,
        [True] * 2,
        [False] * 2,
    ]
    assert [info["elapsed_step"].tolist() for info in infos] == [[n] * 2 for n in (0, 1, 2, 3, 0)]
    for row, action in enumerate([0, 1]):
        env, expected = single(NATIVE, 7 + row)
        for step in range(4):
            np.testing.assert_array_equal(observations[step][row], expected)
            expected = env.step(action)[0]
        np.testing.assert_array_equal(observations[4][row], env.reset()[0])


@KINDS
@pytest.mark.parametrize("env_type", ["gymnasium", "gym"])
def test_gymnasium_steps_return_five_values_with_plain_arrays_in_the_infos(make, task_id, env_type):
    envs = make(task_id, env_type, num_envs=3)
    assert isinstance(envs, gym.vector.VectorEnv)
    observations, info = envs.reset()
    assert observations.shape == (3, 4)
    for key, dtype in (("env_id", np.int32), ("elapsed_step", np.int32)):
        assert info[key].dtype == dtype
        assert info[key].shape == (3,)
    assert info["players"]["env_id"].tolist() == [0, 1, 2]
    assert info["players"]["env_id"].dtype == np.int32
    result = envs.step(np.zeros(3, np.int64))
    assert len(result) == 5
    _, rewards, terminations, truncations, info = result
    assert rewards.dtype == np.float32
    assert terminations.dtype == truncations.dtype == np.bool_
    assert info["env_id"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("old", [False, True])
def test_spaces_are_those_of_one_environment(make, old):
    envs = make(NATIVE, "gym", num_envs=4, batch_size=2, gym_reset_return_info=not old)
    env = gym.make(NATIVE)
    assert envs.observation_space == envs.single_observation_space == env.observation_space
    assert envs.action_space == envs.single_action_space == env.action_space


def test_a_pool_works_with_vector_wrappers_of_gymnasium(make):
    envs = gym.wrappers.vector.RecordEpisodeStatistics(make(NATIVE, num_envs=3, seed=1))
    envs.reset()
    lengths, counted = [], []
    for _ in range(60):
        actions = [envs.action_space.sample() for _ in range(3)]
        *_, terminations, truncations, info = envs.step(np.array(actions))
        over = terminations | truncations
        if over.any():
            lengths += info["episode"]["l"][over].tolist()
            counted += info["elapsed_step"][over].tolist()
    assert lengths == counted
    assert lengths
    assert envs.unwrapped.stats().steps.tolist() == [60] * 3


@KINDS
def test_old_gym_steps_return_four_values_and_the_reason_for_done(make, task_id):
    envs = make(task_id, "gym", num_envs=2, max_episode_steps=2, gym_reset_return_info=False)
    assert envs.reset().shape == (2, 4)
    assert envs.step(np.array([0, 1]))[2].tolist() == [False, False]
    observations, rewards, done, info = envs.step(np.array([0, 1]))
    assert observations.shape == (2, 4)
    assert rewards.tolist() == [1, 1]
    assert done.tolist() == info["TimeLimit.truncated"].tolist() == [True, True]
    assert info["env_id"].tolist() == [0, 1]
    observations, info = envs.reset(return_info=True)
    assert info["elapsed_step"].tolist() == [0, 0]
    assert envs.observation_space == envs.single_observation_space


def test_done_by_termination_is_not_a_time_limit_even_when_both_happen(make):
    keywords = {"length": 1, "truncates": True, "num_envs": 1}
    envs = make(TRANSCRIPT, "gym", gym_reset_return_info=False, **keywords)
    envs.reset()
    _, _, done, info = envs.step(np.array([1]))
    assert done.tolist() == [True]
    assert info["TimeLimit.truncated"].tolist() == [False]


def test_termination_survives_a_truncation_on_the_same_step(make):
    envs = make(TRANSCRIPT, num_envs=1, length=1, truncates=True)
    envs.reset()
    _, _, terminations, truncations, _ = envs.step(np.array([1]))
    assert terminations.tolist() == truncations.tolist() == [True]


@KINDS
def test_time_steps_are_marked_first_mid_and_last(make, task_id):
    envs = make(task_id, "dm", num_envs=2, max_episode_steps=2)
    first = envs.reset()
    assert isinstance(first, envpool.TimeStep)
    assert first.step_type.tolist() == [0, 0]
    assert first.step_type.dtype == np.int32
    assert first.reward.tolist() == [0, 0]
    assert first.discount.tolist() == [1, 1]
    assert first.observation.obs.shape == (2, 4)
    assert first.observation.env_id.tolist() == [0, 1]
    assert first.observation.players.env_id.tolist() == [0, 1]
    types = [envs.step(np.array([0, 1])).step_type.tolist() for _ in range(4)]
    assert types == [[1, 1], [2, 2], [0, 0], [1, 1]]


@pytest.mark.parametrize(
    ("flags", "discount"),
    [
        ({"terminates": True}, 0),
        ({"terminates": False, "truncates": True}, 1),
        ({"terminates": True, "truncates": True}, 0),
    ],
    ids=str,
)
def test_the_discount_is_zero_on_termination_and_one_on_truncation(make, flags, discount):
    envs = make(TRANSCRIPT, "dm", num_envs=1, length=2, **flags)
    envs.reset()
    steps = [envs.step(np.array([1])) for _ in range(3)]
    assert [step.discount.tolist() for step in steps] == [[1], [discount], [1]]
    assert [step.step_type.tolist() for step in steps] == [[1], [2], [0]]


def test_time_steps_merge_dict_observations_and_infos(make):
    envs = make(NESTED, "dm", num_envs=2, seed=3)
    step = envs.reset()
    assert step.observation.pixels.shape == (2, 4, 4, 3)
    assert step.observation.start.tolist() == step.observation.walk[:, 0, 0].tolist()
    assert step.observation.info["_start"].tolist() == [True, True]
    step = envs.step(np.ones(2, np.int64))
    np.testing.assert_allclose(step.observation.deep.mean, step.observation.walk.mean(axis=(1, 2)))


@KINDS
def test_recv_of_time_steps_accepts_the_arguments_of_the_other_forms(make, task_id):
    envs = make(task_id, "dm", num_envs=2, seed=1)
    for arguments in ((), (True,), (True, True), (False, False), (True, False, 60)):
        envs.async_reset()
        step = envs.recv(*arguments)
        assert isinstance(step, envpool.TimeStep)
        assert step.step_type.tolist() == [0, 0]
    envs.async_reset()
    assert envs.recv(reset=True, return_info=True, timeout=60).observation.env_id.tolist() == [0, 1]


@pytest.mark.parametrize("key", ["info", "env_id", "elapsed_step", "players", "class", "_x", "a b"])
def test_no_key_of_a_dict_space_hides_a_field_of_a_time_step(make, key):
    envs = make(SHOWN, "dm", num_envs=2, keys=("other", key))
    envs.reset()
    observation = envs.step(np.zeros(2, np.int64)).observation
    assert observation.obs.keys() == {"other", key}
    assert observation.obs[key].tolist() == observation.obs["other"].tolist() == [[1], [1]]
    assert observation.env_id.tolist() == observation.players.env_id.tolist() == [0, 1]
    assert observation.elapsed_step.tolist() == [1, 1]
    assert observation.info["elapsed_step"].tolist() == observation.t.tolist() == [1, 1]


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_time_steps_and_configurations_can_be_pickled_and_copied(make, copied):
    envs = make(NESTED, "dm", num_envs=2, seed=3)
    assert copied(envs.spec.config) == envs.spec.config
    envs.reset()
    step = envs.step(np.ones(2, np.int64))
    again = copied(step)
    assert again._fields == step._fields
    assert again.observation._fields == step.observation._fields
    assert repr(again.observation.players) == f"players(env_id={np.arange(2, dtype=np.int32)!r})"
    assert again.observation.walk is not step.observation.walk
    np.testing.assert_array_equal(again.observation.walk, step.observation.walk)
    np.testing.assert_array_equal(again.observation.deep.mean, step.observation.deep.mean)
    np.testing.assert_array_equal(again.observation.info["env_id"], [0, 1])


def test_the_classes_of_dm_env_are_used_if_it_is_installed(make):
    dm_env = pytest.importorskip("dm_env")
    envs = make(NATIVE, "dm", num_envs=2)
    assert isinstance(envs.reset(), dm_env.TimeStep)
    assert envs.action_spec() == dm_env.specs.DiscreteArray(2, dtype=np.int32, name="action")
    assert isinstance(envs, dm_env.Environment)
    specs = envs.observation_spec()
    assert specs.obs.shape == (4,)
    step = envs.reset()
    specs.obs.validate(step.observation.obs[0])
    specs.env_id.validate(step.observation.env_id[0])
    specs.players.env_id.validate(step.observation.players.env_id[0])
    envs.reward_spec().validate(step.reward[0])
    envs.discount_spec().validate(step.discount[0])


@pytest.mark.parametrize("task_id", [KEYED, NESTED])
def test_specs_describe_actions_that_the_environment_accepts(task_id):
    pytest.importorskip("dm_env")
    spec = envpool.make_spec(task_id).action_spec()
    if task_id == NESTED:
        assert spec.num_values == 3
        return
    assert spec["a"].num_values == 5
    assert spec["b"]["c"].shape == (2,)
    assert spec["b"]["d"].maximum.tolist() == [2, 3]


@pytest.mark.parametrize("mode", AutoresetMode)
def test_dict_actions_arrive_with_nested_or_joined_keys(make, mode):
    envs = make(KEYED, num_envs=3, autoreset_mode=mode)
    envs.reset()
    parts = {
        "a": np.array([4, 2], np.int32),
        "c": np.array([[0, 0.5], [1, -1]]),
        "d": [[2, 3], [0, 1]],
    }
    ids = np.array([2, 0])
    nested = {"a": parts["a"], "b": {"c": parts["c"], "d": parts["d"]}, "env_id": ids}
    joined = {"a": parts["a"], "b.c": parts["c"], "b.d": parts["d"], "players.env_id": ids}
    assert envs.step(nested)[4]["env_id"].tolist() == [2, 0]
    assert envs.step(joined, env_id=ids)[4]["env_id"].tolist() == [2, 0]
    received = envs._envs.get_attr("actions")
    assert received[1] == []
    for row, place in ((2, 0), (0, 1)):
        for action in received[row]:
            assert action["a"] == parts["a"][place]
            np.testing.assert_array_equal(action["b"]["c"], parts["c"][place].astype(np.float32))
            np.testing.assert_array_equal(action["b"]["d"], parts["d"][place])


@KINDS
def test_array_dict_and_list_actions_do_the_same(make, task_id):
    pools = [make(task_id, num_envs=3, seed=5) for _ in range(4)]
    for envs in pools:
        envs.reset()
    ids, actions = [2, 1], [1, 0]
    results = [
        pools[0].step(np.array(actions), np.array(ids)),
        pools[1].step({"action": np.array(actions), "env_id": np.array(ids, np.int32)}),
        pools[2].step(actions, env_id=ids),
        pools[3].step({"action": np.array(actions, np.uint8)}, ids),
    ]
    for result in results:
        assert result[4]["env_id"].tolist() == ids
        np.testing.assert_array_equal(result[0], results[0][0])


def test_actions_are_copied_when_they_are_sent(make):
    envs = make(RECORDING, num_envs=2)
    envs.reset()
    actions = {"action": np.array([3, 4])}
    envs.send(actions)
    actions["action"][:] = 0
    envs.recv()
    assert envs._envs.get_attr("actions") == ([3], [4])


def test_a_float64_action_is_cast_to_a_float32_space(make):
    pools = [make("Pendulum-v1", num_envs=2, seed=0) for _ in range(2)]
    for envs in pools:
        envs.reset()
    results = [
        envs.step(np.array([[0.5], [-1]], dtype))[0]
        for envs, dtype in zip(pools, (np.float64, np.float32), strict=True)
    ]
    np.testing.assert_array_equal(*results)


def test_results_are_never_overwritten(make):
    envs = make(NATIVE, num_envs=4, seed=2)
    kept = [envs.step(np.ones(4, np.int64)) for _ in range(30)]
    again = make(NATIVE, num_envs=4, seed=2)
    for observations, rewards, _, _, info in kept:
        expected = again.step(np.ones(4, np.int64))
        np.testing.assert_array_equal(observations, expected[0])
        np.testing.assert_array_equal(rewards, expected[1])
        np.testing.assert_array_equal(info["elapsed_step"], expected[4]["elapsed_step"])
