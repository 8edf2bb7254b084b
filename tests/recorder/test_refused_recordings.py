"""Recordings that cannot be made are refused before anything is stepped or written."""

import sys
from functools import partial

import h5py
import numpy as np
import pytest
from gymnasium.error import AlreadyPendingCallError
from gymnasium.spaces import Discrete, Sequence
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

import cartwheel
from cartwheel.recorder import RecordEpisode, TrajectoryDataset
from tests.recorder.test_writing import painters, record
from tests.support.environments import SamplingEnv, TranscriptEnv


def test_bad_arguments_are_refused_before_anything_is_made(tmp_path):
    envs = painters()
    (tmp_path / "file").touch()
    text = SyncVectorEnv([partial(SamplingEnv, Sequence(Discrete(3)))], observation_mode="same")
    cases = [
        ({"format": "npz"}, ValueError, "must be one of 'maniskill', 'minari', got 'npz'"),
        ({"video_envs": [2]}, ValueError, "`video_envs` names row 2; there are rows 0 to 1"),
        ({"video_envs": "tiles"}, ValueError, "must be one of 'tile', got 'tiles'"),
        ({"video_envs": []}, ValueError, "`video_envs` is empty"),
        ({"video_fps": 0}, ValueError, "`video_fps` must be a number above 0, got 0"),
        ({"queue_mb": -1}, ValueError, "`queue_mb` must be a number above 0, got -1"),
        ({"queue_mb": "1"}, ValueError, "`queue_mb` must be a number above 0, got '1'"),
        ({"trajectory_name": 5}, TypeError, "`trajectory_name` must be a string or None, got 5"),
        ({"trajectory_name": ""}, ValueError, "must be the name of a file in `output_dir`, got ''"),
        ({"trajectory_name": "../up"}, ValueError, "name of a file in `output_dir`, got '../up'"),
        ({"trajectory_name": "a/b"}, ValueError, "name of a file in `output_dir`, got 'a/b'"),
        ({"output_dir": None}, TypeError, "`output_dir` must be the path of a folder, got None"),
        ({"max_steps_per_video": 0}, ValueError, "positive integer, got 0"),
        ({"save_trajectory": "demo"}, TypeError, "`save_trajectory` must be True or False"),
        ({"save_video": 3}, TypeError, "`save_video` must be True or False, got 3"),
        ({"record_env_state": "no"}, TypeError, "`record_env_state` must be True or False"),
        ({"episode_filter": 3}, TypeError, "`episode_filter` must be a function, got 3"),
        ({"save_video_trigger": 3}, TypeError, "`save_video_trigger` must be a function"),
        ({"save_trajectory": False}, ValueError, "nothing would be recorded"),
        (
            {"output_dir": tmp_path / "file"},
            FileExistsError,
            "must be a folder, and this is a file",
        ),
        ({"output_dir": tmp_path / "file" / "in"}, NotADirectoryError, "file"),
        ({"output_dir": "/proc/self/cannot"}, OSError, "cannot"),
        (
            {"format": "minari", "trajectory_name": "a b"},
            ValueError,
            "'a b' is not the name of a Minari",
        ),
        ({"env": text}, TypeError, r"at `obs` has no fixed shape and dtype\.$"),
        ({"env": envs.envs[0]}, TypeError, "needs a vector environment"),
        (
            {"env": SyncVectorEnv([partial(SamplingEnv, Discrete(3))]), "record_env_state": True},
            ValueError,
            "record_env_state=True needs environments with `get_state`, got SyncVectorEnv",
        ),
    ]
    for keywords, error, message in cases:
        given = {"env": envs, "output_dir": tmp_path / "new", "save_video": False, **keywords}
        with pytest.raises(error, match=message):
            RecordEpisode(**given)
    assert {path.name for path in tmp_path.rglob("*")} <= {"file", "new"}
    nameless = painters()
    nameless.metadata = {}
    with pytest.raises(ValueError, match="has no 'autoreset_mode'"):
        record(tmp_path, nameless)
    with pytest.raises(FileNotFoundError, match="there is no trajectory file here"):
        TrajectoryDataset(tmp_path / "none.h5")
    (tmp_path / "demo.h5").touch()
    with pytest.raises(FileNotFoundError, match=r"of which the folder has: demo\.h5"):
        TrajectoryDataset(tmp_path)
    with pytest.raises(ValueError, match="`load_count`"):
        TrajectoryDataset(tmp_path / "none.h5", load_count=-2)
    with pytest.raises(TypeError, match="`success_only` must be True or False, got 'no'"):
        TrajectoryDataset(tmp_path / "none.h5", success_only="no")
    with pytest.raises(TypeError, match="`path` must be the path of a recording, got None"):
        TrajectoryDataset(None)
    with pytest.raises(ValueError, match=r"file is not an HDF5 file: give the `\.h5` file"):
        TrajectoryDataset(tmp_path / "file")
    with h5py.File(tmp_path / "foreign.h5", "w") as foreign:
        foreign["weights"] = [1.0]
    with pytest.raises(ValueError, match=r"foreign\.h5 has no trajectories"):
        TrajectoryDataset(tmp_path / "foreign.h5")


