"""PyTorch tensors instead of NumPy arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.error import DependencyNotInstalled

from cartwheel._internal import nested
from cartwheel.wrappers.batch import NAMES
from cartwheel.wrappers.conversion import ConvertsArrays

if TYPE_CHECKING:
    from collections.abc import Callable

    from gymnasium.vector import VectorEnv

    from cartwheel._internal.arguments import ResetOptions
    from cartwheel.vector.rollout_arrays import RolloutArrays
    from cartwheel.wrappers.base import Reset
    from cartwheel.wrappers.batch import ActionBatch, Batch

    #: The result of a step: rewards and flags are tensors.
    Tensors = tuple[Any, Any, Any, Any, dict[str, Any]]


class NumpyToTorch(ConvertsArrays):
    """Returns PyTorch tensors, and takes tensors as actions.

    Observations (also nested ones), rewards, flags, numbers and masks in infos, and final
    observations of ``SAME_STEP`` become tensors. On the CPU nothing is copied: a tensor has the
    memory of the array, which is the caller's. Other devices get a copy. Values without a
    PyTorch dtype, such as strings and other objects, stay as they are; so does
    ``infos["env_index"]``, which is passed back to ``send``.

    Actions are tensors of any device, arrays, or dictionaries and tuples of them. The options of a
    reset may have tensors, too, as ``"reset_mask"``.

    :meth:`rollout` returns NumPy arrays, and ``torch.from_numpy`` makes tensors of them without a
    copy. So does a :class:`~cartwheel.Collector`; its policy, and that of
    :func:`~cartwheel.evaluate`, get tensors and may return tensors of any device. Put this wrapper
    around all others.

    Example:
        >>> import cartwheel
        >>> from cartwheel.wrappers import NumpyToTorch
        >>> envs = NumpyToTorch(cartwheel.NativeVectorEnv("CartPole-v1", 2))  # doctest: +SKIP
        >>> observations, infos = envs.reset(seed=1)  # doctest: +SKIP
        >>> observations.dtype  # doctest: +SKIP
        torch.float32

    Attributes:
        device: As given.

    Args:
        env: A vector environment.
        device: Where tensors go: a name, or a ``torch.device``. ``None`` is the CPU.

    Raises:
        gymnasium.error.DependencyNotInstalled: PyTorch is not installed.
        RuntimeError: PyTorch does not have the device.
    """

    _changes_steps = False
    _prepares_calls = True

    def __init__(self, env: VectorEnv[Any, Any, Any], device: Any = None) -> None:
        """Checks the arguments; steps nothing."""
        try:
            import torch
        except ImportError:
            raise DependencyNotInstalled(
                "NumpyToTorch needs PyTorch: run `pip install torch`"
            ) from None
        place = None if device is None else torch.device(device)
        super().__init__(env)
        self.device = device
        self._device = place
        self._from_numpy: Callable[[Any], Any] = torch.from_numpy
        self._tensor_type: type = torch.Tensor

    if TYPE_CHECKING:

        def step(self, actions: Any, env_index: Any = None) -> Tensors:
            """As for the base class."""

        def step_wait(self, timeout: float | None = None) -> Tensors:
            """As for the base class."""

        def recv(self, timeout: float | None = None, **bounds: int | None) -> Tensors:
            """As for the base class."""

    def reset(self, *, seed: Any = None, options: ResetOptions = None) -> Reset:
        """Resets as the wrapped environment does; ``options`` may have tensors."""
        return super().reset(seed=seed, options=self._options_as_arrays(options))

    def reset_async(self, seed: Any = None, options: ResetOptions = None) -> None:
        """Begins a reset as the wrapped environment does; ``options`` may have tensors."""
        super().reset_async(seed, self._options_as_arrays(options))

    def send_reset(self, seed: Any = None, options: ResetOptions = None) -> None:
        """Sends resets as the wrapped environment does; ``options`` may have tensors."""
        super().send_reset(seed, self._options_as_arrays(options))

    def rollout(self, num_steps: int) -> RolloutArrays[Any]:
        """Records steps into NumPy arrays, which have the results of the wrapped environment.

        Raises:
            TypeError: The wrapped environment has no rollouts; or a wrapper inside changes steps,
                so that they would be copied from another device.
            Exception: As for the wrapped environment.
        """
        if self._device is not None and self._device.type != "cpu" and self._changes_rollouts():
            raise TypeError(
                f"`rollout` around wrappers that change steps needs tensors on the CPU, not on "
                f"{self._device}: record without NumpyToTorch"
            )
        return super().rollout(num_steps)

    def act(self, actions: Any, batch: ActionBatch) -> Any:
        """Returns actions as arrays."""
        del batch
        return self._as_arrays(actions)

    def transform(self, batch: Batch) -> None:
        """Returns results as tensors."""
        batch.put_finals_back()
        batch.observations = self._shown(batch.observations)
        if batch.rewards is not None:
            batch.rewards = self._as_tensor(batch.rewards)
            batch.terminations = self._as_tensor(batch.terminations)
            batch.truncations = self._as_tensor(batch.truncations)
        if batch.infos:
            batch.infos = self._shown_infos(batch.infos)

    def _shown(self, observations: Any) -> Any:
        """Returns observations as tensors."""
        return nested.apply(self._as_tensor, observations)

    def _shown_infos(self, infos: dict[str, Any]) -> dict[str, Any]:
        """Returns infos with tensors; the dictionaries received are kept."""
        converted = dict(infos)
        for key, value in infos.items():
            if isinstance(value, dict) and key not in NAMES:
                converted[key] = self._shown_infos(value)
            elif isinstance(value, np.ndarray) and value.dtype == object:
                if key in NAMES:
                    converted[key] = self._with_final_tensors(value, infos[f"_{key}"])
            elif key != "env_index":
                converted[key] = nested.apply(self._as_tensor, value)
        return converted

    def _with_final_tensors(self, finals: Any, mask: Any) -> Any:
        """Final observations one by one: only of the rows whose episode ended."""
        converted = np.full(finals.shape, None, object)
        for place in np.flatnonzero(mask).tolist():
            converted[place] = nested.apply(self._as_tensor, finals[place])
        return converted

    def _as_tensor(self, value: Any) -> Any:
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "biufc":
            return value
        if not value.flags.writeable:
            value = value.copy()  # writing into the tensor would be undefined
        try:
            tensor = self._from_numpy(value)
        except ValueError:  # negative strides, or a foreign byte order
            tensor = self._from_numpy(np.array(value, value.dtype.newbyteorder("="), order="C"))
        except TypeError:  # PyTorch has no such dtype
            return value
        return tensor if self._device is None else tensor.to(self._device)

    def _options_as_arrays(self, options: Any) -> Any:
        """Options of a reset with arrays instead of tensors."""
        if isinstance(options, list):
            return [self._as_arrays(own) for own in options]
        return self._as_arrays(options)

    def _as_arrays(self, actions: Any) -> Any:
        """Returns actions, extras or options with arrays instead of tensors."""
        value = actions
        if isinstance(value, self._tensor_type):
            tensor: Any = value
            return tensor.numpy(force=True)
        if isinstance(value, dict):
            return {key: self._as_arrays(part) for key, part in value.items()}
        if type(value) is tuple:
            return tuple(map(self._as_arrays, value))
        return value
