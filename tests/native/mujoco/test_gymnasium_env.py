"""Keywords are Gymnasium's: names, defaults and errors; what Rust does not know is refused."""

import inspect
import math
import sys

import gymnasium as gym
import mujoco
import numpy as np
import pytest
from gymnasium.envs.mujoco.hopper_v5 import HopperEnv
from gymnasium.envs.mujoco.mujoco_env import MujocoEnv

from cartwheel.native.mujoco.gymnasium_env import GymnasiumEnv

IDS = [f"{name}-v5" for name in ("Ant", "HalfCheetah", "Hopper", "Humanoid", "Pusher", "Reacher")]
OF_HOPPER = {
    "forward_reward_weight",
    "ctrl_cost_weight",
    "healthy_reward",
    "terminate_when_unhealthy",
    "healthy_state_range",
    "healthy_z_range",
    "healthy_angle_range",
    "reset_noise_scale",
    "exclude_current_positions_from_observation",
}


@pytest.fixture
def hopper():
    return GymnasiumEnv("Hopper-v5")


@pytest.mark.parametrize("env_id", IDS)
def test_keywords_are_those_of_gymnasiums_constructors_with_their_defaults(env_id):
    own = inspect.signature(type(gym.make(env_id).unwrapped)).parameters
    base = inspect.signature(MujocoEnv).parameters
    theirs = {**base, **own}
    for name in ("model_path", "observation_space", "render_mode", "kwargs"):
        del theirs[name]
    assert GymnasiumEnv(env_id).keywords == {
        name: parameter.default for name, parameter in theirs.items()
    }


def test_options_are_all_that_rust_reads_with_gymnasiums_defaults(hopper):
    assert hopper.make(mujoco, {"frame_skip": 2}).frame_skip == 2
    options = hopper.native_options({"frame_skip": 2}, OF_HOPPER)
    assert set(options) == OF_HOPPER
    assert options["healthy_z_range"] == [0.7, "inf"], "JSON has no infinity"
    assert options["terminate_when_unhealthy"] is True


def test_values_take_the_kind_of_their_defaults(hopper):
    given = {
        "healthy_reward": 2,
        "ctrl_cost_weight": np.float32(0.5),
        "terminate_when_unhealthy": 0,
        "healthy_angle_range": np.float32([-1, 1]),
        "healthy_state_range": (-math.inf, math.inf),
    }
    options = hopper.native_options(given, OF_HOPPER)
    assert repr(options["healthy_reward"]) == "2", "infos are integers where Gymnasium's are"
    assert repr(options["ctrl_cost_weight"]) == "0.5"
    assert options["terminate_when_unhealthy"] is False
    assert options["healthy_angle_range"] == [-1.0, 1.0]
    assert options["healthy_state_range"] == ["-inf", "inf"]


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("healthy_reward", "much", r"`healthy_reward` must be a number, got 'much'\."),
        ("healthy_reward", None, "must be a number, got None"),
        ("healthy_z_range", 3, "`healthy_z_range` must be two numbers, got 3"),
        ("healthy_z_range", (1, 2, 3), r"must be two numbers, got \(1, 2, 3\)"),
    ],
)
def test_a_value_of_another_kind_is_refused(hopper, name, value, wanted):
    with pytest.raises(ValueError, match=wanted):
        hopper.native_options({name: value}, OF_HOPPER)


def test_a_keyword_that_rust_does_not_know_is_refused_with_the_way_to_use_it(hopper):
    known = OF_HOPPER - {"healthy_reward"}
    advice = r"`healthy_reward` .*cartwheel.make_vec\('Hopper-v5', num_envs\) steps Gymnasium's in"
    with pytest.raises(TypeError, match=advice):
        hopper.native_options({"healthy_reward": 1.0}, known)
    assert set(hopper.native_options({}, known)) == known, "its default changes nothing"


@pytest.mark.parametrize(
    ("keywords", "error", "words"),
    [
        ({"xml_file": "/nowhere.xml"}, OSError, "/nowhere.xml does not exist"),
        ({"xml_file": "inverted_pendulum.xml"}, ValueError, "not enough values"),
        ({"camera_id": 0, "camera_name": "track"}, ValueError, "at the same time"),
    ],
)
def test_what_gymnasium_refuses_is_refused_in_its_words(hopper, keywords, error, words):
    with pytest.raises(error, match=words):
        hopper.make(mujoco, keywords)


@pytest.mark.parametrize("frame_skip", [0, -1, 2.0])
def test_frame_skip_is_refused_before_gymnasium_divides_by_it(hopper, frame_skip):
    with pytest.raises(ValueError, match=f"`frame_skip` must be .*, got {frame_skip}"):
        hopper.make(mujoco, {"frame_skip": frame_skip})


def test_a_file_that_is_no_model_is_mujocos_error(hopper, tmp_path):
    file = tmp_path / "robot.xml"
    file.write_text("<mujoco><worldbody><body><joint type='wheel'/></body></worldbody></mujoco>")
    with pytest.raises(ValueError, match="XML Error"):
        hopper.make(mujoco, {"xml_file": str(file)})


def test_another_class_under_the_id_is_refused(monkeypatch):
    class Other(HopperEnv):
        pass

    spec = gym.spec("Hopper-v5")
    monkeypatch.setattr(spec, "entry_point", Other)
    with pytest.raises(TypeError, match=r"not Gymnasium's own class .*make_vec\('Hopper-v5', num"):
        GymnasiumEnv("Hopper-v5")


def test_what_gymnasium_needs_to_draw_is_part_of_the_extra(monkeypatch):
    for name in list(sys.modules):
        if name.startswith("gymnasium.envs.mujoco"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "imageio", None)
    with pytest.raises(ImportError, match=r"pip install 'cartwheel\[mujoco\]' \(.*imageio"):
        GymnasiumEnv("Hopper-v5").make(mujoco, {})