def test_tensors_need_pytorch_and_say_so(tmp_path, monkeypatch):
    record(tmp_path).close()
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"needs torch: pip install 'cartwheel\[torch\]'"):
        TrajectoryDataset(tmp_path / "demo.h5", device="cpu")


@pytest.mark.parametrize(
    ("name", "keywords", "others"),
    [
        ("h5py", {}, {"save_trajectory": False, "save_video": True}),
        ("av", {"save_video": True}, {}),
        ("PIL.Image", {"save_video": True, "info_on_video": True}, {"save_video": True}),
        ("PIL.Image", {"save_video": True, "info_on_video": True}, {"info_on_video": True}),
    ],
)
def test_a_library_is_needed_where_it_is_used(tmp_path, monkeypatch, name, keywords, others):
    monkeypatch.setitem(sys.modules, name, None)
    extra = r"pip install 'cartwheel\[record\]'"
    with pytest.raises(ImportError, match=rf"needs {name}: {extra}"):
        record(tmp_path, **keywords)
    assert not [*tmp_path.iterdir()]
    record(tmp_path, **others).close()


def test_actions_that_do_not_fit_are_refused_before_a_step(tmp_path):
    envs = painters()
    recorder = record(tmp_path, envs)
    recorder.reset()
    with pytest.raises(ValueError, match=r"`actions` must have shape \(2,\).*got \(3,\)"):
        recorder.step(np.zeros(3, int))
    assert [env.steps for env in envs.envs] == [0, 0]
    recorder.close()


def test_rows_in_flight_cannot_be_asked_for_terminal_frames(tmp_path):
    envs = painters(mode=AutoresetMode.SAME_STEP)
    envs.reset()
    envs.send([0], [0])
    with pytest.raises(AlreadyPendingCallError, match=r"`RecordEpisode` while rows \[0\]"):
        record(tmp_path, envs, save_video=True)
    assert not any(tmp_path.iterdir())
    envs.close()


def test_a_refused_call_leaves_the_actions_in_flight(tmp_path):
    recorder = record(tmp_path, painters(mode=AutoresetMode.NEXT_STEP))
    recorder.reset()
    recorder.send(np.array([1, 0]))
    with pytest.raises(AlreadyPendingCallError, match="in flight"):
        recorder.send(np.array([0, 1]))
    recorder.recv()
    recorder.close()
    with h5py.File(tmp_path / "demo.h5") as file:
        assert [file[f"traj_{row}/actions"][0, 0] for row in (0, 1)] == [1, 0]


@pytest.mark.parametrize("build", [cartwheel.VectorEnv, AsyncVectorEnv])
@pytest.mark.parametrize("call", ["step", "step_async"])
def test_a_refused_call_leaves_the_actions_of_a_pending_step(tmp_path, build, call):
    recorder = record(tmp_path, build([partial(TranscriptEnv, 5)] * 2))
    recorder.reset()
    recorder.step_async(np.array([1, 0]))
    with pytest.raises(AlreadyPendingCallError):
        getattr(recorder, call)(np.array([0, 1]))
    recorder.step_wait()
    recorder.close()
    with h5py.File(tmp_path / "demo.h5") as file:
        assert [file[f"traj_{row}/actions"][0, 0] for row in (0, 1)] == [1, 0]
