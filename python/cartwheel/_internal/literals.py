"""Types of arguments with a fixed set of values, for type checkers and for checks at run time."""

from __future__ import annotations

from typing import Any, Literal, get_args

from gymnasium.spaces import Space
from gymnasium.vector import AutoresetMode

Executor = Literal["auto", "inline", "thread", "process"]
NativeExecutor = Literal["auto", "inline", "thread"]
ModeName = Literal["next_step", "same_step", "disabled", "NextStep", "SameStep", "Disabled"]
Mode = AutoresetMode | ModeName
"""An autoreset mode: a member, its name in lower case, or its value."""
OnDone = Literal["raise", "freeze"]
OnError = Literal["raise", "restart"]
OnTimeout = Literal["raise", "restart"]
OnWorkerDeath = Literal["raise", "restart"]
FinalObs = Literal["object", "dense"]
FinalNames = Literal["gymnasium", "maniskill"]
ObservationMode = Literal["same", "different"] | tuple[Space[Any], Space[Any]]
"""The way to batch observation spaces; a pair is the batched and the single space."""
States = Literal["methods", "pickle"]
Vectorization = Literal["sync", "async", "vector_entry_point"]
NumWorkers = int | Literal["auto"] | None
Bootstrap = Literal["truncated", "always", "never"]
Until = Literal["all_done"]
Order = Literal["time", "env"]
RecvOrder = Literal["sent", "done"]
CollectOrder = Literal["lockstep", "groups", "free", "auto"]
EvaluateOrder = Literal["lockstep", "free"]
Part = Literal["row", "env", "sequence"]
RewardPlace = Literal["t", "t+1"]
EnvType = Literal["gymnasium", "gym", "dm"]
NativeId = Literal[
    "cartwheel/CartPole-v0",
    "cartwheel/CartPole-v1",
    "cartwheel/MountainCar-v0",
    "cartwheel/MountainCarContinuous-v0",
    "cartwheel/Pendulum-v1",
    "cartwheel/Acrobot-v1",
    "cartwheel/Blackjack-v1",
    "cartwheel/FrozenLake-v1",
    "cartwheel/FrozenLake8x8-v1",
    "cartwheel/CliffWalking-v1",
    "cartwheel/CliffWalkingSlippery-v1",
    "cartwheel/Taxi-v4",
    "cartwheel/Null-v0",
    "cartwheel/Ant-v5",
    "cartwheel/HalfCheetah-v5",
    "cartwheel/Hopper-v5",
    "cartwheel/Humanoid-v5",
    "cartwheel/HumanoidStandup-v5",
    "cartwheel/InvertedDoublePendulum-v5",
    "cartwheel/InvertedPendulum-v5",
    "cartwheel/Pusher-v5",
    "cartwheel/Reacher-v5",
    "cartwheel/Swimmer-v5",
    "cartwheel/Walker2d-v5",
]
"""The ids of native environments in Gymnasium's registry."""


def check_choice(argument: str, value: Any, choices: Any) -> None:
    """Raises ``ValueError`` unless ``value`` is one of ``choices``, a ``Literal``."""
    names: tuple[str, ...] = get_args(choices)
    if value not in names:
        raise ValueError(
            f"`{argument}` must be one of {', '.join(map(repr, names))}, got {value!r}."
        )
