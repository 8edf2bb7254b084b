"""Frames of native environments equal Gymnasium's."""

import gc
import sys
import types
import weakref
from contextlib import nullcontext
from functools import partial
from unittest.mock import Mock

import gymnasium as gym
import numpy as np
import pygame
import pytest
from gymnasium.error import (
    AlreadyPendingCallError,
    ClosedEnvironmentError,
    DependencyNotInstalled,
    ResetNeeded,
)
from gymnasium.wrappers import vector as wrappers

import cartwheel
from tests.support.comparison import assert_identical
from tests.support.oracle import MODE, D, N, S, assert_same_reset

IDS = [env_id for env_id, *_ in cartwheel._cartwheel.native_envs() if env_id != "Null-v0"]
TEXT = [env_id for env_id in IDS if env_id.startswith(("CliffWalking", "FrozenLake", "Taxi"))]


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
    pygame.display.quit()


def assert_same_frames(envs, oracle, steps, *, every=1):
    """Both give the same results and frames; in ``DISABLED``, rows that are over are reset."""
    assert_same_reset(envs, oracle, seed=3)
    assert_identical(envs.render(), oracle.render())
    oracle.action_space.seed(5)
    resets = 0
    for step in range(steps):
        actions = oracle.action_space.sample()
        result = envs.step(actions)
        assert_identical(result, oracle.step(actions))
        over = result[2] | result[3]
        resets += over.sum()
        if step % every == 0:
            assert_identical(envs.render(), oracle.render(), f"frame {step}")
        if envs.autoreset_mode is D and over.any():
            assert_same_reset(envs, oracle, options={"reset_mask": over})
            assert_identical(envs.render(), oracle.render(), f"frame of the reset after {step}")
    assert resets >= 3, "a run without resets proves nothing"


@pytest.mark.filterwarnings("ignore:.*out of date")
@MODE
@pytest.mark.parametrize("env_id", IDS)
def test_frames_have_the_same_pixels_as_gymnasiums(build, env_id, mode):
    envs, oracle = build(env_id, 2, mode, render_mode="rgb_array", max_episode_steps=2)
    assert_same_frames(envs, oracle, 5)


@MODE
@pytest.mark.parametrize("env_id", TEXT)
def test_text_equals_that_of_gymnasium(build, env_id, mode):
    envs, oracle = build(env_id, 3, mode, render_mode="ansi", max_episode_steps=7)
    assert_same_frames(envs, oracle, 60)


@MODE
def test_a_frame_does_not_depend_on_frames_that_were_not_rendered(build, mode):
    """Gymnasium's taxi faces in the direction of the last move that was rendered, until a reset."""
    envs, oracle = build("Taxi-v4", 2, mode, render_mode="rgb_array", max_episode_steps=13)
    assert_same_frames(envs, oracle, 42, every=5)


@pytest.mark.parametrize(
    ("env_id", "keywords"),
    [
        ("FrozenLake-v1", {"desc": ["SFFFFG", "FHFFHF", "FFGFFS"]}),
        ("FrozenLake-v1", {"map_name": "8x8", "success_rate": 0.9, "reward_schedule": (2, 0, -1)}),
        ("Taxi-v4", {"is_rainy": True, "fickle_passenger": True}),
        ("MountainCar-v0", {"goal_velocity": 0.03}),
        ("Pendulum-v1", {"g": 3}),
        ("CliffWalking-v1", {"is_slippery": True}),
        ("Blackjack-v1", {"natural": True, "sab": False}),
    ],
    ids=str,
)
def test_keywords_change_the_frames_as_in_gymnasium(build, env_id, keywords):
    keywords |= {"render_mode": "rgb_array", "max_episode_steps": 3}
    assert_same_frames(*build(env_id, 2, **keywords), 8)


def test_each_row_shows_its_own_random_map():
    envs = cartwheel.NativeVectorEnv("FrozenLake-v1", 3, map_name=None, render_mode="rgb_array")
    envs.reset(seed=1)
    frames = envs.render()
    assert len({frame.tobytes() for frame in frames}) == 3
    for frame, desc in zip(frames, envs.get_attr("desc"), strict=True):
        twin = gym.make("FrozenLake-v1", desc=desc, render_mode="rgb_array")
        twin.reset(seed=1)
        assert_identical(frame, twin.render())
        twin.close()
    envs.close()


