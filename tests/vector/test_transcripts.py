"""The results of each autoreset mode at the end of an episode, frame by frame.

``TranscriptEnv`` counts its steps; row 0 is over after two of them, row 1 after three, and the
actions are always ``[1, 2]``.
"""

import numpy as np
import pytest

from tests.support.cases import POLE
from tests.support.comparison import assert_identical
from tests.support.environments import transcripts
from tests.support.oracle import MODE, flags, objects

T, F = True, False
ACTIONS = np.array([1, 2])


def ints(*values):
    return np.array(values, np.int64)


def observations(*values):
    return np.array(values, np.float32).reshape(-1, 1)


def steps(*values):
    """The infos of real steps; 0 where a row had none."""
    return {"t": ints(*values), "_t": ints(*values) > 0} if any(values) else {}


def resets(*episodes, options="None"):
    """The infos of resets, by number of the episode; 0 where a row had none."""
    mask = ints(*episodes) > 0
    return {
        "ep": ints(*episodes),
        "_ep": mask,
        "opt": objects(*[options if reset else None for reset in mask]),
        "_opt": mask,
    }


def finals(*values):
    """``final_obs`` and ``final_info`` of rows that are over; 0 where a row is not."""
    mask = ints(*values) > 0
    return {
        "final_obs": objects(*[observations(value)[0] if value else None for value in values]),
        "_final_obs": mask,
        "final_info": steps(*values),
        "_final_info": mask,
    }


def assert_frame(result, *, obs, rewards, over=(F, F), infos, truncates=False):
    terminations, truncations = (flags(F, F), flags(*over))[:: 1 if truncates else -1]
    rewards = np.array(rewards, np.float64)
    assert_identical(result, (observations(*obs), rewards, terminations, truncations, infos))


def assert_reset(result, *, obs, infos):
    assert_identical(result, (observations(*obs), infos))


ENDINGS = pytest.mark.parametrize("truncates", [False, True], ids=["terminated", "truncated"])


def build_two(build, truncates, **keywords):
    return build(transcripts(2, 3, terminates=not truncates, truncates=truncates), **keywords)


def checks(envs, truncates):
    """Returns a function that makes a step, and compares it with a frame."""
    return lambda **frame: assert_frame(envs.step(ACTIONS), **frame, truncates=truncates)


@ENDINGS
def test_next_step_resets_a_row_in_the_step_after_its_last(build_everywhere, truncates):
    envs = build_two(build_everywhere, truncates, autoreset_mode="NextStep")
    check = checks(envs, truncates)
    assert_reset(envs.reset(), obs=[0, 0], infos=resets(1, 1))
    check(obs=[1, 1], rewards=[1, 2], infos=steps(1, 1))
    check(obs=[2, 2], rewards=[1, 2], over=[T, F], infos=steps(2, 2))
    check(obs=[0, 3], rewards=[0, 2], over=[F, T], infos=resets(2, 0) | steps(0, 3))
    check(obs=[1, 0], rewards=[1, 0], infos=steps(1, 0) | resets(0, 2))
    check(obs=[2, 1], rewards=[1, 2], over=[T, F], infos=steps(2, 1))
    check(obs=[0, 2], rewards=[0, 2], infos=resets(3, 0) | steps(0, 2))


@ENDINGS
def test_same_step_resets_a_row_in_its_last_step(build_everywhere, truncates):
    envs = build_two(build_everywhere, truncates, autoreset_mode="SameStep")
    check = checks(envs, truncates)
    assert_reset(envs.reset(), obs=[0, 0], infos=resets(1, 1))
    check(obs=[1, 1], rewards=[1, 2], infos=steps(1, 1))
    infos = finals(2, 0) | resets(2, 0) | steps(0, 2)
    check(obs=[0, 2], rewards=[1, 2], over=[T, F], infos=infos)
    infos = steps(1, 0) | finals(0, 3) | resets(0, 2)
    check(obs=[1, 0], rewards=[1, 2], over=[F, T], infos=infos)
    infos = finals(2, 0) | resets(3, 0) | steps(0, 1)
    check(obs=[0, 1], rewards=[1, 2], over=[T, F], infos=infos)


