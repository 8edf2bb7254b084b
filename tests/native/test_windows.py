"""Windows and videos of native environments show what Gymnasium's show."""

import gc
import sys
import types
import weakref
from contextlib import nullcontext
from functools import partial
from unittest.mock import Mock

import numpy as np
import pytest
from gymnasium.error import AlreadyPendingCallError
from gymnasium.wrappers import vector as wrappers

import cartwheel
from tests.support.comparison import assert_identical
from tests.support.oracle import MODE, D, N, S

pygame = pytest.importorskip("pygame")


@pytest.fixture
def build(build_pair):
    """Builds native rows and Gymnasium's; neither is reset."""
    return partial(build_pair, seed=None)


@pytest.fixture
def _window(monkeypatch):
    """Windows without a screen and without waiting for the frame rate."""
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setattr("pygame.time.Clock", Mock)
    pygame.display.quit()
    yield
    pygame.quit()  # before 1.4, Gymnasium starts all of pygame, with its threads for sound


def window():
    return pygame.surfarray.array3d(pygame.display.get_surface()).transpose(1, 0, 2)


@pytest.mark.usefixtures("_window")
@MODE
def test_a_window_shows_every_step_and_reset(build, mode):
    """The rows share one window, as in Gymnasium, so the last row is visible."""
    envs, _ = build("Acrobot-v1", 2, mode, render_mode="human", max_episode_steps=2)
    _, oracle = build("Acrobot-v1", 2, mode, render_mode="rgb_array", max_episode_steps=2)
    assert_identical(envs.reset(seed=1), oracle.reset(seed=1))
    assert_identical(window(), oracle.render()[-1])
    for step in range(4):
        actions = np.array([0, 2])
        if step % 2:
            result = envs.step(actions)
        else:
            envs.step_async(actions)
            result = envs.step_wait()
        assert_identical(result, oracle.step(actions))
        assert_identical(window(), oracle.render()[-1])
        if mode is D and result[3].any():
            assert_identical(envs.reset(), oracle.reset())
            assert_identical(window(), oracle.render()[-1])
    assert envs.render() == (None, None)
    envs.close()
    assert not pygame.display.get_init()


@pytest.mark.usefixtures("_window")
def test_rows_in_a_window_do_not_wait_for_each_other(build, monkeypatch):
    """Each has its own clock, as in Gymnasium: a step of three rows takes the time of one row."""
    clocks = []

    def make_clock():
        clocks.append(Mock())
        return clocks[-1]

    monkeypatch.setattr("pygame.time.Clock", make_clock)
    envs, _ = build("CartPole-v1", 3, render_mode="human")
    envs.reset()
    for _ in range(4):
        envs.step([0, 1, 0])
    assert [clock.tick.call_count for clock in clocks] == [5, 5, 5]
    assert all(clock.tick.call_args.args == (50,) for clock in clocks)


@pytest.mark.usefixtures("_window")
def test_a_window_is_updated_when_nothing_is_in_flight(build):
    envs = cartwheel.NativeVectorEnv("Acrobot-v1", 4, batch_size=2, render_mode="human")
    _, oracle = build("Acrobot-v1", 4, render_mode="rgb_array")
    oracle.reset(seed=1)
    envs.reset(seed=1)
    assert pygame.display.get_surface() is None
    envs.recv()
    assert_identical(window(), oracle.render()[-1])
    actions = np.array([0, 2, 0, 2])
    envs.step(actions, env_index=range(4))
    assert_identical(window(), oracle.render()[-1])
    envs.recv()
    oracle.step(actions)
    assert_identical(window(), oracle.render()[-1])
    envs.step(actions[3:], env_index=[3])
    oracle.step(actions)
    assert_identical(window(), oracle.render()[-1])
    envs.close()


@pytest.mark.usefixtures("_window")
def test_a_window_shows_a_reset_of_some_rows_that_was_waited_for(build):
    envs, _ = build("Acrobot-v1", 2, D, render_mode="human")
    _, oracle = build("Acrobot-v1", 2, D, render_mode="rgb_array")
    envs.reset(seed=1)
    oracle.reset(seed=1)
    envs.reset_async(options={"env_index": [1]})
    envs.reset_wait()
    oracle.reset(options={"reset_mask": np.array([False, True])})
    assert_identical(window(), oracle.render()[-1])
    envs.close()


