"""Videos show what single environments show."""

from functools import partial

import av
import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv

import cartwheel
from cartwheel.recorder import RecordEpisode
from cartwheel.recorder.video import VideoFile
from cartwheel.wrappers import RecordEpisodeStatistics, RecordMetrics
from tests.support.painting import PaintingEnv, frame
from tests.support.wrapping import D, N, S, Script, build, drive

SCRIPT = Script(steps=9, resets={(1, 3): 50, (0, 4): 51})


@pytest.fixture
def reel(monkeypatch):
    """Frames of the videos as they reach the encoder, by the names of the files."""
    frames, names = {}, []

    def add(self, image, add=VideoFile.add):
        frames.setdefault(self, []).append(image.copy())
        return add(self, image)

    def finish(self, finish=VideoFile.finish):
        result = finish(self)
        names.append((self.name, frames[self]))
        return result

    monkeypatch.setattr(VideoFile, "add", add)
    monkeypatch.setattr(VideoFile, "finish", finish)
    return names


def painters(num_envs=3, executor="inline", mode=N, lengths=(3, 2, 4), **keywords):
    env_fns = [partial(PaintingEnv, row, lengths[row % 3]) for row in range(num_envs)]
    if executor == "sync":
        return SyncVectorEnv(env_fns, autoreset_mode=mode)
    return cartwheel.VectorEnv(env_fns, executor=executor, autoreset_mode=mode, **keywords)


