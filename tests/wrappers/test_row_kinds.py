"""The kinds of rows of the extension equal those in NumPy, on random sequences of calls."""

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from cartwheel._cartwheel import RowKinds
from cartwheel.wrappers.batch import FAILED, INCOMPLETE, RESET, SHOWN, TRANSITION


class NumpyRowKinds:
    """The kinds of rows in NumPy; arguments and results as of the extension's ``RowKinds``."""

    def __init__(self, num_envs, mode):
        self.mode = mode
        #: Rows whose last step ended their episode, and that have not begun another one.
        self.over = np.zeros(num_envs, np.bool_)
        #: Rows whose reset was sent and has not been received.
        self.resetting = np.zeros(num_envs, np.bool_)
        #: Rows of which a step was lost in the present episode.
        self.incomplete = np.zeros(num_envs, np.bool_)

    def reset(self, rows, mask):
        again = slice(None) if rows is None else rows
        again = again if mask is None else mask
        self.over[again] = self.resetting[again] = self.incomplete[again] = False
        if mask is not None:
            return np.where(mask, RESET, SHOWN).astype(np.uint8)
        return np.full(len(self.over) if rows is None else len(rows), RESET, np.uint8)

    def ahead(self, rows):
        at = slice(None) if rows is None else rows
        ended = {AutoresetMode.NEXT_STEP: RESET, AutoresetMode.SAME_STEP: TRANSITION}
        after = np.where(self.over[at], ended.get(self.mode, SHOWN), TRANSITION)
        return np.where(self.resetting[at], RESET, after).astype(np.uint8)

    def send_reset(self, rows):
        self.resetting[rows] = True

    def lose(self, rows, is_known):
        rows = slice(None) if rows is None else rows
        self.incomplete[rows] = True
        if not is_known:
            self.over[rows] = False

    def step(self, rows, terminations, truncations, failed):
        at = slice(None) if rows is None else rows
        was_over, over = self.over[at], terminations | truncations
        kinds = np.where(self.incomplete[at], INCOMPLETE, TRANSITION).astype(np.uint8)
        if failed is not None:
            kinds[failed & ~terminations & truncations] = FAILED
        if self.mode == AutoresetMode.NEXT_STEP:
            kinds[was_over] = RESET
        elif self.mode == AutoresetMode.DISABLED:
            kinds[was_over] = SHOWN
            over = over | was_over
        kinds[self.resetting[at]] = RESET
        over = over & (kinds != RESET)  # a row that was over, too, goes on
        self.resetting[at] = False
        self.over[at] = over if self.mode != AutoresetMode.SAME_STEP else False
        self.incomplete[at] = (kinds == INCOMPLETE) & ~over
        return kinds


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize("num_envs", [1, 7, 16, 100])
def test_kinds_are_those_of_numpy_after_any_sequence_of_calls(mode, num_envs):
    rng = np.random.default_rng([num_envs, len(mode.value)])
    ours, oracle = RowKinds(num_envs, mode.value), NumpyRowKinds(num_envs, mode)

    def flags(count, share):
        return rng.random(count) < share

    seen = set()
    for call in rng.choice(["step", "part", "reset", "mask", "some", "send", "lose"], 300).tolist():
        rows = rng.permutation(num_envs)[: rng.integers(1, num_envs + 1)].astype(np.int64)
        for at in (None, rows):
            np.testing.assert_array_equal(ours.ahead(at), oracle.ahead(at))
        if call in ("step", "part"):
            at = None if call == "step" else rows
            count = num_envs if at is None else len(rows)
            failed = flags(count, 0.2) if rng.random() < 0.5 else None
            arguments = at, flags(count, 0.2), flags(count, 0.3), failed
            kinds, expected = ours.step(*arguments), oracle.step(*arguments)
            assert kinds.dtype == np.uint8
            np.testing.assert_array_equal(kinds, expected)
            seen |= set(kinds.tolist())
        elif call == "send":
            for kinds in (ours, oracle):
                kinds.send_reset(rows)
        elif call == "lose":
            is_known = bool(rng.random() < 0.5)
            for kinds in (ours, oracle):
                kinds.lose(rows, is_known)
        else:
            mask = flags(num_envs, 0.5) if call == "mask" else None
            at = rows if call == "some" else None
            np.testing.assert_array_equal(ours.reset(at, mask), oracle.reset(at, mask))
    over = {AutoresetMode.NEXT_STEP: set(), AutoresetMode.SAME_STEP: set()}.get(mode, {2})
    assert seen == {0, 1, 3, 4} | over


def test_a_reset_that_was_sent_begins_an_episode_also_where_the_row_was_over():
    kinds = RowKinds(2, "Disabled")
    over, running = np.array([False, True]), np.zeros(2, bool)
    kinds.step(None, over, running, None)
    kinds.send_reset([1])
    assert [kinds.step(None, running, running, None).tolist() for _ in range(2)] == [[0, 1], [0, 0]]


def test_flags_of_other_layouts_count_as_their_values():
    over = np.zeros((4, 3), bool)
    over[1, 1] = True
    kinds = RowKinds(4, "NextStep")
    kinds.step(None, over[:, 1], over[:, 0].tolist(), None)
    assert kinds.step(None, over[:, 0], over[:, 0], None).tolist() == [0, 1, 0, 0]


def test_wrong_arguments_are_refused_and_change_nothing():
    kinds, none = RowKinds(3, "NextStep"), np.zeros(3, bool)
    for row in (-1, 3):
        with pytest.raises(IndexError, match=f"row {row} at position 1 is not from 0 to 2"):
            kinds.step(np.array([0, row]), ~none[:2], none[:2], None)
        with pytest.raises(IndexError, match=f"row {row} at position 0"):
            kinds.send_reset([row])
        with pytest.raises(IndexError, match=f"row {row} at position 0"):
            kinds.ahead(np.array([row]))
    with pytest.raises(ValueError, match="`truncations` must have 3 entries, got 2"):
        kinds.step(None, ~none, none[:2], None)
    with pytest.raises(ValueError, match=r"got an array of shape \[3, 1\]"):
        kinds.step(None, none, none[:, None], None)
    with pytest.raises(ValueError, match="is not an autoreset mode"):
        RowKinds(3, "Sometimes")
    assert kinds.step(None, none, none, None).tolist() == [0, 0, 0]
