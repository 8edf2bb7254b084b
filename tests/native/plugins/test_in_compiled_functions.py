"""Functions that JAX compiles step environments of plugins, and name the row that failed."""

import importlib

import numpy as np
import pytest

import cartwheel

pytestmark = [pytest.mark.jax, pytest.mark.usefixtures("plugin")]
GO, FAIL, PANIC = 0, 1, 2


@pytest.fixture
def jax():
    return importlib.import_module("jax")


def compiled(envs):
    return importlib.import_module("cartwheel.jax").envs_to_jax(envs)


def test_a_corridor_is_stepped_as_outside(jax):
    inside, outside = (
        cartwheel.NativeVectorEnv("test_plugin/Corridor-v0", 3, length=4) for _ in range(2)
    )
    init, step, _ = compiled(inside)
    actions = np.array([[1, 1, 0], [1, 0, 1], [1, 1, 1], [1, 1, 1], [0, 1, 0], [1, 1, 1]])
    observations, _ = outside.reset(seed=3)
    state, timestep = init(3)
    assert timestep.observations.keys() == observations.keys()
    _, found = jax.jit(lambda state: jax.lax.scan(step, state, actions))(state)
    ended = 0
    for number, own in enumerate(actions):
        expected = outside.step(own)
        for name, array in expected[0].items():
            np.testing.assert_array_equal(found.observations[name][number], array)
        for ours, theirs in zip(found[1:4], expected[1:4], strict=True):
            np.testing.assert_array_equal(ours[number], theirs)
        ended += expected[2].sum()
    assert ended
    inside.close()
    outside.close()


@pytest.mark.parametrize(
    ("fault", "told"), [(FAIL, "failed: told to fail in step"), (PANIC, "panicked: told to panic")]
)
def test_a_row_that_fails_is_named_and_a_reset_begins_again(jax, fault, told):
    envs = cartwheel.NativeVectorEnv("test_plugin/Faulty-v0", 4)
    init, step, _ = compiled(envs)
    state, _ = init(1)
    state, _ = step(state, np.full(4, GO))
    actions = np.array([[GO] * 4, [GO, GO, fault, fault], [GO] * 4])
    run = jax.jit(lambda state: jax.lax.scan(step, state, actions))
    with pytest.raises(jax.errors.JaxRuntimeError, match=rf"row 2 {told}.*`init\(\)`"):
        jax.block_until_ready(run(state))
    begun = envs._pool.begun()
    with pytest.raises(jax.errors.JaxRuntimeError, match="the state is old"):
        jax.block_until_ready(step(state, np.full(4, GO)))
    assert envs._pool.begun() == begun
    state, timestep = init(1)
    state, timestep = step(state, np.full(4, GO))
    assert np.asarray(timestep.rewards).tolist() == [1] * 4
    envs.close()
