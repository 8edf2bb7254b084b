"""Rows are sent, overtake each other, arrive and wait as documented."""

from functools import partial
from multiprocessing import TimeoutError

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Tuple
from gymnasium.vector import AutoresetMode

import cartwheel
from tests.support.comparison import assert_identical
from tests.support.environments import RecordingEnv, TranscriptEnv, transcripts
from tests.support.in_parts import PATIENCE_S, begin, index, receive_all

# The order of arrival


def test_rows_arrive_in_the_order_in_which_they_finish(build_workers, gates):
    envs = build_workers(gates.env_fns(3), batch_size=1, num_workers=3)
    envs.send_reset()
    assert sorted(index(envs.recv(PATIENCE_S))[0] for _ in range(3)) == [0, 1, 2]
    for first, order in ((1, [2, 0, 1]), (4, [1, 2, 0])):
        envs.send([first + order.index(row) for row in range(3)], [0, 1, 2])
        for place, row in enumerate(order):
            gates.open(first + place)
            result = envs.recv(PATIENCE_S)
            assert index(result) == [row]
            assert result[1].tolist() == [first + place]


def test_a_slow_row_delays_no_other_row(build_workers, gates):
    envs = build_workers(gates.env_fns(4), batch_size=2, num_workers=4)
    envs.send_reset()
    rows = index(envs.recv(PATIENCE_S)) + index(envs.recv(PATIENCE_S))
    assert sorted(rows) == [0, 1, 2, 3]
    envs.send([1, 0, 0, 0], [3, 0, 1, 2])
    for _ in range(30):
        rows = index(envs.recv(PATIENCE_S))
        assert 3 not in rows
        envs.send([0, 0], rows)
    gates.open(1)
    while 3 not in rows:
        rows = index(envs.recv(PATIENCE_S))
        envs.send([0] * 2, rows)


class SlowToRestartEnv(TranscriptEnv):
    """Its episodes have one step; what restarts the row after that waits at the action's gate.

    That is the reset, or after an action of 9, which raises, the end of the failed environment.
    """

    def __init__(self, gates):
        super().__init__(1)
        self.gates, self.gate = gates, 0

    def reset(self, *, seed=None, options=None):
        self.wait()
        return super().reset(seed=seed, options=options)

    def step(self, action):
        self.gate = int(action)
        if self.gate == 9:
            raise RuntimeError("9")
        return super().step(action)

    def close(self):
        self.wait()

    def wait(self):
        gate, self.gate = self.gate, 0
        self.gates.stand_at(gate)


def begin_restarts(envs, gate):
    """Sends four rows, of which row 3 waits at the gate before it restarts."""
    begin(envs)
    if envs.autoreset_mode is AutoresetMode.NEXT_STEP and gate != 9:
        envs.send([0, 0, 0, gate])
        receive_all(envs)
    envs.send([gate, 0, 0, 0], [3, 0, 1, 2])


@pytest.mark.parametrize("gate", [1, 9], ids=["reset", "replacement"])
@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_a_row_that_restarts_slowly_delays_no_other_row(build_workers, mode, gate, gates):
    env_fns = [partial(SlowToRestartEnv, gates)] * 4
    settings = {"batch_size": 2, "num_workers": 4, "autoreset_mode": mode}
    envs = build_workers(env_fns, on_error="restart", **settings)
    begin_restarts(envs, gate)
    gates.await_arrival(gate)
    for _ in range(30):
        rows = index(envs.recv(PATIENCE_S))
        assert 3 not in rows
        envs.send([0, 0], rows)
    gates.open(gate)
    while 3 not in rows:
        rows = index(result := envs.recv(PATIENCE_S))
        envs.send([0] * 2, rows)
    place = rows.index(3)
    observations, _, terminations, truncations, infos = result
    fails, same_step = gate == 9, mode == "SameStep"
    assert bool(truncations[place]) is fails
    assert bool(terminations[place]) is (same_step and not fails)
    assert observations[place] == 0
    if same_step:
        assert infos["final_obs"][place] == (0 if fails else 1)
    if fails:
        assert infos["env_error"][place] == "RuntimeError: 9"


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_an_inline_row_that_restarts_slowly_has_the_same_result(mode, gates):
    gates.open(1)
    received = []
    for executor in ("inline", "thread"):
        envs = cartwheel.VectorEnv(
            [partial(SlowToRestartEnv, gates)] * 4, executor=executor, autoreset_mode=mode
        )
        begin_restarts(envs, 1)
        received.append(envs.recv(PATIENCE_S))
        envs.close()
    assert_identical(*received)


def test_a_full_batch_has_its_rows_in_the_order_of_sending(build_everywhere, gates):
    """If ``batch_size`` is ``num_envs``, whichever row finishes first."""
    envs = build_everywhere(gates.env_fns(5))
    envs.send_reset()
    assert index(envs.recv(PATIENCE_S)) == [0, 1, 2, 3, 4]
    gates.open(*range(1, 10))
    envs.send([1, 2], [4, 1])
    envs.send([3], np.array([0], np.uint8))
    envs.send([5, 6], (3, 2))
    result = envs.recv(PATIENCE_S)
    assert index(result) == [4, 1, 0, 3, 2]
    assert result[1].tolist() == [1, 2, 3, 5, 6]
    envs.send([1, 2, 3, 4, 5])
    result = envs.recv(PATIENCE_S)
    assert index(result) == [0, 1, 2, 3, 4]
    assert result[1].tolist() == [1, 2, 3, 4, 5]
    assert result[0].tolist() == [[2]] * 5