@ENDINGS
def test_disabled_waits_until_a_row_is_reset(build_everywhere, truncates):
    envs = build_two(build_everywhere, truncates, autoreset_mode="Disabled")
    check = checks(envs, truncates)
    assert_reset(envs.reset(), obs=[0, 0], infos=resets(1, 1))
    check(obs=[1, 1], rewards=[1, 2], infos=steps(1, 1))
    check(obs=[2, 2], rewards=[1, 2], over=[T, F], infos=steps(2, 2))
    options = {"reset_mask": flags(T, F), "x": 1}
    assert_reset(envs.reset(options=options), obs=[0, 2], infos=resets(2, 0, options="{'x': 1}"))
    check(obs=[1, 3], rewards=[1, 2], over=[F, T], infos=steps(1, 3))
    options = {"reset_mask": flags(F, T)}
    assert_reset(envs.reset(options=options), obs=[1, 0], infos=resets(0, 2, options="{}"))
    check(obs=[2, 1], rewards=[1, 2], over=[T, F], infos=steps(2, 1))


@ENDINGS
def test_a_frozen_row_repeats_its_last_frame_until_it_is_reset(build_everywhere, truncates):
    envs = build_two(build_everywhere, truncates, autoreset_mode="Disabled", on_done="freeze")
    check = checks(envs, truncates)
    assert_reset(envs.reset(), obs=[0, 0], infos=resets(1, 1))
    check(obs=[1, 1], rewards=[1, 2], infos=steps(1, 1))
    check(obs=[2, 2], rewards=[1, 2], over=[T, F], infos=steps(2, 2))
    check(obs=[2, 3], rewards=[0, 2], over=[T, T], infos=steps(0, 3))
    check(obs=[2, 3], rewards=[0, 0], over=[T, T], infos={})
    check(obs=[2, 3], rewards=[0, 0], over=[T, T], infos={})
    options = {"reset_mask": flags(T, F)}
    assert_reset(envs.reset(options=options), obs=[0, 3], infos=resets(2, 0, options="{}"))
    check(obs=[1, 3], rewards=[1, 0], over=[F, T], infos=steps(1, 0))
    check(obs=[2, 3], rewards=[1, 0], over=[T, T], infos=steps(2, 0))
    assert_reset(envs.reset(), obs=[0, 0], infos=resets(3, 2))
    check(obs=[1, 1], rewards=[1, 2], infos=steps(1, 1))
    check(obs=[2, 2], rewards=[1, 2], over=[T, F], infos=steps(2, 2))


def test_next_step_with_a_mask_leaves_the_pending_resets_of_other_rows(build_everywhere):
    envs = build_two(build_everywhere, truncates=False, autoreset_mode="NextStep")
    envs.reset()
    envs.step(ACTIONS)
    envs.step(ACTIONS)
    options = {"reset_mask": flags(F, T)}
    assert_reset(envs.reset(options=options), obs=[2, 0], infos=resets(0, 2, options="{}"))
    assert_frame(envs.step(ACTIONS), obs=[0, 1], rewards=[0, 2], infos=resets(2, 0) | steps(0, 1))


def test_next_step_with_a_mask_clears_the_pending_resets_of_its_rows(build_everywhere):
    envs = build_two(build_everywhere, truncates=False, autoreset_mode="NextStep")
    envs.reset()
    envs.step(ACTIONS)
    envs.step(ACTIONS)
    options = {"reset_mask": flags(T, F)}
    assert_reset(envs.reset(options=options), obs=[0, 2], infos=resets(2, 0, options="{}"))
    assert_frame(envs.step(ACTIONS), obs=[1, 3], rewards=[1, 2], over=[F, T], infos=steps(1, 3))


