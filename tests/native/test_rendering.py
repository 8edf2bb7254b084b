"""Frames of native environments equal Gymnasium's."""

import sys
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import (
    AlreadyPendingCallError,
    ClosedEnvironmentError,
    DependencyNotInstalled,
    ResetNeeded,
)

import cartwheel
from tests.support.comparison import assert_identical
from tests.support.native_ids import OF_RUST
from tests.support.oracle import MODE, D, assert_same_reset
from tests.support.platforms import needs_pygame

pytestmark = needs_pygame
IDS = [env_id for env_id in OF_RUST if env_id != "Null-v0"]  # test_mujoco_rendering.py has others
TEXT = [env_id for env_id in IDS if env_id.startswith(("CliffWalking", "FrozenLake", "Taxi"))]


@pytest.fixture
def build(build_pair):
    """Builds native rows and Gymnasium's; neither is reset."""
    return partial(build_pair, seed=None)


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
    envs, oracle = build("Taxi-v4", 2, mode, render_mode="rgb_array", max_episode_steps=7)
    assert_same_frames(envs, oracle, 24, every=5)


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
        ("Null-v0", "rgb_array", "of Null-v0 must be None, got 'rgb_array'"),
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
    with pytest.raises(NotImplementedError, match=r"^Null-v0 cannot be rendered: Gymnasium"):
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
    envs.send_reset(seed=1)
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
