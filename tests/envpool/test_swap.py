"""Spaces, dtypes, shapes, keys and attributes are EnvPool's, for every cheap id that both have.

The extra infos of cartwheel, and those that are missing, are listed here; the documentation of
``cartwheel.envpool`` gives the reasons.
"""

import gc
import importlib.util
from importlib import metadata

import gymnasium as gym
import numpy as np
import pytest

from tests.envpool.tasks import COUNTDOWN

# EnvPool's bounds are float64.
pytestmark = pytest.mark.filterwarnings("ignore:.*precision lowered by casting to float32")

NATIVE = [
    "Acrobot-v1",
    "Blackjack-v1",
    "CartPole-v0",
    "CartPole-v1",
    "CliffWalking-v1",
    "CliffWalkingSlippery-v1",
    "FrozenLake-v1",
    "FrozenLake8x8-v1",
    "MountainCar-v0",
    "MountainCarContinuous-v0",
    "Pendulum-v1",
]
BOX2D = ["BipedalWalker-v3", "LunarLander-v3", "LunarLanderContinuous-v3"]
#: The same environments in Python, where their results differ from the native ones' inside.
PYTHON = [f"gymnasium.envs.toy_text:{name}-v1" for name in ("Blackjack", "CliffWalking")]
TASKS = pytest.mark.parametrize("task_id", [*NATIVE, *BOX2D, *PYTHON])
FORMS = pytest.mark.parametrize("env_type", ["gym", "gymnasium", "dm"])

#: Infos that only EnvPool has.
MISSING = {"Acrobot-v1": {"state"}}
#: Infos of Gymnasium's environments that EnvPool does not have, and masks.
EXTRA = {
    "CliffWalking-v1": {"_prob"},
    "CliffWalkingSlippery-v1": {"_prob"},
    "FrozenLake-v1": {"prob", "_prob"},
    "FrozenLake8x8-v1": {"prob", "_prob"},
    "Taxi-v4": {"_prob", "_action_mask"},
}
#: Newer ones have what these show.
OLDER = {"1.2.3", "1.2.4", "1.2.5"}
if importlib.util.find_spec("envpool") and metadata.version("envpool") in OLDER:
    EXTRA["Taxi-v4"] |= {"prob", "action_mask"}
#: Infos that EnvPool has as `float32`, and cartwheel as the environment does.
OTHER_DTYPES = {"Taxi-v4": {"prob"}}


@pytest.fixture
def swap(theirs, make):
    """Makes a pool of cartwheel, which steps Python environments inline, and EnvPool's."""

    def swap(task_id, env_type, **keywords):
        name = task_id.rpartition(":")[2]
        # EnvPool has an older version of Taxi only.
        other = theirs.make("Taxi-v3" if name == "Taxi-v4" else name, env_type, **keywords)
        if task_id not in NATIVE:
            keywords["executor"] = "inline"
        return make(task_id, env_type, **keywords), other

    yield swap
    gc.collect()  # ends EnvPool's threads


def form(value):
    """Types, keys, shapes, dtypes and flags of everything in a result."""
    if isinstance(value, np.ndarray):
        return (value.shape, value.dtype, value.flags.writeable, value.flags.c_contiguous)
    if isinstance(value, dict):
        return {key: form(part) for key, part in value.items()}
    if hasattr(value, "_asdict"):
        return form(value._asdict())
    assert isinstance(value, tuple)
    return tuple(map(form, value))


def check_infos(task_id, ours, theirs):
    """Checks forms of infos, which are dictionaries, and removes the differences."""
    name = task_id.rpartition(":")[2]
    assert ours.keys() - theirs.keys() == EXTRA.get(name, set())
    assert theirs.keys() - ours.keys() == MISSING.get(name, set())
    different = (each.get(name, set()) for each in (EXTRA, MISSING, OTHER_DTYPES))
    for key in set().union(*different):
        ours.pop(key, None)
        theirs.pop(key, None)


