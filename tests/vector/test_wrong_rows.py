"""An invalid send, receive or reset is refused before anything is stepped."""

import itertools
import os
import re
import threading
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import AlreadyPendingCallError, ClosedEnvironmentError, NoAsyncCallError
from gymnasium.spaces import Box, Dict, Discrete

from tests.support.cases import POLE
from tests.support.comparison import assert_identical
from tests.support.environments import NAMES, RecordingEnv, SamplingEnv, transcripts
from tests.support.in_parts import PATIENCE_S, ready

NUM_ENVS = 4
#: Invalid rows, the exception, and a part of its text.
ROWS = {
    "too high": ([0, 4], ValueError, r"row 4\b.*[34]"),
    "negative": ([-1, 0], ValueError, r"-1"),
    "huge": (np.array([2**64 - 1, 0], np.uint64), ValueError, "row"),
    "twice": ([1, 2, 1], ValueError, r"row 1\b.*twice"),
    "fractions": ([0.0, 1.0], TypeError, "float64"),
    "a mask": (np.array([True, False, True, False]), TypeError, "bool"),
    "text": (["0", "1"], TypeError, "integers"),
    "objects": (np.array([0, None]), TypeError, "integers"),
    "a number": (2, TypeError, "one-dimensional"),
    "a number in an array": (np.array(2), TypeError, "one-dimensional"),
    "a column": (np.array([[0], [1]]), TypeError, "one-dimensional"),
    "ragged": ([[0], [1, 2]], (TypeError, ValueError), "."),
    "nothing": ([], ValueError, "empty"),
    "an empty array": (np.array([], np.int64), ValueError, "empty"),
}
BATCHES = pytest.mark.parametrize("batch_size", [NUM_ENVS, 3])


@pytest.fixture
def build_four(build_any):
    """Builds four rows, native ones too."""
    return partial(build_any, [POLE] * NUM_ENVS)


def assert_usable(envs, twin):
    """Nothing is in flight, and the next results are those of a twin that was never misused."""
    assert envs._pool.in_flight() == []
    rows = list(range(NUM_ENVS))
    lives = []
    for each in (envs, twin):
        each.send([1] * NUM_ENVS, rows)
        lives.append({})
        while each._pool.in_flight():
            observations, *_, infos = each.recv(PATIENCE_S)
            lives[-1].update(zip(infos["env_index"].tolist(), observations.tolist(), strict=True))
    assert sorted(lives[0]) == rows
    assert lives[0] == lives[1]


ACTIONS = {
    "too few": ([1], ValueError),
    "too many": ([1, 1, 1], ValueError),
    "none": ([], ValueError),
    "a number": (1, (TypeError, ValueError)),
    "too deep": ([[1], [1]], ValueError),
    "fractions": (np.array([0.5, 1.0]), TypeError),
    "text": (np.array(["a", "b"]), TypeError),
    "nothing": (None, (TypeError, ValueError)),
    "a mapping": ({"action": [1, 1]}, (TypeError, ValueError)),
}
SEEDS = ([1], [1, 2, 3], "12", 1.5, [1, -1], [1, 2.5], -9)


@BATCHES
def test_calls_that_do_not_fit_are_refused(build_four, batch_size):
    """Invalid rows, rows named in two ways, and actions and seeds that do not fit their rows."""
    envs, twin = (ready(build_four(batch_size=batch_size)) for _ in range(2))
    for case, (rows, kind, text) in ROWS.items():
        actions = [1] * (2 if case == "ragged" else np.size(rows))
        for call in (
            partial(envs.send, actions, rows),
            partial(envs.step, actions, env_index=rows),
            partial(envs.send_reset, options={"env_index": rows}),
            partial(envs.reset, options={"env_index": rows}),
            partial(envs.reset, options={"env_idx": rows}),
            partial(envs.reset_async, options={"env_idx": rows}),
        ):
            with pytest.raises(kind, match=text):
                call()
            assert envs._pool.in_flight() == [], case
    assert_usable(envs, twin)
    ways = {
        "reset_mask": np.array([False, True, False, False]),
        "env_index": [1],
        "env_idx": np.array([1]),
    }
    for call in (envs.reset, envs.reset_async, envs.send_reset):
        for first, second in itertools.combinations(ways, 2):
            with pytest.raises(ValueError, match=f"`{first}` and `{second}`: give one of them"):
                call(options={first: ways[first], second: ways[second]})
    for case, (actions, kind) in ACTIONS.items():
        for call in (envs.send, envs.step):
            with pytest.raises(kind):
                call(actions, [2, 0])
            assert envs._pool.in_flight() == [], case
    assert_usable(envs, twin)
    mask = np.array([True, False, True, False])
    for seed in SEEDS:
        for options in ({"env_index": [2, 0]}, {"reset_mask": mask}):
            with pytest.raises((TypeError, ValueError, gym.error.Error)):
                envs.send_reset(seed=seed, options=options)
            assert envs._pool.in_flight() == [], seed
    assert_usable(envs, twin)


