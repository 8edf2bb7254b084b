"""The buffer gives back what was put in, for any lengths of episodes."""

import itertools

import numpy as np
import pytest

from cartwheel.recorder import buffer


@pytest.mark.parametrize(("first", "chunk_bytes"), [(1, 1 << 20), (2, 200), (32, 1 << 20)])
def test_episodes_of_any_length_come_back(monkeypatch, first, chunk_bytes):
    monkeypatch.setattr(buffer, "FIRST", first)
    monkeypatch.setattr(buffer, "CHUNK_BYTES", chunk_bytes)
    random = np.random.default_rng(5)
    num_envs = 5
    tape = buffer.EpisodeBuffer(num_envs)
    tape.add_track(("obs",), (2,), np.float32)
    tape.add_track(("act",), (), np.int64, first=1)
    oracle = [{} for _ in range(num_envs)]
    late = False
    for turn in range(900):
        rows = np.flatnonzero(random.random(num_envs) < 0.7)
        if turn == 400:
            tape.add_track(("late",), (), np.float64, fill=np.nan)
            late = True
        ends = random.random(len(rows)) < (0.2 if turn % 300 < 100 else 0.005)
        ends |= np.array([not oracle[row] for row in rows], bool)
        again, on = rows[ends], rows[~ends]
        for row in again.tolist():
            if oracle[row]:
                cut = tape.cut(row)
                for name, values in oracle[row].items():
                    np.testing.assert_array_equal(cut[name,], values)
                    assert cut[name,].base is None
        for group, is_first in ((again, True), (on, False)):
            if not len(group):
                continue
            entries = {("obs",): random.random((len(group), 2), np.float32)}
            if not is_first:
                entries["act",] = random.integers(0, 99, len(group))
            if late:
                entries["late",] = random.random(len(group))
            (tape.begin if is_first else tape.add)(group, entries)
            for place, row in enumerate(group.tolist()):
                if is_first:
                    oracle[row] = {"obs": [], "act": [], **({"late": []} if late else {})}
                elif late:
                    oracle[row].setdefault("late", [np.nan] * len(oracle[row]["obs"]))
                for (name,), values in entries.items():
                    oracle[row][name].append(values[place])
        tape.shrink()
    assert max(len(one["act"]) for one in oracle) > 4


@pytest.mark.parametrize("fails_at", [0, 1])
def test_a_step_for_which_there_is_no_memory_leaves_a_buffer_that_goes_on(monkeypatch, fails_at):
    monkeypatch.setattr(buffer, "FIRST", 2)
    tape, rows = buffer.EpisodeBuffer(1), np.array([0])
    for name in ("obs", "act"):
        tape.add_track((name,), (), np.int64)
    tape.begin(rows, {("obs",): np.array([0]), ("act",): np.array([0])})
    extend, calls = buffer.Track.extend, itertools.count()

    def fails(self, *arguments):
        if next(calls) == fails_at:
            raise MemoryError
        extend(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(buffer.Track, "extend", fails)
        tape.add(rows, {("obs",): np.array([1]), ("act",): np.array([1])})
        with pytest.raises(MemoryError):
            tape.add(rows, {("obs",): np.array([2]), ("act",): np.array([2])})
    for step in range(2, 9):
        tape.add(rows, {("obs",): np.array([step]), ("act",): np.array([step])})
    episode = tape.cut(0)
    assert episode["obs",].tolist() == episode["act",].tolist() == [*range(9)]


def test_a_long_episode_does_not_leave_its_memory_behind(monkeypatch):
    monkeypatch.setattr(buffer, "FIRST", 2)
    tape = buffer.EpisodeBuffer(2)
    tape.add_track(("obs",), (), np.float64)
    rows = np.arange(2)
    tape.begin(rows, {("obs",): np.zeros(2)})
    for _ in range(500):
        tape.add(rows, {("obs",): np.zeros(2)})
    chunks = tape.track(("obs",)).chunks
    assert len(chunks) == 9
    tape.begin(rows, {("obs",): np.zeros(2)})
    tape.shrink()
    assert len(chunks) == 2
