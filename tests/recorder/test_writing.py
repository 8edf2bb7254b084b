"""Nothing is lost but by a kill, and then only the last quarter of a second; errors are told."""

import shutil
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import h5py
import numpy as np
import pytest

import cartwheel
from cartwheel.recorder import RecordEpisode, TrajectoryDataset, writer
from cartwheel.recorder.layouts import ManiSkillFiles
from cartwheel.recorder.trajectory_recorder import TrajectoryRecorder
from cartwheel.wrappers import RescaleObservation
from tests.support.environments import SamplingEnv, transcripts
from tests.support.interrupts import ANY_MOMENT, interrupted_at
from tests.support.painting import PaintingEnv
from tests.support.programs import run_program
from tests.support.recordings import read_h5, recorded_episodes
from tests.support.repetitions import times
from tests.support.wrapping import D, N, S

pytestmark = pytest.mark.usefixtures("program_server")


def painters(num_envs=2, mode=N, **keywords):
    env_fns = [partial(PaintingEnv, row, 3 + row) for row in range(num_envs)]
    return cartwheel.VectorEnv(env_fns, executor="inline", autoreset_mode=mode, **keywords)


def record(folder, envs=None, **keywords):
    keywords = {"trajectory_name": "demo", "save_video": False, **keywords}
    return RecordEpisode(envs or painters(), folder, **keywords)


def walk(recorder, steps):
    for _ in range(steps):
        recorder.step(np.zeros(recorder.num_envs, int))


def whole(group):
    """The steps of an episode in a file, whose arrays fit each other."""
    steps = len(group["actions"])
    assert len(group.get("obs", group.get("observations"))) == steps + 1
    for name in ("terminated", "truncated"):
        flags = group.get(name, group.get(f"{name[:-2]}ions"))
        assert len(flags) == steps
        assert not flags[:-1].any()
    assert len(group["rewards"]) == steps
    return steps


@pytest.mark.parametrize(
    ("form", "kills"), [("maniskill", times([200], with_full=[0, 400])), ("minari", [41])]
)
def test_episodes_before_a_kill_are_read_from_the_arrays_alone(tmp_path, form, kills):
    flushes_at = times(150, with_full=300)
    for steps in kills:
        folder = tmp_path / f"{steps}"
        arguments = (folder, form, flushes_at, steps)
        facts = run_program("record_until_killed", *arguments, returncode=-signal.SIGKILL)
        flushed = facts["flushed"]
        path = folder / ("t-v0.h5" if form == "maniskill" else "t-v0")
        assert not (folder / "t-v0.json").exists()
        dataset = TrajectoryDataset(path)
        assert flushed > flushes_at // 5
        assert len(dataset.episodes) >= flushed
        assert [about["episode_id"] for about in dataset.episodes] == [
            *range(len(dataset.episodes))
        ]
        assert len(dataset) == sum(whole(group) for group in read_h5(dataset.path).values())
        for number, about in enumerate(dataset.episodes):
            assert dataset.episode(number)["rewards"].sum() == about["return"]
        known = dataset.env_info
        assert known["env_id" if form == "maniskill" else "dataset_id"] in (
            "cartwheel/CartPole-v1",
            "t-v0",
        )


@pytest.mark.parametrize("form", ["maniskill", pytest.param("minari", marks=pytest.mark.slow)])
def test_a_full_disk_is_told_by_the_next_call_and_spares_the_file(tmp_path, form):
    facts = run_program("record_on_a_full_disk", tmp_path, form)
    assert len(facts["errors"]) == 4  # a step, another one, a reset, close
    assert all("no space for an episode of" in told for told in facts["errors"])
    assert facts["is_closed"]
    path = tmp_path / ("t-v0.h5" if form == "maniskill" else "t-v0")
    dataset = TrajectoryDataset(path)
    assert len(dataset.episodes) > 30
    assert len(dataset) == sum(whole(group) for group in read_h5(dataset.path).values())
    assert dataset.path.stat().st_size <= 1 << 20


