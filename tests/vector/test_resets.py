"""Seeds, options and masks of `reset` mean what they mean in Gymnasium."""

import re
import threading
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers.vector import RecordEpisodeStatistics

from tests.support.cases import POLE, Case
from tests.support.comparison import assert_identical, assert_names_row
from tests.support.environments import NestedEnv, RecordingEnv, transcripts
from tests.support.executors import SHORT_ROWS
from tests.support.gymnasium_versions import MISCOUNTS_SAME_STEP, error_of_today
from tests.support.oracle import (
    MODE,
    D,
    assert_same_reset,
    assert_same_steps,
    flags,
    outcome,
    with_oracle,
)

ERROR = gym.error.Error


def test_options_that_cannot_be_sent_are_named(build_processes):
    envs = build_processes(transcripts(3, 3, 3))
    lock = {"lock": threading.Lock()}
    for call in (envs.reset, envs.reset_async, envs.send_reset, envs.next_reset):
        with pytest.raises(TypeError, match="lock") as failure:
            call(options=lock)
        # pickle of Python 3.14 adds notes of its own, which say where the lock is.
        assert failure.value.__notes__[-1] == "`options` cannot be sent to the worker processes"
    assert envs.reset()[0].tolist() == [[0]] * 3


def seeds_and_options(envs):
    """The seed and the options of each environment's last reset."""
    return [resets[-1] for resets in envs.get_attr("resets")]


@pytest.mark.parametrize(
    ("seed", "expected"),
    [
        (None, [None, None, None]),
        (5, [5, 6, 7]),
        (0, [0, 1, 2]),
        (True, [1, 2, 3]),
        ([9, 8, 7], [9, 8, 7]),
        ((9, 8, 7), [9, 8, 7]),
        ([9, None, 0], [9, None, 0]),
        ([2**70, 1, 2], [2**70, 1, 2]),
        (np.int64(5), [5, 6, 7]),
        (np.uint8(255), [255, 256, 257]),
        (np.int64(2**63 - 1), [2**63 - 1, 2**63, 2**63 + 1]),
        ([np.int64(9), None, np.uint32(7)], [9, None, 7]),
        (np.array([4, 5, 6]), [4, 5, 6]),
        (np.array([4, 5, 6], np.int8), [4, 5, 6]),
        (range(4, 7), [4, 5, 6]),
    ],
    ids=repr,
)
def test_each_environment_gets_its_seed(build, seed, expected):
    envs = build([RecordingEnv] * 3)
    envs.reset(seed=seed)
    assert_identical([seed for seed, _options in seeds_and_options(envs)], expected)


@MODE
@pytest.mark.parametrize("case", [POLE, Case("Blackjack-v1"), Case("Taxi-v4")], ids=str)
def test_every_row_draws_the_same_numbers_as_in_gymnasium_from_any_seed(build_any, case, mode):
    """A seed of ``None`` keeps the generator."""
    envs, oracle = with_oracle(build_any, case, 3, mode)
    for seed in (0, True, 41, 2**130, (9, 8, 7), [1, None, 2**64], None, [None, None, 8]):
        assert_same_reset(envs, oracle, seed=seed)
        assert_same_steps(envs, oracle, 4)
        assert_identical(envs.np_random_seed, oracle.np_random_seed)
        assert_identical(envs.get_attr("np_random_seed"), oracle.get_attr("np_random_seed"))
        for generators in (envs.np_random, envs.get_attr("np_random"), envs.call("np_random")):
            assert_identical(generators, oracle.np_random)


@pytest.mark.parametrize(
    ("seed", "number"),
    [(np.int64(3), 3), (np.array([3, 4, 5]), [3, 4, 5]), ([np.uint8(3), None, 5], [3, None, 5])],
    ids=repr,
)
def test_numpy_integers_are_valid_seeds(build_any, seed, number):
    envs, oracle = with_oracle(build_any, POLE, 3)
    assert_identical(envs.reset(seed=seed), oracle.reset(seed=number))
    assert_identical(envs.np_random_seed, oracle.np_random_seed)


