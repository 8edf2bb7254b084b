"""The model and the data of a row are MuJoCo's own objects, which can be read and set."""

import gymnasium as gym
import mujoco
import numpy as np
import pytest
from gymnasium.error import AlreadyPendingCallError
from gymnasium.vector import SyncVectorEnv

import cartwheel
from cartwheel.native.mujoco.simulations import SCENE
from tests.support.comparison import assert_identical
from tests.support.oracle import assert_same_reset, assert_same_steps

HOPPER = "Hopper-v5"


@pytest.fixture
def build(closes):
    """Makes native rows and Gymnasium's, reset with the same seed; closed after the test."""

    def build(env_id=HOPPER, num_envs=3, **keywords):
        envs = closes(cartwheel.NativeVectorEnv(env_id, num_envs, num_workers=2, **keywords))
        oracle = closes(SyncVectorEnv([lambda: gym.make(env_id)] * num_envs))
        assert_same_reset(envs, oracle, seed=2)
        return envs, oracle

    return build


def unwrapped(oracle):
    return [env.unwrapped for env in oracle.envs]


def test_rows_have_datas_of_their_own_and_share_the_model(build):
    envs, oracle = build()
    assert_same_steps(envs, oracle, 5)
    models, datas = envs.get_attr("model"), envs.get_attr("data")
    assert all(isinstance(data, mujoco.MjData) for data in datas)
    assert models[0] is models[1] is models[2]
    assert len({data._address for data in datas}) == 3
    for data, twin in zip(datas, unwrapped(oracle), strict=True):
        for name in ("qpos", "qvel", "ctrl", "xpos", "cfrc_ext", "time"):
            assert_identical(np.copy(getattr(data, name)), np.copy(getattr(twin.data, name)), name)
    assert envs.get_attr("data", env_index=[2, 0]) == (datas[2], datas[0])
    assert envs.call("data") == datas


def test_fields_are_read_by_their_names_as_copies(build):
    envs, oracle = build()
    assert_same_steps(envs, oracle, 3)
    twins = unwrapped(oracle)
    for name in ("qpos", "qvel", "qacc", "geom_xpos"):
        ours = envs.get_attr(f"data.{name}")
        assert_identical(list(ours), [getattr(twin.data, name).copy() for twin in twins])
    assert envs.get_attr("model.opt.timestep") == (twins[0].model.opt.timestep,) * 3
    assert envs.get_attr("dt") == oracle.get_attr("dt")
    before = envs.get_attr("data.qpos")[0]
    before += 1
    assert_same_steps(envs, oracle, 3)


def test_what_is_written_into_a_data_counts_in_the_next_step(build):
    envs, oracle = build()
    push = np.full(6, 0.7)
    envs.set_attr("data.qvel", [push, 2 * push], env_index=[0, 2])
    for row, factor in ((0, 1), (2, 2)):
        oracle.envs[row].unwrapped.data.qvel[:] = factor * push
    assert_same_steps(envs, oracle, 6)
    for data, twin in zip(envs.get_attr("data"), unwrapped(oracle), strict=True):
        data.xfrc_applied[1, 2] = twin.data.xfrc_applied[1, 2] = 40.0
    assert_same_steps(envs, oracle, 6)


def test_a_model_for_each_row_is_set_row_by_row(build):
    envs, oracle = build(model_per_row=True)
    masses = [mass * (1 + row) for row, mass in enumerate(envs.get_attr("model.body_mass"))]
    envs.set_attr("model.body_mass", masses)
    envs.set_attr("model.opt.gravity", np.array([0, 0, -3.7]), env_index=[1])
    envs.set_attr("model.geom_friction", envs.get_attr("model.geom_friction")[0] * 0.3)
    for row, twin in enumerate(unwrapped(oracle)):
        twin.model.body_mass[:] = masses[row]
        twin.model.geom_friction[:] *= 0.3
    unwrapped(oracle)[1].model.opt.gravity[:] = (0, 0, -3.7)
    assert_same_steps(envs, oracle, 60)
    assert_identical(envs.reset(seed=4), oracle.reset(seed=4))
    assert_same_steps(envs, oracle, 20)


