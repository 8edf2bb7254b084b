"""The keywords of native environments and the options of their resets: defaults and meanings."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

from cartwheel._cartwheel import env_keywords, native_envs, reset_option_names

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
    """
    implied = json.loads(next(keywords for name, *_, keywords in native_envs() if name == env_id))
    known = _KEYWORDS.get(_name(env_id))
    if known is None:
        known = [Keyword(name, UNKNOWN, "") for name in env_keywords(env_id) or ()]
    return [
        dataclasses.replace(keyword, default=implied.get(keyword.name, keyword.default))
        for keyword in known
    ]


def reset_options_of_env(env_id: str) -> list[Keyword]:
    """Returns the options of a native environment's ``reset``, besides those that select rows."""
    known = _RESET_OPTIONS.get(_name(env_id))
    if known is None:
        known = [Keyword(name, UNKNOWN, "") for name in reset_option_names(env_id) or ()]
    return known


def _name(env_id: str) -> str:
    return env_id.rpartition("-")[0]