def test_next_step_with_a_full_reset_clears_every_pending_reset(build_everywhere):
    for options in (None, {"reset_mask": flags(T, T)}):
        envs = build_everywhere(transcripts(1, 1), autoreset_mode="NextStep")
        envs.reset()
        assert_frame(envs.step(ACTIONS), obs=[1, 1], rewards=[1, 2], over=[T, T], infos=steps(1, 1))
        text = "None" if options is None else "{}"
        assert_reset(envs.reset(options=options), obs=[0, 0], infos=resets(2, 2, options=text))
        assert_frame(envs.step(ACTIONS), obs=[1, 1], rewards=[1, 2], over=[T, T], infos=steps(1, 1))
        envs.close()


def test_same_step_with_a_mask_restarts_only_its_rows(build_everywhere):
    envs = build_two(build_everywhere, truncates=False, autoreset_mode="SameStep")
    envs.reset()
    envs.step(ACTIONS)
    options = {"reset_mask": flags(T, F)}
    assert_reset(envs.reset(options=options), obs=[0, 1], infos=resets(2, 0, options="{}"))
    assert_frame(envs.step(ACTIONS), obs=[1, 2], rewards=[1, 2], infos=steps(1, 2))
    infos = finals(2, 3) | resets(3, 2)
    assert_frame(envs.step(ACTIONS), obs=[0, 0], rewards=[1, 2], over=[T, T], infos=infos)


def test_episodes_of_one_step_alternate_between_steps_and_resets(build_everywhere):
    envs = build_everywhere(transcripts(1, 1), autoreset_mode="NextStep")
    envs.reset()
    for episode in range(2, 6):
        assert_frame(envs.step(ACTIONS), obs=[1, 1], rewards=[1, 2], over=[T, T], infos=steps(1, 1))
        assert_frame(envs.step(ACTIONS), obs=[0, 0], rewards=[0, 0], infos=resets(episode, episode))


def test_episodes_of_one_step_end_in_every_step_of_same_step(build_everywhere):
    envs = build_everywhere(transcripts(1, 1), autoreset_mode="SameStep")
    envs.reset()
    for episode in range(2, 6):
        infos = finals(1, 1) | resets(episode, episode)
        assert_frame(envs.step(ACTIONS), obs=[0, 0], rewards=[1, 2], over=[T, T], infos=infos)


def test_a_row_may_be_terminated_and_truncated_at_once(build_everywhere):
    envs = build_everywhere(transcripts(1, 2, truncates=True), autoreset_mode="NextStep")
    envs.reset()
    assert_identical(envs.step(ACTIONS)[2:4], (flags(T, F), flags(T, F)))
    over, infos = flags(F, T), resets(2, 0) | steps(0, 2)
    assert_identical(
        envs.step(ACTIONS), (observations(0, 2), np.array([0.0, 2.0]), over, over, infos)
    )


@MODE
def test_a_mask_of_all_rows_is_a_full_reset(build, mode):
    envs = build_two(build, truncates=False, autoreset_mode=mode)
    for episode in (1, 2, 3):
        options = {"reset_mask": flags(T, T), "x": 1}
        infos = resets(episode, episode, options="{'x': 1}")
        assert_reset(envs.reset(options=options), obs=[0, 0], infos=infos)
        assert_frame(envs.step(ACTIONS), obs=[1, 1], rewards=[1, 2], infos=steps(1, 1))


@MODE
def test_rows_that_were_never_reset_show_zeros_after_a_partial_reset(build_everywhere, mode):
    envs = build_two(build_everywhere, truncates=False, autoreset_mode=mode)
    options = {"reset_mask": flags(F, T)}
    assert_reset(envs.reset(options=options), obs=[0, 0], infos=resets(0, 1, options="{}"))
    options = {"reset_mask": flags(T, F)}
    assert_reset(envs.reset(options=options), obs=[0, 0], infos=resets(1, 0, options="{}"))
    assert_frame(envs.step(ACTIONS), obs=[1, 1], rewards=[1, 2], infos=steps(1, 1))


@MODE
def test_modes_have_four_spellings(build_any, mode):
    for spelling in (mode, mode.value, mode.name, mode.name.lower()):
        envs = build_any([POLE] * 2, autoreset_mode=spelling)
        assert envs.autoreset_mode is mode
        assert envs.metadata["autoreset_mode"] is mode
        envs.close()
