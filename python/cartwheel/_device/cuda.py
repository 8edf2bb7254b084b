"""NVIDIA's and AMD's devices, by PyTorch."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from cartwheel.errors import add_note

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cartwheel._device.device import Event

#: ``cudaHostRegisterPortable``: the memory counts as pinned for every device.
_PORTABLE = 1
#: The number of the caller's streams whose objects are kept.
MAX_STREAMS = 64


class Cuda:
    """A :class:`~cartwheel._device.device.Device` of PyTorch's CUDA."""

    def __init__(self, place: Any) -> None:
        """Initializes CUDA.

        Args:
            place: A ``torch.device``; without an index, the current device.

        Raises:
            RuntimeError: The device does not exist.
        """
        import torch

        self._torch: Any = torch
        check_exists(torch, place)
        index = torch.cuda.current_device() if place.index is None else place.index
        self.place = torch.device(place.type, index)
        self.name = str(self.place)
        self._stream: Any = torch.cuda.Stream(self.place)
        self._cudart: Any = torch.cuda.cudart()
        #: An event after the last copy to the host.
        self._fetched: Event | None = None
        #: Streams by address: PyTorch makes an object whenever it is asked for the current one.
        self._streams: dict[int, Any] = {}
        #: Returns the address of the current stream; PyTorch's own compilers use it.
        self._address_of: Any = getattr(torch._C, "_cuda_getCurrentRawStream", None)

    def register(self, address: int, nbytes: int) -> bool:
        """Pins memory by ``cudaHostRegister``."""
        with self._torch.cuda.device(self.place):
            if int(self._cudart.cudaHostRegister(address, nbytes, _PORTABLE)) == 0:
                return True
        # PyTorch would find the error after its next kernel, so one that is not needed finds it.
        with contextlib.suppress(RuntimeError):
            self._torch.zeros(1, device=self.place)
        return False

    def unregister(self, address: int) -> None:
        """Ends the registration, in any case."""
        if int(self._cudart.cudaHostUnregister(address)) != 0:
            with contextlib.suppress(RuntimeError):
                self._torch.zeros(1, device=self.place)

    def current(self) -> int:
        """The address of CUDA's stream."""
        if self._address_of is None:
            return int(self._torch.cuda.current_stream(self.place).cuda_stream)
        address: int = self._address_of(self.place.index)
        return address

    def _current_stream(self) -> Any:
        address = self.current()
        if address not in self._streams:
            if len(self._streams) >= MAX_STREAMS:
                self._streams.clear()
            self._streams[address] = self._torch.cuda.current_stream(self.place)
        return self._streams[address]

    def empty(self, nbytes: int, *, is_own: bool) -> Any:
        """Allocates in the order of the copies, which need not wait for the caller's stream."""
        torch = self._torch
        try:
            if not is_own:
                return torch.empty(nbytes, dtype=torch.uint8, device=self.place)
            return self._in_stream(torch.empty, nbytes, dtype=torch.uint8, device=self.place)
        except torch.cuda.OutOfMemoryError as error:
            raise add_note(
                error,
                f"cartwheel needs {nbytes} bytes on {self.name} for batches or for a rollout: keep "
                "fewer tensors of either. NumpyToTorch(…, static=True) uses the memory of `depth` "
                "batches again.",
            ) from None

    def staging(self, nbytes: int) -> Any:
        """PyTorch uses pinned memory again when the copies from it are over."""
        return self._torch.empty(nbytes, dtype=self._torch.uint8, pin_memory=True)

    def copy(self, target: Any, source: Any, *, is_own: bool) -> None:
        """Copies bytes, which takes one call of CUDA."""
        if is_own:
            self._in_stream(target.copy_, source, non_blocking=True)
        else:
            target.copy_(source, non_blocking=True)

    def _in_stream(self, call: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
        """Calls a function while the stream of this object is the current one."""
        cuda = self._torch.cuda
        if cuda.current_device() != self.place.index:
            with cuda.stream(self._stream):
                return call(*args, **keywords)
        current = self._current_stream()  # as `with` does, in half of the time
        cuda.set_stream(self._stream)
        try:
            return call(*args, **keywords)
        finally:
            cuda.set_stream(current)

    def record(self, event: Event | None, *, is_own: bool) -> Event:
        """Records an event of CUDA."""
        stream = self._stream if is_own else self._current_stream()
        recorded: Event = stream.record_event(event)
        return recorded

    def deliver(self, event: Event, memory: Any) -> None:
        """The caller's stream waits; the memory is reused after its work, too."""
        current = self._current_stream()
        current.wait_event(event)
        memory.record_stream(current)

    def share(self, memory: Any) -> None:
        """The memory is used again only after these copies."""
        self.follow()
        memory.record_stream(self._stream)

    def follow(self) -> None:
        """The stream of this object waits for the caller's."""
        self._stream.wait_stream(self._current_stream())

    def fetch(self, tensors: Sequence[Any]) -> list[Any]:
        """Copies into pinned memory."""
        torch = self._torch
        copies = []
        for tensor in tensors:
            copy = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
            copies.append(copy.copy_(tensor.detach(), non_blocking=True))
        self._fetched = self.record(self._fetched, is_own=False)
        self._fetched.synchronize()
        return copies


def check_exists(torch: Any, place: Any) -> None:
    """Raises ``RuntimeError`` if PyTorch has no such device, of CUDA or of another kind."""
    version = torch.__version__
    if place.type != "cuda":
        try:
            torch.empty(0).to(place)
        except Exception as error:  # also AssertionError and ModuleNotFoundError
            raise RuntimeError(
                f"device {str(place)!r} does not exist for PyTorch {version}: {error}"
            ) from None
        return
    if torch.version.cuda is None and torch.version.hip is None:
        raise RuntimeError(
            f"device {str(place)!r} does not exist: PyTorch {version} is built for CPUs alone. "
            "Install a build with CUDA (https://pytorch.org/get-started/locally), or leave "
            "`device` out."
        )
    if not torch.cuda.is_available():
        raise RuntimeError(
            f"device {str(place)!r} does not exist: PyTorch {version} finds no card or no driver "
            "(`nvidia-smi` shows both). Leave `device` out for tensors on the CPU."
        )
    count = torch.cuda.device_count()
    if place.index is not None and place.index >= count:
        raise RuntimeError(
            f"device {str(place)!r} does not exist: PyTorch finds {count}, the last of which is "
            f"'cuda:{count - 1}'."
        )
