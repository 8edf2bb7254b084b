"""Functions and arguments that do not fit are refused before anything is stepped, with values."""

import re

import numpy as np
import pytest
from gymnasium.error import InvalidBound
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete, Tuple

from cartwheel import wrappers
from tests.support.comparison import assert_identical
from tests.support.environments import SamplingEnv, samplers
from tests.support.executors import INLINE
from tests.support.wrapping import D, N, S, build


@pytest.fixture
def pole(closes):
    return closes(build("inline", "pole", S))


@pytest.fixture
def pendulum(closes):
    return closes(build("inline", "pendulum", S))


def untouched(envs):
    """No environment was stepped."""
    return not envs.stats().steps.any()


@pytest.mark.parametrize(
    ("func", "message"),
    [
        (lambda seen: seen.astype(np.float64), r"\(3, 4\) of float32 is needed, got .* of float64"),
        (lambda seen: seen[:, :2], r"got an array \(3, 2\)"),
        (lambda seen: seen[:1], r"for 3 rows .* got an array \(1, 4\)"),
        (lambda seen: {"seen": seen}, r"got a dict with the keys \['seen'\]"),
        (lambda seen: list(seen), "got a list of 3"),
        (lambda _: None, "got a NoneType"),
    ],
)
def test_observations_that_do_not_fit_the_space(pole, func, message):
    envs = wrappers.TransformObservation(pole, func)
    with pytest.raises(ValueError, match=message):
        envs.reset()
    assert untouched(pole)


def test_nested_observations_that_do_not_fit_the_space(pole):
    space = Dict(a=Box(-1, 1, (4,)), b=Tuple([Discrete(2)]))
    right = {"a": np.zeros((3, 4), np.float32), "b": (np.zeros(3, np.int64),)}
    wrong = {
        r"a dict with the keys \['a', 'b'\]": {"a": right["a"]},
        "a tuple of 1 is needed at 'b'": {**right, "b": right["a"]},
        r"at 'b' at 0, got an array \(3,\) of float64": {**right, "b": (np.zeros(3),)},
    }
    for message, result in wrong.items():
        envs = wrappers.TransformObservation(
            pole, lambda _, r=result: r, single_observation_space=space
        )
        with pytest.raises(ValueError, match=message):
            envs.reset()
    envs = wrappers.TransformObservation(pole, lambda _: right, single_observation_space=space)
    assert_identical(envs.reset()[0], right)
    assert untouched(pole)


def test_a_space_of_a_batch_gives_that_of_one_environment(pole):
    low = np.array([[0.0, -1.0]] * 3, np.float32)
    nested = Tuple([Discrete(4), Dict(a=Box(low[0], low[0]))])
    pairs = [
        (Box(low, low + 1), Box(low[0], low[0] + 1)),
        (MultiDiscrete([5, 5, 5]), Discrete(5)),
        (Tuple([MultiDiscrete([4] * 3), Dict(a=Box(low, low))]), nested),
    ]
    for batch, single in pairs:
        envs = wrappers.TransformObservation(pole, lambda seen: seen, batch)
        assert envs.single_observation_space == single
        assert envs.observation_space == batch
        envs = wrappers.TransformAction(pole, lambda actions: actions, batch)
        assert (envs.single_action_space, envs.action_space) == (single, batch)
    for unequal in (Box(low, np.float32([[1], [2], [3]]) + low), MultiDiscrete([[5, 2]] * 3)):
        with pytest.raises(ValueError, match="give `single_observation_space`"):
            wrappers.TransformObservation(pole, lambda seen: seen, unequal)
    with pytest.raises(ValueError, match="is not the batch of 3 times"):
        wrappers.TransformObservation(
            pole, lambda seen: seen, MultiDiscrete([5, 5, 5]), Discrete(4)
        )
    with pytest.raises(ValueError, match="is not the batch of 3 times"):
        wrappers.TransformAction(pole, lambda seen: seen, MultiDiscrete([5, 5, 5]), Discrete(4))


@pytest.mark.parametrize(
    ("func", "error", "message"),
    [
        (lambda rewards: rewards.sum(), ValueError, r"each of the 2 transitions.* got \(\)"),
        (lambda rewards: rewards[:1], ValueError, r"got \(1,\)"),
        (lambda rewards: rewards.astype(str), TypeError, "as numbers, got <U"),
        (None, TypeError, "`func` must be a function of rewards"),
    ],
)
def test_rewards_that_do_not_fit(pole, func, error, message):
    with pytest.raises(error, match=message):
        wrappers.TransformReward(pole, func)


def test_limits_of_rewards(pole):
    with pytest.raises(InvalidBound, match="both are None"):
        wrappers.ClipReward(pole)
    with pytest.raises(InvalidBound, match="got 2 and 1"):
        wrappers.ClipReward(pole, 2, 1)
    with pytest.raises(TypeError, match="`max_reward` must be a number or None, got 'x'"):
        wrappers.ClipReward(pole, max_reward="x")
    with pytest.raises(TypeError, match="`min_reward` must be a number or None, got nan"):
        wrappers.ClipReward(pole, float("nan"))


