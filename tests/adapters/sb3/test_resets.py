"""Seeds and options of resets."""

import numpy as np
import pytest

import cartwheel
from tests.support.cases import POLE
from tests.support.comparison import assert_identical
from tests.support.environments import RecordingEnv, transcripts
from tests.support.faulty import FaultyEnv, fault
from tests.support.vec_envs import THREAD, assert_same_reset, native

pytestmark = pytest.mark.torch


def test_each_row_gets_its_own_seed_and_options_once(build, dummy):
    both = build([RecordingEnv] * 3), dummy([RecordingEnv] * 3)
    for envs in both:
        assert envs.seed(5) == [5, 6, 7]
        envs.set_options([{"level": 1}, {}, {"level": 3}])
        envs.reset()
        envs.reset()
        envs.set_options({"level": 4})
        envs.reset()
    resets, expected = (envs.get_attr("resets") for envs in both)
    assert resets == expected
    assert resets[2] == [(7, {"level": 3}), (None, None), (None, {"level": 4})]


def test_automatic_resets_get_neither_seeds_nor_options(build, dummy):
    envs, oracle = build(transcripts(1, 2)), dummy(transcripts(1, 2))
    for each in (envs, oracle):
        each.seed(5)
        each.set_options({"level": 1})
    assert_same_reset(envs, oracle)
    assert [info["opt"] for info in envs.reset_infos] == ["{'level': 1}"] * 2
    envs.step([0, 0])
    assert [info["opt"] for info in envs.reset_infos] == ["None", "{'level': 1}"]


def test_seeds_and_options_stay_for_the_next_reset_if_one_fails(build):
    envs = build([FaultyEnv])
    envs.set_options({"faults": {0: "value error"}})
    with pytest.raises(ValueError, match="row 0") as raised:
        envs.reset()
    assert raised.type is ValueError
    envs.set_options({})
    envs.seed(4)
    first = envs.reset()
    envs.seed(4)
    assert_identical(envs.reset(), first)


def test_native_rows_get_their_own_options_once(dummy):
    envs, oracle = native(POLE, 3), dummy([POLE] * 3)
    for each in (envs, oracle):
        each.seed(5)
        each.set_options([{"low": 0.1, "high": 0.2}, {}, {"low": -0.2, "high": -0.1}])
    for _ in range(2):
        assert_same_reset(envs, oracle)
    envs.close()


def test_seeds_are_chosen_at_random_without_one(build_inline):
    envs = build_inline([RecordingEnv] * 2)
    np.random.seed(3)  # noqa: NPY002 - the generator of Stable-Baselines3
    first, second = envs.seed()
    assert second == first + 1
    envs.reset()
    assert all(seed is not None for ((seed, _),) in envs.get_attr("resets"))


def test_a_reset_drops_a_step_that_was_not_waited_for(build):
    envs = build(transcripts(9, 9))
    envs.reset()
    envs.step_async([0, 0])
    assert envs.reset().tolist() == [[0], [0]]
    assert envs.step([1, 2])[0].tolist() == [[1], [1]]


def test_a_reset_and_a_wait_that_take_too_long_are_errors(gates):
    envs = THREAD(gates.env_fns(2), num_workers=2, timeout=0.4)
    envs.set_options({"gate": 1})
    with pytest.raises(cartwheel.WorkerTimeoutError):
        envs.reset()
    gates.open(1)
    envs.reset()
    envs.step_async([0, 2])
    with pytest.raises(cartwheel.WorkerTimeoutError):
        envs.step_wait()
    gates.open(2)
    envs.step_wait()
    envs.close()


def test_a_reset_goes_on_after_a_failed_step(build):
    envs = build([FaultyEnv] * 2)
    envs.seed(3)
    envs.reset()
    with pytest.raises(ValueError, match="row 1"):
        envs.step([fault("none"), fault("value error")])
    envs.seed(3)
    fresh = build([FaultyEnv] * 2)
    fresh.seed(3)
    assert_identical(envs.reset(), fresh.reset())
    none = [fault("none")] * 2
    assert_identical(envs.step(none)[:3], fresh.step(none)[:3])
