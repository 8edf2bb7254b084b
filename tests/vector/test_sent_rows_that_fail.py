"""An exception of a row that was sent is received with its batch, and the other rows go on."""

from functools import partial

import pytest
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Text
from gymnasium.vector import SyncVectorEnv

from tests.support.comparison import assert_identical, assert_names_row
from tests.support.environments import RecordingEnv
from tests.support.faulty import FaultyEnv, fault
from tests.support.in_parts import PATIENCE_S, index


@pytest.mark.parametrize("batch_size", [4, 2])
def test_an_exception_names_its_row_and_the_others_go_on(build_everywhere, batch_size):
    envs = build_everywhere([partial(FaultyEnv, row) for row in range(4)], batch_size=batch_size)
    envs.send_reset(seed=1)
    while envs._pool.in_flight():
        envs.recv(PATIENCE_S)
    envs.send([fault("value error"), 0], [2, 1])
    with pytest.raises(ValueError, match="boom") as failure:
        envs.recv(PATIENCE_S)
    assert_names_row(failure.value, 2)
    [batch] = [note for note in failure.value.__notes__ if "came with the batch" in note]
    assert "[2, 1]" in batch or "[1, 2]" in batch
    assert envs._pool.in_flight() == []
    assert envs.get_attr("steps") == (0, 1, 0, 0)
    with pytest.raises(ResetNeeded, match="2"):
        envs.send([0, 0], [0, 2])
    assert index(envs.step([0, 0], [3, 1])) in ([3, 1], [1, 3])
    envs.send_reset(seed=[9], options={"env_index": [2]})
    observations, *_ = envs.recv(PATIENCE_S)
    oracle = SyncVectorEnv([FaultyEnv])
    assert_identical(observations, oracle.reset(seed=9)[0])
    assert_identical(envs.step([0], [2])[0], oracle.step([0])[0])
    oracle.close()


def test_of_several_exceptions_the_lowest_row_is_raised(build_everywhere):
    envs = build_everywhere([partial(FaultyEnv, row) for row in range(4)])
    envs.send_reset()
    envs.recv(PATIENCE_S)
    envs.send([fault("chained"), fault("value error"), 0], [3, 1, 2])
    with pytest.raises(ValueError, match="boom") as failure:
        envs.recv(PATIENCE_S)
    assert_names_row(failure.value, 1)
    assert "[3]" in "".join(failure.value.__notes__)


def test_every_kind_of_exception_is_received_with_its_own_batch(build):
    envs = build([partial(FaultyEnv, row) for row in range(3)], batch_size=1)
    envs.send_reset()
    for _ in range(3):
        envs.recv(PATIENCE_S)
    for name in ("two arguments", "unpicklable", "base exception", "long message"):
        envs.send([fault(name)], [1])
        envs.send([0], [0])
        outcomes = []
        for _ in range(2):
            try:
                outcomes.append(index(envs.recv(PATIENCE_S)))
            except BaseException as error:
                assert_names_row(error, 1)
                outcomes.append("raised")
        assert sorted(map(str, outcomes)) == ["[0]", "raised"], name
        envs.send_reset(options={"env_index": [1]})
        assert index(envs.recv(PATIENCE_S)) == [1]


def test_an_exception_in_a_reset_is_received(build_everywhere):
    envs = build_everywhere([partial(FaultyEnv, row) for row in range(3)])
    envs.send_reset(options={"faults": {1: "value error"}})
    with pytest.raises(ValueError, match="boom") as failure:
        envs.recv(PATIENCE_S)
    assert_names_row(failure.value, 1)
    envs.send_reset(options={"env_index": [1]})
    assert index(envs.recv(PATIENCE_S)) == [1]
    assert index(envs.step([0] * 3, [0, 1, 2])) == [0, 1, 2]


def fail():
    raise ValueError("cannot be read here")


class Unreadable:
    """Can be pickled but not unpickled."""

    def __reduce__(self):
        return fail, ()


def receive_unreadable(envs, rows):
    """Receives one row at a time; each of ``rows`` must raise. Returns the other rows."""
    raised, received = [], []
    while envs.in_flight:
        before = set(envs.in_flight)
        try:
            received += index(envs.recv(PATIENCE_S))
        except ValueError as error:
            [row] = before - set(envs.in_flight)
            assert_names_row(error, row)
            raised.append(row)
    assert sorted(raised) == rows
    return sorted(received)


@pytest.mark.parametrize("num_workers", [1, 2])
@pytest.mark.parametrize("batch_size", [1, 4])
def test_options_that_cannot_be_unpickled_fail_every_row(build_processes, num_workers, batch_size):
    envs = build_processes([RecordingEnv] * 4, num_workers=num_workers, batch_size=batch_size)
    for _ in range(2):
        envs.send_reset(options={"x": Unreadable()})
        if batch_size == 1:
            assert receive_unreadable(envs, [0, 1, 2, 3]) == []
        else:
            with pytest.raises(ValueError, match="cannot be read here") as failure:
                envs.recv(PATIENCE_S)
            assert_names_row(failure.value, 0)
            assert "[1, 2, 3]" in "".join(failure.value.__notes__)
        with pytest.raises(ResetNeeded):
            envs.send([0], [3])
        envs.send_reset()
        while envs.in_flight:
            envs.recv(PATIENCE_S)
    assert envs.get_attr("resets") == ([(None, None)] * 2,) * 4


def test_an_action_that_cannot_be_unpickled_fails_the_rows_of_its_message(build_processes):
    envs = build_processes([partial(RecordingEnv, Text(5))] * 4, num_workers=2, batch_size=1)
    envs.send_reset()
    while envs.in_flight:
        envs.recv(PATIENCE_S)
    envs.send(("a", Unreadable(), "c", "d"), [2, 0, 3, 1])
    assert receive_unreadable(envs, [0, 1]) == [2, 3]
    envs.send_reset(options={"env_index": [0, 1]})
    while envs.in_flight:
        envs.recv(PATIENCE_S)
    envs.send(("e", "f", "g", "h"), [0, 1, 2, 3])
    while envs.in_flight:
        envs.recv(PATIENCE_S)
    assert envs.get_attr("actions") == (["e"], ["f"], ["a", "g"], ["c", "h"])