def test_actions_that_do_not_fit_step_nothing(pendulum):
    pendulum.reset(seed=1)
    envs = wrappers.TransformAction(pendulum, lambda actions: actions[:, 0])
    for step in (envs.step, envs.send, envs.step_async):
        with pytest.raises(ValueError, match=r"\(3, 1\) of float32 is needed, got .*\(3,\)"):
            step(np.zeros((3, 1), np.float32))
    envs = wrappers.TransformAction(pendulum, lambda actions: actions[:1])
    with pytest.raises(ValueError, match=r"\(2, 1\) of float32 is needed, got .*\(1, 1\)"):
        envs.step(np.zeros((2, 1), np.float32), [2, 0])
    for wrong in (None, "left", {"torque": 1}):
        envs = wrappers.TransformAction(pendulum, lambda _actions, wrong=wrong: wrong)
        with pytest.raises(ValueError, match=r"an array .* is needed, got a"):
            envs.step(np.zeros((3, 1), np.float32))
    assert untouched(pendulum)
    assert pendulum.in_flight == []


def test_functions_must_be_functions(pole):
    for name in ("TransformObservation", "TransformAction"):
        with pytest.raises(TypeError, match="`func` must be a function"):
            getattr(wrappers, name)(pole, 3)


@pytest.mark.parametrize(
    ("name", "arguments", "error", "message"),
    [
        ("ReshapeObservation", ((2, 3),), ValueError, r"of shape \(4,\), got \(2, 3\)"),
        ("ReshapeObservation", ((-1, 4),), ValueError, r"got \(-1, 4\)"),
        ("ReshapeObservation", ([2, 2],), TypeError, r"a tuple of integers, got \[2, 2\]"),
        ("RescaleObservation", (0, 1), ValueError, "`min_obs` must be infinite where"),
        ("RescaleObservation", ("0", 1), TypeError, "`min_obs` must be a number"),
        ("RescaleObservation", (np.zeros(3), 1), ValueError, r"shape \(4,\), got \(3,\)"),
        ("FilterObservation", (["a"],), ValueError, "a Dict or a Tuple space, got Box"),
        ("DtypeObservation", ("flot32",), TypeError, "a dtype of numbers, got 'flot32'"),
        ("DtypeObservation", (None,), TypeError, "a dtype of numbers, got None"),
        ("DtypeObservation", (str,), TypeError, "a dtype of numbers, got <class 'str'>"),
        ("ClipAction", (), TypeError, "a Box space, got Discrete"),
        ("RescaleAction", (0, 1), TypeError, "a Box space, got Discrete"),
    ],
)
def test_wrong_arguments(pole, name, arguments, error, message):
    with pytest.raises(error, match=message):
        getattr(wrappers, name)(pole, *arguments)


def test_wrong_bounds_of_actions(pendulum):
    with pytest.raises(ValueError, match="`min_action` must not be above `max_action`"):
        wrappers.RescaleAction(pendulum, 1, -1)
    with pytest.raises(InvalidBound, match="no inverse where they are equal: got 1 and 1"):
        wrappers.RescaleAction(pendulum, 1, 1)


IMAGES, WHEEL = Box(0, 255, (2,), np.uint8), Box(-3, 3, (2,), np.int16)


@pytest.mark.parametrize(
    ("name", "bounds"),
    [
        ("RescaleObservation", (0, 1)),  # Gymnasium's makes zeros of all levels
        ("RescaleObservation", (0, 510)),  # beyond the dtype
        ("RescaleObservation", (0.5, 255.5)),
        ("RescaleAction", (-1, 1)),
        ("RescaleAction", (-4, 4)),
    ],
)
def test_integers_are_rescaled_to_integers_or_refused(name, bounds):
    envs = build("inline", lambda: SamplingEnv(IMAGES, action_space=WHEEL), S)
    with pytest.raises(ValueError, match="cut off: make them floating-point numbers first"):
        getattr(wrappers, name)(envs, *bounds)
    envs.close()


@pytest.mark.parametrize("name", ["RescaleObservation", "RescaleAction"])
def test_numbers_of_which_there_is_one_are_not_rescaled(name):
    """Gymnasium's make NaN of them."""
    space = Box(np.float32([0, 3]), np.float32([1, 3]))
    envs = build("inline", lambda: SamplingEnv(space, action_space=space), S)
    with pytest.raises(ValueError, match="some of its bounds are equal"):
        getattr(wrappers, name)(envs, -1, 1)
    envs.close()


def test_integers_are_rescaled_by_integers():
    levels = Box(-3, 3, (2,), np.int16)
    plain, scaled = (build("inline", lambda: SamplingEnv(levels), S) for _ in range(2))
    scaled = wrappers.RescaleObservation(scaled, 0, 12)
    assert scaled.single_observation_space == Box(0, 12, (2,), np.int16)
    shown, expected = scaled.reset(seed=3)[0], plain.reset(seed=3)[0]
    assert_identical(shown, np.array(2 * expected + 6, np.int16))
    plain.close()
    scaled.close()