@pytest.mark.parametrize(
    "keywords", [{}, {"format": "minari"}, {"save_trajectory": False, "save_video": True}]
)
def test_a_folder_that_was_removed_is_told_with_its_path_by_the_next_call(tmp_path, keywords):
    folder = tmp_path / "recorded"
    recorder = record(folder, painters(), **keywords)
    recorder.reset()
    walk(recorder, 4)
    recorder.flush()
    shutil.rmtree(folder)
    walk(recorder, 4)
    for call in (recorder.flush, recorder.reset, recorder.close):
        with pytest.raises(FileNotFoundError, match=str(folder)):
            call()
    assert recorder.unwrapped.closed


def test_a_program_that_does_not_close_ends_with_complete_files(tmp_path):
    run_program("record_and_end", tmp_path)
    assert (tmp_path / "t-v0.json").exists()
    assert len(TrajectoryDataset(tmp_path / "t-v0.h5").episodes) > 20


def test_a_forked_child_steps_and_writes_nothing(tmp_path):
    """The thread that writes lives in the parent; the queue would stay full."""
    assert run_program("record_in_a_forked_child", tmp_path)["child"] == 0
    assert 100 < len(TrajectoryDataset(tmp_path / "t.h5")) <= 200  # the steps of the parent


def test_an_interrupted_program_leaves_whole_videos_only(tmp_path):
    assert run_program("film_until_interrupted", tmp_path)["parts"] > 0
    videos = sorted(path.name for path in tmp_path.glob("*.mp4"))
    assert videos
    assert not [name for name in videos if name.startswith(".")]


class Gate:
    """Holds the writing of episodes."""

    def __init__(self, monkeypatch, fails_at=None):
        self.opened, self.fails_at = threading.Event(), fails_at

        def write(files, episode, write=ManiSkillFiles.write):
            assert self.opened.wait(30)
            if episode.metadata["episode_id"] == self.fails_at:
                raise ValueError("chosen to fail")
            return write(files, episode)

        monkeypatch.setattr(ManiSkillFiles, "write", write)


def test_a_full_queue_makes_steps_wait_and_drops_nothing(tmp_path, monkeypatch):
    gate = Gate(monkeypatch)
    recorder = record(tmp_path, queue_mb=0.0005)
    recorder.reset()
    stepping = threading.Thread(target=walk, args=(recorder, 60))
    stepping.start()
    deadline = time.monotonic() + 30
    queue = recorder._writer
    while queue._bytes <= 500 and time.monotonic() < deadline:
        time.sleep(0.001)
    assert stepping.is_alive()
    before = recorder._steps
    assert before < 60
    assert queue._bytes < 1500  # one episode more than the limit
    gate.opened.set()
    stepping.join(30)
    recorder.close()
    rows = recorded_episodes(tmp_path, 2)
    assert [sum(about["elapsed_steps"] for _, about in row) for row in rows] == [45, 48]


@ANY_MOMENT
def test_ctrl_c_in_a_condition_is_raised_and_the_recording_goes_on(tmp_path, monkeypatch):
    """Within a condition, whose lock could stay held."""
    files = (threading.__file__.removesuffix(".py"),)
    for line in range(1, 60):
        gate = Gate(monkeypatch)
        recorder = record(tmp_path, queue_mb=1e-6, trajectory_name=f"t{line}")
        recorder.reset()
        walk(recorder, 4)
        threading.Timer(0.05, gate.opened.set).start()
        came = interrupted_at(line, partial(walk, recorder, 8), files)
        gate.opened.set()
        closing = threading.Thread(target=recorder.close)
        closing.start()
        closing.join(30)
        assert not closing.is_alive(), line
        with h5py.File(tmp_path / f"t{line}.h5") as file:
            assert all(whole(group) for group in file.values())
        if not came:
            break
    assert line > 1