def test_the_state_of_a_row_has_what_was_set_in_its_own_model(build):
    envs, _ = build(model_per_row=True)
    mass, gravity = envs.get_attr("model.body_mass")[0], envs.get_attr("model.opt.gravity")[0]
    envs.set_attr("model.body_mass", 2 * mass, env_index=[1])
    envs.set_attr("model.opt.gravity", 0.5 * gravity, env_index=[1])
    envs.set_attr("timestep", 0.001, env_index=[2])
    states = envs.get_state()
    actions = envs.action_space.sample()
    expected = envs.step(actions)
    envs.set_attr("model.body_mass", 3 * mass)  # is set back, in the rows that get a state
    envs.set_state([2, 0, 1], [states[1], states[2], states[0]])
    names = ("model.body_mass", "model.opt.gravity", "timestep")
    got = {name: envs.get_attr(name) for name in names}
    assert_identical(got["model.body_mass"], (mass, mass, 2 * mass))
    assert_identical(got["model.opt.gravity"], (gravity, gravity, 0.5 * gravity))
    assert got["timestep"][0] == 0.001
    assert got["timestep"][1] == got["timestep"][2] != 0.001
    again = envs.step(actions[[2, 0, 1]])
    for one, other in zip(again[:4], expected[:4], strict=True):
        assert_identical(one[[1, 2, 0]], other)


@pytest.mark.parametrize("model_per_row", [False, True])
def test_the_state_of_a_row_has_what_frames_are_drawn_from(build, model_per_row):
    envs, oracle = build(model_per_row=model_per_row)
    assert_same_steps(envs, oracle, 7)
    envs.set_state([2], envs.get_state([0]))
    for name in SCENE:
        ours, _, loaded = envs.get_attr(f"data.{name}")
        assert_identical(loaded, ours, name)
    assert not np.array_equal(*envs.get_attr("data.geom_xpos")[:2])


def test_the_state_of_a_row_with_a_model_that_is_refused_changes_nothing(build):
    envs, _ = build(model_per_row=True)
    shared, _ = build()
    mass = envs.get_attr("model.body_mass")[0]
    plain = envs.get_state()
    envs.set_attr("model.body_mass", 2 * mass, env_index=[1])
    changed = envs.get_state([1])[0]
    before = envs.get_state()
    for states, words in (
        ([changed, changed[:60]], "row 2: the state of 60 bytes was cut or changed"),
        ([changed, changed[:-1]], r"row 2: the state of \d+ bytes was cut or changed"),
        ([changed, b"no"], "row 2: .* not a state"),
    ):
        with pytest.raises(ValueError, match=words):
            envs.set_state([0, 2], states)
        assert envs.get_state() == before
    with pytest.raises(ValueError, match="`model_per_row=True`"):
        shared.set_state([0], [changed])
    envs.set_state([1], [plain[1]])
    assert_identical(envs.get_attr("model.body_mass")[1], mass)


def test_a_shared_model_has_states_whatever_is_set(build):
    envs, _ = build()
    envs.set_attr("data.qpos", envs.get_attr("data.qpos")[0] * 0.5)
    envs.set_attr("frame_skip", 2, env_index=[1])
    states = envs.get_state()
    actions = envs.action_space.sample()
    expected = envs.step(actions)
    envs.set_state(None, states)
    assert_identical(envs.step(actions), expected)


def test_the_timestep_of_a_model_is_that_of_velocities(build):
    envs, oracle = build("HumanoidStandup-v5", model_per_row=True)
    for row, (env, timestep) in enumerate(
        zip(unwrapped(oracle), (0.001, 0.002, 0.004), strict=True)
    ):
        env.model.opt.timestep = timestep
        envs.set_attr("model.opt.timestep", timestep, env_index=[row])
    assert envs.get_attr("dt") == oracle.get_attr("dt")
    assert_same_steps(envs, oracle, 10)


