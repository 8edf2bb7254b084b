"""The native side of cartwheel. Private: users import :mod:`cartwheel`."""

from collections.abc import Sequence
from typing import Any, final

from cartwheel.link import Link
from cartwheel.spaces import Description
from cartwheel.worker import Worker

__all__ = ["Memory", "Pool", "Shard", "SlabLease", "serve", "shards", "usable_cpus", "watch_parent"]

@final
class SlabLease:
    """Keeps a slab leased: the ``base`` of every array that shows it."""

@final
class Memory:
    """The memory of a pool: control words, actions, infos and slabs."""

    def __new__(
        cls,
        observations: Description,
        actions: Description,
        shards: Sequence[tuple[int, int]],
        *,
        max_slabs: int,
        info_bytes: int,
        descriptors: Sequence[int] | None = None,
        shared: bool = False,
    ) -> Memory:
        """Lays memory out, or attaches in a worker what :meth:`descriptors` gave.

        Args:
            observations: The single observation space.
            actions: The single action space.
            shards: First and last row, exclusive, of each worker.
            max_slabs: Most batches that may exist at once, at least 2.
            info_bytes: Bytes for the infos of each worker.
            descriptors: Four descriptors, which are taken over.
            shared: Whether workers are processes.

        Raises:
            ValueError: The plan is impossible, or the descriptors belong to another one.
            OSError: There is not enough memory.
        """

    def descriptors(self) -> list[int]:
        """The descriptors to send to worker processes; empty unless shared."""

@final
class Shard:
    """What the environments of a worker are driven by."""

    def __new__(
        cls,
        worker: Worker,
        observations: Description,
        actions: Description,
        *,
        autoreset_mode: str,
        freeze: bool,
        objects: list[Any] | None = None,
    ) -> Shard:
        """Describes a shard.

        Args:
            worker: Holds the environments.
            observations: The single observation space.
            actions: The single action space.
            autoreset_mode: The value of an ``AutoresetMode``.
            freeze: Whether over rows repeat their last frame when the mode is ``"Disabled"``.
            objects: Holds what infos refer to; ``None`` to pickle it.

        Raises:
            ValueError: There is no such mode.
        """

@final
class Pool:
    """Steps and resets the environments of all workers, from one thread at a time.

    Every method raises ``gymnasium.error.ClosedEnvironmentError`` after :meth:`close`,
    ``gymnasium.error.AlreadyPendingCallError`` while another thread is inside, and
    ``cartwheel.ForkedProcessError`` in a forked child, unless it says otherwise.
    """

    def __new__(
        cls,
        memory: Memory,
        observations: Description,
        actions: Description,
        *,
        shard: Shard,
        pids: Sequence[int],
        objects: Sequence[list[Any] | None],
        link: Link,
        class_name: str,
        timeout: float | None,
        columnar: bool,
        spin: bool,
        inline: bool,
    ) -> Pool:
        """Opens a pool over workers that serve, or are about to.

        Args:
            memory: The workers' memory.
            observations: The single observation space.
            actions: The single action space.
            shard: The caller's own shard; for other executors only its settings count.
            pids: Process ids of worker processes; empty otherwise.
            objects: Per worker, what its infos refer to.
            link: Sends and receives what does not go through shared memory.
            class_name: Named in errors.
            timeout: Seconds that a synchronous step may take.
            columnar: Whether infos may be gathered without ``VectorEnv._add_info``.
            spin: Whether it may look for results before sleeping.
            inline: Whether the calling thread steps ``shard`` itself.
        """

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Steps every row: :meth:`step_async` and :meth:`step_wait` in one."""

    def step_async(self, actions: Any) -> None:
        """Checks and copies the actions and begins a step."""

    def step_wait(self, timeout: float | None = None) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Waits for a step: observations, rewards, terminations, truncations, infos."""

    def reset_async(self, messages: Sequence[Any]) -> None:
        """Begins a reset with one message a worker."""

    def reset_wait(self, timeout: float | None = None) -> tuple[Any, dict[str, Any]]:
        """Waits for a reset: observations and infos."""

    def call_async(self, messages: Sequence[Any], calling: str) -> None:
        """Begins a control call with one message a worker; ``calling`` is named in errors."""

    def call_wait(self, timeout: float | None = None) -> tuple[Any, ...]:
        """Waits for a control call: one answer a row."""

    def check(self, calling: str, idle: bool) -> None:
        """Raises when closed, and with ``idle`` also when a call is pending."""

    def pending(self) -> str | None:
        """The call that has not been waited for; ``None`` too while another thread is inside."""

    def discard_late(self, timeout: float | None = None) -> None:
        """Waits for a call that was given up after a timeout or an interrupt, and drops it."""

    def num_slabs(self) -> int:
        """Batches of observations that have memory behind them, one in reserve included."""

    def close(self, grace: float) -> list[int]:
        """Ends the workers; returns those that did not end within ``grace`` seconds."""

def serve(memory: Memory, index: int, shard: Shard, *, spin: bool) -> None:
    """Serves worker ``index`` until it is told to close."""

def watch_parent(pidfd: int) -> None:
    """Ends this process as soon as the one behind ``pidfd``, which is taken over, is gone."""

def shards(num_envs: int, num_workers: int) -> list[tuple[int, int]]:
    """Deals rows to workers: first and last row, exclusive, of each; none is empty."""

def usable_cpus() -> int:
    """Processors that this process may use, honouring affinity and cgroup quota."""