def check_same_form(task_id, ours, theirs):
    """Checks that two results have the same form, except for the infos that are listed."""
    assert type(ours) is type(theirs)
    first, second = form(ours), form(theirs)
    if isinstance(first, tuple):
        check_infos(task_id, first[-1], second[-1])
    else:
        shown, expected = first["observation"], second["observation"]
        assert list(shown)[:3] == list(expected)[:3] == ["env_id", "players", "obs"]
        assert shown.pop("info").keys() >= {"env_id", "players", "elapsed_step"}
        assert shown.pop("elapsed_step") == shown["env_id"]
        for key in EXTRA.get(task_id.rpartition(":")[2], set()):  # masks are in `info` only
            shown.setdefault(key, None)
        check_infos(task_id, shown, expected)
    assert first == second


def actions_for(space, rows):
    """Actions of the dtype that EnvPool does not cast."""
    dtype = np.int32 if isinstance(space, gym.spaces.Discrete) else space.dtype
    return np.zeros((rows, *space.shape), dtype)


def results(envs, space):
    """A result of every way to receive one, in synchronous mode."""
    actions, ids = actions_for(space, 3), np.array([2, 0], np.int32)
    yield envs.reset()
    yield envs.step(actions)
    envs.send(actions)
    yield envs.recv()
    yield envs.step(actions[:2], ids)
    yield envs.step({"action": actions[:2], "env_id": ids})
    yield envs.reset(ids)
    envs.async_reset()
    yield envs.recv()
    envs.async_reset()
    yield envs.recv(True)
    yield envs.step(actions)


@FORMS
@pytest.mark.parametrize("task_id", [*NATIVE, *BOX2D, *PYTHON, "Taxi-v4"])
def test_results_have_the_form_of_envpool(swap, task_id, env_type):
    ours, theirs = swap(task_id, env_type, num_envs=3)
    space = ours.single_action_space
    for shown, expected in zip(results(ours, space), results(theirs, space), strict=True):
        check_same_form(task_id, shown, expected)


@FORMS
@TASKS
def test_asynchronous_results_have_the_form_of_envpool(swap, task_id, env_type):
    pools = swap(task_id, env_type, num_envs=4, batch_size=2)
    actions = actions_for(pools[0].single_action_space, 2)
    for envs in pools:
        envs.async_reset()
    for _ in range(4):
        shown, expected = (envs.recv() for envs in pools)
        check_same_form(task_id, shown, expected)
        for envs, result in zip(pools, (shown, expected), strict=True):
            infos = result.observation._asdict() if env_type == "dm" else result[-1]
            envs.send(actions, infos["env_id"])


@pytest.mark.parametrize("env_type", ["gym", "gymnasium"])
@pytest.mark.parametrize("task_id", [*NATIVE, *PYTHON, "Taxi-v4"])
def test_spaces_are_those_of_envpool(swap, task_id, env_type):
    ours, theirs = swap(task_id, env_type, num_envs=3)
    for name in ("observation_space", "action_space"):
        for holder in (theirs, theirs.spec):
            expected = getattr(holder, name)
            assert type(getattr(ours, name)) is type(expected)
            assert getattr(ours, name) == expected
            assert getattr(ours, name).dtype == expected.dtype
        assert getattr(ours, f"single_{name}") == getattr(theirs, f"single_{name}")
        assert getattr(ours.spec, name) == getattr(theirs.spec, name)


@pytest.mark.parametrize("task_id", BOX2D)
def test_spaces_with_bounds_are_gymnasiums_and_otherwise_those_of_envpool(swap, task_id):
    ours, theirs = swap(task_id, "gymnasium", num_envs=2)
    space, other = ours.observation_space, theirs.observation_space
    assert ours.action_space == theirs.action_space
    assert space == gym.spec(task_id).make().observation_space
    assert (type(space), space.shape, space.dtype) == (type(other), other.shape, other.dtype)
    assert (other.low > 0).all()  # a smallest positive number, by mistake
    assert not any(map(other.contains, theirs.reset()[0]))


@pytest.mark.parametrize("task_id", [*NATIVE, *PYTHON, "Taxi-v4"])
def test_specs_of_time_steps_are_those_of_envpool(swap, task_id):
    ours, theirs = swap(task_id, "dm", num_envs=2)
    shown, expected = ours.observation_spec(), theirs.observation_spec()
    pairs = [
        (ours.action_spec(), theirs.action_spec()),
        (shown.obs, expected.obs),
        (shown.env_id, expected.env_id),
        (shown.players.env_id, expected.players.env_id),
        (ours.spec.action_spec(), theirs.spec.action_spec()),
        (ours.spec.observation_spec().obs, theirs.spec.observation_spec().obs),
    ]
    for one, other in pairs:
        assert type(one) is type(other)
        assert (one.shape, one.dtype, one.name) == (other.shape, other.dtype, other.name)
        np.testing.assert_array_equal(*np.broadcast_arrays(one.minimum, other.minimum))
        np.testing.assert_array_equal(*np.broadcast_arrays(one.maximum, other.maximum))


