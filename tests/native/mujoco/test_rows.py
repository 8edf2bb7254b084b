"""Rows: the addresses are those of MuJoCo's objects, and a row lives as long as Rust keeps it."""

import ctypes

import gymnasium as gym
import mujoco
import numpy as np
import pytest

from cartwheel.native.mujoco.simulations import DATA_FIELDS, MODEL_FIELDS, Rows

NAMES = ["Ant", "HalfCheetah", "Hopper", "Humanoid", "InvertedDoublePendulum", "Pusher"]


@pytest.fixture(params=NAMES)
def env(request, closes):
    return closes(gym.make(f"{request.param}-v5").unwrapped)


def at(address, length):
    """The numbers at an address."""
    return np.ctypeslib.as_array((ctypes.c_double * length).from_address(address))


def test_fields_are_the_memory_of_the_rows_arrays_and_do_not_move(env):
    rows = Rows(mujoco, env.model, model_per_row=True)
    number, addresses, fields, integers, _memory, _keep_alive = rows.make()
    row = rows[number]
    assert not integers
    assert addresses == (row.model._address, row.data._address)
    assert set(fields) == {*DATA_FIELDS, *MODEL_FIELDS}
    random = np.random.default_rng(1)
    for step in range(200):
        row.data.ctrl[:] = random.uniform(-1, 1, env.model.nu)
        mujoco.mj_step(row.model, row.data)
        mujoco.mj_rnePostConstraint(row.model, row.data)
        if step % 50 == 49:
            mujoco.mj_resetData(row.model, row.data)
    for name in DATA_FIELDS:
        np.testing.assert_array_equal(at(*fields[name]), getattr(row.data, name).ravel())
    for name in MODEL_FIELDS:
        np.testing.assert_array_equal(at(*fields[name]), getattr(row.model, name).ravel())


def test_rows_share_the_model_unless_each_has_a_copy(env):
    shared = Rows(mujoco, env.model, model_per_row=False)
    made = [shared.make() for _ in range(2)]
    assert {model for _, (model, _), *_ in made} == {env.model._address}
    own = Rows(mujoco, env.model, model_per_row=True)
    made = [own.make() for _ in range(2)]
    models = [own[number].model for number, *_ in made]
    assert len({env.model._address, *(model._address for model in models)}) == 3
    models[0].body_mass[1] += 1
    assert models[1].body_mass[1] == env.model.body_mass[1] != models[0].body_mass[1]


def test_no_two_rows_have_the_same_number_not_even_of_different_models():
    env = gym.make("Reacher-v5").unwrapped
    several = [Rows(mujoco, env.model, model_per_row=False) for _ in range(2)]
    made = [rows.make() for rows in several for _ in range(3)]
    assert len({number for number, *_ in made}) == 6


def test_a_row_without_references_is_not_found_anymore():
    env = gym.make("Reacher-v5").unwrapped
    rows = Rows(mujoco, env.model, model_per_row=False)
    number, *_, keep_alive = rows.make()
    assert rows[number] is keep_alive
    del keep_alive
    with pytest.raises(KeyError):
        rows[number]


def test_a_field_of_another_dtype_is_refused():
    env = gym.make("Reacher-v5").unwrapped
    rows = Rows(mujoco, env.model, (), ("body_sameframe",), model_per_row=False)
    with pytest.raises(TypeError, match=r"`body_sameframe` must be .* float64 or int32, got uint8"):
        rows.make()


@pytest.mark.parametrize("model_per_row", [False, True])
def test_the_memory_of_a_step_has_the_arrays_that_it_uses(env, model_per_row):
    rows = Rows(mujoco, env.model, model_per_row=model_per_row)
    number, (model, _), _, _, memory, _keep_alive = rows.make()
    row = rows[number]
    for _ in range(20):
        mujoco.mj_step(row.model, row.data)

    def is_covered(address):
        return any(start <= address < start + size for start, size in memory)

    data, constants = row.data, row.model
    for name in ("qpos", "qacc_warmstart", "xpos", "qfrc_constraint", "solver_niter", "energy"):
        assert is_covered(getattr(data, name).ctypes.data), name
    if data.ncon:
        assert is_covered(data.contact.geom.ctypes.data)
    for name in ("body_mass", "jnt_axis", "dof_damping", "geom_size", "actuator_gear"):
        assert is_covered(getattr(constants, name).ctypes.data) == model_per_row, name
    assert is_covered(model) == model_per_row
    texture = constants.tex_data if hasattr(constants, "tex_data") else constants.tex_rgb
    if texture.size:  # an empty array may be anywhere
        assert not is_covered(texture.ctypes.data + 4096)
    assert sum(size for _, size in memory) < 64 << 10
