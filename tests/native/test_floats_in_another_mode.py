"""Results computed in Rust have the same bits in every floating-point mode of the threads."""

import contextlib
import ctypes
import ctypes.util
import platform
from functools import partial

import numpy as np
import pytest

import cartwheel
from cartwheel import returns, wrappers
from cartwheel._cartwheel import ImagePlan
from tests.support.comparison import assert_identical
from tests.support.random_rollouts import rollout

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="sets the mode of x86")

_STANDARD = 0x1F80
#: Values of the register MXCSR: rounding up, down, to zero; numbers close to zero become zero.
_VALUES = {
    "standard": _STANDARD,
    "up": _STANDARD | 0x4000,
    "down": _STANDARD | 0x2000,
    "to zero": _STANDARD | 0x6000,
    "flushed": _STANDARD | 0x8040,
}
MODES = [name for name in _VALUES if name != "standard"]
_REGISTER_AT = 28  # in the structure `fenv_t` of x86-64


@contextlib.contextmanager
def mode_of_floats(name):
    """Changes the mode of this thread, which threads that it starts get, too.

    Tests ask for the standard one, too: a library that some other test has imported may have
    changed it.
    """
    library = ctypes.CDLL(ctypes.util.find_library("m"))
    before, changed = (ctypes.create_string_buffer(32) for _ in range(2))
    library.fegetenv(before)
    library.fegetenv(changed)
    changed[_REGISTER_AT : _REGISTER_AT + 4] = _VALUES[name].to_bytes(4, "little")
    library.fesetenv(changed)
    try:
        yield
    finally:
        library.fesetenv(before)


STANDARD = partial(mode_of_floats, "standard")
#: Where the mode is another one: as environments are made, as they are stepped, or always.
WHEN = {"made": (True, False), "stepped": (False, True), "always": (True, True)}
IDS = ["CartPole-v1", "Pendulum-v1", "Acrobot-v1", "MountainCarContinuous-v0", "FrozenLake-v1"]


def quotients():
    """A number close to zero, and quotients that are rounded up and down."""
    return (np.array([5e-324, 1.0, -1.0, 1.0]) / np.array([1.0, 3.0, 3.0, 5.0])).tolist()


def test_another_mode_changes_what_is_computed_elsewhere():
    with STANDARD():
        standard = quotients()
        for name in MODES:
            with mode_of_floats(name):
                found = quotients()
            assert found != standard, name
            assert quotients() == standard


def modes(name, when):
    making, stepping = WHEN[when]
    return [partial(mode_of_floats, name) if odd else STANDARD for odd in (making, stepping)]


def steps(env_id, make, step, **keywords):
    """The results of some steps, in these modes."""
    with make():
        envs = cartwheel.NativeVectorEnv(env_id, 300, **keywords)
    envs.action_space.seed(5)
    actions = [envs.action_space.sample() for _ in range(40)]
    with step():
        results = [envs.reset(seed=3)]
        results += [envs.step(action) for action in actions]
        envs.send(actions[0][:100], np.arange(100))
        results.append(envs.recv())
    envs.close()
    return results


@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.parametrize("when", WHEN)
@pytest.mark.parametrize("name", MODES)
def test_steps_of_native_environments_have_the_same_bits(env_id, name, when):
    expected = steps(env_id, STANDARD, STANDARD)
    for keywords in ({"executor": "inline"}, {"num_workers": 3}):
        assert_identical(steps(env_id, *modes(name, when), **keywords), expected)


@pytest.mark.parametrize("num_threads", [1, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", MODES)
def test_estimates_have_the_same_bits(name, dtype, num_threads):
    arrays = rollout(40, 67, dtype)
    arrays["rewards"] *= np.finfo(dtype).tiny  # sums of numbers close to zero, too
    values, ratios = arrays.pop("values"), arrays.pop("ratios")
    given = {**arrays, "gamma": 0.97, "num_threads": num_threads}
    off = {**given, "ratios": ratios}
    without = {key: value for key, value in given.items() if key != "next_values"}

    def estimates():
        return [
            returns.gae(values=values, gae_lambda=0.93, **given),
            returns.gae_normalized(values=values, gae_lambda=0.93, **given),
            returns.lambda_returns(lambda_=0.93, **given),
            returns.discounted_returns(**without),
            returns.n_step_returns(n=3, **given),
            returns.vtrace(values=values, **off),
            returns.retrace(q_values=values, lambda_=0.93, **off),
            returns.masked_mean(values, arrays["valid"]),
            returns.masked_normalize(values, arrays["valid"]),
        ]

    with STANDARD():
        expected = estimates()
    with mode_of_floats(name):
        found = estimates()
    assert_identical(found, expected)


TORQUES = np.random.default_rng(1).uniform(-2, 2, (20, 33, 1)).astype(np.float32)
FRAMES = np.random.default_rng(1).integers(0, 256, (3, 50, 40, 3), np.uint8)


def wrapped():
    """Everything that the wrappers compute, with the infos except for times."""
    envs = cartwheel.NativeVectorEnv("Pendulum-v1", 33, max_episode_steps=7)
    envs = wrappers.RecordMetrics(wrappers.RecordEpisodeStatistics(envs), stats_key="metrics")
    envs = wrappers.NormalizeReward(wrappers.NormalizeObservation(envs))
    results = [envs.reset(seed=3)]
    for action in TORQUES:
        results.append(envs.step(action))
        results[-1][4].get("episode", {}).pop("t", None)
    envs.close()
    return results


@pytest.mark.parametrize("name", MODES)
def test_wrappers_compute_the_same_bits(name):
    with STANDARD():
        expected = wrapped()
    with mode_of_floats(name):
        found = wrapped()
    assert_identical(found, expected)


@pytest.mark.parametrize("name", MODES)
def test_images_have_the_same_levels(name):
    def images():
        plans = [
            ImagePlan(50, 40, 3, out_height=21, out_width=17, gray=gray) for gray in (True, False)
        ]
        return [plan.run(FRAMES) for plan in plans]

    with STANDARD():
        expected = images()
    with mode_of_floats(name):
        found = images()
    assert_identical(found, expected)