def test_env_index_is_a_new_int64_array_in_every_batch(build):
    for keywords in ({}, {"batch_size": 2}):
        envs = build(transcripts(9, 9, 9), **keywords)
        envs.send_reset()
        kept = envs.recv(PATIENCE_S)[4]["env_index"]
        assert kept.dtype == np.int64
        copy = kept.copy()
        while envs._pool.in_flight():
            envs.recv(PATIENCE_S)
        envs.send([1], [2])
        envs.recv(PATIENCE_S)
        assert_identical(kept, copy)


def test_the_last_batch_may_be_short(build_everywhere):
    envs = build_everywhere(transcripts(*[9] * 7), batch_size=3)
    envs.send_reset()
    assert [len(index(envs.recv(PATIENCE_S))) for _ in range(3)] == [3, 3, 1]
    for rows in ([5], [2, 6, 0, 1], [3, 4]):
        envs.send([1] * len(rows), rows)
        sizes, got = [], []
        while len(got) < len(rows):
            got += (batch := index(envs.recv(PATIENCE_S)))
            sizes.append(len(batch))
        assert sorted(got) == sorted(rows)
        assert sizes == ([3, 1] if len(rows) == 4 else [len(rows)])


# Actions of rows in flight


@pytest.mark.parametrize("batch_size", [3, 2])
@pytest.mark.parametrize(
    ("space", "actions"),
    [
        (Box(-1, 1, (2,), np.float32), np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]])),
        (Box(-100, 100, (1,), np.int8), np.array([[300], [1], [-300]])),
        (Box(0, 255, (1,), np.uint8), np.array([[200], [1], [-1]])),
        (Discrete(10), [1, 2, 3]),
    ],
    ids=["float64", "int64 for int8", "int64 for uint8", "a list"],
)
def test_an_action_that_is_sent_is_the_same_as_in_a_step(
    build_everywhere, space, actions, batch_size
):
    env_fns = [partial(RecordingEnv, space)] * 3
    expected = build_everywhere(env_fns)
    expected.reset()
    expected.step(actions)
    envs = build_everywhere(env_fns, batch_size=batch_size)
    begin(envs)
    sent = actions.copy()
    envs.send(sent[1:], [1, 2])
    envs.send(sent[:1], [0])
    sent[:] = [actions[1]] * 3  # they were copied
    receive_all(envs)
    assert_identical(envs.get_attr("actions"), expected.get_attr("actions"))


@pytest.mark.parametrize("batch_size", [3, 2, 1])
def test_actions_of_every_dtype_may_be_in_flight_at_once(build_everywhere, batch_size):
    space = Dict(a=Discrete(10), b=Tuple([Box(-1, 1, (2,), np.float32)]))
    envs = build_everywhere([partial(RecordingEnv, space)] * 3, batch_size=batch_size)
    begin(envs)
    sent = [
        {"a": np.array([1]), "b": (np.array([[0.1, 0.2]]),)},
        {"a": [2], "b": (np.array([[0.3, 0.4]], np.float32),)},
        {"a": np.array([3], np.uint8), "b": ([[1, 0]],)},
    ]
    expected = [
        {"a": np.int64(1), "b": (np.array([0.1, 0.2]),)},
        {"a": 2, "b": (np.array([0.3, 0.4], np.float32),)},
        {"a": np.uint8(3), "b": (np.array([1, 0]),)},
    ]
    order = [0, 1, 2]
    for _ in range(3):
        for row in order:
            envs.send(sent[row], [row])
        receive_all(envs)
        order.append(order.pop(0))  # the first action decides how the others are sent
    assert_identical(envs.get_attr("actions"), tuple([action] * 3 for action in expected))


def test_a_batch_may_be_smaller_than_all_rows_in_every_call(build_everywhere):
    envs = build_everywhere(transcripts(*[99] * 5), batch_size=2)
    assert envs.observation_space.shape == (2, 1)
    assert envs.action_space.shape == (2,)
    observations, infos = envs.reset(seed=1)
    rows = infos["env_index"].tolist()
    assert observations.shape == (2, 1)
    for _ in range(5):
        result = envs.step(envs.action_space.sample(), rows)
        assert result[0].shape == (2, 1)
        rows = index(result)


# Rows that are over


def play_until_over(envs, lengths):
    """Resets all rows, and sends each row actions until its episode ends."""
    envs.send_reset()
    rows = []
    while envs._pool.in_flight():
        rows += index(envs.recv(PATIENCE_S))
    for row in rows:
        for _ in range(lengths[row]):
            envs.send([1], [row])
            result = envs.recv(PATIENCE_S)
        assert result[2].tolist() == [True]


