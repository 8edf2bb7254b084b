"""Rows of an ``asyncio`` program: each is awaited alone, and none blocks the event loop."""

from __future__ import annotations

import asyncio
import operator
import os
from typing import TYPE_CHECKING, Any, NoReturn

from gymnasium.spaces import Space

from cartwheel._cartwheel import usable_cpus
from cartwheel._internal.arguments import (
    as_bool,
    as_context,
    as_env_fns,
    as_integer,
    as_timeout,
    check_dictionary,
)
from cartwheel._internal.process import Finalizer, slices
from cartwheel._internal.reset_arguments import as_seed
from cartwheel._internal.suggestions import checks_keywords, shown
from cartwheel.awaitable.lease import Acquiring
from cartwheel.awaitable.requests import Settings
from cartwheel.awaitable.rows import Rows
from cartwheel.vector.stats import Stats
from cartwheel.workers.launch import pickled_apart
from cartwheel.workers.restart_policy import RestartPolicy
from cartwheel.workers.retirement import as_memory_limit
from cartwheel.workers.serving.awaited_env import Asked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from typing_extensions import Self

    from cartwheel._internal.literals import OnError, OnTimeout, OnWorkerDeath
    from cartwheel.awaitable.service import Service

#: The maximum number of seconds that a close takes.
_CLOSE_S = 8.0
#: Modules that the server of ``forkserver`` imports, if it has not started yet.
_PRELOADED = ["__main__", "cartwheel.workers.process", "cartwheel.workers.serving.awaited_env"]


