"""Batches of observations as tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from gymnasium.spaces import Box, Dict, MultiBinary, Tuple
from tensordict import TensorDict

if TYPE_CHECKING:
    from gymnasium.spaces import Space

#: Makes a tensor, or a tensordict, of a batch: an array, or dictionaries and tuples of arrays.
Reader: TypeAlias = Callable[[Any], Any]


def reader(space: Space[Any], spec: Any) -> Reader:
    """Returns the function that makes tensors of ``spec`` from batches of ``space``.

    The values of ``Box`` and ``MultiBinary`` spaces are not copied: the tensor has the memory of
    the array, and keeps it alive. Discrete values are encoded by the spec; tuples are stacked.

    Args:
        space: The batched observation space, or a part of it.
        spec: Its spec.
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