def test_seeds_that_were_drawn_at_random_can_be_read(build_any):
    envs, again = build_any([Case("Taxi-v4")] * 5), build_any([Case("Taxi-v4")] * 5)
    seeds = envs.np_random_seed
    assert len(set(seeds)) == 5
    expected = envs.reset()
    assert envs.np_random_seed == seeds
    assert_identical(again.reset(seed=seeds), expected)


def test_seeds_under_a_mask_belong_to_their_rows(build):
    envs = build([RecordingEnv] * 3)
    envs.reset(seed=1)
    envs.reset(seed=50, options={"reset_mask": flags(False, True, False)})
    assert seeds_and_options(envs) == [(1, None), (51, {}), (3, None)]
    envs.reset(seed=[5, None, 7], options={"reset_mask": flags(True, True, False)})
    assert seeds_and_options(envs) == [(5, {}), (None, {}), (3, None)]


def test_rows_that_are_reset_by_number_get_their_seeds(build):
    envs = build([RecordingEnv] * 3)
    for rows in ([2, 0], np.array([2, 0])):
        for seed in (5, np.int64(5), [7, 5], np.array([7, 5]), [np.int64(7), 5]):
            envs.reset(seed=1)
            envs.reset(seed=seed, options={"env_index": rows})
            assert_identical([seed for seed, _options in seeds_and_options(envs)], [5, 2, 7])


@pytest.mark.parametrize(
    ("seed", "error", "text"),
    [
        ([1], ValueError, "the length must match num_envs=3 but got length=1."),
        ([1, 2, 3, 4], ValueError, "the length must match num_envs=3 but got length=4."),
        (1.5, TypeError, "or a list with one integer or None for each environment, got 1.5"),
        (np.array(3), TypeError, "or a list with one integer or None for each environment, got"),
        (np.float64(3), TypeError, "or a list with one integer or None for each environment, got"),
    ],
    ids=repr,
)
def test_a_wrong_seed_is_refused_before_anything_is_reset(build_any, seed, error, text):
    envs, oracle = with_oracle(build_any, POLE, 3)
    with pytest.raises(error, match=re.escape(text)):
        envs.reset(seed=seed)
    assert_same_steps(envs, oracle, 5)


@pytest.mark.parametrize(
    ("seed", "text", "row"),
    [
        (np.array([4.0, 5.0, 6.0]), "Seed must be a python integer, actual type:", 0),
        (np.int64(-5), "Seed must be greater or equal to zero, actual value: -5", 0),
        ([1, np.int8(-2), 3], "Seed must be greater or equal to zero, actual value: -2", 1),
        ([1, np.bool_(True), 3], "Seed must be a python integer, actual type:", 1),
        (-5, "Seed must be greater or equal to zero, actual value: -5", 0),
        ([1, 2, -1], "Seed must be greater or equal to zero, actual value: -1", 2),
        ([1, 1.5, -1], "Seed must be a python integer, actual type:", 1),
    ],
    ids=repr,
)
def test_a_seed_that_the_environment_refuses_is_its_error(build_any, seed, text, row):
    envs, oracle = with_oracle(build_any, POLE, 3)
    with pytest.raises(ERROR, match=re.escape(text)) as failure:
        envs.reset(seed=seed)
    assert_names_row(failure.value, row)
    assert_same_reset(envs, oracle, seed=1)
    assert_same_steps(envs, oracle, 5)


def test_reset_takes_keywords_only(build):
    envs = build(transcripts(2, 2))
    with pytest.raises(TypeError, match="positional argument"):
        envs.reset(3)
    envs.reset()


@pytest.mark.parametrize(
    "options", [None, {}, {"x": 1, "deep": {"y": [1, 2]}, "array": np.arange(3)}], ids=str
)
def test_every_environment_gets_the_options(build, options):
    envs = build([RecordingEnv] * 3)
    envs.reset(options=options)
    assert_identical(seeds_and_options(envs), [(None, options)] * 3)


