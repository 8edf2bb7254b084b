"""Seeds, options and masks of `reset` mean what they mean in Gymnasium."""

import re
import threading
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import RecordEpisodeStatistics

from tests.comparison import assert_identical, assert_names_row
from tests.environments import NestedEnv, RecordingEnv, transcripts

MODES = pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.value)
ERROR = gym.error.Error


def mask(*values):
    return np.array(values, np.bool_)


def seeds_and_options(envs):
    """What each environment was given by its last reset."""
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
    ],
    ids=repr,
)
def test_each_environment_gets_its_seed(build, seed, expected):
    envs = build([RecordingEnv] * 3)
    envs.reset(seed=seed)
    assert_identical([seed for seed, _options in seeds_and_options(envs)], expected)


def test_a_seed_of_none_keeps_the_generator(build):
    envs, oracle = build([NestedEnv] * 3), SyncVectorEnv([NestedEnv] * 3)
    for seed in (4, [1, None, 3], None, [None, None, 8]):
        assert_identical(envs.reset(seed=seed), oracle.reset(seed=seed), f"seed {seed}")
        assert_identical(envs.np_random_seed, oracle.np_random_seed)
    oracle.close()


def test_seeds_under_a_mask_belong_to_their_rows(build):
    envs = build([RecordingEnv] * 3)
    envs.reset(seed=1)
    envs.reset(seed=50, options={"reset_mask": mask(False, True, False)})
    assert seeds_and_options(envs) == [(1, None), (51, {}), (3, None)]
    envs.reset(seed=[5, None, 7], options={"reset_mask": mask(True, True, False)})
    assert seeds_and_options(envs) == [(5, {}), (None, {}), (3, None)]


@pytest.mark.parametrize(
    ("seed", "error", "text"),
    [
        ([1], ValueError, "the length must match num_envs=3 but got length=1."),
        ([1, 2, 3, 4], ValueError, "the length must match num_envs=3 but got length=4."),
        (np.int64(3), TypeError, "object of type 'numpy.int64' has no len()"),
        (1.5, TypeError, "object of type 'float' has no len()"),
    ],
    ids=repr,
)
def test_a_wrong_seed_is_refused_before_anything_is_reset(build, seed, error, text):
    envs = build([RecordingEnv] * 3)
    envs.reset(seed=1)
    with pytest.raises(error, match=re.escape(text)):
        envs.reset(seed=seed)
    assert [len(resets) for resets in envs.get_attr("resets")] == [1, 1, 1]
    envs.step([0, 0, 0])


@pytest.mark.parametrize(
    ("seed", "text", "row"),
    [
        (np.array([4, 5, 6]), "Seed must be a python integer, actual type:", 0),
        ("abc", "Seed must be a python integer, actual type:", 0),
        (-5, "Seed must be greater or equal to zero, actual value: -5", 0),
        ([1, 2, -1], "Seed must be greater or equal to zero, actual value: -1", 2),
        ([1, 1.5, -1], "Seed must be a python integer, actual type:", 1),
    ],
    ids=repr,
)
def test_a_seed_that_the_environment_refuses_is_its_error(build, seed, text, row):
    envs = build(transcripts(2, 2, 2))
    envs.reset(seed=1)
    with pytest.raises(ERROR, match=re.escape(text)) as failure:
        envs.reset(seed=seed)
    assert_names_row(failure.value, row)
    assert envs.reset(seed=1)[0].tolist() == [[0], [0], [0]]
    assert envs.step([1, 2, 3])[1].tolist() == [1, 2, 3]


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
    envs.reset(options={"reset_mask": mask(True, False, True), "x": 1})
    assert seeds_and_options(envs) == [(None, {"x": 1}), (None, None), (None, {"x": 1})]
    envs.reset(options={"reset_mask": mask(False, True, False)})
    assert seeds_and_options(envs) == [(None, {"x": 1}), (None, {}), (None, {"x": 1})]


