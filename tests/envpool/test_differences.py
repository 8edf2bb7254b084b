"""Differences from EnvPool are documented, and each documented difference exists."""

import gc
import re

import gymnasium as gym
import numpy as np
import pytest

from cartwheel import envpool as ours
from tests.envpool.tasks import TRANSCRIPT

# EnvPool's bounds are float64.
pytestmark = pytest.mark.filterwarnings("ignore:.*precision lowered by casting to float32")

CARTPOLE, LIMIT = "CartPole-v1", {"num_envs": 2, "max_episode_steps": 1}


def seeds(make, theirs):
    expected = gym.make(CARTPOLE).reset(seed=3)[0]
    assert make(CARTPOLE, seed=3).reset()[0][0].tolist() == expected.tolist()
    other = theirs.make(CARTPOLE, "gymnasium", seed=3)
    assert other.reset()[0][0].tolist() != expected.tolist()
    assert theirs.make(CARTPOLE, "gymnasium").config["seed"] == 42
    assert len({make(CARTPOLE).config["seed"] for _ in range(3)}) > 1
    assert make(CARTPOLE, seed=[3]).config["seed"] == [3]
    assert theirs.make(CARTPOLE, "gymnasium", seed=[3]).config["seed"] == 0
    again = make(CARTPOLE, seed=9)
    again.reset()
    assert again.reset(seed=3)[0][0].tolist() == expected.tolist()
    again.seed(3)
    assert again.reset()[0][0].tolist() == expected.tolist()
    with pytest.warns(UserWarning, match="ignored"):
        other.reset(seed=3)


def flags(make, theirs):
    def both(module_make, **keywords):
        """The flags of the last step of an episode that ends at its limit, and after it."""
        envs = module_make(CARTPOLE, "gymnasium", num_envs=1, seed=1, **keywords)
        envs.reset()
        for _ in range(100):
            _, _, terminated, truncated, info = envs.step(np.zeros(1, np.int32))
            if terminated[0] or truncated[0]:
                return info["elapsed_step"][0], [terminated[0], truncated[0]]
        raise AssertionError("a cart that is always pushed to the left falls")

    for module_make, expected in ((make, [True, True]), (theirs.make, [False, True])):
        length, alone = both(module_make)
        assert alone == [True, False]
        assert both(module_make, max_episode_steps=int(length)) == (length, expected)


def discounts(make, theirs):
    for module_make, expected in ((make, [1, 1]), (theirs.make, [0, 0])):
        envs = module_make(CARTPOLE, "dm", **LIMIT)
        envs.reset()
        assert envs.step(np.zeros(2, np.int32)).discount.tolist() == expected


def bounds(make, theirs):
    envs = theirs.make("LunarLander-v3", "gymnasium")
    assert not envs.observation_space.contains(envs.reset()[0][0])
    space = make("LunarLander-v3", executor="inline").observation_space
    assert space == gym.make("LunarLander-v3").observation_space


def infos(make, theirs):
    lake, other = (make("FrozenLake-v1"), theirs.make("FrozenLake-v1", "gymnasium"))
    assert lake.reset()[1].keys() - other.reset()[1].keys() == {"prob", "_prob"}
    acrobot, other = make("Acrobot-v1"), theirs.make("Acrobot-v1", "gymnasium")
    assert "state" not in acrobot.reset()[1]
    observations, info = other.reset()
    angles = np.arctan2(observations[:, [1, 3]], observations[:, [0, 2]])
    np.testing.assert_allclose(info["state"], angles, atol=1e-6)
    for envs in (make(CARTPOLE), theirs.make(CARTPOLE, "gymnasium")):
        assert {"lives", "reward", "terminated", "ram"}.isdisjoint(envs.reset()[1])


def time_steps(make, theirs):
    envs, other = make(CARTPOLE, "dm"), theirs.make(CARTPOLE, "dm")
    further = set(envs.reset().observation._fields) - set(other.reset().observation._fields)
    assert further == {"elapsed_step", "info"}
    for spec, other_spec in (
        (envs.reward_spec(), other.reward_spec()),
        (envs.discount_spec(), other.discount_spec()),
    ):
        assert (spec.dtype, other_spec.dtype) == (np.float32, np.float64)
    assert make("CliffWalking-v1", "dm").observation_spec()._fields == ("env_id", "players", "obs")
    assert "prob" in theirs.make("CliffWalking-v1", "dm").observation_spec()._fields


def masks(make, theirs):
    options = {"reset_mask": np.array([True, False, True])}
    for module_make, rows in ((make, 3), (theirs.make, 2)):
        envs = module_make(CARTPOLE, "gymnasium", num_envs=3)
        envs.reset()
        assert len(envs.reset(options=options)[0]) == rows