def test_a_shared_model_cannot_be_set_and_the_error_says_how(build):
    envs, oracle = build()
    for name in ("model.body_mass", "model.opt.timestep", "timestep"):
        value = envs.get_attr(name)[0]
        with pytest.raises(
            ValueError,
            match=rf"`model\..*{name.split('.')[-1]}` .*all rows share one .*model_per_row=True",
        ):
            envs.set_attr(name, value)
    assert_same_steps(envs, oracle, 3)


MISFITS = [
    (
        "data.qpos",
        np.zeros(7),
        ValueError,
        r"`data.qpos` must have the shape \(6,\) of float64",
    ),
    ("data.qpos", 0.0, ValueError, r"got the shape \(\)"),
    ("data.qpos", np.zeros(6, complex), ValueError, "of complex128"),
    ("data.time", "late", ValueError, "`data.time` must be a number of type float, got 'late'"),
    ("data.time", "1.5", ValueError, "`data.time` must be a number of type float, got '1.5'"),
    ("model.opt.iterations", 2.5, ValueError, "must be a number of type int, got 2.5"),
    ("model.opt.iterations", "3", ValueError, "must be a number of type int, got '3'"),
    (
        "model.opt.iterations",
        2**40,
        ValueError,
        "`model.opt.iterations` cannot be 1099511627776: MuJoCo's type is smaller",
    ),
    (
        "model.geom_group",
        np.array([0, 0, 0, 0, 2**40]),
        ValueError,
        "`model.geom_group` has elements of int32, which cannot be 1099511627776",
    ),
    (
        "model.geom_rgba",
        np.full((5, 4), 1e40),
        ValueError,
        r"`model.geom_rgba` has elements of float32, which cannot be 1e\+40",
    ),
    ("data.qpo", np.zeros(6), AttributeError, "MjData .* no field 'qpo': did you mean 'qpos'"),
    ("data.contact", 1, ValueError, "cannot be set"),
    ("data", None, ValueError, "`data` cannot be replaced"),
    ("model", None, ValueError, "`model` cannot be replaced"),
    ("model.nq", 3, ValueError, "`model.nq` cannot be set"),
    ("model.opt", 3, ValueError, "`model.opt` is a MjOption, which cannot be set"),
    ("dt", 0.1, ValueError, "`dt` is read-only"),
    ("width", 3, ValueError, "`width` is read-only"),
    ("timestep", 0.0, ValueError, "`model.opt.timestep` must be a number above 0, got 0.0"),
    ("wheels", 3, AttributeError, "no parameter 'wheels'"),
]


def test_what_does_not_fit_is_refused_and_changes_no_row(build):
    envs, oracle = build(model_per_row=True)
    for name, value, error, words in MISFITS:
        with pytest.raises(error, match=words):
            envs.set_attr(name, [value] * 3)
        sound = {"data.qpos": np.ones(6), "model.opt.iterations": 1}.get(name)
        if sound is not None:
            before = envs.get_attr(name)
            with pytest.raises(ValueError, match=words):
                envs.set_attr(name, [sound, sound, value])
            assert_identical(envs.get_attr(name), before)
        assert_same_steps(envs, oracle, 2)


def test_fields_that_do_not_exist_are_named_when_they_are_read(build):
    envs, _ = build()
    with pytest.raises(
        AttributeError, match="MjModel of MuJoCo has no field 'body_mas': did you m"
    ):
        envs.get_attr("model.body_mas")


def test_objects_are_refused_while_rows_are_in_flight(build):
    envs, _ = build()
    envs.step_async(envs.action_space.sample())
    for name in ("data", "data.qpos", "dt"):
        with pytest.raises(AlreadyPendingCallError):
            envs.get_attr(name)
    with pytest.raises(AlreadyPendingCallError):
        envs.set_attr("data.time", 0.0)
    envs.step_wait()