def test_the_callers_options_are_never_changed(build):
    envs = build([RecordingEnv] * 2)
    selected = mask(True, False)
    options = {"reset_mask": selected, "x": [1]}
    for _ in range(2):
        envs.reset(options=options)
        assert_identical(options, {"reset_mask": mask(True, False), "x": [1]})
        assert options["reset_mask"] is selected
    for wrong in ([True, False], mask(False, False), mask(True)):
        options = {"reset_mask": wrong, "x": 1}
        with pytest.raises((TypeError, ValueError)):
            envs.reset(options=options)
        assert options == {"reset_mask": wrong, "x": 1}
        assert options["reset_mask"] is wrong


def test_an_environment_that_changes_its_options_does_not_change_the_callers(build):
    envs = build([partial(RecordingEnv, scribbles=True)] * 2)
    envs.reset()
    options = {"reset_mask": mask(True, True), "x": 1}
    envs.reset(options=options)
    assert set(options) == {"reset_mask", "x"}


class KeepingEnv(RecordingEnv):
    """Keeps the options of its last reset, and writes into their array if it is told to."""

    def reset(self, *, seed=None, options=None):
        self.options = options
        if options and options["scribbles"]:
            options["deep"][0]["array"][:] = 7
        return super().reset(seed=seed)


def deep_options(*, scribbles):
    return {"deep": [{"array": np.arange(3)}], "pair": ({"y": 1},), "scribbles": scribbles}


@pytest.mark.parametrize("reset", ["reset_async", "async_reset"])
def test_the_options_may_be_changed_after_the_call(build, reset):
    envs = build([KeepingEnv] * 3)
    options = deep_options(scribbles=False)
    getattr(envs, reset)(seed=1, options=options)
    options["deep"][0]["array"][:] = 9
    options["deep"].append(1)
    options["pair"][0]["y"] = 2
    envs.recv() if reset == "async_reset" else envs.reset_wait()
    assert_identical(list(envs.get_attr("options")), [deep_options(scribbles=False)] * 3)


@pytest.mark.parametrize("in_parts", [False, True])
def test_an_environment_that_writes_into_its_options_does_not_reach_the_callers(build, in_parts):
    envs = build([KeepingEnv] * 3)
    options = deep_options(scribbles=True)
    envs.reset(options=options | ({"env_index": [0, 2]} if in_parts else {}))
    assert_identical(options, deep_options(scribbles=True))


def test_an_object_among_the_options_is_the_callers_own_within_one_process(build):
    envs = build([KeepingEnv] * 2)
    opponent = threading.Lock() if build.executor != "process" else KeepingEnv()
    envs.reset(options={"opponent": opponent, "scribbles": False})
    kept = [options["opponent"] for options in envs.get_attr("options")]
    if build.executor == "process":
        assert [type(one) for one in kept] == [KeepingEnv] * 2
    else:
        assert all(one is opponent for one in kept)


def test_the_mask_may_be_overwritten_after_the_call(build):
    envs = build([RecordingEnv] * 2)
    envs.reset()
    selected = mask(True, False)
    envs.reset_async(options={"reset_mask": selected})
    selected[:] = True
    _obs, infos = envs.reset_wait()
    assert infos == {}
    assert [len(resets) for resets in envs.get_attr("resets")] == [2, 1]


