"""Actions of another dtype are cast by one rule, NumPy's ``same_kind``, in every method."""

from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv

import cartwheel
from cartwheel.envpool import make as make_envpool
from tests.support.comparison import assert_identical
from tests.support.environments import RecordingEnv

ROWS = 3
#: One value per row that is not a ``float32``, so that the cast is visible.
TORQUES = np.array([[0.1], [-1.7], [0.3]])
DTYPES = [np.dtype(code) for code in "?bBhHiIlLefdFDOU"]
ENTRIES = {
    "step": lambda envs, actions: envs.step(actions),
    "step_async": lambda envs, actions: (envs.step_async(actions), envs.step_wait())[1],
    "step(env_index)": lambda envs, actions: envs.step(actions, np.arange(ROWS)),
    "send": lambda envs, actions: (envs.send(actions), envs.recv())[1],
    "send(env_index)": lambda envs, actions: (envs.send(actions, [0, 1, 2]), envs.recv())[1],
}


def native(env_id):
    return cartwheel.NativeVectorEnv(env_id, ROWS)


def python_rows(space):
    return cartwheel.VectorEnv([partial(RecordingEnv, space)] * ROWS, executor="inline")


BUILDERS = {
    "native integers": partial(native, "CartPole-v1"),
    "native floats": partial(native, "Pendulum-v1"),
    "integers": partial(python_rows, gym.spaces.Discrete(2)),
    "floats": partial(python_rows, gym.spaces.Box(-2, 2, (1,), np.float32)),
    "unsigned integers": partial(python_rows, gym.spaces.Box(0, 9, (2,), np.uint8)),
}


@pytest.fixture(params=ENTRIES)
def entry(request):
    return ENTRIES[request.param]


@pytest.mark.parametrize("batch", [TORQUES, TORQUES.tolist(), TORQUES[::-1]], ids=type)
def test_native_rows_take_float64_for_float32(entry, batch):
    envs, twin = native("Pendulum-v1"), native("Pendulum-v1")
    envs.reset(seed=1)
    twin.reset(seed=1)
    for _ in range(3):
        stepped, expected = entry(envs, batch), twin.step(np.asarray(batch, np.float32))
        assert_identical(stepped[:4], expected[:4])
    envs.close()
    twin.close()


def test_a_single_native_environment_takes_float64_for_float32():
    env, twin = gym.make("cartwheel/Pendulum-v1"), gym.make("Pendulum-v1")
    env.reset(seed=1)
    twin.reset(seed=1)
    for torque in TORQUES:
        assert_identical(env.step(torque), twin.step(torque.astype(np.float32)))
    env.close()
    twin.close()


def test_envpool_takes_float64_for_float32():
    envs, twin = (make_envpool("Pendulum-v1", "gymnasium", num_envs=ROWS, seed=1) for _ in "ab")
    for reset in (envs.reset, twin.reset):
        reset()
    for _ in range(3):
        assert_identical(envs.step(TORQUES), twin.step(TORQUES.astype(np.float32)))
    envs.close()
    twin.close()


@pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)
def test_the_accepted_dtypes_are_those_of_numpys_same_kind(build, entry):
    """And signed integers for unsigned ones: what samples actions mostly makes ``int64``."""
    envs = build()
    envs.reset(seed=1)
    space = envs.single_action_space
    for dtype in DTYPES:
        actions = np.zeros((ROWS, *space.shape), dtype)
        fits = dtype.kind not in "OU" and np.can_cast(dtype, space.dtype, "same_kind")
        if fits or (dtype.kind == "i" and space.dtype.kind == "u"):
            entry(envs, actions)
            continue
        with pytest.raises(
            TypeError, match=f"{space.dtype} according to the rule 'same_kind': pass "
        ):
            entry(envs, actions)
    envs.close()


def test_integers_outside_of_the_space_are_refused(entry):
    envs, twin = native("CartPole-v1"), SyncVectorEnv([partial(gym.make, "CartPole-v1")] * ROWS)
    envs.reset(seed=1)
    twin.reset(seed=1)
    # Cast to int64 it would be -1, which is an action of a space that starts at -1.
    with pytest.raises(ValueError, match=r"^action 18446744073709551615 at position 1 is not from"):
        entry(envs, np.array([0, 2**64 - 1, 1], np.uint64))
    stepped = entry(envs, np.array([0, 1, 1], np.uint64))
    assert_identical(stepped[:4], twin.step(np.array([0, 1, 1]))[:4])
    envs.close()
    twin.close()


def test_a_refused_action_steps_nothing(entry):
    envs, twin = native("Pendulum-v1"), native("Pendulum-v1")
    envs.reset(seed=1)
    twin.reset(seed=1)
    for wrong in (TORQUES.astype(complex), np.full((ROWS, 1), np.nan)):
        with pytest.raises((TypeError, ValueError)):
            entry(envs, wrong)
    assert_identical(entry(envs, TORQUES)[0], twin.step(TORQUES.astype(np.float32))[0])
    envs.close()
    twin.close()