#: EnvPool's assets, and options of its environments, of which cartwheel lists the given ones.
ENVPOOL_OPTIONS = {"base_path", "size", "is_slippery", "sab", "natural", "version", "hardcore"}


@FORMS
@TASKS
def test_configurations_have_the_values_of_envpool(swap, task_id, env_type):
    keywords = {"num_envs": 4, "batch_size": 2, "num_threads": 2, "seed": 7}
    ours, theirs = swap(task_id, env_type, **keywords)
    assert type(ours.config) is type(theirs.config) is dict
    expected = {key: theirs.config[key] for key in theirs.config.keys() - ENVPOOL_OPTIONS}
    assert expected.keys() >= {*keywords, "env_seed", "max_num_players", "max_episode_steps"}
    shown = {key: ours.config[key] for key in expected}
    assert shown == expected
    assert {key: type(value) for key, value in shown.items()} == {
        key: type(value) for key, value in expected.items()
    }
    assert ours.spec.config.num_envs == theirs.spec.config.num_envs
    assert ours.spec.reward_threshold == theirs.spec.reward_threshold


#: Names that only EnvPool's specs have.
MISSING_FROM_SPECS = {
    "action_array_spec",
    "state_array_spec",
    "gen_config",
    "gymnasium_action_space",
    "gymnasium_observation_space",
}


@FORMS
def test_attributes_and_methods_are_those_of_envpool(swap, env_type):
    ours, theirs = swap("CartPole-v1", env_type, num_envs=5, batch_size=3)
    holders = [(ours, theirs, set()), (ours.spec, theirs.spec, MISSING_FROM_SPECS)]
    for one, other, missing in holders:
        public = {name for name in dir(other) if not name.startswith("_")}
        assert public - set(dir(one)) == missing
        for name in public - missing:
            assert callable(getattr(one, name)) == callable(getattr(other, name)), name
    assert len(ours) == len(theirs) == 5
    assert form(ours.all_env_ids) == form(theirs.all_env_ids)
    assert ours.all_env_ids.tolist() == theirs.all_env_ids.tolist()
    assert ours.is_async is theirs.is_async is True
    if importlib.util.find_spec("jax") is None:
        for envs in (ours, theirs):
            with pytest.raises(RuntimeError, match="XLA"):
                envs.xla()


@pytest.mark.parametrize("env_type", ["gym", "gymnasium"])
def test_pools_are_the_same_kinds_of_environment(swap, env_type):
    pools = swap("CartPole-v1", env_type, num_envs=3)
    for envs in pools:
        assert isinstance(envs, gym.vector.VectorEnv)
        assert isinstance(envs, gym.Env)
        assert envs.num_envs == 3
        assert envs.is_vector_env is True
        assert envs.unwrapped is envs
        assert envs.render_mode is None
        assert envs.closed is False
        assert envs.metadata["autoreset_mode"] == gym.vector.AutoresetMode.NEXT_STEP


def test_time_step_pools_are_environments_of_dm_env(swap):
    dm_env = pytest.importorskip("dm_env")
    for envs in swap("CartPole-v1", "dm", num_envs=3):
        assert isinstance(envs, dm_env.Environment)


def test_rewards_of_several_players_are_float32(make):
    envs = make(COUNTDOWN, num_envs=2, executor="inline")
    *_, info = envs.reset()
    result = envs.step(np.ones(len(info["players"]["env_id"]), np.int64))
    assert result[1].dtype == np.float32


def test_rewards_are_rounded_to_float32(make):
    envs = make("Pendulum-v1", num_envs=200, seed=3)
    env = gym.make("Pendulum-v1")
    envs.reset()
    rewards = envs.step(np.ones((200, 1), np.float32))[1]
    for row in range(200):
        env.reset(seed=3 + row)
        assert rewards[row] == np.float32(env.step(np.ones(1, np.float32))[1])