@pytest.mark.parametrize("shape", [(), (3,), (3, 1), (1, 1), (4, 2)], ids=str)
@pytest.mark.parametrize(
    ("name", "arguments"), [("ClipAction", ()), ("RescaleAction", (-2.0, 2.0))]
)
def test_actions_of_another_shape_are_refused_and_not_repeated(name, arguments, shape):
    """Also those that NumPy would repeat for the bounds."""
    made = build("inline", lambda: SamplingEnv(Discrete(2), action_space=Box(-1, 1, (2,))), S)
    envs = getattr(wrappers, name)(made, *arguments)
    envs.reset(seed=1)
    with pytest.raises(
        ValueError, match=rf"of shape \(2,\) .* 3 rows, got .* {re.escape(str(shape))}"
    ):
        envs.step(np.zeros(shape, np.float32))
    assert untouched(envs)
    envs.step(np.zeros((3, 2), np.float32))
    envs.close()


def test_wrong_keys_and_spaces():
    nested, pairs = build("inline", "nested", D), build("inline", "blackjack", D)
    for envs, keys, error, message in [
        (nested, ["walk", "nothing"], ValueError, r"has \['nothing'\], but .* the keys \['walk'"),
        (nested, [0], TypeError, r"must be str for a Dict space, got \[0\]"),
        (nested, [], ValueError, "at least one part"),
        (nested, "walk", TypeError, "must be a sequence, got 'walk'"),
        (pairs, [0, 3], ValueError, r"has \[3\], but .* places 0 to 2"),
        (pairs, [1, 1], ValueError, r"none twice, got \[1, 1\]"),
        (pairs, [1, -2], ValueError, r"none twice, got \[1, -2\]"),
    ]:
        with pytest.raises(error, match=message):
            wrappers.FilterObservation(envs, keys)
    with pytest.raises(TypeError, match="Box, Discrete, MultiDiscrete or MultiBinary"):
        wrappers.DtypeObservation(nested, np.float32)
    for name in ("ReshapeObservation", "RescaleObservation"):
        arguments = ((1,),) if name == "ReshapeObservation" else (0, 1)
        with pytest.raises(TypeError, match="a Box space, got Dict"):
            getattr(wrappers, name)(nested, *arguments)
    nested.close()
    pairs.close()


def test_functions_get_any_number_of_rows_and_only_transitions():
    sizes = {"seen": set(), "paid": set()}

    def seen(observations):
        sizes["seen"].add(len(observations))
        return observations

    def paid(rewards):
        sizes["paid"].add(len(rewards))
        return rewards

    envs = INLINE(samplers(Box(-1, 1, (2,), np.float64), 3, length=None), autoreset_mode="SameStep")
    envs = wrappers.TransformReward(wrappers.TransformObservation(envs, seen), paid)
    envs.reset(seed=1)
    for _ in range(12):
        envs.step(np.zeros(3, np.int64))
    envs.step(np.zeros(2, np.int64), [2, 1])
    assert sizes == {"seen": {1, 2, 3}, "paid": {2, 3}}
    envs.close()


@pytest.mark.parametrize("keys", [None, ["at"]])
def test_a_function_of_observations_that_is_set_later_is_called_from_then_on(keys):
    box = Box(-1, 1, (2,), np.float64)
    space = box if keys is None else Dict({"at": box, "other": box})
    results = []
    for func in (np.copy, np.negative):
        envs = INLINE(samplers(space, 3, length=2), autoreset_mode="SameStep")
        inside = wrappers.TransformObservation(envs, func, keys=keys)
        around = wrappers.RecordMetrics(inside)
        around.reset(seed=1)
        around.func = np.negative
        assert inside.func is np.negative
        with pytest.raises(TypeError, match="`func` must be a function of observations"):
            around.func = None
        results.append([around.step(np.zeros(3, np.int64)) for _ in range(5)])
        around.close()
    assert_identical(*results)
    assert any("final_obs" in infos for *_, infos in results[0])


@pytest.mark.parametrize("rows", [[99], [-1], [1.0], [True, False, False], 0, []], ids=str)
def test_rows_that_do_not_exist_are_refused_as_without_wrappers(tmp_path, rows):
    envs = build("native", "pole", N, 3)
    envs.reset(seed=1)
    actions = np.zeros(np.size(rows), np.int64)
    with pytest.raises((TypeError, ValueError)) as expected:
        envs.step(actions, rows)
    for wrapped in (
        wrappers.TransformAction(envs, np.copy),
        wrappers.RecordEpisode(envs, tmp_path, save_video=False),
    ):
        with pytest.raises(expected.type) as found:
            wrapped.step(actions, rows)
        assert str(found.value) == str(expected.value)
    wrapped.close()
