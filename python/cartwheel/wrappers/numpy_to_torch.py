"""PyTorch tensors instead of NumPy arrays."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.error import DependencyNotInstalled

from cartwheel._cartwheel import TensorExchange
from cartwheel._device.batches import DeviceBatches, Results, collected
from cartwheel._device.cuda import Cuda, check_exists
from cartwheel._device.mirror import Mirror
from cartwheel._device.places import torch_dtype
from cartwheel._device.transfers import Transfers
from cartwheel._internal import nested
from cartwheel._internal.arguments import as_bool, as_integer
from cartwheel.vector.base import PoolVectorEnv
from cartwheel.vector.infos import is_dense
from cartwheel.wrappers._shared.conversion import ConvertsArrays
from cartwheel.wrappers.base import rows_of_batch
from cartwheel.wrappers.batch import NAMES

if TYPE_CHECKING:
    from collections.abc import Callable

    from gymnasium.vector import VectorEnv

    from cartwheel._device.device import Device
    from cartwheel._internal.reset_arguments import ResetOptions
    from cartwheel.vector.rollout_arrays import RolloutArrays
    from cartwheel.wrappers.base import Operation, Reset
    from cartwheel.wrappers.batch import ActionBatch, Batch

    #: The result of a step: rewards and flags are tensors.
    Tensors = tuple[Any, Any, Any, Any, dict[str, Any]]


class NumpyToTorch(ConvertsArrays):
    """Returns PyTorch tensors, and takes tensors as actions.

    Observations (also nested ones), rewards, flags, numbers and masks in infos, and final
    observations of ``SAME_STEP`` become tensors. On the CPU nothing is copied: a tensor has the
    memory of the array, which is the caller's. Values without a PyTorch dtype, such as strings and
    other objects, stay as they are; so does ``infos["env_index"]``, which is passed back to
    ``send``. Modes of PyTorch see each tensor: in ``FakeTensorMode`` they are fake.

    On CUDA, observations, dense final observations, rewards and flags of a batch travel in one
    copy from pinned memory; infos and other final observations, if there are any, in a second one.
    The host does not wait. A small batch is copied by the caller's current stream. A large one is
    not copied on the host: its memory is pinned, no step fills it again before the copy is over,
    and the copy has a stream of its own, for which the caller's waits; work that it has already
    runs meanwhile. Tensors are never overwritten. With ``static=True`` observations, rewards and
    flags have ``depth`` fixed places in turn, as a CUDA graph needs them: a batch overwrites the
    one that came ``depth`` batches before, after all work of the caller's current stream. Tensors
    stay valid after :meth:`close`. Other kinds of devices get a copy of each array.

    Actions are tensors of any device, arrays, or dictionaries and tuples of them. Actions on the
    wrapper's own CUDA device come back in pinned memory; the host waits for them, and not for
    work that is queued later. The options of a reset may have tensors, too, as ``"reset_mask"``.

    :meth:`rollout` returns NumPy arrays, and ``torch.from_numpy`` makes tensors of them without a
    copy. So does a :class:`~cartwheel.Collector` without ``device``; its policy, and that of
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
        device: Where tensors go: a name, or a ``torch.device``. ``None`` is the CPU, ``"cuda"`` the
            device that is current now.
        static: Whether results on CUDA have fixed places.
        depth: The number of these places, and the maximum number of large copies in flight.

    Raises:
        gymnasium.error.DependencyNotInstalled: PyTorch is not installed.
        RuntimeError: PyTorch does not have the device.
        ValueError: ``static`` without a CUDA device, or with observations without a fixed size; or
            ``depth`` is below 1.
    """

    _changes_steps = False
    _prepares_calls = True

    def __init__(
        self,
        env: VectorEnv[Any, Any, Any],
        device: Any = None,
        *,
        static: bool = False,
        depth: int = 4,
    ) -> None:
        try:
            import torch
        except ImportError:
            raise DependencyNotInstalled(
                "NumpyToTorch and Collector(device=…) need PyTorch: run `pip install torch`"
            ) from None
        place = None if device is None else torch.device(device)
        depth = as_integer("depth", depth, 1)
        on_cuda = place is not None and place.type == "cuda"
        if as_bool("static", static) and not on_cuda:
            raise ValueError(
                f"static=True needs a CUDA device, got device={device!r}: on the CPU tensors have "
                "the memory of the arrays."
            )
        if place is not None and not on_cuda:  # `Cuda` looks itself
            check_exists(torch, place)
        super().__init__(env)
        self.device = device
        self._device = place
        #: Whether no wrapper changes actions, so that `act` is called without rows.
        self._acts_alone = not self._inner_acts and type(self).act is NumpyToTorch.act
        space = env.single_observation_space
        #: Whether all arrays of a step are a pool's: writable, and of dtypes that PyTorch has.
        self._has_plain_arrays = (
            place is None
            and not self._inner_wrappers
            and self._source.is_bare
            and isinstance(space, nested.ARRAY_SPACES)
            and np.dtype(space.dtype).isnative
            and torch_dtype(torch, np.dtype(space.dtype)) is not None
        )
        self._from_numpy: Callable[[Any], Any] = torch.from_numpy
        self._torch: Any = torch
        self._tensor_type: type = torch.Tensor
        #: A faster way on the CPU; ``None`` where PyTorch does not have it.
        self._exchange = _exchange_of(torch)
        self._transfers: Transfers | None = None
        if on_cuda:
            self._transfers = _transfers_to(Cuda(place), env)
            self._batches = DeviceBatches(
                self._transfers,
                space,
                rows_of_batch(env),
                static=static,
                depth=depth,
                has_pool_rewards=self._source.is_bare and not self._inner_wrappers,
            )

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
        return self._prepared(actions)

    def _acted(self, actions: Any, env_index: Any) -> Any:
        return self._prepared(actions) if self._acts_alone else super()._acted(actions, env_index)

    def _act_of_all(self) -> Callable[[Any, Any], Any]:
        is_plain = self._acts_alone and self._transfers is None
        if not is_plain:
            return super()._act_of_all()
        return NumpyToTorch._prepared if self._exchange is None else self._exchange.actions

    def _prepared(self, actions: Any) -> Any:
        """Makes room for the results of a step, and returns its actions as arrays."""
        if self._transfers is not None:
            self._batches.prepare()
        return actions if type(actions) is np.ndarray else self._as_arrays(actions)

    def _called(self, call: Callable[..., Batch], *arguments: Any) -> Batch:
        if self._transfers is not None:
            self._batches.prepare()
        return super()._called(call, *arguments)

    def _operation(self) -> Operation:
        if self._has_plain_arrays:
            return "tensors", (self._from_numpy, self._exchange)
        return "transform", ()

    def transform(self, batch: Batch) -> None:
        """Returns results as tensors."""
        if self._has_plain_arrays and batch.rewards is not None:
            tensor = self._from_numpy
            batch.observations, batch.rewards = tensor(batch.observations), tensor(batch.rewards)
            batch.terminations = tensor(batch.terminations)
            batch.truncations = tensor(batch.truncations)
            if batch.infos:
                batch.infos = self._converted_infos(batch.infos, self._as_tensor)
            return
        batch.put_finals_back()
        convert = self._as_tensor if self._transfers is None else self._sent(batch)
        batch.observations = nested.apply(convert, batch.observations)
        if batch.rewards is not None:
            batch.rewards = convert(batch.rewards)
            batch.terminations = convert(batch.terminations)
            batch.truncations = convert(batch.truncations)
        if batch.infos:
            batch.infos = self._converted_infos(batch.infos, convert)

    def _sent(self, batch: Batch) -> Callable[[Any], Any]:
        """Sends a batch to the device; returns the function from its arrays to their tensors."""
        accepts = self._batches.accepts
        finals: Any = batch.infos.get(NAMES[0])
        ended: Any = None
        has_finals = finals is not None and is_dense(finals)
        if has_finals:
            ended = batch.infos[f"_{NAMES[0]}"]
        outcomes = (
            [] if batch.rewards is None else [batch.rewards, batch.terminations, batch.truncations]
        )
        results = Results(
            collected(batch.observations, accepts),
            collected(finals, accepts) if has_finals else (),
            ended,
            outcomes,
        )
        others: dict[int, Any] = {}
        same: Any = None
        if batch.infos:
            known = {id(array) for array in results.arrays()}
            if has_finals:  # two arrays of the same flags travel once
                same = batch.infos.get("_final_info")
                if same is not None and np.array_equal(same, ended):
                    known.add(id(same))

            def collect(value: Any) -> None:
                for array in collected(value, accepts):
                    if id(array) not in known:
                        others[id(array)] = array

            self._converted_infos(batch.infos, collect)
        sent = self._batches.send(results, others.values())
        if same is not None:
            sent.setdefault(id(same), sent[id(ended)])
        return lambda value: sent.get(id(value), value)

    def _shown(self, observations: Any) -> Any:
        if self._transfers is None:
            return nested.apply(self._as_tensor, observations)
        return self._batches.tensors_of(observations)

    @property
    def _place(self) -> Any:
        """The ``torch.device`` of results."""
        if self._transfers is not None:
            return self._torch.device(self._transfers.device.name)
        return self._device or self._torch.device("cpu")

    @property
    def _mirror(self) -> Callable[[Any], Mirror] | None:
        """Allocates memory of CUDA for the observations of a rollout, ``[T + 1, N, …]``.

        ``None`` for other devices. It raises ``RuntimeError`` if there is not enough memory, and
        ``ForkedProcessError`` in a forked child.
        """
        return None if self._transfers is None else partial(Mirror, self._torch, self._batches)

    def _ready(self) -> Any:
        """Returns a point after all work of the current stream; ``None`` without streams."""
        return (
            None if self._transfers is None else self._transfers.device.record(None, is_own=False)
        )

    def _deliver(self, event: Any, tree: Any) -> None:
        """The current stream waits for a point of :meth:`_ready`, and may use the tensors."""
        if self._transfers is not None and event is not None:
            deliver = self._transfers.device.deliver
            nested.apply(
                lambda part: deliver(event, part) if isinstance(part, self._tensor_type) else None,
                tree,
            )

    def _shown_infos(self, infos: dict[str, Any]) -> dict[str, Any]:
        """Returns infos with tensors; the dictionaries received are kept."""
        return self._converted_infos(infos, self._as_tensor)

    def _shown_masks(self, masks: Any) -> Any:
        """Returns masks of actions as a tensor."""
        return self._as_tensor(masks)

    def _converted_infos(
        self, infos: dict[str, Any], convert: Callable[[Any], Any]
    ) -> dict[str, Any]:
        """Returns infos in which ``convert`` replaced every array of numbers."""
        converted = dict(infos)
        for key, value in infos.items():
            if isinstance(value, dict) and key not in NAMES:
                converted[key] = self._converted_infos(value, convert)
            elif isinstance(value, np.ndarray) and value.dtype == object:
                if key in NAMES:
                    converted[key] = _converted_finals(value, infos[f"_{key}"], convert)
            elif key != "env_index":
                converted[key] = nested.apply(convert, value)
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
        if self._transfers is None:
            if isinstance(actions, self._tensor_type):
                return _as_array(actions)
            return self._replaced(actions, _as_array)
        found: list[Any] = []
        self._replaced(actions, found.append)
        if not found:
            return actions
        self._transfers.check_process()
        device = self._transfers.device
        own = [tensor for tensor in found if str(tensor.device) == device.name]
        fetched = (
            {id(tensor): copy for tensor, copy in zip(own, device.fetch(own), strict=True)}
            if own
            else {}
        )
        return self._replaced(actions, lambda tensor: _as_array(fetched.get(id(tensor), tensor)))

    def _replaced(self, value: Any, convert: Callable[[Any], Any]) -> Any:
        """Returns nested values in which ``convert`` replaced every tensor."""
        if isinstance(value, self._tensor_type):
            return convert(value)
        if isinstance(value, dict):
            return {key: self._replaced(part, convert) for key, part in value.items()}
        if type(value) is tuple:
            return tuple(self._replaced(part, convert) for part in value)
        return value


def _exchange_of(torch: Any) -> TensorExchange | None:
    """Returns PyTorch's functions that pass Python by; ``None`` if it does not have them.

    Modes such as ``FakeTensorMode`` see tensors that Python makes, and so make none by these.
    """
    modes = vars(torch.utils._python_dispatch)
    return TensorExchange.of(torch.Tensor, modes, "_is_in_torch_dispatch_mode")


def _as_array(tensor: Any) -> Any:
    try:
        return tensor.numpy()  # takes half of the time of the other call
    except (RuntimeError, TypeError):  # it has a gradient, or is on another device
        return _as_detached_array(tensor)


def _as_detached_array(tensor: Any) -> Any:
    try:
        return tensor.numpy(force=True)
    except TypeError:
        raise TypeError(
            f"NumPy has no dtype for a tensor of {tensor.dtype}: pass a tensor of the dtype of the "
            "space, such as `tensor.float()`"
        ) from None


def _converted_finals(finals: Any, mask: Any, convert: Callable[[Any], Any]) -> Any:
    """Final observations one by one: only of the rows whose episode ended."""
    converted = np.full(finals.shape, None, object)
    for place in np.flatnonzero(mask).tolist():
        converted[place] = nested.apply(convert, finals[place])
    return converted


def _transfers_to(device: Device, env: Any) -> Transfers:
    """The transfers to a device, of which a pool has one that ends before its memory does."""
    innermost = env.unwrapped
    if not isinstance(innermost, PoolVectorEnv):
        return Transfers(device, has_slabs=False)
    attached = innermost._attached
    if device.name not in attached:
        attached[device.name] = Transfers(device, has_slabs=True)
    found: Transfers = attached[device.name]
    return found
