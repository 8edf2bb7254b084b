"""The base class of all vector environments of cartwheel: steps, rollouts and the end.

Its bases have the other methods: :mod:`~cartwheel.vector.resets`,
:mod:`~cartwheel.vector.sent_rows` and :mod:`~cartwheel.vector.saved_rows`.
"""

from __future__ import annotations

import contextlib
import sys
import time
from typing import TYPE_CHECKING, Any, NoReturn

import gymnasium as gym
import numpy as np
from gymnasium import logger

from cartwheel._internal.arguments import (
    FOREVER_S,
    as_autoreset_mode,
    as_batch_size,
    as_full_batch,
    as_integer,
    as_timeout,
    check_finals,
)
from cartwheel._internal.closing import ClosesAfterWith
from cartwheel._internal.literals import OnDone, check_choice
from cartwheel._internal.process import Finalizer
from cartwheel._internal.suggestions import names_methods
from cartwheel._internal.versions import keep_open
from cartwheel._internal.weak_set import ConcurrentWeakSet
from cartwheel.vector.action_masks import MaskedRows, as_mask_key, mask_source
from cartwheel.vector.memory_plan import plan_memory
from cartwheel.vector.pool_owner import ActType, ObsType, nothing_in_flight
from cartwheel.vector.rollout_arrays import RolloutArrays
from cartwheel.vector.saved_rows import SavedRows
from cartwheel.vector.sent_rows import SentRows
from cartwheel.vector.stats import Stats
from cartwheel.workers.inheritance import free_in_workers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gymnasium.spaces import Box
    from numpy.typing import NDArray
    from typing_extensions import Self

    from cartwheel._internal.literals import Executor, FinalNames, FinalObs, Mode
    from cartwheel.vector.worker_choice import WorkerChoice

#: Seconds that environments get to close before their workers are killed.
CLOSE_GRACE = 5.0
#: Seconds that environments get to close while an abandoned call is still pending: the wait for it
#: has timed out, or Ctrl-C ended it.
ABANDONED_GRACE = 0.1
#: Minimum seconds that workers get to close after a pending call has used up the time to close.
LAST_GRACE = 1.0