def test_an_error_of_the_thread_is_raised_by_the_next_call_and_by_close(tmp_path, monkeypatch):
    gate = Gate(monkeypatch, fails_at=2)
    envs = painters()
    recorder = record(tmp_path, envs)
    recorder.reset()
    walk(recorder, 9)
    gate.opened.set()
    with pytest.raises(ValueError, match="chosen to fail"):
        recorder.flush()
    steps = [env.steps for env in envs.envs]
    for call in (
        lambda: walk(recorder, 1),
        lambda: recorder.send(np.zeros(2, int)),
        recorder.reset,
        recorder.close,
    ):
        with pytest.raises(ValueError, match="chosen to fail"):
            call()
    assert [env.steps for env in envs.envs] == steps
    assert envs.closed
    recorder.close()  # it was told
    assert len(TrajectoryDataset(tmp_path / "demo.h5").episodes) == 2


def test_an_episode_can_be_read_soon_after_its_end(tmp_path, monkeypatch):
    flushed = threading.Event()

    def flush(files, flush=ManiSkillFiles.flush):
        flush(files)
        flushed.set()

    monkeypatch.setattr(ManiSkillFiles, "flush", flush)
    recorder = record(tmp_path)
    recorder.reset()
    walk(recorder, 3)
    assert flushed.wait(30)  # without a call of `flush`
    assert writer.FLUSH_S == 0.25
    (tmp_path / "copy.h5").write_bytes((tmp_path / "demo.h5").read_bytes())
    assert len(TrajectoryDataset(tmp_path / "copy.h5")) == 3
    recorder.close()


@pytest.mark.slow
def test_written_bytes_grow_with_the_steps(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "FLUSH_S", 1e6)  # so that the count does not depend on the time

    def written():
        lines = Path("/proc/self/io").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("wchar"))

    counts = []
    for steps in times((250, 1000), with_full=(500, 2000)):
        envs = cartwheel.NativeVectorEnv("CartPole-v1", 16, num_workers=1)
        recorder = record(tmp_path / f"{steps}", envs)
        recorder.reset(seed=0)
        random = np.random.default_rng(0)
        before = written()
        for _ in range(steps):
            recorder.step(random.integers(0, 2, 16))
        recorder.close()
        counts.append(written() - before)
    assert 3 < counts[1] / counts[0] < 4.4


def test_nothing_that_was_returned_or_given_is_kept(tmp_path):
    for folder in ("kept", "overwritten"):
        envs = cartwheel.VectorEnv(
            [partial(SamplingEnv, PaintingEnv.observation_space, length=4)] * 3,
            executor="inline",
            autoreset_mode=S,
        )
        recorder = record(tmp_path / folder, envs, format="minari")
        spoils = folder == "overwritten"
        options = {"level": [1]}
        observations, _ = recorder.reset(seed=1, options=options)
        options["level"].append(2)
        for step in range(11):
            if spoils:
                observations[:] = -1
            actions = np.full(3, step % 2)
            observations, rewards, terminations, truncations, infos = recorder.step(actions)
            if spoils:
                for array in (actions, rewards, terminations, truncations):
                    array[:] = 1
                for final in infos.get("final_obs", ()):
                    if final is not None:
                        final[:] = -2
        recorder.close()
    kept, spoiled = (
        read_h5(tmp_path / folder / "demo-v0/data/main_data.hdf5")
        for folder in ("kept", "overwritten")
    )
    for name, episode in kept.items():
        for key in ("observations", "actions", "rewards", "terminations", "truncations"):
            np.testing.assert_array_equal(episode[key], spoiled[name][key])