class AwaitableEnvs:
    """Environments in processes of their own, whose calls are awaited one by one.

    For agents of language models, browsers, robots and remote simulators: programs of ``asyncio``
    whose environments take long, fail often and do not keep step with each other.

    Example:
        >>> import asyncio, gymnasium as gym, cartwheel
        >>> async def main():
        ...     async with cartwheel.AwaitableEnvs([lambda: gym.make("CartPole-v1")] * 2) as envs:
        ...         observation, info = await envs.reset(1, seed=7)
        ...         observation, reward, terminated, truncated, info = await envs.step(1, 0)
        ...         return observation.shape, reward
        >>> asyncio.run(main())
        ((4,), 1.0)

    Values are those of the single environment: its observation and its info, with their types and
    the order of their keys, a ``float`` and two ``bool``. Every row is a process. Rows do not reset
    themselves: an episode ends, and the next one begins, when the task says so.

    Order. A row does one thing at a time: a second request, while a task awaits the row, raises
    ``gymnasium.error.AlreadyPendingCallError``. Requests to different rows are independent.

    Cancellation. When an ``await`` is cancelled, as by ``asyncio.timeout``, the row finishes what
    it does. The next request to the row waits for that, drops its result or its exception, and acts
    on the state that it left. :meth:`restart` does not wait.

    Failures reach the task that awaits the row, and no other. After an exception of the
    environment, after :class:`~cartwheel.WorkerDiedError` and after :meth:`restart` the row must be
    reset. With ``"restart"`` a failure truncates the episode instead: the step returns the last
    observation, reward 0.0 and ``truncated``, with ``env_error`` (type and text of the exception)
    or ``worker_restarted`` in the info. The next ``reset`` makes a new environment.

    Loops. The object belongs to the event loop of its first ``await``. When that loop has ended,
    another one may use it, and what was in flight counts as cancelled. Loops in several threads
    need an object each.

    Args:
        env_fns: Functions that make the environments, one for each row, at least one. An object
            that is not an environment will do, if it has a method ``reset``: its methods are called
            by :meth:`call`. They are pickled by ``cloudpickle``.
        context: The start method of the processes, ``"forkserver"`` or ``"spawn"``, or a
            ``multiprocessing`` context. Both import the main module of the program, so that a
            script needs ``if __name__ == "__main__":``. ``"fork"`` is refused, because a thread
            always runs.
        daemon: Whether processes are daemonic. Daemonic ones cannot have children.
        spaces: Observation and action space of every row. Rows of these spaces go through shared
            memory. By default the first row makes its environment before the others start, to
            learn its spaces; with ``lazy``, and for rows of other spaces, observations and actions
            travel as pickled objects, which is several times slower for small ones.
        lazy: Whether the process and the environment of a row are made by its first request. By
            default all begin at once.
        start_concurrency: How many processes, and how many environments, are made at the same time;
            by default twice the number of processors, at least 4.
        worker_nice: The amount by which processes lower their priority, 0 to 19, so that the event
            loop gets a processor when all of them compute.
        timeout: Seconds that each request may take, from when it is sent to a row that is ready;
            ``None`` for no limit. A request includes the construction of the environment if the row
            has none.
        on_error: The effect of an ``Exception`` of an environment: ``"raise"`` or ``"restart"``.
        on_worker_death: The effect of the death of a process: ``"raise"`` or ``"restart"``.
        on_timeout: The effect of a request that takes longer than ``timeout``. ``"raise"``:
            :class:`~cartwheel.WorkerTimeoutError`, and the row finishes what it does, as after a
            cancellation; the next request waits for that, ``timeout`` seconds at most.
            ``"restart"``: its process is killed, as after a death.
        max_restarts: How often a failure of each row is not raised; ``None`` for no limit.
            :meth:`restart` does not count.
        max_episodes_per_worker: Episodes after which the next ``reset`` of a row is that of a new
            process, as ``maxtasksperchild`` of ``multiprocessing.Pool``, so that a simulator that
            leaks stays small. Other rows go on. ``info["restarted"]`` is true in that reset. What
            Gymnasium's wrappers gather over many episodes is kept; the random numbers of the new
            environment follow from the row's last seed, if it had one.
        max_worker_memory: Bytes, or a text such as ``"4GiB"``: likewise, by the resident memory of
            the process before a reset, if it has served an episode. Requests to a row whose process
            has more before its first episode raise ``ValueError``.

    Raises:
        IndexError: ``env_fns`` is empty.
        TypeError: An entry of ``env_fns`` is not callable or cannot be pickled, or ``spaces`` is
            not a pair of spaces.
        ValueError: An argument has an unsupported value.
        RuntimeError: This process cannot start processes, because it is daemonic or its main module
            has no ``if __name__ == "__main__":``.
        OSError: The hard limit does not let this process open as many files as the processes need.
    """

    #: What errors advise, because this is not a vector environment.
    _vector_env_instead = (
        "rows of AwaitableEnvs are awaited one by one: make a cartwheel.VectorEnv of the same "
        "functions"
    )

    @checks_keywords
    def __init__(
        self,
        env_fns: Iterable[Callable[[], Any]],
        *,
        context: Any = "forkserver",
        daemon: bool = True,
        spaces: tuple[Space[Any], Space[Any]] | None = None,
        lazy: bool = False,
        start_concurrency: int | None = None,
        worker_nice: int = 10,
        timeout: float | None = None,
        on_error: OnError = "raise",
        on_worker_death: OnWorkerDeath = "raise",
        on_timeout: OnTimeout = "raise",
        max_restarts: int | None = None,
        max_episodes_per_worker: int | None = None,
        max_worker_memory: int | str | None = None,
    ) -> None:
        """Starts the thread that serves the rows, which starts the processes."""
        functions = as_env_fns(env_fns)
        policy = RestartPolicy(
            on_error,
            on_worker_death,
            on_timeout,
            as_timeout(timeout),
            max_restarts,
            max_episodes_per_worker,
            as_memory_limit(max_worker_memory),
        )
        if policy.timeout == 0.0:
            raise ValueError(
                "`timeout` must be positive, or None for no limit: in 0 seconds no request "
                f"succeeds, got {timeout!r}."
            )
        at_once = max(4, 2 * usable_cpus()) if start_concurrency is None else start_concurrency
        settings = Settings(
            name=type(self).__name__,
            context=_context(context),
            daemon=as_bool("daemon", daemon),
            nice=as_integer("worker_nice", worker_nice, 0, limit=19),
            spaces=_as_spaces(spaces),
            lazy=as_bool("lazy", lazy),
            start_concurrency=as_integer("start_concurrency", at_once, 1),
            policy=policy,
        )
        self._num_envs = len(functions)
        self._rows = Rows(pickled_apart(functions), settings)
        self._finalizer = Finalizer(self, _end, self._rows.service)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(num_envs={self._num_envs})"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"{self!r} cannot be pickled or copied: make another one from its functions"
        )

    @property
    def num_envs(self) -> int:
        """The number of rows."""
        return self._num_envs

    @property
    def single_observation_space(self) -> Space[Any]:
        """The observation space of a row.

        Raises:
            AttributeError: No row has made an environment with spaces yet.
        """
        return self._space(0)

    @property
    def single_action_space(self) -> Space[Any]:
        """The action space of a row; raises as :attr:`single_observation_space`."""
        return self._space(1)

    def _space(self, which: int) -> Space[Any]:
        if self._rows.spaces is None:
            raise AttributeError(
                "spaces are known when a row has made its environment: await `reset` of a row "
                "first, or pass `spaces`"
            )
        space: Space[Any] = self._rows.spaces[which]
        return space

    def _row(self, env_index: Any) -> int:
        """Checks a row number."""
        index: int | None
        try:
            index = operator.index(env_index)
        except TypeError:
            index = None
        if index is None or isinstance(env_index, bool):
            raise TypeError(f"`env_index` must be an integer, a row, got {shown(env_index)}")
        if not 0 <= index < self._num_envs:
            raise IndexError(
                f"`env_index` names row {index}; there are rows 0 to {self._num_envs - 1}"
            )
        return index

    async def reset(
        self, env_index: int, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Resets a row, whose process and environment are made if necessary.

        Args:
            env_index: The row.
            seed: The seed for the environment's ``reset``. An object that is not an environment
                gets it only if it is not ``None``, and so ``options``.
            options: The options for it.

        Returns:
            The observation and the info, as the environment returned them. Of an object that is not
            an environment and returns no such pair: what it returned, and an empty dictionary.

        Raises:
            IndexError: There is no such row.
            TypeError: ``env_index`` is not an integer.
            gymnasium.error.AlreadyPendingCallError: Another task awaits the row.
            gymnasium.error.ClosedEnvironmentError: After :meth:`close`.
            gymnasium.error.Error: ``seed`` is negative or not an integer.
            WorkerDiedError: Its process died.
            WorkerTimeoutError: It took longer than ``timeout``, or waited so long for the end of a
                request that was late before.
            Exception: The environment or its function raised it.
        """
        index = self._row(env_index)
        check_dictionary("options", options)
        result: tuple[Any, dict[str, Any]]
        result = await self._rows.ask(index, Asked("reset", (as_seed(seed, index), options)))
        return result

    async def step(
        self, env_index: int, action: Any
    ) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Steps a row.

        Args:
            env_index: The row.
            action: The action, which the environment gets with its type. It is not checked.

        Returns:
            Observation, reward, terminated, truncated and info, as the environment returned them.

        Raises:
            gymnasium.error.ResetNeeded: The row was never reset, has failed or was restarted.
            EpisodeOverError: The row's episode is over.
            Exception: As for :meth:`reset`.
        """
        result: tuple[Any, float, bool, bool, dict[str, Any]]
        result = await self._rows.ask(self._row(env_index), Asked("step", (action,)))
        return result

    async def call(self, env_index: int, name: str, /, *args: Any, **kwargs: Any) -> Any:
        """Calls a method of a row's environment, or reads an attribute that is not callable.

        The environment is made if the row has none. An exception leaves the episode as it is.

        Args:
            env_index: The row.
            name: The method or attribute, which may belong to a wrapper, or have dots. The methods
                ``reset``, ``step`` and ``close`` of an environment are refused; those of another
                object are called.
            *args: Arguments, which are pickled.
            **kwargs: Keyword arguments.

        Returns:
            The result, which is pickled.

        Raises:
            AttributeError: There is no such attribute.
            ValueError: The method is refused.
            Exception: As for :meth:`reset`.
        """
        if not isinstance(name, str):
            raise TypeError(f"`name` must be the name of a method, got {shown(name)}")
        return await self._rows.ask(self._row(env_index), Asked("call", (name, args, kwargs)))

    async def restart(self, env_index: int) -> None:
        """Kills a row's process at once, in any state; another one starts.

        A task that awaits the row gets :class:`~cartwheel.WorkerDiedError`, whatever the policies.
        The row must be reset, which makes its environment.

        Args:
            env_index: The row.

        Raises:
            IndexError: There is no such row.
            TypeError: ``env_index`` is not an integer.
        """
        self._rows.restart(self._row(env_index))

    def acquire(self) -> Acquiring:
        """Lends a row to a task: ``async with envs.acquire() as row: await row.reset()``.

        Tasks get rows in the order in which they asked. Rows that are used by their numbers count
        as free. The state of the row is what its last user left: reset it.

        Returns:
            A context whose ``async with`` gives a :class:`RowLease` and returns the row in the end.
        """
        return Acquiring(self, self._rows)

    def stats(self) -> Stats:
        """Returns steps, resets and times of each row, so far.

        Raises:
            RuntimeError: No row is ready yet.
            gymnasium.error.ClosedEnvironmentError: After :meth:`close`.
        """
        counters = self._rows.service.stats()
        if counters is None:
            raise RuntimeError("there are no counters yet: await `reset` of a row first")
        return Stats(**counters)

    # The end

    def close(self) -> None:
        """Closes the environments and ends the processes; idempotent.

        Tasks that await rows get ``gymnasium.error.ClosedEnvironmentError``. In the thread of a
        running event loop this only begins, so that the loop is not blocked: :meth:`aclose` waits
        for the end. Elsewhere it waits, 8 seconds at most.
        """
        rows, loop = self._rows, self._rows.loop
        rows.refuse()  # also if the loop ends before it calls the function below
        if loop is None or not loop.is_running() or loop is _running_loop():
            rows.close()
        else:
            try:
                loop.call_soon_threadsafe(rows.close)
            except RuntimeError:  # the loop has closed meanwhile
                rows.close()
        _end(rows.service)
        if loop is None or loop.is_closed():
            rows.forget_loop()

    async def aclose(self) -> None:
        """Closes as :meth:`close` does, and waits for the end without blocking the loop."""
        self.close()
        await self._rows.closed()

    def __enter__(self) -> Self:
        """Returns this object, for ``asyncio.run`` inside of the block.

        Raises:
            TypeError: A loop is running, which the end of the block would block.
        """
        if _running_loop() is not None:
            raise TypeError(
                f"use `async with` for {type(self).__name__} where an event loop is running: the "
                "end of a `with` block would block it"
            )
        return self

    def __exit__(self, *_: object) -> None:
        """Closes it, and waits for that."""
        self.close()

    async def __aenter__(self) -> Self:
        """Returns this object."""
        self._rows.enter()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Closes it, and waits for that."""
        await self.aclose()


def _end(service: Service) -> None:
    """Ends the processes when the object is collected, or at the end of the program."""
    if os.getpid() != service.owner:  # a forked child, where the thread does not exist
        return
    service.close()
    if _running_loop() is None:
        any(service.closed.wait(left) for left in slices(_CLOSE_S))


def _running_loop() -> asyncio.AbstractEventLoop | None:
    """Returns the event loop that runs in this thread, if there is one."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _as_spaces(spaces: Any) -> tuple[Any, Any] | None:
    if spaces is None:
        return None
    is_pair = isinstance(spaces, tuple | list) and len(spaces) == 2
    if not is_pair or not all(isinstance(space, Space) for space in spaces):
        raise TypeError(
            "`spaces` must be a pair of spaces, (observation_space, action_space), got "
            f"{shown(spaces)}."
        )
    return spaces[0], spaces[1]


def _context(context: Any) -> Any:
    """Returns the context, and lets a server of processes import what they need."""
    found = as_context(context)
    method = found.get_start_method()
    if method == "fork":
        raise ValueError(
            "`context` 'fork' is unsafe here, because a thread of this object always runs: use "
            "'forkserver' or 'spawn'."
        )
    if method == "forkserver":
        from multiprocessing import forkserver

        server: Any = forkserver._forkserver
        if getattr(server, "_preload_modules", None) == [
            "__main__"
        ]:  # the default: the program has not chosen
            found.set_forkserver_preload(_PRELOADED)
    return found
