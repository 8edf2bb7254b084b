"""Vector environments over Gymnasium environments written in Python.

Above 400 lines because every public method carries its documentation here.
"""

from __future__ import annotations

import contextlib
import functools
import os
import weakref
from typing import TYPE_CHECKING, Any, TypeVar

import gymnasium as gym
from gymnasium import logger
from gymnasium.vector import AutoresetMode

from cartwheel import _cartwheel, launch
from cartwheel.arguments import (
    as_autoreset_mode,
    as_context,
    as_env_fns,
    as_executor,
    as_num_workers,
    as_reset_mask,
    as_seeds,
    as_timeout,
    check_choice,
)
from cartwheel.batching import Batching
from cartwheel.link import Link
from cartwheel.spaces import describe, describe_actions, row_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    from gymnasium.spaces import Space
    from numpy.typing import NDArray

    from cartwheel.launch import Crew
    from cartwheel.spaces import EnvFn

ObsType = TypeVar("ObsType")
ActType = TypeVar("ActType")

#: Seconds that environments get to close before their workers are ended.
_CLOSE_GRACE = 5.0
#: Memory that slabs may take when nothing else is said, and the bounds of their number.
_SLAB_BYTES, _FEWEST_SLABS, _MOST_SLABS = 1 << 30, 8, 1024
#: Bounds of the memory for one worker's infos; what is larger goes over its socket.
_LEAST_INFO_BYTES, _MOST_INFO_BYTES = 1 << 16, 1 << 24