def frames(make, theirs):
    pytest.importorskip("pygame")  # has no wheels for an old C library
    for module_make, rows in ((make, 3), (theirs.make, 1)):
        envs = module_make(CARTPOLE, "gymnasium", num_envs=3, render_mode="rgb_array")
        envs.reset()
        assert len(envs.render()) == rows
        assert len(envs.render(2)) == 1


def misuse(make, theirs):
    envs, other = make(CARTPOLE, num_envs=2), theirs.make(CARTPOLE, "gymnasium", num_envs=2)
    for pool in (envs, other):
        pool.reset()
    for wrong, error in (
        (np.array([0.9, 0.0]), TypeError),
        (np.array([0, 7]), ValueError),
        (np.array([0, 1, 0]), ValueError),
    ):
        with pytest.raises(error):
            envs.step(wrong)
        other.step(wrong)
    with pytest.raises(gym.error.NoAsyncCallError):
        envs.recv()
    assert other.recv()[0].shape == (0, 4)


def closing(make, theirs):
    envs, other = make(CARTPOLE), theirs.make(CARTPOLE, "gymnasium")
    for pool in (envs, other):
        pool.reset()
        pool.close()
    with pytest.raises(gym.error.ClosedEnvironmentError):
        envs.step(np.zeros(1, np.int32))
    assert other.step(np.zeros(1, np.int32))[0].shape == (1, 4)


def options(make, theirs):
    assert make("FrozenLake-v1", map_name="8x8").observation_space.n == 64
    assert theirs.make("FrozenLake-v1", "gymnasium", size=8).observation_space.n == 64
    for name in ("size", "base_path", "from_pixels", "render_width"):
        with pytest.raises(TypeError, match=f"`{name}` is not an option of FrozenLake-v1"):
            make("FrozenLake-v1", **{name: 8})


def specs(make, theirs):
    spec, other = make(CARTPOLE).spec, theirs.make(CARTPOLE, "gymnasium").spec
    for name in (
        "state_array_spec",
        "action_array_spec",
        "gen_config",
        "gymnasium_action_space",
        "gymnasium_observation_space",
    ):
        assert not hasattr(spec, name)
        assert hasattr(other, name)


def xla(make, theirs):
    with pytest.raises(RuntimeError, match="make the pool with env_type='gymnasium'"):
        make(CARTPOLE, "dm").xla()
    assert hasattr(theirs.make(CARTPOLE, "dm"), "xla")


DIFFERENCES = [
    seeds,
    flags,
    discounts,
    bounds,
    infos,
    time_steps,
    masks,
    frames,
    misuse,
    closing,
    options,
    specs,
    xla,
]


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda one: one.__name__)
def test_a_documented_difference_exists(make, theirs, difference):
    difference(make, theirs)
    gc.collect()  # ends EnvPool's threads


def test_every_difference_that_is_tested_is_documented():
    documented = re.findall(r"^\* ([a-z ]+): [A-Z:`]", ours.__doc__, re.MULTILINE)
    tested = [difference.__name__.replace("_", " ") for difference in DIFFERENCES]
    assert documented == tested
    assert ours.__doc__.index("Example:") < ours.__doc__.index(documented[0])


@pytest.mark.parametrize(
    ("task_id", "own"),
    [
        (CARTPOLE, "sutton_barto_reward"),
        ("Pendulum-v1", "g"),
        ("gymnasium.envs.classic_control:Pendulum-v1", "g"),
        (TRANSCRIPT, "length, terminates, truncates"),
    ],
)
@pytest.mark.parametrize("call", [ours.make, ours.make_spec])
@pytest.mark.parametrize("unknown", ["num_env", "episodic_life"])
def test_an_unknown_option_is_refused_with_the_names_of_those_that_exist(
    call, task_id, own, unknown
):
    with pytest.raises(TypeError) as raised:
        call(task_id, executor="inline", **{unknown: 4})
    text = str(raised.value)
    assert text.startswith(f"`{unknown}` is not an option of {task_id}. ")
    assert ("Did you mean `num_envs`?" in text) == (unknown == "num_env")
    assert f"Options of the environment: {own}. " in text
    for name in ("num_envs", "batch_size", "seed", "max_episode_steps", "render_mode"):
        assert f"{name}" in text.partition("cartwheel.envpool.make: ")[2]
    assert raised.value.__cause__ is not None


def test_an_error_about_the_value_of_an_option_is_not_about_its_name():
    with pytest.raises(ValueError, match="there is no map"):
        ours.make("FrozenLake-v1", map_name="5x5")