def test_rows_get_the_options_without_the_mask(build_everywhere):
    envs = build_everywhere([RecordingEnv] * 3)
    envs.reset()
    envs.reset(options={"reset_mask": flags(True, False, True), "x": 1})
    assert seeds_and_options(envs) == [(None, {"x": 1}), (None, None), (None, {"x": 1})]
    envs.reset(options={"reset_mask": flags(False, True, False)})
    assert seeds_and_options(envs) == [(None, {"x": 1}), (None, {}), (None, {"x": 1})]


class Terrain(dict):
    """Options of a class of their own, with an attribute."""

    def __init__(self, *args, name):
        super().__init__(*args)
        self.name = name


def terrains(envs):
    """The options of each environment's last reset, with their class and their attribute."""
    return [(type(own), own.name, dict(own)) for _seed, own in seeds_and_options(envs)]


def test_options_keep_their_class_as_in_gymnasium(build_everywhere):
    envs, expected = build_everywhere([RecordingEnv] * 3), []
    for kind in (gym.vector.SyncVectorEnv, gym.vector.AsyncVectorEnv):
        oracle = kind([RecordingEnv] * 3)
        for rows in ([True] * 3, [True, False, True]):
            mask = {"reset_mask": flags(*rows)}
            oracle.reset(options=Terrain({"steps": [len(rows)]} | mask, name="hills"))
        expected.append(terrains(oracle))
        oracle.close()
    options = Terrain({"steps": [3]}, name="hills")
    envs.reset(options=options)
    options["reset_mask"] = flags(True, False, True)
    envs.reset(options=options)
    assert (options.name, list(options)) == ("hills", ["steps", "reset_mask"])
    assert [terrains(envs)] * 2 == expected


def test_options_of_some_rows_and_of_the_next_reset_keep_their_class(build):
    envs = build([RecordingEnv] * 3, max_episode_steps=1)
    deep = [Terrain({"row": row}, name="deep") for row in range(3)]
    envs.reset(options=[Terrain({"deep": own}, name="own") for own in deep])
    kept = [own["deep"] for _seed, own in seeds_and_options(envs)]
    assert kept == deep
    assert [type(own) for own in kept] == [Terrain] * 3
    envs.reset(options=Terrain({"env_index": [2, 0]}, name="some"))
    envs.next_reset(options=Terrain({"x": 1}, name="next"), env_index=[1])
    assert [own[1] for own in terrains(envs)] == ["some", "own", "some"]
    envs.step([0] * 3)
    envs.step([0] * 3)
    _seed, own = seeds_and_options(envs)[1]
    assert (type(own), own.name, own) == (Terrain, "next", {"x": 1})


def test_the_callers_options_are_never_changed(build_any):
    envs = build_any([POLE] * 2)
    selected = flags(True, False)
    options = {"reset_mask": selected, "low": 0.01}
    for reset in (envs.reset, envs.reset, envs.reset_async):
        reset(options=options)
        assert_identical(options, {"reset_mask": flags(True, False), "low": 0.01})
        assert list(options) == ["reset_mask", "low"]
        assert options["reset_mask"] is selected
    envs.reset_wait()
    for wrong in ([True, False], flags(False, False), flags(True)):
        options = {"reset_mask": wrong, "low": 0.01}
        with pytest.raises((TypeError, ValueError)):
            envs.reset(options=options)
        assert options == {"reset_mask": wrong, "low": 0.01}
        assert options["reset_mask"] is wrong


def test_an_environment_that_changes_its_options_does_not_change_the_callers(build):
    envs = build([partial(RecordingEnv, scribbles=True)] * 2)
    envs.reset()
    options = {"reset_mask": flags(True, True), "x": 1}
    envs.reset(options=options)
    assert set(options) == {"reset_mask", "x"}


class KeepingEnv(RecordingEnv):
    """Keeps the options of its last reset, and writes into their array if the test asks for it."""

    def reset(self, *, seed=None, options=None):
        self.options = options
        if options and options["scribbles"]:
            options["deep"][0]["array"][:] = 7
        return super().reset(seed=seed)


def deep_options(*, scribbles):
    return {"deep": [{"array": np.arange(3)}], "pair": ({"y": 1},), "scribbles": scribbles}


