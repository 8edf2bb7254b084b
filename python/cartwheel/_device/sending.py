"""Arrays of any size to a device, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.error import DependencyNotInstalled

from cartwheel._device.cuda import check_exists

#: The bytes of pinned memory through which an array is copied at a time.
CHUNK = 32 << 20


def device_of(device: Any, *, is_checked: bool = True) -> Any:
    """Returns a ``torch.device``, for CUDA with an index.

    Args:
        device: A name or a ``torch.device``.
        is_checked: Whether a device that does not exist is an error here.

    Raises:
        gymnasium.error.DependencyNotInstalled: PyTorch is not installed.
        RuntimeError: PyTorch does not have the device.
    """
    try:
        import torch
    except ImportError:
        raise DependencyNotInstalled(
            "rollouts on a device need PyTorch: run `pip install torch`"
        ) from None
    place = torch.device(device)
    if is_checked:
        check_exists(torch, place)
    if place.type == "cuda" and place.index is None and torch.cuda.is_available():
        return torch.device("cuda", torch.cuda.current_device())
    return place


def tensor_on(place: Any, array: Any) -> Any:
    """Returns a tensor on a device, or the array itself if PyTorch does not have its dtype.

    On the CPU, it has the memory of the array. To CUDA, the array travels through pinned memory,
    and the host waits for none of the copies.
    """
    import torch

    if isinstance(array, torch.Tensor):
        return array.to(place)
    array = np.asarray(array)
    try:
        tensor = torch.from_numpy(array if array.flags.writeable else array.copy())
    except ValueError:  # negative strides, or a foreign byte order
        tensor = torch.from_numpy(np.array(array, array.dtype.newbyteorder("="), order="C"))
    except TypeError:
        return array
    if place.type != "cuda" or not tensor.numel() or not tensor.is_contiguous():
        return tensor.to(place)
    found = torch.empty(tensor.shape, dtype=tensor.dtype, device=place)
    source, target = tensor.reshape(-1), found.view(-1)
    step = max(1, CHUNK // tensor.element_size())
    for start in range(0, len(source), step):
        part = source[start : start + step]
        pinned = torch.empty(part.shape, dtype=part.dtype, pin_memory=True)
        target[start : start + step].copy_(pinned.copy_(part), non_blocking=True)
    return found


def array_of(tensor: Any) -> Any:
    """Returns a tensor of any device as an array; other values stay."""
    if isinstance(tensor, np.ndarray) or not hasattr(tensor, "detach"):
        return tensor
    return tensor.numpy(force=True)