@pytest.mark.usefixtures("_window")
def test_rollouts_are_collected_while_a_window_shows_them():
    def policy(observations):
        return (observations[:, 1] > 0).astype(np.int64)

    def collected(**keywords):
        envs = cartwheel.NativeVectorEnv("CartPole-v1", 2, **keywords)
        collector = cartwheel.Collector(envs, policy, num_steps=6, seed=1)
        observations = [collector.collect().observations for _ in range(3)]
        envs.step_async(np.zeros(2, np.int64))
        with pytest.raises(AlreadyPendingCallError), envs.frozen():
            raise AssertionError("it is refused")
        envs.step_wait()
        envs.close()
        return observations

    assert_identical(collected(render_mode="human"), collected())


@pytest.mark.usefixtures("_window")
def test_a_window_keeps_no_environment_alive():
    envs = cartwheel.NativeVectorEnv("Acrobot-v1", 2, render_mode="human")
    envs.reset()
    envs.step([0, 1])
    reference = weakref.ref(envs)
    del envs
    gc.collect()
    assert reference() is None


@pytest.mark.usefixtures("_window")
def test_a_window_shows_the_rows_that_were_reset(build):
    envs, _ = build("Blackjack-v1", 2, render_mode="human")
    _, oracle = build("Blackjack-v1", 2, render_mode="rgb_array")
    options = {"reset_mask": np.array([True, False])}
    envs.reset(seed=1, options=options)
    oracle.reset(seed=1)
    assert_identical(window(), oracle.render()[0])


# Wrappers that render


@MODE
def test_a_video_has_the_same_frames_as_gymnasiums(build, mode, monkeypatch, tmp_path):
    """moviepy is replaced, because it only writes the frames to a file."""
    videos = {}
    monkeypatch.setitem(sys.modules, "moviepy", types.ModuleType("moviepy"))
    monkeypatch.setattr(wrappers.RecordVideo, "stop_recording", keep_in(videos))
    pair = build("CartPole-v1", 4, mode, render_mode="rgb_array", max_episode_steps=5)
    for name, envs in zip(("ours", "gymnasium's"), pair, strict=True):
        with noted(mode):
            recorder = wrappers.RecordVideo(
                envs, str(tmp_path / name), episode_trigger=lambda _: True
            )
        assert recorder.frames_per_sec == 50
        recorder.reset(seed=1)
        for step in range(12):
            *_, terminations, truncations, _ = recorder.step(np.full(4, step % 2))
            if mode is D and (terminations | truncations).any():
                recorder.reset(options={"reset_mask": terminations | truncations})
        recorder.close()
        videos[name] = videos.pop("recorded")
    assert [len(video) for video in videos["ours"]] == {N: [6, 6, 1], S: [5, 5, 3], D: [6, 6, 3]}[
        mode
    ]
    assert videos["ours"][0][0].shape == (800, 1200, 3)
    assert_identical(videos["ours"], videos["gymnasium's"])


def keep_in(videos):
    """A ``stop_recording`` that keeps the frames instead of writing them."""

    def stop_recording(recorder):
        videos.setdefault("recorded", []).append(recorder.recorded_frames)
        recorder.recorded_frames = []
        recorder.recording = False

    return stop_recording


def noted(mode):
    """Gymnasium's recorder warns in same-step mode that it misses the last frames."""
    return pytest.warns(UserWarning, match="same-step") if mode is S else nullcontext()


@pytest.mark.usefixtures("_window")
def test_the_window_of_human_rendering_shows_the_same_as_gymnasiums(build, monkeypatch):
    """cv2 is replaced, because it only makes the frames smaller."""
    cv2 = types.ModuleType("cv2")
    cv2.resize = lambda image, size: image[:: len(image) // size[1], :: image.shape[1] // size[0]]
    monkeypatch.setitem(sys.modules, "cv2", cv2)
    shown = []
    for envs in build("CartPole-v1", 4, render_mode="rgb_array", max_episode_steps=3):
        windows = wrappers.HumanRendering(envs)
        assert windows.render_mode == "human"
        windows.reset(seed=1)
        shown.append([window()])
        for _ in range(5):
            windows.step(np.array([0, 1, 0, 1]))
            shown[-1].append(window())
        windows.close()
    assert_identical(*shown)
    assert len({frame.tobytes() for frame in shown[0]}) > 3