@pytest.mark.parametrize("reset", ["reset_async", "send_reset"])
def test_the_options_may_be_changed_after_the_call(build, reset):
    envs = build([KeepingEnv] * 3)
    options = deep_options(scribbles=False)
    getattr(envs, reset)(seed=1, options=options)
    options["deep"][0]["array"][:] = 9
    options["deep"].append(1)
    options["pair"][0]["y"] = 2
    envs.recv() if reset == "send_reset" else envs.reset_wait()
    assert_identical(list(envs.get_attr("options")), [deep_options(scribbles=False)] * 3)


@pytest.mark.parametrize("in_parts", [False, True])
def test_an_environment_that_writes_to_its_options_does_not_change_the_callers(build, in_parts):
    envs = build([KeepingEnv] * 3)
    options = deep_options(scribbles=True)
    envs.reset(options=options | ({"env_index": [0, 2]} if in_parts else {}))
    assert_identical(options, deep_options(scribbles=True))


def test_within_one_process_an_object_in_the_options_is_the_callers_own(build):
    envs = build([KeepingEnv] * 2)
    opponent = threading.Lock() if build.executor != "process" else KeepingEnv()
    envs.reset(options={"opponent": opponent, "scribbles": False})
    kept = [options["opponent"] for options in envs.get_attr("options")]
    if build.executor == "process":
        assert [type(one) for one in kept] == [KeepingEnv] * 2
    else:
        assert all(one is opponent for one in kept)


def test_options_may_contain_themselves(build):
    envs = build([KeepingEnv] * 2)
    options = {"scribbles": False, "deep": []}
    options["self"] = options
    options["deep"].append((options["deep"], options))
    envs.reset(options=options)
    for own in envs.get_attr("options"):
        whole = own["self"]
        assert whole is not options
        assert whole["self"] is whole
        assert own["deep"] is not options["deep"]
        [(deep, again)] = own["deep"]
        assert deep is own["deep"]
        assert again is whole


def test_the_mask_may_be_overwritten_after_the_call(build):
    envs = build([RecordingEnv] * 2)
    envs.reset()
    selected = flags(True, False)
    envs.reset_async(options={"reset_mask": selected})
    selected[:] = True
    _obs, infos = envs.reset_wait()
    assert infos == {}
    assert [len(resets) for resets in envs.get_attr("resets")] == [2, 1]


WRONG_MASKS = [
    [True, False, True],
    None,
    np.bool_(True),
    flags(True),
    np.ones((3, 1), bool),
    np.array(True),
    np.array([1, 0, 1]),
    np.array([1.0, 0.0, 1.0]),
    np.array([True, None, False], object),
    np.ones(2),
    flags(False, False, False),
]


@MODE
def test_a_wrong_mask_is_refused_before_anything_is_reset(build_any, mode):
    envs, oracle = with_oracle(build_any, POLE, 3, mode)
    for wrong in WRONG_MASKS:
        _, expected = outcome(partial(oracle.reset, seed=2, options={"reset_mask": wrong}))
        errors, text = error_of_today(expected)
        assert text.startswith("`options['reset_mask']` must ")
        with pytest.raises(errors, match=f"^{re.escape(text)}$"):
            envs.reset(seed=2, options={"reset_mask": wrong})
    with pytest.raises(ValueError, match="the length must match num_envs=3"):
        envs.reset(seed=[1], options={"reset_mask": [True]})
    assert_same_steps(envs, oracle, 5)


def test_a_mask_need_not_be_contiguous(build):
    envs = build([RecordingEnv] * 3)
    envs.reset()
    envs.reset(options={"reset_mask": flags(True, True, False, True, True, True)[::2]})
    assert [len(resets) for resets in envs.get_attr("resets")] == [2, 1, 2]


