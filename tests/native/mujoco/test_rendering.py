"""Frames of MuJoCo's environments have the pixels of Gymnasium's.

They are drawn in processes of their own, because a context of EGL must not be forked.
"""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.support.native_ids import OF_MUJOCO
from tests.support.repetitions import times

#: What every program begins with: native rows and Gymnasium's, and how frames are compared.
BEGIN = """
import sys
import gymnasium as gym
import numpy as np
from gymnasium.vector import SyncVectorEnv
import cartwheel

def build(env_id, mode, native={}, **keywords):
    keywords = {"width": 48, "height": 32, "render_mode": mode, **keywords}
    return (
        cartwheel.NativeVectorEnv(env_id, 2, **keywords, **native),
        SyncVectorEnv([lambda: gym.make(env_id, disable_env_checker=True, **keywords)] * 2),
    )

def parts(frames):
    return [part for frame in frames for part in (frame if isinstance(frame, tuple) else [frame])]

def assert_same(ours, theirs):
    ours, theirs = parts(ours), parts(theirs)
    assert len(ours) == len(theirs)
    for each, other in zip(ours, theirs):
        assert (each.dtype, each.shape) == (other.dtype, other.shape)
        np.testing.assert_array_equal(each, other)

def play(envs, oracle, steps):
    oracle.action_space.seed(3)
    for _ in range(steps):
        actions = oracle.action_space.sample()
        for both in (envs, oracle):
            both.step(actions)
        yield
"""


@cache
def reason_without(backend):
    """Why this machine cannot draw so, or an empty text."""
    program = f"from mujoco.{backend} import GLContext; GLContext(8, 8).make_current()"
    tried = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "MUJOCO_GL": backend},
        capture_output=True,
        text=True,
        check=False,
    )
    return tried.stderr.strip().splitlines()[-1] if tried.returncode else ""


def run(program, *arguments, backend="egl", **variables):
    """Runs a program that draws; returns what it prints."""
    if backend and (reason := reason_without(backend)):
        pytest.skip(f"MuJoCo cannot draw by {backend}: {reason}")
    environment = {**os.environ, **variables}
    environment.pop("MUJOCO_GL", None)
    if backend:
        environment["MUJOCO_GL"] = backend
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + program, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[3],
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_frames_equal_gymnasiums_through_resets():
    """Cameras that follow a robot remember where they were, so every frame counts.

    One process for all environments: importing takes longer than drawing.
    """
    program = """
for env_id in sys.argv[1:]:
    print(env_id, file=sys.stderr)
    envs, oracle = build(env_id, "rgb_array", max_episode_steps=3)
    for both in (envs, oracle):
        both.reset(seed=1)
    assert_same(envs.render(), oracle.render())
    for _ in play(envs, oracle, 6):
        assert_same(envs.render(), oracle.render())
    envs.close()
    oracle.close()
"""
    run(program, *OF_MUJOCO)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["egl", "osmesa"])
def test_every_render_mode_equals_gymnasiums(backend):
    program = """
for mode in sys.argv[1:]:
    print(mode, file=sys.stderr)
    envs, oracle = build("Ant-v5", mode)
    for both in (envs, oracle):
        both.reset(seed=1)
    for _ in play(envs, oracle, 3):
        assert_same(envs.render(), oracle.render())
    (frame,) = envs.render(env_index=[1])
    assert_same([frame], oracle.render()[1:])
    envs.close()
    oracle.close()
"""
    # Frames of the last mode have a picture and its depths.
    modes = times(["rgbd_tuple"], with_full=["rgb_array", "depth_array", "rgbd_tuple"])
    run(program, *modes, backend=backend)


@pytest.mark.slow
def test_keywords_of_frames_are_gymnasiums():
    program = """
for keywords in (
    {"camera_id": 0},
    {"camera_name": "track", "max_geom": 50},
    {"default_camera_config": {"distance": 9.0, "lookat": np.array([0.0, 0.0, 2.0])}},
    {"visual_options": {0: True, 2: True}, "width": 70},
):
    envs, oracle = build("Hopper-v5", "rgb_array", **keywords)
    for both in (envs, oracle):
        both.reset(seed=1)
    for _ in play(envs, oracle, 2):
        assert_same(envs.render(), oracle.render())
"""
    run(program)


@pytest.mark.slow
def test_a_changed_model_is_drawn_as_it_is():
    program = """
envs, oracle = build("Hopper-v5", "rgb_array", native={"model_per_row": True})
for both in (envs, oracle):
    both.reset(seed=1)
colors = envs.get_attr("model.geom_rgba")[0]
colors[1:, :3] = (1, 0, 0)
before = envs.render()
envs.set_attr("model.geom_rgba", colors, env_index=[1])
oracle.envs[1].unwrapped.model.geom_rgba[:] = colors
after = envs.render()
oracle.render()
assert_same(after, oracle.render())
assert_same(before[:1], after[:1])
assert (before[1] != after[1]).any()
"""
    run(program)


