"""Specs of TorchRL for the spaces of vector environments, and tensors of their batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch

# ``GymWrapper`` imports this module when it is first made. The module keeps an exception, with the
# frames of those who import it and so everything in them: here there is nothing to keep alive.
import torchrl.envs.libs.utils  # noqa: F401 - for its effect
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple
from gymnasium.vector import AutoresetMode
from gymnasium.vector import VectorEnv as GymnasiumVectorEnv
from tensordict import TensorDict
from torchrl.data import Composite
from torchrl.data.utils import numpy_to_torch_dtype_dict
from torchrl.envs import GymWrapper

if TYPE_CHECKING:
    from gymnasium.spaces import Space


class Specs:
    """The specs of a vector environment: those that ``torchrl.envs.GymWrapper`` has for its spaces.

    ``GymWrapper`` itself makes them, so they are the same in every version.

    Attributes:
        done: Of the flags.
        reward: Of rewards.
        observation: Of observations, a ``Composite``.
        action: Of actions; a ``Composite`` for a ``Dict`` space, which ``GymWrapper`` only takes
            from single environments.

    Args:
        envs: The vector environment; it is not stepped.
        categorical: Whether discrete values are integers rather than one-hot.
        device: The device of the specs, or ``None``.
    """

    def __init__(
        self, envs: GymnasiumVectorEnv[Any, Any, Any], *, categorical: bool, device: Any
    ) -> None:
        """Makes the specs by ``GymWrapper``."""
        self._num_envs = envs.num_envs
        self._keywords = {"categorical_action_encoding": categorical, "device": device}
        self._blank = Box(0, 1, (envs.num_envs, 1))
        wrapper = self._wrapper(stacked(envs.observation_space, 1), self._blank)
        self.done = wrapper.full_done_spec.clone()
        self.reward = wrapper.full_reward_spec.clone()
        self.observation = wrapper.observation_spec.clone()
        self.action = self._action(envs.action_space)

    def _action(self, space: Space[Any]) -> Any:
        if isinstance(space, Dict):
            parts = {key: self._action(part) for key, part in space.spaces.items()}
            return Composite(parts, shape=[self._num_envs], device=self._keywords["device"])
        return self._wrapper(self._blank, space).action_spec.clone()

    def _wrapper(self, observations: Space[Any], actions: Space[Any]) -> GymWrapper:
        return GymWrapper(_Spaces(self._num_envs, observations, actions), **self._keywords)


class _Spaces(GymnasiumVectorEnv[Any, Any, Any]):
    """A vector environment that has spaces, and nothing to step."""

    autoreset_mode = AutoresetMode.DISABLED

    def __init__(self, num_envs: int, observations: Space[Any], actions: Space[Any]) -> None:
        self.num_envs = num_envs
        self.metadata = {"autoreset_mode": self.autoreset_mode}
        self.observation_space = observations
        self.action_space = actions


def stacked(space: Space[Any], axis: int) -> Space[Any]:
    """Replaces every tuple of boxes by one box, which has the parts along an axis.

    This is what ``GymWrapper`` makes of the tuple of one environment.

    Args:
        space: The space of one environment, or of a batch.
        axis: The number of dimensions of a batch.
    """
    if isinstance(space, Dict):
        return Dict({key: stacked(part, axis) for key, part in space.spaces.items()})
    if isinstance(space, Tuple):
        boxes: Any = space.spaces
        low = np.stack([box.low for box in boxes], axis)
        high = np.stack([box.high for box in boxes], axis)
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
    has_fixed_shape = isinstance(space, Box | Discrete | MultiBinary | MultiDiscrete)
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
    elif not has_fixed_shape:
        raise ValueError(
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


#: Makes a tensor, or a tensordict, of a batch: an array, or dictionaries and tuples of arrays.
Reader: TypeAlias = Callable[[Any], Any]


def reader(space: Space[Any], spec: Any) -> Reader:
    """Returns the function that makes tensors of ``spec`` from batches of ``space``.

    The values of ``Box`` and ``MultiBinary`` spaces are not copied: the tensor has the memory of
    the array, and keeps it alive. Discrete values are encoded by the spec; tuples are stacked.
    """
    if isinstance(space, Dict):
        parts = named_readers(space, spec)
        batch_size = spec.shape

        def read(batch: Any) -> Any:
            found = {name: read_part(batch[key]) for key, name, read_part in parts}
            return TensorDict._new_unsafe(found, batch_size=batch_size)

        return read
    if isinstance(space, Tuple):
        return lambda batch: torch.from_numpy(np.stack(batch, axis=1))
    if isinstance(space, Box | MultiBinary) and tuple(spec.shape) == space.shape:
        from_numpy: Reader = torch.from_numpy
        return from_numpy
    return lambda batch: spec.encode(batch, ignore_device=True)


def named_readers(space: Dict, specs: Any) -> list[tuple[str, str, Reader]]:
    """Returns key, TorchRL's name and reader of each part.

    TorchRL calls the part ``"state"`` ``"observation"``, unless there is one of that name already.
    """
    parts = []
    for key, part in space.spaces.items():
        renamed = key == "state" and "observation" not in space.spaces
        name = "observation" if renamed else key
        parts.append((key, name, reader(part, specs[name])))
    return parts
