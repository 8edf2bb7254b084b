"""The keywords of native environments and the options of their resets: defaults and meanings."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

from cartwheel._cartwheel import env_keywords, native_envs, reset_option_names
from cartwheel.native.mujoco.env import is_mujoco, mujoco_keywords

#: The default of a plugin's keyword that its id does not set.
UNKNOWN = object()


@dataclasses.dataclass(frozen=True)
class Keyword:
    """A keyword of an environment, or an option of its ``reset``.

    Attributes:
        name: Its name, as in Gymnasium.
        default: The value that it has if it is not passed; :data:`UNKNOWN` where only the plugin
            knows it.
        meaning: What it does, with units; empty where only the plugin knows it.
    """

    name: str
    default: Any
    meaning: str


_GOAL_VELOCITY = Keyword("goal_velocity", 0.0, "minimum velocity of the car at the goal")

#: By the name of the environment, which is its id without the version.
_KEYWORDS = {
    "CartPole": [
        Keyword(
            "sutton_barto_reward",
            False,
            "reward 0 for each step and -1 for the fall, instead of 1 for each step",
        )
    ],
    "MountainCar": [_GOAL_VELOCITY],
    "MountainCarContinuous": [_GOAL_VELOCITY],
    "Pendulum": [Keyword("g", 10.0, "gravity in m/s²")],
    "Acrobot": [],
    "Blackjack": [
        Keyword(
            "natural",
            False,
            "pay 1.5 for a win with an ace and a ten from the start; no effect if sab is true",
        ),
        Keyword(
            "sab",
            False,
            "the rules of Sutton and Barto: an ace and a ten from the start win unless the dealer "
            "has them too",
        ),
    ],
    "FrozenLake": [
        Keyword(
            "desc",
            None,
            "the map, a list of rows: S start, F frozen, H hole, G goal; replaces map_name",
        ),
        Keyword(
            "map_name",
            "4x4",
            '"4x4" or "8x8"; without a map and a name, each row of the batch has a random map',
        ),
        Keyword("is_slippery", True, "whether a move may also go to either side"),
        Keyword(
            "success_rate", 1 / 3, "probability that a move goes in its direction on slippery ice"
        ),
        Keyword("reward_schedule", (1, 0, 0), "rewards for reaching the goal, a hole and ice"),
    ],
    "CliffWalking": [
        Keyword(
            "is_slippery",
            False,
            "whether a move may also go to either side; all three directions are equally probable",
        )
    ],
    "Taxi": [
        Keyword("is_rainy", False, "whether a move may also go to either side"),
        Keyword(
            "fickle_passenger",
            False,
            "whether the passenger may change the destination once, on the first move after the "
            "pick-up",
        ),
        Keyword(
            "rainy_probability", 0.8, "probability that a move goes in its direction in the rain"
        ),
        Keyword(
            "fickle_probability",
            0.3,
            "probability that a fickle passenger changes the destination",
        ),
    ],
    "Null": [
        Keyword("shape", [1], "shape of an observation"),
        Keyword("episode_steps", 0, "length of an episode; 0 for endless episodes"),
        Keyword("work", 0, "rounds of computation in a step"),
        Keyword(
            "work_spread",
            0.0,
            "maximum deviation of the computation of a step from work, as a fraction from 0 to 1",
        ),
    ],
}
_KEYWORDS["FrozenLake8x8"] = _KEYWORDS["FrozenLake"]
_KEYWORDS["CliffWalkingSlippery"] = _KEYWORDS["CliffWalking"]


#: Meanings of the keywords of MuJoCo's environments, whose defaults Gymnasium has.
_OF_MUJOCO = {
    "xml_file": "the model: a file of Gymnasium's, or a path that begins with . or / or ~",
    "frame_skip": "steps of MuJoCo in a step of the environment",
    "default_camera_config": "attributes of the camera of frames",
    "forward_reward_weight": "weight of the velocity to the right in the reward",
    "uph_cost_weight": "weight of the height in the reward",
    "ctrl_cost_weight": "weight of the squares of the action, subtracted from the reward",
    "contact_cost_weight": "weight of the squares of contact forces, subtracted from the reward",
    "impact_cost_weight": "weight of the squares of contact forces, subtracted from the reward",
    "healthy_reward": "reward for each step in which the robot is healthy",
    "terminate_when_unhealthy": "whether an episode ends when the robot is not healthy",
    "healthy_state_range": "in which all positions and velocities from the third on are healthy",
    "healthy_z_range": "in which the height of the torso is healthy, in m",
    "healthy_angle_range": "in which the angle of the torso is healthy, in rad",
    "contact_force_range": "to which contact forces are clipped",
    "contact_cost_range": "to which the cost of contacts is clipped",
    "impact_cost_range": "to which the cost of contacts is clipped",
    "main_body": "number or name of the body whose velocity is rewarded",
    "reset_noise_scale": "size of the noise of initial positions and velocities",
    "reward_near_weight": "weight of the distance from the fingertip to the object",
    "reward_dist_weight": "weight of the distance to the goal",
    "reward_control_weight": "weight of the squares of the action, subtracted from the reward",
    "exclude_current_positions_from_observation": "whether observations lack the position, so that "
    "they do not depend on it",
    "include_cinert_in_observation": "whether observations have the inertia of the bodies",
    "include_cvel_in_observation": "whether observations have the velocities of the bodies",
    "include_qfrc_actuator_in_observation": "whether observations have the forces of the actuators",
    "include_cfrc_ext_in_observation": "whether observations have the contact forces",
    "width": "width of frames in pixels",
    "height": "height of frames in pixels",
    "camera_id": "number of the camera of frames; -1 for the free one",
    "camera_name": "name of the camera of frames, instead of its number",
    "max_geom": "the most shapes in a frame",
    "visual_options": "flags of MuJoCo's `MjvOption` for frames, by their numbers",
    "model_per_row": "whether each row has a copy of the model, whose fields `set_attr` can set",
}


def _bounds(low: float, high: float, what: str) -> list[Keyword]:
    return [
        Keyword("low", low, f"smallest {what}"),
        Keyword("high", high, f"largest {what}"),
    ]


_POSITION = _bounds(-0.6, -0.4, "initial position")

#: By the name of the environment; environments that are missing here have no options.
_RESET_OPTIONS = {
    "CartPole": _bounds(-0.05, 0.05, "value of each number of the initial state"),
    "MountainCar": _POSITION,
    "MountainCarContinuous": _POSITION,
    "Pendulum": [
        Keyword("x_init", math.pi, "largest absolute initial angle in radians"),
        Keyword("y_init", 1.0, "largest absolute initial angular velocity in rad/s"),
    ],
    "Acrobot": _bounds(-0.1, 0.1, "value of each number of the initial state"),
}


def keywords_of_env(env_id: str) -> list[Keyword]:
    """Returns the keywords of a native environment, with the defaults of its id.

    Args:
        env_id: Its id, without ``cartwheel/``.

    Raises:
        ImportError: It needs MuJoCo, which is not installed or too old.
    """
    if is_mujoco(env_id):
        defaults = mujoco_keywords(env_id).items()
        return [Keyword(name, value, _OF_MUJOCO.get(name, "")) for name, value in defaults]
    implied = json.loads(next(keywords for name, *_, keywords in native_envs() if name == env_id))
    known = _KEYWORDS.get(_name(env_id))
    if known is None:
        known = [Keyword(name, UNKNOWN, "") for name in env_keywords(env_id) or ()]
    return [
        dataclasses.replace(keyword, default=implied.get(keyword.name, keyword.default))
        for keyword in known
    ]


def reset_options_of_env(env_id: str) -> list[Keyword]:
    """Returns the options of a native environment's ``reset``, without those that select rows."""
    known = _RESET_OPTIONS.get(_name(env_id))
    if known is None:
        known = [Keyword(name, UNKNOWN, "") for name in reset_option_names(env_id) or ()]
    return known


def _name(env_id: str) -> str:
    return env_id.rpartition("-")[0]