def test_a_step_of_a_batch_requires_env_index(build_four):
    envs, twin = (ready(build_four(batch_size=2)) for _ in range(2))
    with pytest.raises(ValueError, match="4") as refusal:
        envs.send(envs.action_space.sample())
    assert 'pass its `infos["env_index"]`' in "".join(refusal.value.__notes__)
    assert envs.in_flight == []
    text = r"`env_index` is required, .*batch_size=2 of num_envs=4: pass `infos\[\"env_index\"\]`"
    for call in (envs.step, envs.step_async):
        for number in (2, NUM_ENVS):
            with pytest.raises(ValueError, match=text):
                call([1] * number)
            assert envs.in_flight == []
    with pytest.raises(NoAsyncCallError, match="`step_wait` without any prior call"):
        envs.step_wait()
    assert_usable(envs, twin)
    _, infos = envs.reset(seed=1)  # the other rows are in flight
    for call in (envs.step, envs.step_async):
        with pytest.raises(ValueError, match=text):
            call(envs.action_space.sample())
        assert len(envs.in_flight) == 2
    result = envs.step([1, 1], infos["env_index"])
    envs.recv(PATIENCE_S)
    assert len(result[4]["env_index"]) == 2
    envs.close()
    for call in (envs.step, envs.step_async):
        with pytest.raises(ClosedEnvironmentError):
            call([1, 1])


def test_step_async_may_step_some_rows(build_four):
    for batch_size in (2, NUM_ENVS):
        envs, twin = (ready(build_four(batch_size=batch_size)) for _ in range(2))
        envs.step_async([1, 1], [3, 0])
        assert envs.in_flight == [0, 3]
        observations, *_, infos = envs.step_wait(PATIENCE_S)
        expected, *_, theirs = twin.step([1, 1], [3, 0])
        for rows, shown in ((infos, observations), (theirs, expected)):
            shown[:] = shown[rows["env_index"].argsort()]
        assert_identical(observations, expected)
        assert_usable(envs, twin)
    envs.step_async([1], [2])
    envs.step_wait(PATIENCE_S)
    twin.step([1], [2])
    envs.step_async([1] * NUM_ENVS)  # of all rows again
    assert_identical(envs.step_wait(PATIENCE_S), twin.step([1] * NUM_ENVS))


def test_a_wrong_native_action_names_its_row(build_native):
    envs = ready(build_native([POLE] * NUM_ENVS, batch_size=3))
    with pytest.raises(ValueError, match=r"row 3\b.*7|7.*row 3\b"):
        envs.send([1, 7], [1, 3])
    assert envs._pool.in_flight() == []


def test_a_wrong_part_of_an_action_stores_nothing(build):
    space = Dict(a=Discrete(5), b=Box(-1, 1, (2,), np.float32))
    envs = ready(build([partial(RecordingEnv, space)] * NUM_ENVS, batch_size=2))
    right = {"a": np.array([1, 2]), "b": np.zeros((2, 2), np.float32)}
    for wrong in ({"b": np.zeros((2, 3))}, {"b": np.zeros((1, 2))}, {"b": np.array(["x", "y"])}):
        with pytest.raises((TypeError, ValueError)):
            envs.send(right | wrong, [3, 1])
    envs.send(right, [1, 3])
    envs.recv(PATIENCE_S)
    assert [len(actions) for actions in envs.get_attr("actions")] == [0, 1, 0, 1]


def test_wrong_actions_without_a_fixed_shape_are_refused(build):
    make = partial(SamplingEnv, Box(-1, 1, (1,)), action_space=NAMES, length=99)
    envs = ready(build([make] * NUM_ENVS, batch_size=2))
    for actions in (("a",), ("a", "b", "c")):
        with pytest.raises(ValueError, match="2"):
            envs.send(actions, [3, 1])
        assert envs._pool.in_flight() == []
    envs.send(("abc", "def"), [3, 1])
    envs.recv(PATIENCE_S)
    assert envs.get_attr("received")[1::2] == ("def", "abc")


