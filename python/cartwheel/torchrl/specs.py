"""The specs of TorchRL for the spaces of a vector environment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple
from gymnasium.vector import AutoresetMode, VectorEnv
from torchrl.data.utils import numpy_to_torch_dtype_dict
from torchrl.envs import GymWrapper

if TYPE_CHECKING:
    from gymnasium.spaces import Space


def specs_of(envs: VectorEnv[Any, Any, Any], *, categorical: bool, device: Any) -> GymWrapper:
    """Returns TorchRL's own wrapper around the spaces of ``envs``, for its specs.

    So the specs are those of ``GymWrapper`` by construction, whatever they are in its version.

    Args:
        envs: The vector environment; it is not stepped, and the wrapper does not refer to it.
        categorical: Whether discrete values are integers rather than one-hot.
        device: The device of the specs, or ``None``.
    """
    return GymWrapper(_Spaces(envs), categorical_action_encoding=categorical, device=device)


class _Spaces(VectorEnv[Any, Any, Any]):
    """A vector environment that has spaces, and nothing to step."""

    autoreset_mode = AutoresetMode.DISABLED

    def __init__(self, envs: VectorEnv[Any, Any, Any]) -> None:
        self.num_envs = envs.num_envs
        self.metadata = {"autoreset_mode": self.autoreset_mode}
        self.observation_space = _stacked(envs.observation_space)
        self.action_space = envs.action_space


def _stacked(space: Space[Any]) -> Space[Any]:
    """Replaces every batched tuple of boxes by one box, which has the parts along axis 1.

    This is what ``GymWrapper`` makes of the tuple of one environment, for all environments.
    """
    if isinstance(space, Dict):
        return Dict({key: _stacked(part) for key, part in space.spaces.items()})
    if isinstance(space, Tuple):
        boxes: Any = space.spaces
        low = np.stack([box.low for box in boxes], axis=1)
        high = np.stack([box.high for box in boxes], axis=1)
        return Box(low, high, dtype=boxes[0].dtype)
    return space


def check_space(kind: str, space: Space[Any], path: str = "") -> None:
    """Checks that TorchRL has a spec for the space of one environment.

    Args:
        kind: ``"observation"`` or ``"action"``, for the error.
        space: The space.
        path: Its place in the whole space, for the error.

    Raises:
        ValueError: It has none.
    """
    place = f"the {kind} space{path} is {space}"
    if isinstance(space, Dict):
        for key, part in space.spaces.items():
            check_space(kind, part, f"{path}[{key!r}]")
    elif isinstance(space, Tuple):
        alike = {(part.shape, part.dtype) for part in space if isinstance(part, Box)}
        if kind == "action":
            raise ValueError(f"TorchRL has no tuples of actions, but {place}: use a Dict space")
        if len(alike) != 1 or not all(isinstance(part, Box) for part in space):
            raise ValueError(
                "TorchRL stacks the parts of a tuple, so they must be boxes of one shape and one "
                f"dtype, but {place}: use a Dict space"
            )
        check_space(kind, space[0], f"{path}[0]")
    elif not isinstance(space, Box | Discrete | MultiBinary | MultiDiscrete):
        raise ValueError(  # noqa: TRY004 - its type is right, and its shape is not fixed
            f"TorchRL needs tensors of fixed shape, but {place}: wrap each environment so that it "
            "has a Box"
        )
    elif np.any(getattr(space, "start", 0)):
        raise ValueError(
            f"TorchRL counts discrete values from 0, but {place}: wrap each environment so that it "
            "counts from 0"
        )
    elif space.dtype not in numpy_to_torch_dtype_dict:
        raise ValueError(
            f"TorchRL has no dtype for {space.dtype}, but {place}: wrap each environment so that "
            "it has another dtype"
        )