class VectorEnv(gym.vector.VectorEnv[ObsType, ActType, Any]):
    """Steps many Gymnasium environments at once; replaces ``gymnasium.vector.AsyncVectorEnv``.

    The arguments are those of ``AsyncVectorEnv``, in its order; values, infos, spaces, seeds and
    errors are Gymnasium's (``ARCHITECTURE.md`` lists the few places where Gymnasium's own are
    wrong). Environments run in worker processes, several in each, and results come through shared
    memory.

    Arrays. Observations have shape ``(num_envs, *shape)`` and the dtype of their space, rewards are
    ``float64`` and flags ``bool``, both of shape ``(num_envs,)``. All of them are writable and the
    caller's alone: an array keeps its values for as long as it, or a view of it, is referenced,
    also after :meth:`close`. Nobody overwrites it, whatever ``copy`` says. Large observations are
    views of shared memory (``flags.owndata`` is false, ``resize`` in place is refused), and keeping
    one row keeps the whole batch; take a copy of the row to keep only it.

    Args:
        env_fns: Functions that make the environments, one each; at least one. They are called in
            the workers. Functions for ``spawn`` and ``forkserver`` must survive ``cloudpickle``.
        shared_memory: Accepted for compatibility. Everything of fixed shape goes through shared
        memory.
        copy: Accepted for compatibility. Both values give arrays that never change behind the
            caller's back, which is all that ``copy=True`` promises; code that relies on
            ``copy=False`` returning the same object every time must keep that object itself.
        context: Start method of worker processes (``"fork"``, ``"forkserver"``, ``"spawn"``), a
            ``multiprocessing`` context, or ``None`` for Python's default.
        daemon: Whether worker processes are daemonic; they cannot have children then. They end with
            the caller's process in any case.
        worker: Must be ``None``: the workers' loop is native and cannot be replaced.
        observation_mode: ``"same"``: all observation spaces are equal. ``"different"``: they share
            shape and dtype, and their bounds are batched. A pair of spaces: the batched and the
            single one.
        autoreset_mode: When a finished environment restarts: a ``gymnasium.vector.AutoresetMode``,
            its value (``"SameStep"``) or its name (``"same_step"``).
        max_concurrency: Most environments that may run at one time; bounds ``num_workers``.
        executor: ``"process"``, ``"thread"`` (for environments that release the GIL, and for builds
            of Python without one), ``"inline"`` (the calling thread), or ``"auto"``: ``"inline"``
            for one environment or on one processor, otherwise ``"process"``.
        num_workers: Number of processes or threads; by default one per usable processor, at most
            one per environment. Results do not depend on it.
        on_done: What stepping a finished environment does when the mode is ``DISABLED``:
            ``"raise"`` an :class:`~cartwheel.EpisodeOverError`, or ``"freeze"``: the row repeats
            its last observation with reward 0 and its flags, and is not stepped, until it is reset.
        timeout: Seconds that one ``reset``, ``step`` or control call may take before
            ``multiprocessing.TimeoutError``; ``None`` for no limit. The result is not lost: wait
            for it again, or call :meth:`reset`.
        max_slabs: Most batches of observations that may be kept as views at one time; beyond it
            observations are copied, after one warning. By default as many as fit in 1 GiB, at least
            8 and at most 1024.

    Raises:
        IndexError: ``env_fns`` is empty.
        TypeError: Something in ``env_fns`` is no function, returns no environment or cannot be sent
            to a worker; or ``observation_mode`` holds something else than spaces.
        ValueError: An argument is none of its choices.
        RuntimeError: Spaces differ where they must not.
        WorkerDiedError: A worker process ended while it made its environments.
        Exception: Whatever an environment function raises, with its row in a note.

    Example:
        >>> import gymnasium as gym, cartwheel
        >>> envs = cartwheel.VectorEnv([lambda: gym.make("CartPole-v1")] * 3, executor="inline")
        >>> observations, infos = envs.reset(seed=7)
        >>> observations.shape
        (3, 4)
        >>> observations, rewards, terminations, truncations, infos =
        envs.step(envs.action_space.sample())
        >>> envs.close()
    """

    #: Whether :meth:`call` refuses ``reset``, ``step`` and ``close``.
    _reserves_calls = True

    def __init__(
        self,
        env_fns: Iterable[EnvFn],
        shared_memory: bool = True,  # noqa: FBT001 - Gymnasium's signature
        copy: bool = True,  # noqa: FBT001 - Gymnasium's signature
        context: Any = None,
        daemon: bool = True,  # noqa: FBT001 - Gymnasium's signature
        worker: Any = None,
        observation_mode: str | tuple[Space[Any], Space[Any]] = "same",
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        max_concurrency: int | None = None,
        *,
        executor: str = "auto",
        num_workers: int | None = None,
        on_done: str = "raise",
        timeout: float | None = None,
        max_slabs: int | None = None,
    ) -> None:
        """Starts the workers and makes the environments."""
        self.autoreset_mode = as_autoreset_mode(autoreset_mode)
        check_choice("on_done", on_done, ("raise", "freeze"))
        if worker is not None:
            raise ValueError(
                "cartwheel cannot use a `worker` function: its workers' loop is native code. Wrap "
                "the environments in `env_fns` instead, or use gymnasium.vector.AsyncVectorEnv."
            )
        self.env_fns = as_env_fns(env_fns)
        self.num_envs = len(self.env_fns)
        self.executor = as_executor(executor, self.num_envs)
        num_workers = as_num_workers(num_workers, max_concurrency, self.num_envs)
        Batching.check_mode(observation_mode)
        timeout = as_timeout(timeout)
        if max_slabs is not None and max_slabs < 2:
            raise ValueError(f"`max_slabs` must be at least 2, got {max_slabs}.")
        self.shared_memory = shared_memory
        self.copy = copy
        self.context = context
        self.daemon = daemon
        self.worker = None
        self.observation_mode = observation_mode
        self.max_concurrency = max_concurrency
        self.on_done = on_done

        spin = os.environ.get("CARTWHEEL_SPIN", "1") != "0"
        self._crew = self._start(1 if self.executor == "inline" else num_workers, spin=spin)
        try:
            self._open(timeout, max_slabs, spin=spin)
        except BaseException:
            self._crew.give_up()
            raise
        self.num_workers = len(self._crew.shards)
        self._finalizer = weakref.finalize(self, _shut_down, self._pool, self._crew, os.getpid())

    def _start(self, num_workers: int, *, spin: bool) -> Crew:
        shards = _cartwheel.shards(self.num_envs, num_workers)
        name = type(self).__name__
        start: launch.Start
        if self.executor == "inline":
            start = functools.partial(launch.start_inline, reserve=self._reserves_calls)
        elif self.executor == "thread":
            start = functools.partial(launch.start_threads, name=name, spin=spin)
        else:
            start = functools.partial(
                launch.start_processes,
                name=name,
                context=as_context(self.context),
                daemon=self.daemon,
                spin=spin,
            )
        return start(self.env_fns, shards)

    def _open(self, timeout: float | None, max_slabs: int | None, *, spin: bool) -> None:
        """Learns the spaces from the workers, lays out the memory, opens the pool."""
        descriptions = self._crew.describe()
        self.metadata = {**descriptions[0]["metadata"], "autoreset_mode": self.autoreset_mode}
        self.render_mode = descriptions[0]["render_mode"]
        pairs = [
            pair if pair is not None else description["spaces"][0]
            for description in descriptions
            for pair in description["spaces"]
        ]
        batching = Batching(type(self).__name__, pairs, self.observation_mode, self.executor)
        self.single_observation_space = batching.single_observation_space
        self.observation_space = batching.observation_space
        self.single_action_space = batching.single_action_space
        self.action_space = batching.action_space

        observations = describe(self.single_observation_space)
        actions = describe_actions(self.single_action_space)
        bytes_a_row = row_bytes(observations)
        if max_slabs is None:
            fitting = _SLAB_BYTES // max(1, bytes_a_row * self.num_envs)
            max_slabs = min(max(fitting, _FEWEST_SLABS), _MOST_SLABS)
        most_rows = max(last - first for first, last in self._crew.shards)
        info_bytes = most_rows * (bytes_a_row + 2048)
        plan = {
            "observations": observations,
            "actions": actions,
            "shards": self._crew.shards,
            "max_slabs": max_slabs,
            "info_bytes": min(max(info_bytes, _LEAST_INFO_BYTES), _MOST_INFO_BYTES),
        }
        shard = {
            "observations": observations,
            "actions": actions,
            "autoreset_mode": self.autoreset_mode.value,
            "freeze": self.on_done == "freeze",
        }
        memory, own_shard = launch.set_up(self._crew, plan, shard)
        self._link = Link(self, self._crew, self.action_space, timeout)
        self._pool = _cartwheel.Pool(
            memory,
            observations,
            actions,
            shard=own_shard,
            pids=[process.pid for process in self._crew.processes],
            objects=self._crew.objects,
            link=self._link,
            class_name=type(self).__name__,
            timeout=timeout,
            columnar=type(self)._add_info is gym.vector.VectorEnv._add_info,
            spin=spin,
            inline=self.executor == "inline",
        )

    # Stepping

    def reset(
        self,
        *,
        seed: int | list[int | None] | tuple[int | None, ...] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[ObsType, dict[str, Any]]:
        """Resets every environment, or those of a mask.

        Args:
            seed: ``None`` lets every environment go on with its random numbers (or choose them, the
                first time); an integer ``s`` seeds row ``i`` by ``s + i``; a list holds one seed or
                ``None`` a row.
            options: Handed to every environment's ``reset``, as a copy. The entry ``"reset_mask"``,
                a ``bool`` array of shape ``(num_envs,)`` with at least one true value, is not
                handed on: it says which rows are reset. The others keep their state and repeat
                their last observation (zeros before their first reset). The dictionary itself is
                not changed.

        Returns:
            Observations and infos. Pending autoresets and frozen rows end with an explicit reset.

        Raises:
            ValueError: A list of seeds or a mask of the wrong length, or a mask without a true
            value.
            TypeError: A mask that is no ``bool`` array, or seeds that are no list.
            gymnasium.error.Error: A seed that is no Python integer, or negative.
        """
        self.reset_async(seed=seed, options=options)
        return self.reset_wait(timeout=self._link.timeout)

    def reset_async(
        self,
        seed: int | list[int | None] | tuple[int | None, ...] | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        """Begins a reset; :meth:`reset_wait` gives its result. Arguments as for :meth:`reset`.

        A call that timed out or was interrupted is waited for and dropped first.

        Raises:
            gymnasium.error.AlreadyPendingCallError: Another call has not been waited for.
        """
        self._pool.check("reset_async", idle=False)
        seeds = as_seeds(seed, self.num_envs)
        self._pool.discard_late(self._link.timeout)
        self._pool.check("reset_async", idle=True)
        mask = as_reset_mask(options, self.num_envs)
        rest = options
        if options is not None and mask is not None:
            rest = {key: value for key, value in options.items() if key != "reset_mask"}
        resets = [
            {"seed": row_seed, "options": dict(rest) if isinstance(rest, dict) else rest}
            if mask is None or mask[row]
            else None
            for row, row_seed in enumerate(seeds)
        ]
        self._pool.reset_async(self._link.pack(self._link.split(resets)))

    def reset_wait(self, timeout: float | None = None) -> tuple[ObsType, dict[str, Any]]:
        """Waits for a reset.

        Args:
            timeout: Seconds to wait, or ``None`` for as long as it takes.

        Raises:
            gymnasium.error.NoAsyncCallError: There was no :meth:`reset_async`.
            multiprocessing.TimeoutError: Environments are still busy; wait again, or reset again.
        """
        result: tuple[ObsType, dict[str, Any]] = self._pool.reset_wait(as_timeout(timeout))
        return result

    def step(
        self, actions: ActType
    ) -> tuple[ObsType, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Steps every environment.

        Args:
            actions: One action per environment, as :attr:`action_space` has them: an array, a list,
                or dictionaries and tuples of those. An environment receives a copy of its row, of
                the batch's own dtype; Python integers where the batch is a list of them.

        Returns:
            Observations, rewards (``float64``), terminations, truncations (``bool``), infos.

        Raises:
            ValueError: Not one action per environment, or actions of the wrong shape.
            TypeError: Actions that are no batch, or of another kind of dtype than their space.
            EpisodeOverError: Rows are over and the autoreset mode is ``DISABLED``.
            gymnasium.error.ResetNeeded: Rows raised in an earlier call and have not been reset.
            Exception: What the environment of the lowest failing row raised. The other rows have
                been stepped; those that raised must be reset.
        """
        result: tuple[Any, Any, Any, Any, dict[str, Any]] = self._pool.step(actions)
        return result

    def step_async(self, actions: ActType) -> None:
        """Begins a step, with the arguments of :meth:`step`; :meth:`step_wait` gives its result.

        Raises:
            gymnasium.error.AlreadyPendingCallError: Another call has not been waited for.
        """
        self._pool.step_async(actions)

    def step_wait(
        self, timeout: float | None = None
    ) -> tuple[ObsType, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Waits for a step.

        Args:
            timeout: Seconds to wait, or ``None`` for as long as it takes.

        Raises:
            gymnasium.error.NoAsyncCallError: There was no :meth:`step_async`.
            multiprocessing.TimeoutError: Environments are still busy; wait again, or reset.
        """
        seconds = as_timeout(timeout)
        result: tuple[Any, Any, Any, Any, dict[str, Any]] = self._pool.step_wait(seconds)
        return result

    # Attributes

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Calls a method of every environment, or reads an attribute that cannot be called.

        Args:
            name: Looked up through the environments' wrappers.
            *args: Arguments of the method.
            **kwargs: Keyword arguments of the method.

        Returns:
            One result a row.

        Raises:
            AttributeError: An environment has no such attribute.
            ValueError: ``name`` is ``reset``, ``step`` or ``close``.
        """
        self.call_async(name, *args, **kwargs)
        return self.call_wait(timeout=self._link.timeout)

    def call_async(self, name: str, /, *args: Any, **kwargs: Any) -> None:
        """Begins a call; :meth:`call_wait` gives its results. Arguments as for :meth:`call`."""
        self._begin_call("call", name, [(args, kwargs)] * self.num_envs, "call_async")

    def call_wait(self, timeout: float | None = None) -> tuple[Any, ...]:
        """Waits for a call.

        Args:
            timeout: Seconds to wait, or ``None`` for as long as it takes.

        Raises:
            gymnasium.error.NoAsyncCallError: There was no :meth:`call_async`.
            multiprocessing.TimeoutError: Environments are still busy; wait again, or reset.
        """
        results: tuple[Any, ...] = self._pool.call_wait(as_timeout(timeout))
        return results

    def _begin_call(self, task: str, name: str, parts: list[Any], calling: str) -> None:
        self._pool.check(calling, idle=True)
        contents = [(task, name, part) for part in self._link.split(parts)]
        self._pool.call_async(self._link.pack(contents), calling)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Reads an attribute of every environment; like Gymnasium, calls it if it can be called."""
        return self.call(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Sets an attribute of every environment, where its wrappers have it.

        Args:
            name: The attribute.
            values: A list or tuple with one value a row; anything else is set everywhere.

        Raises:
            ValueError: A list or tuple of the wrong length.
        """
        self._pool.check("set_attr", idle=False)
        if not isinstance(values, list | tuple):
            values = [values] * self.num_envs
        if len(values) != self.num_envs:
            raise ValueError(
                "Values must be a list or tuple with length equal to the number of environments. "
                f"Got `{len(values)}` values for {self.num_envs} environments."
            )
        self._begin_call("set_attr", name, list(values), "set_attr")
        self.call_wait(timeout=self._link.timeout)

    def render(self) -> tuple[Any, ...]:
        """Renders every environment; one frame a row."""
        return self.call("render")

    @property  # type: ignore[misc]
    def np_random(self) -> tuple[np.random.Generator, ...]:  # type: ignore[override]
        """Every environment's random number generator; copies, when it lives in another process."""
        return self.get_attr("np_random")

    @property
    def np_random_seed(self) -> tuple[int, ...]:  # type: ignore[override]
        """The seed of every environment's random number generator."""
        return self.get_attr("np_random_seed")

    @property
    def processes(self) -> list[Any]:
        """The worker processes; empty for other executors."""
        return self._crew.processes

    @property
    def envs(self) -> list[Any]:
        """The environments themselves, for the ``inline`` executor.

        Raises:
            AttributeError: They live in other threads or processes.
        """
        if self._crew.local is None:
            raise AttributeError(
                f"the environments of executor={self.executor!r} are not in this thread; use call, "
                "get_attr and set_attr"
            )
        return self._crew.local.envs

    # The end

    def close_extras(self, timeout: float | None = None, terminate: bool = False) -> None:  # noqa: FBT001
        """Closes the environments and ends the workers, whatever state they are in.

        Args:
            timeout: Seconds that environments get to finish a pending call and to close; 5 by
                default. Worker processes that take longer are killed.
            terminate: Do not wait at all.
        """
        if not self._finalizer.alive:
            return
        grace = 0.0 if terminate else _CLOSE_GRACE if timeout is None else timeout
        pending = self._pool.pending()
        if pending is not None and os.getpid() == self._crew.owner:
            logger.warn(
                f"Calling `close` while waiting for a pending call to `{pending}` to complete."
            )
            self._await_pending(pending, grace)
        self._finalizer.detach()
        _shut_down(self._pool, self._crew, os.getpid(), grace)

    def _await_pending(self, pending: str, grace: float) -> None:
        with contextlib.suppress(Exception):  # closing is what was asked for
            getattr(self, f"{pending}_wait")(grace)


def _shut_down(pool: _cartwheel.Pool, crew: Crew, owner: int, grace: float = _CLOSE_GRACE) -> None:
    """Ends pool and workers; also when the object is collected or the interpreter exits."""
    if os.getpid() != crew.owner or owner != crew.owner:
        return
    pool.close(grace)
    crew.join(grace=1.0)