@MODE
@pytest.mark.parametrize(("build_any", "case"), SHORT_ROWS, indirect=["build_any"], ids=str)
def test_a_mask_resets_the_rows_that_it_names(build_any, case, mode):
    """At any moment, also when rows are over and wait for their autoreset."""
    envs, oracle = with_oracle(build_any, case, 6, mode)
    random = np.random.default_rng(1)
    pending = 0
    for turn in range(60):
        frames = assert_same_steps(envs, oracle, int(random.integers(0, 8)), seed=turn)
        pending += bool(frames and (frames[-1][2] | frames[-1][3]).any())
        mask = random.random(6) < 0.4
        mask[turn % 6] = True
        seed = [None, turn, [None, 1, None, turn, 2, 3]][turn % 3]
        assert_same_reset(envs, oracle, seed=seed, options={"reset_mask": mask})
    assert pending > 5
    assert_same_steps(envs, oracle, 20)


@MODE
def test_a_partial_reset_leaves_the_other_rows_alone(build_everywhere, mode):
    envs, oracle = with_oracle(build_everywhere, NestedEnv, 4, mode, seed=5)
    for turn in range(16):
        result = envs.step([turn % 3] * 4)
        assert_identical(result, oracle.step([turn % 3] * 4))
        selected = np.arange(4) == turn % 5
        if mode is D:
            selected |= result[2] | result[3]
        if selected.any():
            assert_same_reset(envs, oracle, options={"reset_mask": selected, "x": turn})


@MODE
def test_a_step_before_any_reset_is_refused_as_in_gymnasium(build_any, mode):
    envs, oracle = with_oracle(build_any, POLE, 2, mode, seed=None)
    _, expected = outcome(partial(oracle.step, [0, 0]))
    assert type(expected) is gym.error.ResetNeeded
    with pytest.raises(gym.error.ResetNeeded) as refusal:
        envs.step([0, 0])
    assert str(refusal.value) == str(expected)
    with pytest.raises(gym.error.NoAsyncCallError):
        envs.step_wait()
    assert_same_reset(envs, oracle, seed=3)
    assert_same_steps(envs, oracle, 5)


def test_episode_statistics_are_right_under_partial_resets(build_any):
    """Gymnasium counts each row from the last reset of any row: it removes the mask (#1696)."""
    envs = RecordEpisodeStatistics(build_any([POLE] * 4, autoreset_mode=D))
    envs.action_space.seed(2)
    envs.reset(seed=1)
    lengths, reported = np.zeros(4, np.int64), []
    for _ in range(200):
        *_, terminations, truncations, infos = envs.step(envs.action_space.sample())
        lengths += 1
        if (over := terminations | truncations).any():
            assert_identical(infos["episode"]["l"], np.where(over, lengths, 0))
            assert_identical(infos["episode"]["r"], np.where(over, lengths, 0).astype(float))
            assert_identical(infos["_episode"], over)
            reported += lengths[over].tolist()
            envs.reset(options={"reset_mask": over})
            lengths[over] = 0
    assert len(reported) == envs.episode_count > 20
    assert list(envs.length_queue) == list(envs.return_queue) == reported[-100:]


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_episode_statistics_are_right_under_autoreset(build, mode):
    envs = RecordEpisodeStatistics(build(transcripts(2, 5), autoreset_mode=mode))
    envs.reset()
    reported = []
    for _ in range(12):
        *_, infos = envs.step(np.array([1, 1]))
        if "episode" in infos:
            reported += infos["episode"]["l"][infos["_episode"]].tolist()
    expected = {"NextStep": [2, 5, 2, 2, 2, 5], "SameStep": [2, 2, 5, 2, 2, 2, 5, 2]}
    if mode == "SameStep" and MISCOUNTS_SAME_STEP:
        expected[mode] = [2, 1, 5, 1, 1, 1, 4, 1]
    assert sorted(reported) == sorted(expected[mode])


def test_options_may_hold_functions_but_nothing_that_cannot_be_sent(build):
    envs = build([RecordingEnv] * 2)
    envs.reset()
    offset = 2
    envs.reset(options={"function": lambda value: value + offset})
    if build.executor != "process":
        return
    with pytest.raises(Exception, match="pickle"):
        envs.reset(options={"lock": threading.Lock()})
    assert [len(resets) for resets in envs.get_attr("resets")] == [2, 2]
    envs.step([0, 0])