@pytest.mark.parametrize(
    ("wrong", "error", "text"),
    [
        ([True, False, True], TypeError, "must be a numpy array, got <class 'list'>"),
        (None, TypeError, "must be a numpy array, got <class 'NoneType'>"),
        (np.bool_(True), TypeError, "must be a numpy array, got <class 'numpy.bool'>"),
        (mask(True), ValueError, "must have shape `(3,)`, got (1,)"),
        (np.ones((3, 1), bool), ValueError, "must have shape `(3,)`, got (3, 1)"),
        (np.array(True), ValueError, "must have shape `(3,)`, got ()"),
        (np.array([1, 0, 1]), TypeError, "must have `dtype=np.bool_`, got int64"),
        (np.array([1.0, 0.0, 1.0]), TypeError, "must have `dtype=np.bool_`, got float64"),
        (np.array([True, None, False], object), TypeError, "must have `dtype=np.bool_`, got obj"),
        (np.ones(2), ValueError, "must have shape `(3,)`, got (2,)"),
        (
            mask(False, False, False),
            ValueError,
            "must contain a boolean array with at least one True value, "
            "got reset_mask=[False False False]",
        ),
    ],
    ids=repr,
)
def test_a_wrong_mask_is_refused_before_anything_is_reset(build, wrong, error, text):
    if isinstance(wrong, np.bool_):
        text = f"must be a numpy array, got {np.bool_}"
    envs = build([RecordingEnv] * 3)
    envs.reset(seed=1)
    with pytest.raises(error, match=re.escape(f"`options['reset_mask']` {text}")):
        envs.reset(seed=2, options={"reset_mask": wrong})
    assert [len(resets) for resets in envs.get_attr("resets")] == [1, 1, 1]
    envs.step([0, 0, 0])


def test_a_wrong_seed_is_found_before_a_wrong_mask(build):
    envs = build(transcripts(2, 2))
    with pytest.raises(ValueError, match="the length must match num_envs=2"):
        envs.reset(seed=[1], options={"reset_mask": [True]})


def test_a_mask_need_not_be_contiguous(build):
    envs = build([RecordingEnv] * 3)
    envs.reset()
    envs.reset(options={"reset_mask": mask(True, True, False, True, True, True)[::2]})
    assert [len(resets) for resets in envs.get_attr("resets")] == [2, 1, 2]


@MODES
def test_a_partial_reset_leaves_the_other_rows_alone(build_everywhere, mode):
    envs = build_everywhere([NestedEnv] * 4, autoreset_mode=mode)
    oracle = SyncVectorEnv([NestedEnv] * 4, autoreset_mode=mode)
    assert_identical(envs.reset(seed=5), oracle.reset(seed=5))
    for turn in range(16):
        result = envs.step([turn % 3] * 4)
        assert_identical(result, oracle.step([turn % 3] * 4))
        selected = np.arange(4) == turn % 5
        if mode is AutoresetMode.DISABLED:
            selected |= result[2] | result[3]
        if selected.any():
            for_us, for_the_oracle = ({"reset_mask": selected.copy(), "x": turn} for _ in range(2))
            assert_identical(envs.reset(options=for_us), oracle.reset(options=for_the_oracle))
    oracle.close()


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_a_step_before_any_reset_is_the_environments_error(build, mode):
    env_fns = [partial(gym.make, "CartPole-v1")] * 2
    envs = build(env_fns, autoreset_mode=mode)
    with pytest.raises(gym.error.ResetNeeded, match=r"Cannot call env\.step"):
        envs.step([0, 0])
    oracle = SyncVectorEnv(env_fns, autoreset_mode=mode)
    assert_identical(envs.reset(seed=3), oracle.reset(seed=3))
    assert_identical(envs.step([0, 1]), oracle.step([0, 1]))
    oracle.close()


def test_episode_statistics_are_right_under_partial_resets(build):
    """Gymnasium reports episodes of length 5 as 1 and 2, since it removes the mask (#1696)."""
    envs = RecordEpisodeStatistics(build(transcripts(2, 5), autoreset_mode="Disabled"))
    envs.reset()
    reported = []
    for _ in range(12):
        *_, terminations, truncations, infos = envs.step(np.array([1, 1]))
        if (over := terminations | truncations).any():
            assert_identical(infos["_episode"], over)
            reported += infos["episode"]["l"][over].tolist()
            envs.reset(options={"reset_mask": over})
    assert reported == [2, 2, 5, 2, 2, 2, 5, 2]
    assert list(envs.length_queue) == reported
    assert list(envs.return_queue) == reported


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
