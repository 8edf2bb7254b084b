"""MuJoCo's environments are made in every way, with Gymnasium's keywords; errors are named."""

import importlib.metadata
import os
import pickle
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError
from gymnasium.vector import SyncVectorEnv

import cartwheel
from cartwheel import envpool
from tests.support.comparison import assert_identical
from tests.support.oracle import assert_same_reset, assert_same_steps

CHEETAH = "HalfCheetah-v5"
#: A robot with other sizes than Gymnasium's cheetah.
SLIDER = """
<mujoco>
  <option timestep="0.01"/>
  <worldbody>
    <body><joint name="rootx" type="slide" axis="1 0 0"/><geom size="0.1"/>
      <body pos="0 0 1"><joint type="hinge" axis="0 1 0"/><geom size="0.2"/></body>
    </body>
  </worldbody>
  <actuator><motor joint="rootx" ctrllimited="true" ctrlrange="-2 0.5"/></actuator>
</mujoco>
"""
MAKERS = {
    "cartwheel.make_vec": lambda **keywords: cartwheel.make_vec(
        f"cartwheel/{CHEETAH}", 3, **keywords
    ),
    "gym.make_vec": lambda **keywords: gym.make_vec(f"cartwheel/{CHEETAH}", 3, **keywords),
    "the class": lambda **keywords: cartwheel.NativeVectorEnv(CHEETAH, 3, **keywords),
}
MAKE = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


def gymnasiums(num_envs=3, env_id=CHEETAH, **keywords):
    return SyncVectorEnv([lambda: gym.make(env_id, **keywords)] * num_envs)


@pytest.fixture
def slider(tmp_path):
    file = tmp_path / "slider.xml"
    file.write_text(SLIDER)
    return str(file)


def assert_like_gymnasium(envs, oracle):
    assert envs.single_observation_space == oracle.single_observation_space
    assert envs.single_action_space == oracle.single_action_space
    assert envs.metadata == oracle.metadata
    assert_same_reset(envs, oracle, seed=3)
    assert_same_steps(envs, oracle, 12)
    envs.close()
    oracle.close()


# Making


@pytest.mark.parametrize("mode", ["rgb_array", "depth_array", "rgbd_tuple"])
def test_gymnasiums_make_knows_the_render_modes(mode):
    env = gym.make(f"cartwheel/{CHEETAH}", render_mode=mode)  # a warning would be an error
    assert (env.render_mode, env.unwrapped.render_mode) == (mode, mode)
    env.close()


@MAKE
@pytest.mark.parametrize(
    "keywords",
    [
        {},
        {"frame_skip": 2, "ctrl_cost_weight": 1, "max_episode_steps": 5},
        {"exclude_current_positions_from_observation": False, "width": 10, "camera_id": 0},
        {"default_camera_config": {"lookat": np.ones(3)}, "visual_options": {0: True}},
    ],
    ids=str,
)
def test_every_way_to_make_gives_gymnasiums_results(make, keywords):
    assert_like_gymnasium(make(**keywords), gymnasiums(**keywords))


@MAKE
def test_a_model_of_the_users_own_is_loaded_as_in_gymnasium(make, slider):
    keywords = {"xml_file": slider, "frame_skip": 3}
    assert_like_gymnasium(make(**keywords), gymnasiums(**keywords))


def test_a_model_for_each_row_changes_nothing_by_itself():
    envs = cartwheel.NativeVectorEnv("Humanoid-v5", 3, model_per_row=True)
    assert_like_gymnasium(envs, gymnasiums(env_id="Humanoid-v5"))