@names_methods
class PoolVectorEnv(
    ClosesAfterWith,
    SavedRows[ObsType, ActType],
    SentRows[ObsType, ActType],
    MaskedRows[ObsType, ActType],
    gym.vector.VectorEnv[ObsType, ActType, Any],
):
    """A vector environment over a native pool; its subclasses make the pool.

    Some trainers, such as skrl, recognize an environment by the direct bases of its class and of
    ``unwrapped``. So every vector environment of cartwheel has ``gymnasium.vector.VectorEnv`` as a
    direct base, too. Your own subclass is recognized if it also names that base.
    """

    #: Whether some of the rows can be stepped. Wrappers that preserve this have the attribute, too.
    steps_rows = True
    #: Whether rows can be sent and received. Wrappers that preserve this have the attribute, too.
    sends_rows = True
    #: How the workers run; never ``"auto"``.
    executor: Executor
    #: The form of final observations.
    final_obs: FinalObs
    #: The space of the rewards of one environment, if they are arrays, as in MO-Gymnasium. It is a
    #: ``Box`` of shape ``(k,)``; rewards are then ``float64`` of shape ``(num_envs, k)``. ``None``
    #: if rewards are numbers. Rewards of native environments are numbers.
    reward_space: Box | None = None
    #: The number of workers that ``num_workers="auto"`` chose.
    _worker_choice: WorkerChoice | None = None
    #: What uses the memory of batches and ends before that memory does, by the name of its device.
    _attached: dict[str, Any]
    _finalizer: Finalizer
    #: The name in errors, logs, ``repr`` and the names of workers: that of the class, but for parts
    #: of objects of another class, which users know.
    _class_name: str
    __del__ = keep_open

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Names a subclass, and lets it override one half of a step or a reset.

        ``step`` of ``AsyncVectorEnv`` calls ``step_async`` and ``step_wait``, and ``reset``
        likewise. Here each is one call, unless a subclass has a half of its own.
        """
        super().__init_subclass__(**keywords)
        if "_class_name" not in vars(cls):
            cls._class_name = cls.__name__
        for whole, in_halves in (("step", _step_in_halves), ("reset", _reset_in_halves)):
            halves = (f"{whole}_async", f"{whole}_wait")
            is_own = [getattr(cls, name) is not getattr(PoolVectorEnv, name) for name in halves]
            if any(is_own) and getattr(cls, whole) is getattr(PoolVectorEnv, whole):
                setattr(cls, whole, in_halves)

    def _set_batches(
        self,
        num_envs: int,
        batch_size: int | None,
        *,
        full_batch: bool,
        autoreset_mode: Mode,
        on_done: OnDone,
        final_obs: FinalObs,
        final_names: FinalNames,
        action_mask: str | None,
    ) -> None:
        """Checks and sets the rows of a batch and what it shows of them."""
        self._autoreset_mode = as_autoreset_mode(autoreset_mode)
        check_choice("on_done", on_done, OnDone)
        check_finals(final_obs, final_names, self.autoreset_mode)
        self.num_envs = num_envs
        self.batch_size = as_batch_size(batch_size, num_envs)
        self.full_batch = as_full_batch(full_batch, self.batch_size, num_envs)
        self.on_done = on_done
        self.final_obs = final_obs
        self.final_names = final_names
        self.action_mask = as_mask_key(action_mask)

    def _plan_memory(
        self, shards: list[tuple[int, int]], max_batches: int | None, *, native: bool = False
    ) -> tuple[dict[str, Any], tuple[str, int, int | None, bool] | None]:
        """Returns the keywords of ``Memory`` for the spaces, and where masks of actions are."""
        spaces = self.single_observation_space, self.single_action_space
        plan = plan_memory(
            spaces,
            shards,
            self.batch_size,
            max_batches,
            dense_finals=self.final_obs == "dense",
            reward_space=self.reward_space,
            native=native,
        )
        observation, action = spaces
        return plan, mask_source(self.action_mask, observation, plan["observations"], action)

    def _opened(self, shut_down: Callable[..., None], *args: Any) -> None:
        """Registers the function that ends the workers.

        It runs at :meth:`close`, when this object is collected, or when this process ends.

        Args:
            shut_down: Called with the pool, ``args`` and the seconds that workers get to close.
            *args: Must not refer to this object; otherwise only a garbage collection ends the
                workers.
        """
        free_in_workers(self._pool)
        self._sources = ConcurrentWeakSet()
        self._next_resets = {}
        self._attached = {}
        self._finalizer = Finalizer(self, _end, shut_down, self._pool, args, self._attached)

    def __repr__(self) -> str:
        parts = [] if self._shown_id is None else [repr(self._shown_id)]
        parts.append(f"num_envs={self.num_envs}")
        if self.batch_size < self.num_envs:
            parts.append(f"batch_size={self.batch_size}")
        parts.append(f"autoreset_mode={self.autoreset_mode.name.lower()!r}")
        parts.append(f"executor={self.executor!r}")
        return f"{self._class_name}({', '.join(parts)})"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"{self!r} cannot be pickled or copied: pass a function that makes one, such as "
            "`lambda: cartwheel.make_vec(id, num_envs)`."
        )

    @property
    def _shown_id(self) -> str | None:
        """The id in ``repr`` and errors."""
        return None if self.spec is None else self.spec.id

    # Stepping

    def step(
        self, actions: ActType, env_index: Any = None
    ) -> tuple[ObsType, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Steps every environment, or the rows of ``env_index``.

        Args:
            actions: One action for each environment, in the form of :attr:`action_space`: an array,
                a list or another iterable, or dictionaries and tuples of them. Each environment
                receives a copy of its action with the dtype of ``actions``; Python integers if
                ``actions`` is a list of them. Parts that the space does not have are ignored.
            env_index: One row number for each action. Only these rows are stepped, as by
                ``send(actions, env_index)`` and then ``recv()``. Required with a ``batch_size``
                below ``num_envs``: pass ``infos["env_index"]`` of the batch that the actions
                answer.

        Returns:
            Observations, rewards (``float64``), terminations, truncations (``bool``), infos; the
            arrays have one entry for each row. With ``env_index`` they are a batch as from
            :meth:`recv`, in the order of ``env_index`` if ``batch_size`` is ``num_envs`` and no
            other row is in flight.

        Raises:
            ValueError: The number or the shape of the actions is wrong, or ``env_index`` is
                required and missing. Nothing was stepped.
            TypeError: The actions are not a batch, or the kind of their dtype differs from their
                space's.
            EpisodeOverError: Rows are over and the autoreset mode is ``DISABLED``.
            gymnasium.error.ResetNeeded: Rows raised in an earlier call and have not been reset
                since then, or are native and were never reset.
            gymnasium.error.AlreadyPendingCallError: A call is pending, or rows are in flight.
            gymnasium.error.ClosedEnvironmentError: After :meth:`close`.
            WorkerDiedError: A worker process ended.
            WorkerTimeoutError: The step took longer than ``timeout``. It is still pending.
            Exception: The environment of the lowest failing row raised it. The other rows were
                stepped; the rows that raised must be reset.
        """
        return self._pool.step(actions, env_index)

    def step_async(self, actions: ActType, env_index: Any = None) -> None:
        """Begins a step with the arguments of :meth:`step`; :meth:`step_wait` returns its result.

        Raises:
            ValueError: As for :meth:`step`.
            gymnasium.error.AlreadyPendingCallError: Another call has not been waited for.
        """
        self._pool.step_async(actions, env_index)

    def step_wait(
        self, timeout: float | None = None
    ) -> tuple[ObsType, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Waits for a step.

        Args:
            timeout: Seconds to wait, or ``None`` for as long as it takes.

        Returns:
            The same five values as :meth:`step`.

        Raises:
            gymnasium.error.NoAsyncCallError: There was no :meth:`step_async`.
            WorkerTimeoutError: Environments are still busy; wait again, or reset.
            Exception: As for :meth:`step`.
        """
        seconds = as_timeout(timeout)
        return self._pool.step_wait(seconds)

    def call_wait(self, timeout: float | None = None) -> tuple[Any, ...]:
        """Waits for a call.

        Args:
            timeout: Seconds to wait, or ``None`` for as long as it takes.

        Returns:
            One result for each row of the call, in their order.

        Raises:
            gymnasium.error.NoAsyncCallError: There was no ``call_async``.
            WorkerTimeoutError: Environments are still busy; wait again, or reset.
            Exception: The environment of the lowest failing row raised it.
        """
        return self._pool.call_wait(as_timeout(timeout))

    @property
    def timeout(self) -> float | None:
        """Seconds that a reset, a step or a control call may take; ``None``: no limit."""
        seconds: float | None = self._callbacks.timeout
        return seconds

    # Rollouts

    @property
    def fills_rollouts(self) -> bool:
        """Whether the arrays of :meth:`rollout` have the results of :meth:`step`, without a copy.

        False if a subclass overrides ``step`` or ``reset``, and in wrappers that change results.
        """
        kind = type(self)
        return kind.step is PoolVectorEnv.step and kind.reset is PoolVectorEnv.reset

    def rollout(self, num_steps: int) -> RolloutArrays[ObsType]:
        """Records the next ``num_steps`` steps into contiguous arrays, without a copy.

        The first observation of the rollout is the present batch, so the last batch of one rollout
        is the first of the next. A reset before the first step replaces that batch. A reset between
        later steps is not recorded; in the mode ``DISABLED``, copy the reset rows yourself. An
        exception of an environment ends the rollout. :meth:`step` returns the same values as
        without a rollout; large observations are views of the rollout's arrays.

        Every batch of a rollout has all rows. So while a rollout is recorded, steps of some rows
        are refused, and before its first step also resets of some rows by ``"env_index"``. A
        rollout ends after its last step, by :meth:`end_rollout`, by another rollout, or by
        :func:`~cartwheel.evaluate`.

        Args:
            num_steps: The number of steps, from 1 to 65534.

        Returns:
            The arrays. When no reference to them is left, the next rollout uses their memory.

        Raises:
            ValueError: ``num_steps`` is out of range, observations have no fixed shape, or
                ``batch_size`` is less than ``num_envs``.
            MemoryError: There is not enough memory; nothing was allocated.
            gymnasium.error.AlreadyPendingCallError: A call is pending or rows are in flight.
        """
        slab = self._pool.new_rollout(as_integer("num_steps", num_steps, 1, limit=65534))
        self._callbacks.attach_rollout(self._pool, slab)
        arrays = self._pool.record(slab)
        # A reset without rows repeats every row's observation, which is the present batch.
        no_rows = np.zeros(self.num_envs, dtype=np.bool_)
        messages = self._callbacks.pack_reset([None] * self.num_envs, no_rows, None)
        self._pool.reset(messages, no_rows, "rollout", self._callbacks.timeout)
        return RolloutArrays(*arrays)

    def end_rollout(self) -> None:
        """Ends the present rollout, if there is one; it keeps the recorded steps.

        Raises:
            gymnasium.error.AlreadyPendingCallError: Another thread is in a call.
        """
        self._pool.stop_recording()

    @contextlib.contextmanager
    def frozen(self) -> Iterator[Self]:
        """Keeps statistics of wrappers as they are; a vector environment itself has none.

        See :meth:`cartwheel.wrappers.VectorWrapper.frozen`, so that a loop works with wrappers and
        without.

        Raises:
            gymnasium.error.AlreadyPendingCallError: A call is pending or rows are in flight, at the
                beginning or at the end.
        """
        with nothing_in_flight(self, "frozen"):
            yield self

    def stats(self) -> Stats:
        """Returns steps, resets and times of each row and worker, waits and memory, so far.

        This method copies some numbers and delays no call. It may be called while calls are pending
        or rows are in flight, and from another thread while this thread waits.

        Raises:
            gymnasium.error.ClosedEnvironmentError: After :meth:`close`, which frees the counters.
            cartwheel.ForkedProcessError: In a forked child.
        """
        return Stats(**self._pool.stats(), worker_choice=self._worker_choice)

    # Closing

    def close_extras(self, timeout: float | None = None, terminate: bool = False) -> None:  # noqa: FBT001 - Gymnasium's signature
        """Closes the environments and ends the workers, in any state.

        ``close`` calls it with its keywords, as in ``envs.close(timeout=60)``.

        Args:
            timeout: Seconds that environments get to finish a pending call and to close; 5 by
                default. If a pending call uses up this time, workers get one more second to close,
                or ``timeout`` seconds if that is less. Worker processes that take longer are
                killed.
            terminate: Do not wait at all.

        Raises:
            TypeError: ``timeout`` is not a number; nothing was closed.
            ValueError: ``timeout`` is negative; nothing was closed.
        """
        if not self._finalizer.alive:
            return
        seconds = CLOSE_GRACE if timeout is None else as_timeout(timeout)
        grace = 0.0 if terminate else FOREVER_S if seconds is None else seconds
        began = time.monotonic()
        pending = self._pool.pending()
        try:
            # Ctrl-C, or what else ends the program, says itself why the call is not waited for.
            is_ending = not isinstance(sys.exc_info()[1], Exception | None)
            if pending is not None and not is_ending:
                logger.warn(
                    f"Calling `close` while waiting for a pending call to `{pending}` to complete."
                )
        finally:  # a program may turn warnings into errors
            if pending is not None:
                with contextlib.suppress(Exception):  # closing continues in any case
                    getattr(self, f"{pending}_wait")(grace)
            left = grace - (time.monotonic() - began)
            self._finalizer(max(left, min(grace, LAST_GRACE)))


def _step_in_halves(self: Any, actions: Any, env_index: Any = None) -> Any:
    if env_index is None:
        self.step_async(actions)
    else:
        self.step_async(actions, env_index)
    return self.step_wait()


def _reset_in_halves(self: Any, *, seed: Any = None, options: Any = None) -> Any:
    self.reset_async(seed=seed, options=options)
    return self.reset_wait()


def _end(
    shut_down: Callable[..., None],
    pool: Any,
    args: tuple[Any, ...],
    attached: dict[str, Any],
    grace: float | None = None,
) -> None:
    """Ends a pool; without ``grace`` at the end of the process, or of the last reference."""
    for each in attached.values():
        each.end()
    if grace is None:
        grace = ABANDONED_GRACE if pool.has_abandoned() else CLOSE_GRACE
    shut_down(pool, *args, grace)