@pytest.mark.parametrize("batch_size", [3, 2])
def test_a_row_that_is_over_is_refused_and_nothing_is_stepped(build_everywhere, batch_size):
    envs = build_everywhere(transcripts(1, 2, 9), autoreset_mode="Disabled", batch_size=batch_size)
    play_until_over(envs, [1, 2, 9])
    envs.send_reset(options={"env_index": [1]})
    envs.recv(PATIENCE_S)
    with pytest.raises(cartwheel.EpisodeOverError) as refusal:
        envs.send([1, 1, 1], [1, 2, 0])
    assert list(refusal.value.env_index) == [2, 0]
    assert envs._pool.in_flight() == []
    assert envs.get_attr("t") == (1, 0, 9)
    result = envs.step([4], env_index=[1])
    assert (index(result), result[1].tolist()) == ([1], [4])
    envs.send_reset(options={"env_index": [0, 2]})
    envs.recv(PATIENCE_S)
    assert envs.step([1], env_index=[2])[0].tolist() == [[1]]


@pytest.mark.parametrize("batch_size", [3, 2])
def test_a_row_that_is_over_may_be_frozen_instead(build_everywhere, batch_size):
    envs = build_everywhere(
        transcripts(1, 2, 9), autoreset_mode="Disabled", on_done="freeze", batch_size=batch_size
    )
    play_until_over(envs, [1, 2, 9])
    for _ in range(3):
        observations, rewards, terminations, truncations, infos = envs.step([5, 5], [2, 0])
        order = infos["env_index"].tolist()
        assert sorted(order) == [0, 2]
        assert observations.tolist() == [[{0: 1, 2: 9}[row]] for row in order]
        assert rewards.tolist() == [0, 0]
        assert terminations.tolist() == [True, True]
        assert truncations.tolist() == [False, False]
    assert envs.get_attr("t") == (1, 2, 9)
    observations, infos = envs.reset(options={"env_index": [2]})
    assert observations.tolist() == [[0]]
    assert envs.step([5], [2])[1].tolist() == [5]


# Waiting


def test_a_wait_that_times_out_loses_nothing(build_workers, gates):
    envs = build_workers(gates.env_fns(3), batch_size=2, num_workers=3)
    envs.send_reset()
    rows = index(envs.recv(PATIENCE_S)) + index(envs.recv(PATIENCE_S))
    envs.send([1, 2, 3], [0, 1, 2])
    gates.open(2)
    for timeout in (0, 0.001, 0.05):
        with pytest.raises(TimeoutError, match="recv"):
            envs.recv(timeout=timeout)
    assert sorted(envs._pool.in_flight()) == sorted(rows)
    gates.open(1)
    result = envs.recv(PATIENCE_S)
    # In any order: row 1 may or may not have finished before a wait timed out.
    assert sorted(zip(index(result), result[1].tolist(), strict=True)) == [(0, 1), (1, 2)]
    with pytest.raises(TimeoutError):
        envs.recv(timeout=0)
    gates.open(3)
    result = envs.recv(PATIENCE_S)
    assert (index(result), result[1].tolist()) == ([2], [3])


def test_the_timeout_of_the_constructor_applies_to_recv(build_workers, gates):
    envs = build_workers(gates.env_fns(2), batch_size=1, timeout=20)
    envs.send_reset()
    rows = index(envs.recv()) + index(envs.recv())
    assert sorted(rows) == [0, 1]
    envs._callbacks.timeout = 0.05
    envs.send([1], [0])
    with pytest.raises(TimeoutError):
        envs.recv()
    gates.open(1)
    assert index(envs.recv(PATIENCE_S)) == [0]


def test_a_reset_of_some_rows_after_a_timeout_drops_no_other_row(build_workers, gates):
    envs = build_workers(gates.env_fns(3), batch_size=1, num_workers=3)
    envs.send_reset()
    for _ in range(3):
        envs.recv(PATIENCE_S)
    envs.send([1], [0])
    with pytest.raises(TimeoutError):
        envs.recv(timeout=0)
    envs.send_reset(options={"env_index": [2]})
    result = envs.recv(PATIENCE_S)
    assert (index(result), result[1].tolist()) == ([2], [0])
    gates.open(1)
    result = envs.recv(PATIENCE_S)
    assert (index(result), result[1].tolist()) == ([0], [1])


def test_a_reset_of_all_rows_after_a_timeout_drops_late_results(build_workers, gates):
    envs = build_workers(gates.env_fns(3), batch_size=2, num_workers=3)
    envs.send_reset()
    envs.recv(PATIENCE_S)
    envs.recv(PATIENCE_S)
    envs.send([1, 0], [0, 1])
    with pytest.raises(TimeoutError):
        envs.recv(timeout=0)
    gates.open(1)
    observations, infos = envs.reset()
    rows = infos["env_index"].tolist() + index(envs.recv(PATIENCE_S))
    assert observations.tolist() == [[0], [0]]
    assert sorted(rows) == [0, 1, 2]
    assert envs._pool.in_flight() == []
