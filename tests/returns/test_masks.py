"""The functions of ``cartwheel.returns`` that know the modes: their arguments and outputs."""

import re

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from cartwheel import returns
from tests.support.random_rollouts import ENVS, STEPS, rollout

FLAGS = {key: rollout()[key] for key in ("terminated", "truncated")}
NO_FLAGS = {key: np.zeros((STEPS, ENVS), bool) for key in ("terminated", "truncated")}
NO_ROW = np.zeros(ENVS, bool)
VALUES = np.arange((STEPS + 1) * ENVS, dtype=float).reshape(STEPS + 1, ENVS)


@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, "SameStep", "same_step", "SAME_STEP"])
def test_every_name_of_a_mode_is_accepted(mode):
    assert returns.valid_mask(mode, **FLAGS, prev_done=NO_ROW).all()
    assert returns.is_first(mode, **FLAGS, prev_done=NO_ROW, initial=~NO_ROW)[0].all()
    then = returns.next_values(mode, VALUES, **FLAGS, bootstrap="never")
    np.testing.assert_array_equal(then, VALUES[1:])


@pytest.mark.parametrize("mode", ["nope", "", None, 3])
def test_an_unknown_mode_is_refused(mode):
    for call_it in (
        lambda: returns.valid_mask(mode, **FLAGS, prev_done=NO_ROW),
        lambda: returns.is_first(mode, **FLAGS, prev_done=NO_ROW, initial=NO_ROW),
        lambda: returns.next_values(mode, VALUES, **FLAGS),
    ):
        with pytest.raises(ValueError, match="is not a valid AutoresetMode"):
            call_it()


def test_an_unknown_on_done_is_refused():
    for call_it in (
        lambda: returns.valid_mask("disabled", **FLAGS, prev_done=NO_ROW, on_done="stop"),
        lambda: returns.next_values("disabled", VALUES, **FLAGS, on_done="stop"),
    ):
        with pytest.raises(ValueError, match="`on_done` must be one of 'raise', 'freeze'"):
            call_it()


def test_flags_of_another_mode_are_refused_in_next_step():
    over = np.zeros((3, 2), bool)
    over[0:2, 1] = True
    no_row = np.zeros(2, bool)
    text = re.escape("row [1, 1] (step, environment) is over right after an over one")
    with pytest.raises(ValueError, match=text):
        returns.valid_mask("next_step", over, ~over & False, no_row)
    with pytest.raises(ValueError, match=re.escape("row [0, 1]")):
        returns.is_first("next_step", over[1:], ~over[1:] & False, ~no_row, ~no_row)
    returns.valid_mask("same_step", over, ~over & False, no_row)


def one_end():
    """A truncation at step 2 of environment 1."""
    flags = {key: array.copy() for key, array in NO_FLAGS.items()}
    flags["truncated"][2, 1] = True
    return flags


def test_a_final_value_replaces_the_value_of_the_next_row():
    for mode in ("same_step", "disabled"):
        then = returns.next_values(
            mode, VALUES, **one_end(), final_values=np.array([-1.0]), final_index=[[2, 1]]
        )
        wanted = VALUES[1:].copy()
        wanted[2, 1] = -1
        np.testing.assert_array_equal(then, wanted)


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"final_values": None, "final_index": None}, ValueError, "no value for row [2, 1]"),
        ({"final_values": None}, ValueError, "go together: give both or none"),
        ({"final_index": None}, ValueError, "go together: give both or none"),
        ({"final_index": [[2, 0]]}, ValueError, "[2, 0] (step, environment), but no episode ends"),
        ({"final_index": [[2, 4]]}, ValueError, "outside of a rollout of [6, 4]"),
        ({"final_index": [[6, 1]]}, ValueError, "outside of a rollout of [6, 4]"),
        ({"final_index": [[-4, 1]]}, ValueError, "`final_index[0]` is [-4, 1]: negative"),
        ({"final_index": [[2, 1, 0]]}, ValueError, "must have shape (1, 2), got (1, 3)"),
        ({"final_index": [[2.0, 1.0]]}, TypeError, "must be integers, got float64"),
        ({"final_values": np.ones(1, np.float32)}, TypeError, "must be float64 like `values`"),
        ({"final_values": np.ones((1, 1))}, ValueError, "must have shape (K,), got (1, 1)"),
        (
            {"final_values": np.ones(2), "final_index": [[2, 1], [2, 1]]},
            ValueError,
            "`final_index[1]` is [2, 1] (step, environment), for the second time",
        ),
        (
            {"autoreset_mode": "next_step"},
            ValueError,
            "1 final values were given, but in NEXT_STEP",
        ),
        (
            {"autoreset_mode": "disabled", "on_done": "freeze"},
            ValueError,
            "1 final values were given, but frozen rows repeat",
        ),
        ({"values": VALUES[1:]}, ValueError, "`values` has shape [6, 4], expected [7, 4]"),
        ({"bootstrap": "maybe"}, ValueError, "`bootstrap` must be one of"),
    ],
)
def test_bad_final_values_are_refused(changes, error, text):
    good = {"final_values": np.ones(1), "final_index": [[2, 1]]}
    arguments = {"autoreset_mode": "same_step", "values": VALUES, **one_end(), **good}
    returns.next_values(**arguments)
    out = np.full((STEPS, ENVS), 77.0)
    with pytest.raises(error, match=re.escape(text)):
        returns.next_values(**{**arguments, **changes, "out": out})
    assert (out == 77).all()


def test_an_out_that_shares_memory_with_final_values_is_refused():
    out = np.full((STEPS, ENVS), 77.0)
    finals = {"final_values": out[0, :1], "final_index": [[2, 1]]}
    with pytest.raises(ValueError, match="shares memory with `final_values`"):
        returns.next_values("same_step", VALUES, **one_end(), **finals, out=out)
    assert (out == 77).all()


def test_prev_done_and_initial_need_a_flag_for_each_environment():
    with pytest.raises(ValueError, match="`prev_done` must have 4 elements, got 3"):
        returns.valid_mask("next_step", **NO_FLAGS, prev_done=NO_ROW[1:])
    with pytest.raises(ValueError, match="`initial` must have 4 elements, got 3"):
        returns.is_first("next_step", **NO_FLAGS, prev_done=NO_ROW, initial=NO_ROW[1:])
    with pytest.raises(ValueError, match=r"`prev_done` must have one dimension \(environments\)"):
        returns.valid_mask("next_step", **NO_FLAGS, prev_done=NO_ROW[None])
    with pytest.raises(TypeError, match="`prev_done` must be bool or uint8, got float64"):
        returns.valid_mask("next_step", **NO_FLAGS, prev_done=np.zeros(ENVS))


def test_masks_and_next_values_are_written_to_out():
    mask, marks = np.zeros((STEPS, ENVS), bool), np.zeros((STEPS + 1, ENVS), bool)
    then = np.zeros((STEPS, ENVS))
    assert returns.valid_mask("next_step", **NO_FLAGS, prev_done=NO_ROW, out=mask) is mask
    assert mask.all()
    arguments = {**NO_FLAGS, "prev_done": NO_ROW, "initial": ~NO_ROW}
    assert returns.is_first("next_step", **arguments, out=marks) is marks
    assert marks.tolist() == [[True] * ENVS] + [[False] * ENVS] * STEPS
    assert returns.next_values("next_step", VALUES, **NO_FLAGS, out=then) is then
    np.testing.assert_array_equal(then, VALUES[1:])
    with pytest.raises(ValueError, match="shares memory with `values`"):
        returns.next_values("next_step", VALUES, **NO_FLAGS, out=VALUES[:-1])