@pytest.mark.parametrize("mode", [N, S, D])
def test_resets_and_close_write_what_they_cut_short_unless_told_otherwise(tmp_path, mode):
    found = {}
    for keeps in (True, False):
        recorder = record(tmp_path / f"{keeps}", painters(mode=mode), save_on_reset=keeps)
        recorder.reset()
        walk(recorder, 2)
        recorder.reset(options={"reset_mask": np.array([True, False])})
        walk(recorder, 1)
        recorder.reset()
        walk(recorder, 1)
        with pytest.raises(TypeError, match="`save` must be True or False, got 'no'"):
            recorder.reset(save="no")
        recorder.reset(save=False)
        recorder.reset()  # an episode without steps
        walk(recorder, 1)
        recorder.close()
        rows = recorded_episodes(tmp_path / f"{keeps}", 2)
        for arrays, _ in [*rows[0], *rows[1]]:
            assert not arrays["terminated"].any()
            assert not arrays["truncated"].any()
        found[keeps] = [[about["elapsed_steps"] for _, about in row] for row in rows]
    assert found == {True: [[2, 1, 1], [3, 1]], False: [[], []]}


def test_a_filter_chooses_episodes_by_their_metadata(tmp_path):
    seen = []

    def chooses(about):
        seen.append(about)
        return about["success"] and about["env_index"] == 1

    recorder = record(tmp_path, episode_filter=chooses)
    recorder.reset(seed=4)
    walk(recorder, 12)
    recorder.close()
    rows = recorded_episodes(tmp_path, 2)
    assert [len(row) for row in rows] == [0, 2]
    assert [about["episode_id"] for _, about in rows[1]] == [0, 1]
    assert len(seen) == 6
    assert {"elapsed_steps", "return", "terminated", "episode_seed"} <= seen[0].keys()


@pytest.mark.parametrize("error", [KeyError, KeyboardInterrupt])
@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_a_filter_that_raises_loses_the_episode_that_it_is_about(tmp_path, mode, error):
    def chooses(about):
        if about["env_index"] == 0:
            raise error("no such thing")
        return True

    for steps in (1, 2):
        envs = cartwheel.VectorEnv(transcripts(2, 2, 3), executor="inline", autoreset_mode=mode)
        folder = tmp_path / str(steps)
        recorder = record(folder, envs, episode_filter=chooses)
        recorder.reset(seed=1)
        recorder.step([1, 1, 1])
        ends = recorder.close if steps == 1 else partial(recorder.step, [1, 1, 1])
        with pytest.raises(error, match="no such thing"):
            ends()
        recorder.close()
        assert envs.closed
        none, whole, cut = recorded_episodes(folder, 3)
        assert not none
        for row, is_over in ((whole, steps == 2), (cut, False)):
            [(arrays, about)] = row
            assert arrays["obs"].ravel().tolist() == list(range(steps + 1))
            assert about["terminated"] == is_over


@pytest.mark.parametrize("has_step", [False, True])
def test_ctrl_c_as_the_last_step_is_added_ends_its_episode(tmp_path, monkeypatch, has_step):
    add = TrajectoryRecorder.add

    def add_until_ctrl_c(self, *arguments):
        if has_step:
            add(self, *arguments)
        raise KeyboardInterrupt

    envs = cartwheel.VectorEnv(transcripts(2, 4), executor="inline")
    recorder = record(tmp_path, envs)
    recorder.reset(seed=1)
    recorder.step([1, 1])
    with monkeypatch.context() as patch:
        patch.setattr(TrajectoryRecorder, "add", add_until_ctrl_c)
        with pytest.raises(KeyboardInterrupt):
            recorder.step([1, 1])
    recorder.step([1, 1])
    recorder.close()
    [(arrays, about)] = recorded_episodes(tmp_path, 2)[0]
    assert arrays["obs"].ravel().tolist() == [0, 1, 2][: 2 + has_step]
    assert about["terminated"] == arrays["terminated"][-1] == has_step


def test_each_row_has_the_options_of_its_own_reset(tmp_path):
    envs = cartwheel.NativeVectorEnv("MountainCarContinuous-v0", 3, max_episode_steps=3)
    recorder = record(tmp_path, envs)
    recorder.reset(seed=1, options=[{"low": -0.5, "high": -0.4}, None, {"low": -0.55}])
    for _ in range(4):
        recorder.step(np.full((3, 1), 0.5, np.float32))
    recorder.close()
    kept = [row[0][1]["reset_kwargs"].get("options") for row in recorded_episodes(tmp_path, 3)]
    assert kept == [{"low": -0.5, "high": -0.4}, None, {"low": -0.55}]