@pytest.mark.parametrize(
    ("env_id", "name", "values"),
    [
        ("CartPole-v1", "length", [1.5, 0.2]),
        ("CartPole-v1", "x_threshold", [5.0, 0.5]),
        ("CartPole-v1", "state", [np.array([1.0, 0, -0.7, 0]), np.array([-2.0, 0, 3.1, 0])]),
        ("Acrobot-v1", "LINK_LENGTH_1", [0.3, 1.7]),
        ("Acrobot-v1", "state", [np.ones(4), np.full(4, 0.1, np.float32)]),
        ("MountainCarContinuous-v0", "goal_position", [0.0, -1.0]),
        ("Pendulum-v1", "last_u", [np.float32(-1.3), None]),
        ("Taxi-v4", "s", [17, 399]),
        ("Taxi-v4", "taxi_orientation", [2, 3]),
        ("CliffWalking-v1", "s", [0, 23]),
        ("Blackjack-v1", "player", [[10, 10], [1, 5, 5]]),
    ],
    ids=str,
)
def test_set_parameters_change_the_frames_as_in_gymnasium(build, env_id, name, values):
    envs, oracle = build(env_id, 2, render_mode="rgb_array")
    envs.reset(seed=1)
    oracle.reset(seed=1)
    before = envs.render()
    for each in (envs, oracle):
        each.set_attr(name, list(values))
    after = envs.render()
    assert_identical(after, oracle.render())
    assert any(not np.array_equal(*pair) for pair in zip(before, after, strict=True))


def test_frames_are_the_callers_own(build):
    envs, oracle = build("FrozenLake-v1", 2, render_mode="rgb_array")
    envs.reset(seed=1)
    oracle.reset(seed=1)
    frames = envs.render()
    kept = [frame.copy() for frame in frames]
    for frame in frames:
        assert frame.flags.writeable
        frame[:] = 0
    assert_identical(envs.render(), oracle.render())
    assert_identical(list(oracle.render()), kept)


@pytest.mark.parametrize("render_mode", ["rgb_array", "ansi"])
def test_rendering_can_be_called_by_name(build, render_mode):
    envs, oracle = build("Taxi-v4", 3, render_mode=render_mode)
    envs.reset(seed=1)
    oracle.reset(seed=1)
    for call in (envs.call, envs.get_attr):
        assert_identical(call("render"), oracle.call("render"))
    with pytest.raises(TypeError, match="no arguments"):
        envs.call("render", "rgb_array")


# Render modes and errors


@pytest.mark.filterwarnings("ignore:.*out of date")
@pytest.mark.parametrize("env_id", IDS)
def test_the_render_modes_equal_those_of_gymnasium(build, env_id):
    for render_mode in (None, *gym.make(env_id).metadata["render_modes"]):
        envs, oracle = build(env_id, 2, render_mode=render_mode)
        assert envs.render_mode == oracle.render_mode == render_mode
        assert envs.metadata == oracle.metadata


@pytest.mark.parametrize("make", [cartwheel.make_vec, gym.make_vec], ids=["ours", "gymnasium's"])
def test_the_render_mode_is_a_keyword_of_both_registries(make):
    envs = make("cartwheel/Taxi-v4", 2, render_mode="ansi")
    envs.reset(seed=252 - 2)
    assert envs.render()[0].startswith("+---------+")
    assert envs.spec.kwargs["render_mode"] == "ansi"
    again = make(envs.spec)
    assert again.render_mode == "ansi"
    again.close()
    envs.close()