@pytest.mark.slow
def test_a_frame_after_a_state_was_set_is_that_of_the_saved_row():
    program = """
envs, _ = build("Hopper-v5", "rgb_array", camera_id=0)
envs.reset(seed=1)
envs.action_space.seed(3)
for _ in range(4):
    envs.step(envs.action_space.sample())
states, before = envs.get_state(), envs.render()
for _ in range(6):
    envs.step(envs.action_space.sample())
assert (envs.render()[0] != before[0]).any()
envs.set_state(None, states)
assert_same(envs.render(), before)
"""
    run(program)


@pytest.mark.slow
@pytest.mark.parametrize("env_id", ["HalfCheetah-v5", "Humanoid-v5"])
def test_frames_of_terminal_states_equal_those_of_gymnasium_before_the_reset(env_id):
    program = """
keywords = {"max_episode_steps": 3, "width": 48, "height": 32, "render_mode": "rgb_array"}
envs = cartwheel.NativeVectorEnv(sys.argv[1], 2, autoreset_mode="same_step", **keywords)
twin = gym.make(sys.argv[1], disable_env_checker=True, **keywords)
envs.reset(seed=1)
twin.reset(seed=2)
envs.render()
twin.render()
envs.draw_final_frames([1])
envs.action_space.seed(5)
ends = 0
for _ in range(9):
    actions = envs.action_space.sample()
    *_, over, infos = envs.step(actions)
    *_, is_over, _ = twin.step(actions[1])
    if is_over:
        ends += 1
        assert_same([infos["final_frame"][1]], [twin.render()])
        twin.reset()
    assert_same(envs.render()[1:], [twin.render()])
assert ends == 3
"""
    run(program, env_id)


def test_a_single_environment_draws_as_gymnasiums():
    program = """
keywords = {"width": 48, "height": 32, "render_mode": "rgb_array"}
env = gym.make("cartwheel/HalfCheetah-v5", **keywords)
twin = gym.make("HalfCheetah-v5", **keywords)
for each in (env, twin):
    each.reset(seed=1)
action = twin.action_space.sample()
for _ in range(3):
    for each in (env, twin):
        each.step(action)
    assert_same([env.render()], [twin.render()])
env.close()
"""
    run(program)


def test_windows_are_drawn_after_every_step_and_closed():
    if shutil.which("Xvfb") is None:
        pytest.skip("Xvfb is not installed")
    program = """
import os, subprocess, warnings
reading, writing = os.pipe()
server = subprocess.Popen(
    ["Xvfb", "-displayfd", str(writing), "-screen", "0", "640x480x24"],
    pass_fds=[writing], stderr=subprocess.DEVNULL,
)
try:
    os.environ["DISPLAY"] = ":" + os.read(reading, 9).decode().strip()
    warnings.simplefilter("error")
    envs = cartwheel.NativeVectorEnv("Hopper-v5", 2, render_mode="human", width=64, height=48)
    envs.reset(seed=1)
    from gymnasium.envs.mujoco.mujoco_rendering import WindowViewer
    drawn = []
    draw = WindowViewer.render
    WindowViewer.render = lambda viewer: drawn.append(viewer.data._address) or draw(viewer)
    envs.step(envs.action_space.sample())
    assert drawn == [data._address for data in envs.get_attr("data")]
    envs.close()
finally:
    server.kill()
    server.wait()
"""
    run(program, backend=None)


def test_without_a_display_a_window_is_an_error_and_not_the_end_of_the_process():
    program = """
import os, warnings
os.environ.pop("DISPLAY", None)
os.environ.pop("WAYLAND_DISPLAY", None)
warnings.simplefilter("ignore")
envs = cartwheel.NativeVectorEnv("Hopper-v5", 2, render_mode="human")
try:
    envs.reset(seed=1)
except RuntimeError as error:
    print(error)
envs.close()
"""
    assert "needs a display" in run(program, backend=None)


def test_frames_without_an_opengl_are_an_error_of_one_sentence():
    program = """
import os
import cartwheel.mujoco
from tests.support.own_models import NO_TASK, ROWS, XML
for name in ("DISPLAY", "WAYLAND_DISPLAY"):
    os.environ.pop(name, None)
envs = cartwheel.mujoco.make(XML, ROWS, render_mode="rgb_array", **NO_TASK)
envs.reset(seed=1)
try:
    envs.render()
except RuntimeError as error:
    print(error)
envs.step(envs.action_space.sample())
envs.close()
"""
    shown = run(program, backend=None)
    assert shown.startswith("MuJoCo cannot draw: it found no OpenGL, and MUJOCO_GL is not set; ")
    assert "set MUJOCO_GL=egl" in shown