def test_wrappers_around_it_do_not_hide_seeds_and_options(tmp_path):
    for folder, wrap in (("in", False), ("out", True)):
        envs = cartwheel.NativeVectorEnv("MountainCarContinuous-v0", 2, max_episode_steps=3)
        if wrap:
            envs = record(tmp_path / folder, RescaleObservation(envs, 0, 1))
        else:
            envs = RescaleObservation(record(tmp_path / folder, envs), 0, 1)
        envs.reset(seed=[5, None], options={"low": -0.5, "high": -0.4})
        for _ in range(4):
            envs.step(np.full((2, 1), 0.5, np.float32))
        envs.close()
        rows = recorded_episodes(tmp_path / folder, 2)
        assert [row[0][1]["episode_seed"] for row in rows] == [5, None]
        expected = {"low": -0.5, "high": -0.4}
        assert [row[0][1]["reset_kwargs"]["options"] for row in rows] == [expected] * 2
    inner, outer = (
        read_h5(tmp_path / folder / "demo.h5")["traj_0"]["obs"] for folder in ("in", "out")
    )
    assert (inner[:, 0] < 0).all()  # as the environment shows them
    assert (outer >= 0).all()


def test_recordings_have_names_of_their_own_and_none_is_overwritten(tmp_path):
    for _ in range(3):
        recorder = RecordEpisode(painters(), tmp_path, save_video=False)
        recorder.reset()
        walk(recorder, 1)
        recorder.close()
    assert len({path.stem for path in tmp_path.iterdir()}) == 3
    for form in ("maniskill", "minari"):
        record(tmp_path, format=form).close()
        with pytest.raises(FileExistsError, match="give another `trajectory_name`"):
            record(tmp_path, format=form)


@pytest.mark.parametrize("form", ["maniskill", "minari"])
def test_a_recording_without_episodes_can_be_read(tmp_path, form):
    record(tmp_path, format=form).close()
    (file,) = (path for path in tmp_path.rglob("*") if path.suffix in (".h5", ".hdf5"))
    for sidecar in tmp_path.rglob("*.json"):
        assert len(TrajectoryDataset(file)) == 0
        sidecar.unlink()
    dataset = TrajectoryDataset(file)
    assert repr(dataset) == f"<TrajectoryDataset, 0 transitions of 0 episodes in {file}>"


LAST_CALLS = """
import atexit, sys, threading
import cartwheel
from cartwheel.wrappers import RecordEpisode

envs = cartwheel.VectorEnv([lambda: __import__("gymnasium").make("CartPole-v1")], executor="inline")
before = threading.active_count()
atexit.register(lambda: print("threads", threading.active_count() - before))  # as h5py has it
recorder = RecordEpisode(envs, sys.argv[1], save_video=False)
assert threading.active_count() == before + 1
"""


def test_a_program_ends_the_thread_before_the_libraries_that_it_uses(tmp_path):
    ended = subprocess.run(
        [sys.executable, "-c", LAST_CALLS, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.splitlines() == ["threads 0"]


@pytest.mark.parametrize("end", ["close", "the program's end"])
def test_the_steps_of_another_thread_do_not_keep_a_recording_open(tmp_path, end):
    run_program("record_while_a_thread_steps", tmp_path, end)
    with h5py.File(tmp_path / "demo.h5") as file:
        assert file
        assert {whole(episode) for episode in file.values()} == {1}


@pytest.mark.skipif(not Path("/proc/thread-self").exists(), reason="only Linux shows names here")
def test_the_system_shows_the_name_of_the_thread_that_writes():
    names = []

    def task():
        names.append(Path("/proc/thread-self/comm").read_text().strip())
        return False

    writes = writer.Writer(1 << 20, lambda: None)
    writes.put(task, 0)
    writes.close()
    assert names == ["cartwheel-rec"]
