"""Gymnasium's MuJoCo environments: with their defaults, and with every keyword at other values."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from tests.support.cases import Case
from tests.support.repetitions import times

MODELS = Path(__file__).with_name("models")
INFINITY = float("inf")


def case(name, *ends, steps=None, dtype=np.float32, **keywords):
    """A case whose episodes can end in such a run by ``"termination"``, ``"truncation"``.

    A robot needs more steps to fall than a run of `tests.support.runs` has at least.
    """
    return Case(
        f"{name}-v5",
        keywords,
        terminates="termination" in ends,
        truncates="truncation" in ends,
        steps=steps or (90 if "termination" in ends else times(65, with_full=90)),
        dtype=dtype,
    )


def model(name):
    """The path of a model of our own."""
    return str(MODELS / f"{name}.xml")


#: The eleven with their defaults.
MUJOCO = [
    case("Ant"),
    case("HalfCheetah"),
    case("Hopper", "termination"),
    case("Walker2d", "termination"),
    case("Swimmer"),
    case("Humanoid", "termination"),
    case("HumanoidStandup"),
    case("InvertedDoublePendulum", "termination"),
    case("InvertedPendulum", "termination"),
    case("Pusher"),
    case("Reacher", "truncation", steps=115),
]
#: The same, whose actions are float64: Gymnasium computes the costs of actions in their dtype.
MUJOCO_FLOAT64 = [replace(each, dtype=np.float64) for each in MUJOCO]

NO_PARTS = {
    "include_cinert_in_observation": False,
    "include_cvel_in_observation": False,
    "include_qfrc_actuator_in_observation": False,
    "include_cfrc_ext_in_observation": False,
}

#: Every own keyword, with values that change results. Some weights are integers, which changes the
#: dtype of infos. The models are others of Gymnasium, which have other sizes, and ours.
MUJOCO_VARIANTS = [
    case(
        "Ant",
        "termination",
        frame_skip=3,
        forward_reward_weight=1.7,
        ctrl_cost_weight=0.3,
        contact_cost_weight=0.01,
        healthy_reward=2,
        main_body="front_left_leg",
        healthy_z_range=(0.6, 0.8),
        contact_force_range=(-0.3, 0.7),
        reset_noise_scale=0.05,
        exclude_current_positions_from_observation=False,
    ),
    case(
        "Ant",
        "truncation",
        include_cfrc_ext_in_observation=False,
        terminate_when_unhealthy=False,
        healthy_z_range=(0.6, 0.8),
        main_body=3,
        reset_noise_scale=0.3,
        max_episode_steps=30,
    ),
    case("Ant", "termination", xml_file="humanoid.xml", healthy_z_range=(0.9, INFINITY)),
    case(
        "HalfCheetah",
        "truncation",
        frame_skip=2,
        forward_reward_weight=2,
        ctrl_cost_weight=0.05,
        reset_noise_scale=0.2,
        exclude_current_positions_from_observation=False,
        max_episode_steps=17,
    ),
    case(
        "HalfCheetah",
        "truncation",
        forward_reward_weight=0,
        ctrl_cost_weight=0,
        reset_noise_scale=0,
        max_episode_steps=1,
    ),
    case("HalfCheetah", "truncation", xml_file="walker2d.xml", max_episode_steps=25),
    case(
        "Hopper",
        "termination",
        frame_skip=3,
        forward_reward_weight=0.7,
        ctrl_cost_weight=0.02,
        healthy_reward=0.5,
        healthy_state_range=(-3.0, 2.5),
        healthy_z_range=(0.9, 1.6),
        healthy_angle_range=(-0.1, 0.15),
        reset_noise_scale=0.02,
        exclude_current_positions_from_observation=False,
    ),
    case(
        "Hopper",
        "truncation",
        terminate_when_unhealthy=False,
        healthy_reward=3,
        ctrl_cost_weight=1,
        max_episode_steps=25,
    ),
    case(
        "Hopper",
        "termination",
        xml_file="half_cheetah.xml",
        healthy_z_range=(-0.2, INFINITY),
        healthy_angle_range=(-0.3, 0.3),
    ),
    case(
        "Walker2d",
        "termination",
        frame_skip=2,
        forward_reward_weight=1.3,
        ctrl_cost_weight=0.2,
        healthy_reward=4,
        healthy_z_range=(0.9, 1.5),
        healthy_angle_range=(-0.5, INFINITY),
        reset_noise_scale=0.03,
        exclude_current_positions_from_observation=False,
    ),
    case("Walker2d", "truncation", terminate_when_unhealthy=False, max_episode_steps=25),
    case("Walker2d", "termination", xml_file="walker2d.xml"),
    case(
        "Swimmer",
        "truncation",
        frame_skip=6,
        forward_reward_weight=-2.5,
        ctrl_cost_weight=0.03,
        reset_noise_scale=0.4,
        exclude_current_positions_from_observation=False,
        max_episode_steps=20,
    ),
    case("Swimmer", "truncation", xml_file="ant.xml", max_episode_steps=20),
    case(
        "Humanoid",
        "termination",
        frame_skip=4,
        forward_reward_weight=2,
        ctrl_cost_weight=0.3,
        contact_cost_weight=1e-3,
        contact_cost_range=(0.2, 0.3),
        healthy_reward=1,
        healthy_z_range=(1.2, 1.5),
        reset_noise_scale=0.05,
        exclude_current_positions_from_observation=False,
    ),
    case(
        "Humanoid", "truncation", terminate_when_unhealthy=False, max_episode_steps=25, **NO_PARTS
    ),
    *(case("Humanoid", "termination", **{name: False}) for name in NO_PARTS),
    case("Humanoid", "termination", xml_file="ant.xml", healthy_z_range=(0.6, 0.9)),
    case(
        "HumanoidStandup",
        "truncation",
        frame_skip=2,
        uph_cost_weight=3,
        ctrl_cost_weight=0.02,
        impact_cost_weight=1e-3,
        impact_cost_range=(0.1, 0.4),
        reset_noise_scale=0.03,
        exclude_current_positions_from_observation=False,
        max_episode_steps=25,
    ),
    case("HumanoidStandup", "truncation", max_episode_steps=2, **NO_PARTS),
    case("HumanoidStandup", "truncation", xml_file="humanoid.xml", max_episode_steps=25),
    case(
        "InvertedDoublePendulum",
        "termination",
        frame_skip=2,
        healthy_reward=3,
        reset_noise_scale=0.02,
    ),
    case(
        "InvertedDoublePendulum", "truncation", xml_file=model("double_pole"), max_episode_steps=5
    ),
    case("InvertedPendulum", "termination", frame_skip=1, reset_noise_scale=0.1),
    case(
        "InvertedPendulum",
        "termination",
        "truncation",
        xml_file=model("cart_pole"),
        max_episode_steps=12,
    ),
    case(
        "Pusher",
        "truncation",
        frame_skip=2,
        reward_near_weight=0.7,
        reward_dist_weight=2,
        reward_control_weight=0.3,
        max_episode_steps=30,
    ),
    case("Pusher", "truncation", xml_file="pusher.xml", max_episode_steps=30),
    case(
        "Reacher",
        "truncation",
        frame_skip=4,
        reward_dist_weight=3,
        reward_control_weight=1.5,
        max_episode_steps=20,
    ),
    case("Reacher", "truncation", xml_file=model("arm"), max_episode_steps=20),
]