def test_a_single_environment_has_the_attributes_of_gymnasiums():
    env, twin = gym.make(f"cartwheel/{CHEETAH}"), gym.make(CHEETAH)
    for each in (env, twin):
        each.reset(seed=1)
        each.step(np.ones(6, np.float32))
    ours, theirs = env.unwrapped, twin.unwrapped
    for name in ("dt", "frame_skip", "fullpath", "width", "height", "observation_structure"):
        assert getattr(ours, name) == getattr(theirs, name), name
    for name in ("init_qpos", "init_qvel"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
    for name in ("qpos", "qvel", "ctrl", "xpos", "cfrc_ext"):
        np.testing.assert_array_equal(getattr(ours.data, name), getattr(theirs.data, name))
    np.testing.assert_array_equal(ours.model.body_mass, theirs.model.body_mass)
    ours.data.qvel[:] = theirs.data.qvel[:] = 0.5
    action = np.full(6, -0.3, np.float32)
    assert_identical(env.step(action), twin.step(action))
    for each in (env, twin):
        each.close()


def test_pools_of_envpools_interface_are_native():
    pool = envpool.make(CHEETAH, num_envs=3, seed=5, ctrl_cost_weight=0.5)
    oracle = gymnasiums(ctrl_cost_weight=0.5)
    assert type(pool.spec.config.ctrl_cost_weight) is float
    assert_identical(pool.reset()[0], oracle.reset(seed=5)[0])
    actions = np.full((3, 6), 0.3, np.float32)
    assert_identical(pool.step(actions)[0], oracle.step(actions)[0])
    with pytest.raises(TypeError, match=r"`ctrl_weight` is not an option of .*ctrl_cost_weight"):
        envpool.make(CHEETAH, num_envs=3, ctrl_weight=0.5)
    pool.close()
    oracle.close()


@pytest.mark.filterwarnings("ignore:.*out of date")
def test_ids_that_are_not_native_stay_gymnasiums():
    """``HalfCheetah-v4`` has another reward: it is not the native ``HalfCheetah-v5``."""
    pool = envpool.make("HalfCheetah-v4", num_envs=2, seed=1, executor="inline")
    oracle = gymnasiums(2, env_id="HalfCheetah-v4")
    assert_identical(pool.reset()[0], oracle.reset(seed=1)[0])
    pool.close()
    oracle.close()


@pytest.mark.parametrize("rebuild", [cartwheel.make_vec, gym.make_vec], ids=["ours", "gymnasium's"])
def test_a_pickled_spec_makes_equal_environments(rebuild, slider):
    keywords = {"xml_file": slider, "ctrl_cost_weight": 0.3, "model_per_row": True}
    envs = cartwheel.NativeVectorEnv(CHEETAH, 3, autoreset_mode="same_step", **keywords)
    again = rebuild(pickle.loads(pickle.dumps(envs.spec)))
    assert type(again) is cartwheel.NativeVectorEnv
    assert again.spec == envs.spec
    assert "simulation" not in envs.spec.kwargs
    assert_identical(again.reset(seed=1), envs.reset(seed=1))
    actions = envs.action_space.sample()
    assert_identical(again.step(actions), envs.step(actions))
    again.close()
    envs.close()


def test_vector_environments_of_different_models_live_side_by_side(slider):
    several = [
        (cartwheel.NativeVectorEnv(CHEETAH, 2, **keywords), gymnasiums(2, **keywords))
        for keywords in ({}, {"xml_file": slider}, {"frame_skip": 1})
    ]
    for envs, oracle in several:
        assert_same_reset(envs, oracle, seed=1)
    for _ in range(5):
        for envs, oracle in several:
            actions = oracle.action_space.sample()
            assert_identical(envs.step(actions), oracle.step(actions))
    for pair in several:
        for envs in pair:
            envs.close()


@pytest.mark.parametrize("main_body", [1, 4, "torso", "front_left_leg"])
def test_a_body_has_a_name_or_a_number(main_body):
    envs = cartwheel.NativeVectorEnv("Ant-v5", 2, main_body=main_body)
    assert_like_gymnasium(envs, gymnasiums(2, env_id="Ant-v5", main_body=main_body))


# What is refused


@pytest.mark.parametrize(
    ("keywords", "error", "words"),
    [
        ({"ctrl_cost_wait": 1}, TypeError, "did you mean `ctrl_cost_weight`"),
        ({"healthy_reward": 1}, TypeError, "`healthy_reward` is not a keyword of HalfCheetah-v5"),
        ({"simulation": 1}, TypeError, "`simulation` of HalfCheetah-v5 is an attribute"),
        ({"model_path": "ant.xml"}, TypeError, "`model_path` is not a keyword of"),
        ({"observation_space": None}, TypeError, "`observation_space` is not a keyword of"),
        ({"model_per_row": 1}, TypeError, "`model_per_row` must be True or False, got 1"),
        ({"ctrl_cost_weight": "high"}, ValueError, "`ctrl_cost_weight` must be a number, got 'hi"),
        ({"reset_noise_scale": None}, ValueError, "`reset_noise_scale` must be a number, got Non"),
        ({"xml_file": "/nowhere/robot.xml"}, OSError, "/nowhere/robot.xml does not exist"),
        ({"xml_file": __file__}, ValueError, "XML"),
        ({"frame_skip": 0}, ValueError, "must be a positive integer, got 0"),
        ({"frame_skip": 1.5}, ValueError, "must be a positive integer, got 1.5"),
        ({"frame_skip": -1}, ValueError, "must be a positive integer, got -1"),
        ({"frame_skip": 2**40}, ValueError, "`frame_skip` must be at most 4294967295"),
        ({"render_mode": "ansi"}, ValueError, "'human', 'rgb_array', 'depth_array', 'rgbd_tuple'"),
    ],
    ids=str,
)
def test_wrong_keywords_are_refused(keywords, error, words):
    with pytest.raises(error, match=words):
        cartwheel.NativeVectorEnv(CHEETAH, 2, **keywords)


def test_a_file_that_was_cut_short_is_mujocos_error(tmp_path):
    file = tmp_path / "robot.xml"
    file.write_text(SLIDER[: len(SLIDER) // 2])
    with pytest.raises(ValueError, match="XML parse error"):
        cartwheel.NativeVectorEnv(CHEETAH, 2, xml_file=str(file))


@pytest.mark.parametrize("name", ["Humanoid", "InvertedDoublePendulum", "Pusher", "Reacher"])
def test_a_model_that_lacks_what_the_environment_needs_is_refused(name, slider):
    def run_gymnasiums():
        env = gym.make(f"{name}-v5", xml_file=slider, disable_env_checker=True)
        env.reset()
        env.step(np.zeros(env.action_space.shape, np.float32))

    with pytest.raises(Exception, match=r".+") as theirs:
        run_gymnasiums()
    with pytest.raises(Exception, match=r".+") as ours:
        cartwheel.NativeVectorEnv(f"{name}-v5", 2, xml_file=slider)
    assert type(ours.value) is type(theirs.value)


@MAKE
def test_without_mujoco_every_way_to_make_names_the_extra(make, monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(ImportError, match=r"^cartwheel/HalfCheetah-v5 needs mujoco: pip install '"):
        make()


def test_a_mujoco_that_is_too_old_is_an_error_that_names_both_versions(monkeypatch):
    monkeypatch.setattr("cartwheel._internal.versions._NEW_ENOUGH", set())
    monkeypatch.setattr(importlib.metadata, "version", lambda _: "3.1.6")
    needs = r"needs mujoco 3\.2 or newer, but 3\.1\.6 is installed: pip install -U 'cartwheel\[muj"
    with pytest.raises(ImportError, match=needs):
        cartwheel.NativeVectorEnv(CHEETAH, 2)


def test_without_mujoco_cartwheel_works_and_lists_the_environments():
    program = """
import sys
sys.modules["mujoco"] = None
import cartwheel
from cartwheel._cli.envs import overview
(line,) = [line for line in overview(None).splitlines() if "/HalfCheetah-v5" in line]
print(line)
envs = cartwheel.NativeVectorEnv("CartPole-v1", 2)
envs.reset(seed=1)
assert not [name for name in sys.modules if name.startswith("mujoco.")]
"""
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert "pip install 'cartwheel[mujoco]'" in done.stdout


@pytest.mark.parametrize(
    ("actions", "error", "words"),
    [
        (np.full((2, 6), np.nan, np.float32), ValueError, "nan of row 0"),
        (np.zeros((2, 5), np.float32), ValueError, r"\(2, 6\)|shape"),
        (np.zeros((3, 6), np.float32), ValueError, r"\(2, 6\)|shape"),
        (np.zeros((2, 6), complex), TypeError, "complex"),
    ],
    ids=["nan", "5 of 6", "3 rows", "complex"],
)
def test_wrong_actions_are_refused_before_anything_is_stepped(actions, error, words):
    envs, oracle = cartwheel.NativeVectorEnv(CHEETAH, 2), gymnasiums(2)
    assert_same_reset(envs, oracle, seed=1)
    with pytest.raises(error, match=words):
        envs.step(actions)
    assert_same_steps(envs, oracle, 3)
    envs.close()
    oracle.close()


# The end


def test_a_closed_vector_environment_gives_no_objects():
    envs = cartwheel.NativeVectorEnv(CHEETAH, 2)
    envs.reset(seed=1)
    data = envs.get_attr("data")[0]
    envs.close()
    assert data.qpos.shape == (9,), "the caller's object is whole"
    for name in ("data", "model", "dt"):
        with pytest.raises(ClosedEnvironmentError):
            envs.get_attr(name)


def test_objects_of_rows_outlive_the_vector_environment():
    envs = cartwheel.NativeVectorEnv("Ant-v5", 2)
    envs.reset(seed=1)
    model, data = envs.get_attr("model")[0], envs.get_attr("data")[1]
    before = data.qpos.copy()
    envs.close()
    del envs
    np.testing.assert_array_equal(data.qpos, before)
    assert model.nq == 15


def test_a_forked_child_makes_and_steps_environments_of_its_own():
    envs = cartwheel.NativeVectorEnv(CHEETAH, 2)
    envs.reset(seed=1)
    actions = np.zeros((2, 6), np.float32)
    expected = envs.step(actions)[0]
    child = os.fork()
    if child == 0:
        status = 1
        try:
            own = cartwheel.NativeVectorEnv(CHEETAH, 2)
            own.reset(seed=1)
            status = 0 if np.array_equal(own.step(actions)[0], expected) else 2
            try:
                envs.step(actions)
            except RuntimeError:
                pass
            else:
                status = 3
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    envs.step(actions)
    envs.close()
