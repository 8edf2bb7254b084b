"""The kinds of rows of the extension equal those in NumPy, on random sequences of calls."""

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from cartwheel._cartwheel import RowKinds
from tests.support.row_kinds import RowKinds as NumpyRowKinds


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