def test_rows_in_flight_can_only_be_received(build_four):
    """No other call begins, they cannot be sent again, and a bad time-out loses nothing."""
    envs, twin = (ready(build_four(batch_size=3)) for _ in range(2))
    envs.send([1, 1], [2, 0])
    for call in (
        lambda: envs.send([1], [2]),
        lambda: envs.send([1, 1], [1, 0]),
        lambda: envs.send([1] * NUM_ENVS),
        lambda: envs.step([1], [2]),
        lambda: envs.send_reset(),
        lambda: envs.send_reset(options={"env_index": [3, 2]}),
        lambda: envs.send_reset(options={"reset_mask": np.array([True, False, False, False])}),
        lambda: envs.reset(),
        lambda: envs.reset_async(),
        lambda: envs.call("gravity"),
        lambda: envs.get_attr("gravity"),
        lambda: envs.set_attr("gravity", 9.0),
        lambda: envs.call_async("gravity"),
        envs.render,
    ):
        with pytest.raises(AlreadyPendingCallError, match=r"in flight|pending"):
            call()
        assert envs._pool.in_flight() == [0, 2]
    for timeout in (-1, float("nan"), "1", [1]):
        with pytest.raises((TypeError, ValueError), match="timeout"):
            envs.recv(timeout)
    assert sorted(envs.recv(PATIENCE_S)[4]["env_index"].tolist()) == [0, 2]
    twin.send([1, 1], [2, 0])
    twin.recv(PATIENCE_S)
    assert_usable(envs, twin)


def test_nothing_is_sent_while_another_call_is_pending(build_four):
    envs, twin = (ready(build_four()) for _ in range(2))
    for begin, end in (
        (lambda: envs.step_async([1] * NUM_ENVS), envs.step_wait),
        (envs.reset_async, envs.reset_wait),
        (lambda: envs.call_async("gravity"), envs.call_wait),
    ):
        begin()
        for call in (lambda: envs.send([1], [2]), lambda: envs.send_reset()):
            with pytest.raises(AlreadyPendingCallError, match="pending call"):
                call()
        end(PATIENCE_S)
    twin.step([1] * NUM_ENVS)
    twin.reset()
    assert_usable(envs, twin)


@BATCHES
def test_nothing_in_flight_is_an_error_and_not_a_hang(build_four, batch_size):
    envs, twin = build_four(batch_size=batch_size), build_four(batch_size=batch_size)
    for timeout in (None, 0, 5):
        with pytest.raises(NoAsyncCallError, match="in flight"):
            envs.recv(timeout)
    ready(envs)
    with pytest.raises(NoAsyncCallError, match="in flight"):
        envs.recv()
    assert_usable(envs, ready(twin))


def test_an_invalid_batch_size_is_refused(build_four):
    for batch_size in (0, -1, 5, 2.0, "2", True):
        with pytest.raises(ValueError, match=rf"batch_size.*{re.escape(repr(batch_size))}"):
            build_four(batch_size=batch_size)


def test_different_spaces_cannot_be_batched_in_parts(build):
    with pytest.raises(ValueError, match="observation_mode"):
        build(transcripts(2, 3), batch_size=1, observation_mode="different")


def test_each_of_two_threads_is_served_or_refused(build_four):
    """Two threads send and receive at random: nothing hangs, no row is lost or counted twice."""
    envs = ready(build_four(batch_size=1))
    barrier, lock = threading.Barrier(2), threading.Lock()
    idle, counts, errors = list(range(NUM_ENVS)), {"sent": 0, "received": 0}, []

    def hammer():
        barrier.wait()
        for _ in range(300):
            with lock:
                row = idle.pop() if idle else None
            try:
                if row is not None:
                    envs.send([1], [row])
                    row = None
                    with lock:
                        counts["sent"] += 1
                received = envs.recv(PATIENCE_S)[4]["env_index"].tolist()
                with lock:
                    counts["received"] += len(received)
                    idle.extend(received)
            except (AlreadyPendingCallError, NoAsyncCallError):
                with lock:
                    idle.extend([] if row is None else [row])
            except Exception as error:
                errors.append(error)
                return

    threads = [threading.Thread(target=hammer) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    assert not errors
    flying = envs._pool.in_flight()
    assert counts["sent"] == counts["received"] + len(flying)
    assert sorted(idle + flying) == list(range(NUM_ENVS))
    assert counts["received"] > 0


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_is_refused(build_four):
    envs = ready(build_four(batch_size=3))
    envs.send([1, 1], [2, 0])
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        answers = []
        for call in (envs.recv, lambda: envs.send([1], [1]), envs.send_reset):
            try:
                call()
                answers.append("nothing")
            except BaseException as error:
                answers.append(type(error).__name__)
        os.write(write, " ".join(answers).encode())
        os._exit(0)
    os.close(write)
    with open(read, "rb") as pipe:  # noqa: PTH123 (a descriptor)
        assert pipe.read().decode().split() == ["ForkedProcessError"] * 3
    os.waitpid(child, 0)
    assert sorted(envs.recv(PATIENCE_S)[4]["env_index"].tolist()) == [0, 2]