def colors(image, size=(6, 10)):
    """The tiles of an image, each as row, episode and step."""
    tiles = []
    for top in range(0, image.shape[0], size[0]):
        for left in range(0, image.shape[1], size[1]):
            tile = image[top : top + size[0], left : left + size[1]].reshape(-1, 3)
            assert (tile == tile[0]).all()
            tiles.append(tuple((tile[0] // 20).astype(int) - 1))
    return tiles


BLACK = (-1, -1, -1)


def play(script, row, env_id="CartPole-v1", **keywords):
    """Frames of a single environment, a list for each episode with steps."""
    env = gym.make(env_id, render_mode="rgb_array", **keywords)
    env.reset(seed=script.seed + row)
    episodes, over = [[env.render()]], False
    for number in range(script.steps):
        if over or (row, number) in script.resets:
            env.reset(seed=script.resets.get((row, number)))
            episodes.append([env.render()])
        _, _, terminated, truncated, _ = env.step(script.action(env.action_space, row, number))
        over = terminated or truncated
        episodes[-1].append(env.render())
    env.close()
    return [episode for episode in episodes if len(episode) > 1]


@pytest.mark.parametrize(
    ("kind", "mode", "way"),
    [
        *(
            (kind, mode, way)
            for kind, way in (("inline", "rows"), ("native", "mask"))
            for mode in (N, S, D)
        ),
        ("process", S, "mask"),
        ("sync", N, "mask"),
        ("sync", D, "mask"),
    ],
)
def test_videos_of_rows_show_the_frames_of_single_environments(tmp_path, reel, kind, mode, way):
    keywords = {"max_episode_steps": 4}
    if kind == "native":
        envs = cartwheel.NativeVectorEnv(
            "CartPole-v1", 3, render_mode="rgb_array", autoreset_mode=mode, **keywords
        )
    else:
        make = partial(gym.make, "CartPole-v1", render_mode="rgb_array", **keywords)
        envs = build(kind, make, mode)
    drive(RecordEpisode(envs, tmp_path, video_envs=[1, 0]), SCRIPT, way)
    for row in (0, 1):
        found = [frames for name, frames in reel if name.endswith(f"_row_{row}.mp4")]
        wanted = play(SCRIPT, row, **keywords)
        for got, expected in zip(found, wanted, strict=False):
            # Rows go on after the script while others have steps left.
            assert len(got) >= len(expected)
            np.testing.assert_array_equal(got[: len(expected)], expected)
        assert len(found) >= len(wanted)


def decoded(path):
    with av.open(str(path)) as container:
        (stream,) = container.streams
        stream.codec_context.thread_count = 1  # PyAV 12 keeps others until a garbage collection
        assert stream.codec_context.name == "h264"
        assert stream.codec_context.pix_fmt == "yuv420p"
        return [one.to_ndarray(format="rgb24") for one in container.decode(stream)], stream


def test_files_have_one_frame_more_than_steps_and_an_even_size(tmp_path):
    make = partial(PaintingEnv, 3, 5, size=(31, 47))
    envs = RecordEpisode(
        cartwheel.VectorEnv([make], executor="inline"), tmp_path, False, video_fps=12.5
    )
    envs.reset()
    for _ in range(5):
        envs.step([0])
    envs.close()
    (path,) = tmp_path.iterdir()
    frames, stream = decoded(path)
    assert path.name == "0_row_0.mp4"
    assert stream.average_rate == 12.5
    assert [one.shape for one in frames] == [(32, 48, 3)] * 6
    for steps, image in enumerate(frames):
        # Lossy, and the edge is blurred into the padding.
        assert abs(image[:24, :40].astype(int) - frame(3, 0, steps, (24, 40))).max() < 12
        assert image[31:, :40].max() < 60


@pytest.mark.parametrize("mode", [N, S, D])
def test_tiles_show_all_rows_with_terminal_frames(tmp_path, reel, mode):
    envs = RecordEpisode(painters(mode=mode), tmp_path, False, video_envs="tile")
    envs.reset()
    for steps in range(1, 5):
        envs.step(np.zeros(3, int))
        if mode == D and steps == 2:
            envs.reset(options={"reset_mask": np.array([False, True, False])})
        if mode == D and steps == 3:
            envs.reset(options={"reset_mask": np.array([True, False, False])})
    envs.close()
    ((name, frames),) = reel
    assert name == "0.mp4"
    shown = [colors(image) for image in frames]
    by_step = {
        N: [[0, 0, 0], [1, 1, 1], [2, 2, 2], [3, 0, 3], [0, 1, 4]],
        S: [[0, 0, 0], [1, 1, 1], [2, 2, 2], [3, 1, 3], [1, 2, 4]],
        D: [[0, 0, 0], [1, 1, 1], [2, 2, 2], [3, 1, 3], [1, 2, 4]],
    }[mode]
    assert [[tile[2] for tile in tiles[:3]] for tiles in shown] == by_step
    assert all(tiles[3] == BLACK for tiles in shown)
    assert all([tile[0] for tile in tiles[:3]] == [0, 1, 2] for tiles in shown)


@pytest.mark.parametrize(
    ("num_envs", "grid"), [(1, (1, 1)), (2, (1, 2)), (4, (2, 2)), (5, (2, 3)), (7, (3, 3))]
)
def test_tiles_are_in_a_square_row_by_row(tmp_path, reel, num_envs, grid):
    envs = RecordEpisode(painters(num_envs), tmp_path, False, video_envs="tile")
    envs.reset()
    envs.step(np.zeros(num_envs, int))
    envs.close()
    image = reel[0][1][0]
    assert image.shape == (6 * grid[0], 10 * grid[1], 3)
    blank = grid[0] * grid[1] - num_envs
    assert colors(image) == [*((row, 0, 0) for row in range(num_envs)), *([BLACK] * blank)]


def test_videos_are_cut_after_a_number_of_steps(tmp_path, reel):
    envs = painters(lengths=(9, 9, 9))
    envs = RecordEpisode(envs, tmp_path, False, video_envs="tile", max_steps_per_video=3)
    envs.reset()
    for _ in range(8):
        envs.step(np.zeros(3, int))
    envs.close()
    steps = [[colors(image)[0][2] for image in frames] for _, frames in reel]
    assert steps == [[0, 1, 2, 3], [3, 4, 5, 6], [6, 7, 8]]
    assert [name for name, _ in reel] == ["0.mp4", "1.mp4", "2.mp4"]


def test_only_filmed_rows_are_drawn_and_only_their_resets_count(tmp_path, reel):
    envs = painters(mode=D, lengths=(9, 9, 9))
    recorder = RecordEpisode(envs, tmp_path, False, video_envs=[1])
    recorder.reset()
    for _ in range(4):
        recorder.step(np.zeros(3, int))
        recorder.reset(options={"reset_mask": np.array([True, False, True])})
    drawn = [env.drawn for env in envs.envs]
    recorder.close()
    ((_, frames),) = reel
    assert [colors(image)[0] for image in frames] == [(1, 0, steps) for steps in range(5)]
    assert drawn == [0, 5, 0]


def test_recorders_of_other_rows_have_terminal_frames_too(tmp_path, reel):
    recorder = painters(mode=S)
    for row in (2, 0):
        recorder = RecordEpisode(recorder, tmp_path / str(row), False, video_envs=[row])
    recorder.reset()
    for _ in range(4):
        recorder.step(np.zeros(3, int))
    recorder.close()
    first = {name: frames for name, frames in reversed(reel) if name.startswith("0_")}
    for name, row, length in (("0_row_0.mp4", 0, 3), ("0_row_2.mp4", 2, 4)):
        shown = [colors(image)[0] for image in first[name]]
        assert shown == [(row, 0, step) for step in range(length + 1)]


def test_steps_without_the_trigger_are_not_drawn(tmp_path, reel):
    envs = painters(lengths=(9, 9, 9))
    steps = []
    recorder = RecordEpisode(
        envs, tmp_path, False, save_video_trigger=lambda step: steps.append(step) or step % 2 == 0
    )
    recorder.reset()
    for _ in range(5):
        recorder.step(np.zeros(3, int))
    drawn = envs.envs[0].drawn
    recorder.close()
    assert [colors(image)[0][2] for _, frames in reel for image in frames] == [0, 2, 4]
    assert (steps, drawn) == ([0, 1, 2, 3, 4, 5], 3)


def test_no_video_is_overwritten(tmp_path):
    kept = {"0.mp4": b"a", "3_row_0.mp4": b"b", "notes.mp4": b"c"}
    for name, content in kept.items():
        (tmp_path / name).write_bytes(content)
    for _ in range(2):
        envs = RecordEpisode(painters(), tmp_path, False)
        envs.reset()
        (tmp_path / "6_row_0.mp4").write_bytes(b"d")  # meanwhile, by another program
        for _ in range(6):
            envs.step(np.zeros(3, int))
        envs.close()
    for name, content in {**kept, "6_row_0.mp4": b"d"}.items():
        assert (tmp_path / name).read_bytes() == content
    made = {path.name for path in tmp_path.iterdir()} - {*kept, "6_row_0.mp4"}
    assert made == {f"{number}_row_0.mp4" for number in (4, 5, 7, 8)}


def test_rejected_and_discarded_episodes_have_no_video(tmp_path, reel):
    envs = RecordEpisode(
        painters(), tmp_path, trajectory_name="t", episode_filter=lambda about: about["env_index"]
    )
    envs.reset()
    for _ in range(5):
        envs.step(np.zeros(3, int))
    envs.close()
    assert reel == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.h5", "t.json"]


def test_a_reset_may_discard_videos(tmp_path, reel):
    for choice in ([0], "tile"):
        envs = RecordEpisode(painters(), tmp_path, False, video_envs=choice)
        for _ in range(2):
            envs.reset(save=False)
            envs.step(np.zeros(3, int))
        envs.reset(save=False)
        envs.close()
    assert reel == []
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("mode", [N, S, D])
def test_a_load_cuts_a_video_and_the_next_episode_has_one(tmp_path, reel, mode):
    envs = RecordEpisode(painters(lengths=(3, 3, 3), mode=mode, states="pickle"), tmp_path, False)

    def step(count):
        for _ in range(count):
            over = np.logical_or(*envs.step(np.zeros(3, int))[2:4])
            if mode == D and over.any():
                envs.reset(options={"reset_mask": over})

    envs.reset()
    step(1)
    state = envs.state_dict()
    step(1)
    envs.load_state_dict(state)
    step(6 if mode == N else 5)  # the rest of the episode without a video, and a whole one
    envs.close()
    shown = [[colors(image) for image in images] for _, images in reel]
    assert shown[0] == [[(0, 0, step)] for step in range(3)]
    assert shown[1] == [[(0, 1, step)] for step in range(4)]
    assert len(shown) == 2


@pytest.mark.parametrize("mode", [N, S])
@pytest.mark.parametrize("choice", [[0], "tile"])
def test_infos_are_written_on_each_tile(tmp_path, reel, mode, choice):
    made = []
    for captions in (False, True):
        env_fns = [partial(PaintingEnv, row, 2, size=(120, 160)) for row in range(3)]
        envs = cartwheel.VectorEnv(env_fns, executor="inline", autoreset_mode=mode)
        envs = RecordEpisode(envs, tmp_path, False, None, True, captions, video_envs=choice)
        envs.reset()
        for _ in range(2):
            envs.step(np.zeros(3, int))
        envs.close()
        made.append(reel[0][1] if captions is False else reel[-1 if choice == "tile" else 1][1])
    plain, captioned = made
    np.testing.assert_array_equal(plain[0], captioned[0])
    tiles = [(0, 0)] if choice == [0] else [(0, 0), (0, 160), (120, 0)]
    for before, after in zip(plain[1:3], captioned[1:3], strict=True):
        for top, left in tiles:
            changed = (before != after)[top : top + 120, left : left + 160]
            assert changed[:70, :100].any()
            assert not changed[90:].any()
    text = [image[:70, :100].min(axis=2) > 100 for image in captioned[1:3]]
    assert (text[0] != text[1]).any()


@pytest.mark.parametrize("mode", [N, S])
@pytest.mark.parametrize("choice", [[0], "tile"])
@pytest.mark.parametrize(
    ("wrapper", "told"),
    [
        (RecordEpisodeStatistics, ["episode/r 3", "episode/l 2"]),
        (RecordMetrics, ["episode/return 3", "episode/episode_len 2", "episode/success_once 1"]),
    ],
)
def test_the_last_frame_of_an_episode_tells_its_statistics(
    tmp_path, monkeypatch, mode, choice, wrapper, told
):
    written = []
    monkeypatch.setattr(
        "cartwheel.recorder.video.with_caption", lambda image, lines: written.append(lines) or image
    )
    envs = wrapper(painters(1, mode=mode, lengths=(2,)))
    envs = RecordEpisode(envs, tmp_path, False, video_envs=choice, info_on_video=True)
    envs.reset()
    for _ in range(2):
        envs.step([0])
    envs.close()
    assert [lines[0] for lines in written] == ["step 1", "step 2"]
    assert set(told) <= set(written[1])
    assert set(told).isdisjoint(written[0])


def test_environments_that_cannot_be_filmed_are_refused(tmp_path):
    sync = painters(executor="sync", mode=S)
    with pytest.raises(ValueError, match="SAME_STEP it is reset before its terminal frame"):
        RecordEpisode(sync, tmp_path, save_video=True)
    blind = cartwheel.VectorEnv([partial(PaintingEnv, 0, render_mode=None)], executor="inline")
    with pytest.raises(ValueError, match="render_mode is None"):
        RecordEpisode(blind, tmp_path, save_video=True)
    parts = painters(batch_size=2)
    with pytest.raises(ValueError, match="batch_size=2 of num_envs=3"):
        RecordEpisode(parts, tmp_path, save_video=True)
    for number, envs in enumerate((sync, blind, parts)):  # by default there are no videos
        RecordEpisode(envs, tmp_path, trajectory_name=f"{number}").close()
    assert not [*tmp_path.rglob("*.mp4")]


def test_frames_of_other_sizes_are_refused_at_the_first_reset(tmp_path):
    env_fns = [partial(PaintingEnv, row, size=(6 + row, 10)) for row in range(2)]
    envs = RecordEpisode(
        cartwheel.VectorEnv(env_fns, executor="inline"), tmp_path, False, video_envs="tile"
    )
    with pytest.raises(ValueError, match=r"row 1 has \(7, 10, 3\), others have \(6, 10, 3\)"):
        envs.reset()
    envs.close()


@pytest.mark.parametrize("order", ["free", "groups"])
@pytest.mark.parametrize("executor", ["inline", "thread"])
def test_rows_that_are_drawn_are_not_sent_one_by_one(tmp_path, order, executor):
    def policy(observations):
        return np.zeros(len(observations), int)

    text = f"order='{order}' sends .* which RecordEpisode in <.* record with save_video=False, or"
    for folder, save_video in (("with", None), ("without", False)):
        envs = painters(2, executor)
        recorder = RecordEpisode(envs, tmp_path / folder, save_video=save_video)
        wrapped = RecordEpisodeStatistics(recorder)
        plays = [partial(cartwheel.Collector, wrapped, policy, 3, order=order)]
        if order == "free":
            plays.append(partial(cartwheel.evaluate, wrapped, policy, order=order))
        for play in plays:
            if save_video is None:
                with pytest.raises(TypeError, match=text):
                    play()
            else:
                play()
        auto = cartwheel.Collector(recorder, policy, 3, order="auto")
        assert [auto.collect().num_steps for _ in range(3)] == [3] * 3
        recorder.close()