@pytest.mark.parametrize(
    ("env_id", "render_mode", "text"),
    [
        ("CartPole-v1", "ansi", "one of None, 'human', 'rgb_array', got 'ansi'"),
        ("Blackjack-v1", "ansi", "of Blackjack-v1 must be one of None, 'human', 'rgb_array', got"),
        ("Taxi-v4", "rgb", "one of None, 'human', 'ansi', 'rgb_array', got 'rgb'"),
        ("Taxi-v4", "", "got ''"),
        ("Null-v0", "rgb_array", "of Null-v0 must be one of None, got 'rgb_array'"),
    ],
)
def test_other_render_modes_are_refused(env_id, render_mode, text):
    with pytest.raises(ValueError, match=f"^`render_mode` .*{text}"):
        cartwheel.NativeVectorEnv(env_id, 2, render_mode=render_mode)


def test_without_a_render_mode_there_is_gymnasiums_warning(build):
    envs, oracle = build("Acrobot-v1", 2)
    envs.reset()
    oracle.reset()
    with pytest.warns(UserWarning, match="without specifying any render mode") as theirs:
        assert oracle.render() == (None, None)
    with pytest.warns(UserWarning, match="without specifying any render mode") as ours:
        assert envs.render() == (None, None)
    texts = [[str(warning.message) for warning in each] for each in (ours, theirs)]
    assert texts[0] == [text.replace("Acrobot", "cartwheel/Acrobot") for text in texts[1]]


def test_the_null_environment_cannot_be_rendered():
    envs = cartwheel.NativeVectorEnv("Null-v0", 1)
    envs.reset()
    assert envs.metadata["render_modes"] == []
    with pytest.raises(NotImplementedError, match=r"^Null-v0 cannot be rendered"):
        envs.render()
    envs.close()


def test_rows_that_were_never_reset_are_not_rendered(build):
    envs, oracle = build("Blackjack-v1", 3, render_mode="rgb_array")
    with pytest.raises(ResetNeeded, match=r"before `reset\(\)`: rows \[0, 1, 2\]"):
        envs.render()
    envs.reset(options={"reset_mask": np.array([False, True, False])})
    with pytest.raises(ResetNeeded, match=r"rows \[0, 2\]"):
        envs.render()
    with pytest.raises(ResetNeeded):
        oracle.render()
    assert_identical(envs.reset(seed=1), oracle.reset(seed=1))
    assert_identical(envs.render(), oracle.render())


def test_rendering_is_refused_while_a_call_is_pending_and_after_close(build):
    envs, _ = build("CartPole-v1", 2, render_mode="rgb_array")
    envs.reset()
    envs.step_async([0, 1])
    with pytest.raises(AlreadyPendingCallError, match=r"^Calling `render` while waiting"):
        envs.render()
    envs.step_wait()
    envs.render()
    envs.close()
    with pytest.raises(ClosedEnvironmentError):
        envs.render()


def test_rows_are_rendered_when_all_have_been_received():
    envs = cartwheel.NativeVectorEnv("FrozenLake-v1", 4, batch_size=2, render_mode="ansi")
    oracle = cartwheel.NativeVectorEnv("FrozenLake-v1", 4, render_mode="ansi")
    envs.async_reset(seed=1)
    envs.recv()
    with pytest.raises(AlreadyPendingCallError, match=r"^Calling `render` while"):
        envs.render()
    envs.recv()
    oracle.reset(seed=1)
    assert_identical(envs.render(), oracle.render())
    for _ in range(5):
        envs.send(np.array([1, 2, 1, 2]))
        envs.recv()
        envs.recv()
        oracle.step(np.array([1, 2, 1, 2]))
        assert_identical(envs.render(), oracle.render())
    envs.close()
    oracle.close()


@pytest.mark.parametrize("env_id", ["CartPole-v1", "Taxi-v4"])
def test_a_missing_pygame_is_gymnasiums_error(build, env_id, monkeypatch):
    envs, oracle = build(env_id, 2, render_mode="rgb_array")
    envs.reset()
    oracle.reset()
    monkeypatch.setitem(sys.modules, "pygame", None)
    with pytest.raises(DependencyNotInstalled) as theirs:
        oracle.render()
    with pytest.raises(DependencyNotInstalled) as ours:
        envs.render()
    assert str(ours.value) == str(theirs.value)


# Windows


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
