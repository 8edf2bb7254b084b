"""A program may be killed between any two writes."""

import numpy as np
import pytest

from cartwheel.recorder import TrajectoryDataset, staged_file
from cartwheel.recorder.buffer import Episode
from cartwheel.recorder.layouts import ManiSkillFiles

STEPS = 4


def episode(number):
    return Episode(
        {"episode_id": number, "elapsed_steps": STEPS, "reset_kwargs": {}, "return": 1.0 * STEPS},
        {
            ("obs", "eye"): np.full((STEPS + 1, 40, 8), number % 256, np.uint8),
            ("actions",): np.zeros(STEPS, np.int64),
            ("terminated",): np.zeros(STEPS, bool),
            ("truncated",): np.zeros(STEPS, bool),
            ("rewards",): np.ones(STEPS),
        },
    )


@pytest.mark.parametrize("sizes", [[1] * 5, pytest.param([3, 40, 1], marks=pytest.mark.slow)])
def test_the_file_is_whole_after_every_single_write(tmp_path, monkeypatch, sizes):
    path, copy = tmp_path / "t.h5", tmp_path / "copy.h5"
    contents = {}  # by what was written, in order
    committed, written, looked_at = 0, 0, 0

    def write(descriptor, view, offset, write=staged_file._write):
        write(descriptor, view, offset)
        contents[path.read_bytes()] = None

    def assert_whole(content):
        copy.write_bytes(content)
        dataset = TrajectoryDataset(copy)
        numbers = [about["episode_id"] for about in dataset.episodes]
        assert numbers[:committed] == list(range(committed))
        assert len(dataset) == STEPS * len(numbers)
        for number in (0, committed - 1):
            assert (dataset.episode(number)["obs"]["eye"] == number % 256).all()

    files = ManiSkillFiles(tmp_path / "t", {"env_id": "x", "env_kwargs": {}}, {})
    for size in sizes:
        for _ in range(size):
            files.write(episode(written))
            written += 1
        with monkeypatch.context() as patch:  # writes before a flush are behind the end
            patch.setattr(staged_file, "_write", write)
            files.flush()
        if committed:
            # HDF5 may not be called within its own writes, so this comes later.
            changes = [*contents][-9:]
            for content in changes:
                assert_whole(content)
            looked_at += len(changes)
        contents.clear()
        committed = written
    files.close()
    assert looked_at > 3 * (len(sizes) - 1)
    assert len(TrajectoryDataset(path).episodes) == written


def test_changes_are_read_back_before_they_are_committed(tmp_path):
    file = staged_file.StagedFile(tmp_path / "file")
    oracle = bytearray()
    random = np.random.default_rng(0)
    for turn in range(400):
        offset, size = (int(number) for number in random.integers(0, (len(oracle) + 1, 50)))
        piece = random.bytes(size)
        file.seek(offset)
        file.write(piece)
        oracle[offset : offset + size] = piece
        if turn % 40 == 39:
            file.commit()
            assert (tmp_path / "file").read_bytes() == oracle
        file.seek(int(random.integers(0, len(oracle) + 1)))
        begin, buffer = file.tell(), bytearray(60)
        count = file.readinto(memoryview(buffer))
        assert buffer[:count] == oracle[begin : begin + 60]
    file.close()
    assert (tmp_path / "file").read_bytes() == oracle
