"""Vector environments over Gymnasium environments written in Python.

This file is above 500 lines because it has the documentation of every argument.
"""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any

import gymnasium as gym
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from cartwheel._cartwheel import Pool, shards
from cartwheel._internal.arguments import (
    as_bool,
    as_context,
    as_env_fns,
    as_executor,
    as_num_workers,
    as_timeout,
    check_max_batches,
)
from cartwheel._internal.literals import States, check_choice
from cartwheel._internal.logging import LOGGER, reminder_s
from cartwheel._internal.rewards import common_reward_space
from cartwheel._internal.spaces import Batching
from cartwheel._internal.suggestions import checks_keywords, names_methods
from cartwheel.vector.base import LAST_GRACE, PoolVectorEnv
from cartwheel.vector.control_calls import ControlCalls
from cartwheel.vector.episode_rules import Rules
from cartwheel.vector.forks import make_private_on_fork
from cartwheel.vector.memory_plan import spins
from cartwheel.vector.pool_owner import ActType, ObsType
from cartwheel.vector.worker_choice import choose_workers
from cartwheel.workers import launch
from cartwheel.workers.callbacks import WorkerCallbacks
from cartwheel.workers.channels import Deadline
from cartwheel.workers.envs.one_env import check_distinct
from cartwheel.workers.restart_policy import RestartPolicy
from cartwheel.workers.retirement import as_memory_limit, check_memory

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np

    from cartwheel._cartwheel import _WorkerCallbacks
    from cartwheel._internal.arguments import EnvFn
    from cartwheel._internal.literals import (
        Executor,
        FinalNames,
        FinalObs,
        Mode,
        NumWorkers,
        ObservationMode,
        OnDone,
        OnError,
        OnTimeout,
        OnWorkerDeath,
    )
    from cartwheel.workers.group import WorkerGroup


@names_methods
class VectorEnv(
    ControlCalls[ObsType, ActType],
    PoolVectorEnv[ObsType, ActType],
    gym.vector.VectorEnv[ObsType, ActType, Any],
):
    """Steps many Gymnasium environments at once; replaces ``gymnasium.vector.AsyncVectorEnv``.

    Example:
        >>> import gymnasium as gym, cartwheel
        >>> envs = cartwheel.VectorEnv([lambda: gym.make("CartPole-v1")] * 3)
        >>> observations, infos = envs.reset(seed=7)
        >>> observations.shape
        (3, 4)
        >>> actions = envs.action_space.sample()
        >>> observations, rewards, terminations, truncations, infos = envs.step(actions)
        >>> envs.close()

    The arguments are those of ``AsyncVectorEnv``, in the same order. Values, infos, spaces, seeds
    and errors are Gymnasium's; ``docs/gymnasium-differences.md`` lists the exceptions.
    Each worker process runs several environments and writes their results into shared memory.

    Row ``i`` is environment ``i``: ``env_fns[i]`` makes it, and entry ``i`` of every array and
    tuple is its own. A batch of some rows names its environments in ``infos["env_index"]``.

    Arrays. Observations have the shape ``(num_envs, *shape)`` and the dtype of their space. Rewards
    are ``float64`` and flags are ``bool``, both of shape ``(num_envs,)``. Where environments have a
    ``reward_space``, a ``Box`` of shape ``(k,)``, a reward is an array, and rewards have the shape
    ``(num_envs, k)``, with zeros in rows that are only reset. All arrays are writable, and never
    overwritten: an array keeps its values for as long as it, or a view of it, is referenced, also
    after :meth:`close`. Those of a whole batch begin at multiples of 64 bytes, as
    ``jax.numpy.from_dlpack`` needs them to copy nothing. They are views: of shared memory if
    observations are large, or of one allocation for all small arrays of a batch. So
    ``flags.owndata`` is false, ``resize`` in place is refused, and an array that was made read-only
    stays so. A row that is kept keeps its whole batch, and rewards or flags keep observations of up
    to 4096 bytes; copy what is kept for long. Small arrays without references are reused for a
    later batch, so an ``id`` may be that of an earlier array.

    Failures. By default the exception of an environment is raised here, with the worker's traceback
    and the row; ``reset`` recovers. The death of a worker is a :class:`~cartwheel.WorkerDiedError`.
    With ``on_error="restart"``, ``on_worker_death="restart"`` and ``on_timeout="restart"`` a
    failure truncates the episodes that it affects, and the other rows continue. ``docs/faults.md``
    describes the results of each row.

    Wrappers of ``gymnasium.wrappers.vector`` work, with Gymnasium's limits, which
    ``docs/wrappers.md`` lists: some refuse ``SAME_STEP`` or ``DISABLED``, and none understands row
    numbers without ``full_batch=True``. They do not pass on :meth:`send`, :meth:`recv`,
    :meth:`rollout`, :meth:`stats` and :meth:`call`: call them on ``envs.unwrapped``. Those of
    ``cartwheel.wrappers`` have no such limits.

    Args:
        env_fns: Functions that make the environments, one function for each environment; at least
            one. The workers call them. With ``spawn`` and ``forkserver`` they are pickled by
            ``cloudpickle``. Each call must return a new environment, not that of another row.
        shared_memory: Accepted for compatibility. Everything of fixed shape goes through shared
            memory.
        copy: Accepted for compatibility. Arrays never change after they are returned, with either
            value. Code that relies on the same object from each call, as with ``copy=False`` in
            Gymnasium, must keep that object itself.
        context: Start method of worker processes (``"fork"``, ``"forkserver"``, ``"spawn"``), a
            ``multiprocessing`` context, or ``None`` for Python's default.
        daemon: Whether worker processes are daemonic. Daemonic processes cannot have children.
            Workers end with the caller's process in either case.
        worker: Must be ``None``. The loop of the workers is native and cannot be replaced.
        observation_mode: ``"same"``: all observation spaces are equal. ``"different"``: they share
            shape and dtype, and their bounds are batched. A pair of spaces: the batched space and
            the single space.
        autoreset_mode: When a finished environment restarts: a ``gymnasium.vector.AutoresetMode``,
            its value (``"SameStep"``) or its name in lower case (``"same_step"``).
        max_concurrency: Upper bound of ``num_workers``.
        executor: Where environments run. ``"process"``: in worker processes. ``"thread"``: in
            threads, for environments that release the GIL and for builds of Python without a GIL;
            the environments must be thread-safe, except that only one renders at a time.
            ``"inline"``: in the calling thread. ``"auto"``: ``"inline"`` for one environment, on
            one processor (with ``num_workers="auto"``: unless environments wait), and in a daemonic
            process, unless ``on_worker_death`` or ``on_timeout`` is ``"restart"``; otherwise
            ``"process"``. The attribute ``executor`` and ``repr`` have the chosen one. In worker
            processes ``OMP_NUM_THREADS``, ``MKL_NUM_THREADS`` and the like are 1 unless they are
            set, because there is a process for each processor already.
        num_workers: Number of processes or threads. The default is one for each usable processor,
            and at most one for each environment. ``"auto"``: more if environments wait instead of
            computing, for a server, a GPU or a sleep. To find out, ``env_fns[0]`` makes one more
            environment first, in a worker of its own, which is stepped with random actions for half
            a second and closed. :attr:`Stats.worker_choice` of :meth:`stats` has the number and the
            reason. Results do not depend on the number of workers.
        batch_size: Rows of a batch that :meth:`recv` returns; by default all rows. With fewer,
            :meth:`recv`, :meth:`step` and :meth:`reset` return the rows that finish first. The
            batched spaces then have ``batch_size`` rows, and :meth:`step` needs ``env_index``,
            which names the rows of the actions.
        on_done: The effect of a step of a finished environment in the mode ``DISABLED``.
            ``"raise"``: it raises an :class:`~cartwheel.EpisodeOverError`. ``"freeze"``: the row
            repeats its last observation and its flags, with reward 0, until it is reset.
        on_error: The effect of an ``Exception`` of an environment. ``"raise"``: it is raised here,
            and the row must be reset. ``"restart"``: the environment is closed, its function makes
            another, and the episode is truncated. ``infos["env_error"]`` of the row has the type
            and the text of the exception.
        on_worker_death: The effect of the death of a worker process. ``"raise"``: it raises a
            :class:`~cartwheel.WorkerDiedError`, after which only :meth:`close` works.
            ``"restart"``: another process makes the environments again, and their episodes are
            truncated. ``infos["worker_restarted"]`` of these rows is true. ``executor="auto"`` then
            chooses ``"process"``: with the other executors, a crash of an environment ends the
            program.
        on_timeout: The effect of a worker that hangs. ``"raise"``: the call raises a
            :class:`~cartwheel.WorkerTimeoutError` and stays pending: wait for its result, or call
            :meth:`reset`. ``"restart"``: a worker process that holds work and finishes no reset,
            step or control call (no row, if rows were sent) for ``timeout`` seconds is killed and
            restarted, as after its death; needs ``timeout`` and ``executor="process"``, which
            ``"auto"`` then chooses.
        max_restarts: How often one environment, or one worker, is replaced. The next failure is
            raised as with ``"raise"``. ``None``: no limit.
        max_episodes_per_worker: Episodes after which a worker process ends and another one makes
            its environment again, as ``maxtasksperchild`` of ``multiprocessing.Pool``, so that a
            simulator that leaks stays small. Needs a worker for each row, which is then the
            default. The results are those of the same process, and ``infos["restarted"]`` is true
            in the reset; attributes that were set are lost. The random numbers of the new
            environment follow from the row's last seed, if it had one.
        max_worker_memory: Bytes, or a text such as ``"4GiB"``: likewise, before the first episode
            at whose beginning a worker process has more resident memory.
        timeout: Seconds that the construction, and each ``reset``, ``step`` or control call, may
            take; ``None``: no limit, and so is any time-out of 31 years or more. With ``"inline"``
            nothing interrupts a constructor or a step of an environment. A ``timeout`` that is
            passed to a single call always raises.
        max_batches: Upper bound of the batches of observations that are kept as views. Further
            batches are copies, after one warning. The default is as many as fit into 1 GiB, at
            least 8 and at most 1024; the maximum is 1,048,576.
        max_episode_steps: Steps after which an episode is truncated, in addition to limits that the
            environments have themselves; ``None``: no further limit.
        ignore_terminations: Whether an episode is over only when it is truncated. Terminations are
            then reported as false, and environments are stepped past them; infos, such as
            ``success``, do not change. Needs ``max_episode_steps``, or environments that are
            known to truncate: every one has the wrapper ``TimeLimit``, or a ``spec`` with a limit,
            as from ``gymnasium.make``. (A :class:`~cartwheel.NativeEnv` cannot be stepped past its
            termination; :class:`~cartwheel.NativeVectorEnv` can.)
        action_repeat: How many times each step repeats its action. It stops at the end of the
            episode. Rewards are summed in ``float64``; the observation and the info of the last
            repetition are returned, all others are dropped. ``max_episode_steps`` counts every
            repetition. Resets are not repeated. If an environment fails, the whole step has failed.
        staggered_reset: Whether rows begin at different places in their episodes after a reset of
            all rows (without ``"reset_mask"`` or ``"env_index"``), so that truncations do not all
            fall on the same step: row ``i`` counts as having made a number of steps from 0 to
            ``max_episode_steps - 1`` already. The number is a function of the row's seed
            (SplitMix64), or comes from the system if the row gets no seed; the environment's
            random numbers are not used. Other resets begin at 0, as do those of
            :func:`~cartwheel.evaluate` and of collectors that count episodes. Wrappers report the
            first episodes as they are, shorter than the others. Needs ``max_episode_steps``.
        final_obs: The form of final observations in the mode ``SAME_STEP``. ``"object"``, as in
            Gymnasium: in steps in which an episode ends, ``infos["final_obs"]`` is an array of
            objects. ``"dense"``: in every step it is the batch of the true next observations of all
            rows, in the form of :attr:`observation_space`, with the mask ``infos["_final_obs"]`` of
            the rows that ended; ``final_info`` and ``_final_info`` are there in every step, too.
            This form is several times cheaper if many rows end, and needs observations of fixed
            shape. A terminal observation that does not fit the space then counts as a failure of
            the step. A rollout keeps no final observations, and they are copies while it records.
        final_names: ``"maniskill"`` adds ManiSkill's names ``final_observation`` and
            ``_final_observation`` for the arrays ``final_obs`` and ``_final_obs``.
        full_batch: Whether a reset with row numbers (``options={"env_index": rows}`` or
            ``"env_idx"``) returns the full batch of all rows, as in ManiSkill. Other rows
            repeat their last observation, as with a ``"reset_mask"``.
        action_mask: The key under which :meth:`action_masks` finds masks of actions: a part of a
            ``Dict`` observation space, or a key of infos. By default environments may show masks as
            ``"action_mask"``: masks in infos are then noticed if the first infos have them.
            ``None``: there are no masks.
        states: How :meth:`state_dict` and :meth:`get_state` save environments. ``"methods"``: by
            their ``get_state()`` and ``set_state(state)``; others are refused. ``"pickle"``: those
            without these methods by their attributes, as ``pickle`` saves an object. That is right
            if everything that later steps depend on is in the attributes and can be pickled.

    Raises:
        IndexError: ``env_fns`` is empty.
        TypeError: An entry of ``env_fns`` is not callable, does not return an environment or cannot
            be sent to a worker; ``observation_mode`` holds something other than spaces; or a switch
            such as ``full_batch`` is not a ``bool``.
        ValueError: An argument has an unsupported value, a step limit is needed and missing, or two
            functions return the same environment.
        RuntimeError: Spaces, or shapes of rewards, differ where they must be equal; or this process
            cannot start worker processes, because it is daemonic or its main module has no
            ``if __name__ == "__main__":``.
        OSError: The hard limit does not let this process open as many files as the worker processes
            need. (The soft limit is raised.)
        MemoryError: The control group or the machine has less memory than the batches need.
        WorkerDiedError: A worker process ended while it made its environments.
        WorkerTimeoutError: The construction took longer than ``timeout``.
        Exception: What an environment function raises, with its row in a note.
    """

    #: Whether :meth:`call` refuses ``reset``, ``step`` and ``close``.
    _reserves_calls = True

    @checks_keywords
    def __init__(
        self,
        env_fns: Iterable[EnvFn],
        shared_memory: bool = True,  # noqa: FBT001 - Gymnasium's signature
        copy: bool = True,  # noqa: FBT001 - Gymnasium's signature
        context: Any = None,
        daemon: bool = True,  # noqa: FBT001 - Gymnasium's signature
        worker: Any = None,
        observation_mode: ObservationMode = "same",
        autoreset_mode: Mode = AutoresetMode.NEXT_STEP,
        max_concurrency: int | None = None,
        *,
        executor: Executor = "auto",
        num_workers: NumWorkers = None,
        batch_size: int | None = None,
        on_done: OnDone = "raise",
        on_error: OnError = "raise",
        on_worker_death: OnWorkerDeath = "raise",
        on_timeout: OnTimeout = "raise",
        max_restarts: int | None = 10,
        max_episodes_per_worker: int | None = None,
        max_worker_memory: int | str | None = None,
        timeout: float | None = None,
        max_batches: int | None = None,
        max_episode_steps: int | None = None,
        ignore_terminations: bool = False,
        action_repeat: int = 1,
        staggered_reset: bool = False,
        final_obs: FinalObs = "object",
        final_names: FinalNames = "gymnasium",
        full_batch: bool = False,
        action_mask: str | None = "action_mask",
        states: States = "methods",
    ) -> None:
        timeout = as_timeout(timeout)
        self.restart_policy = RestartPolicy(
            on_error,
            on_worker_death,
            on_timeout,
            timeout,
            max_restarts,
            max_episodes_per_worker,
            as_memory_limit(max_worker_memory),
        )
        self._rules = Rules.from_keywords(
            max_episode_steps, ignore_terminations, action_repeat, staggered_reset
        )
        if worker is not None:
            raise ValueError(
                "cartwheel cannot use a `worker` function: its workers' loop is native code. Wrap "
                "the environments in `env_fns` instead, or use gymnasium.vector.AsyncVectorEnv."
            )
        self.env_fns = as_env_fns(env_fns)
        self._set_batches(
            len(self.env_fns),
            batch_size,
            full_batch=full_batch,
            autoreset_mode=autoreset_mode,
            on_done=on_done,
            final_obs=final_obs,
            final_names=final_names,
            action_mask=action_mask,
        )
        if self.batch_size < self.num_envs and observation_mode != "same":
            raise ValueError(
                "`batch_size` below the number of environments needs `observation_mode='same'`."
            )
        Batching.check_mode(observation_mode)
        as_context(context)
        check_max_batches(max_batches)
        check_choice("states", states, States)
        for name, value in (("shared_memory", shared_memory), ("copy", copy), ("daemon", daemon)):
            if isinstance(value, str):  # such as "process", which is an executor
                as_bool(name, value)
        self.shared_memory = shared_memory
        self.copy = copy
        self.context = context
        self.daemon = daemon
        self.worker = None
        self.observation_mode = observation_mode
        self.max_concurrency = max_concurrency
        self.states: States = states

        spin, reminder = spins(), reminder_s()
        deadline = Deadline(timeout)
        chosen = self._choose_workers(executor, num_workers, deadline)
        self._group = self._start(chosen, spin=spin)
        try:
            self._open(deadline, max_batches, spin=spin, reminder=reminder)
        except BaseException:
            self._group.give_up()
            raise
        self.num_workers = len(self._group.shards)
        #: The environments of the ``inline`` executor; kept here for use after :meth:`close`.
        self._envs = None if self._group.local is None else self._group.local.envs
        self._opened(_shut_down, self._group)
        LOGGER.debug(
            "%s of %d environments, executor=%r: %d workers %s",
            self._class_name,
            self.num_envs,
            self.executor,
            self.num_workers,
            [process.pid for process in self._group.processes],
        )

    def _choose_workers(
        self, executor: Executor, num_workers: NumWorkers, deadline: Deadline
    ) -> int:
        """Sets the executor; returns the number of workers, for which ``"auto"`` measures one."""
        policy = self.restart_policy
        choose_executor = functools.partial(
            as_executor,
            executor,
            self.num_envs,
            on_timeout=policy.on_timeout,
            on_worker_death=policy.on_worker_death,
            retires=policy.retires,
        )
        self.executor = choose_executor(measures=num_workers == "auto")
        chosen = as_num_workers(
            num_workers, self.max_concurrency, self.num_envs, retires=policy.retires, measures=True
        )
        if num_workers == "auto":
            self._worker_choice = choose_workers(
                VectorEnv,
                self.env_fns[0],
                self.num_envs,
                chosen,
                executor=self.executor,
                context=self.context,
                daemon=self.daemon,
                retires=policy.retires,
                deadline=deadline,
            )
            chosen = self._worker_choice.num_workers
            if chosen == 1:
                self.executor = choose_executor()
        return 1 if self.executor == "inline" else chosen

    def _start(self, num_workers: int, *, spin: bool) -> WorkerGroup:
        ranges, policy = shards(self.num_envs, num_workers), self.restart_policy
        if self.executor == "inline":
            return launch.start_inline(
                self.env_fns, ranges, reserve=self._reserves_calls, restart_policy=policy
            )
        if self.executor == "thread":
            return launch.start_threads(
                self.env_fns, ranges, name=self._class_name, spin=spin, restart_policy=policy
            )
        return launch.start_processes(
            self.env_fns,
            ranges,
            name=self._class_name,
            context=as_context(self.context),
            daemon=self.daemon,
            spin=spin,
            restart_policy=policy,
        )

    def _check_descriptions(self, descriptions: list[dict[str, Any]]) -> None:
        """Raises if the workers made environments that do not fit together."""
        identities = [one for found in descriptions for one in found["same"]]
        check_distinct(self.env_fns, identities, is_remote=self.executor == "process")
        check_memory(
            dict(enumerate(found["memory"] for found in descriptions)),
            self.restart_policy.max_worker_memory,
            ". With context='fork' a worker counts what it shares with this process.",
        )
        self._rules.check_limits([limit for found in descriptions for limit in found["limits"]])

    def _read_descriptions(self, descriptions: list[dict[str, Any]]) -> None:
        """Sets the metadata, the spaces of an environment and those of a batch."""
        self.metadata = {**descriptions[0]["metadata"], "autoreset_mode": self.autoreset_mode}
        self.render_mode = descriptions[0]["render_mode"]
        pairs = [
            pair if pair is not None else description["spaces"][0]
            for description in descriptions
            for pair in description["spaces"]
        ]
        batching = Batching(self._class_name, pairs, self.observation_mode, self.executor)
        self.single_observation_space = batching.single_observation_space
        self.observation_space = batching.observation_space
        self.single_action_space = batching.single_action_space
        self.action_space = batching.action_space
        self.reward_space = common_reward_space(
            [space for found in descriptions for space in found["reward_spaces"]]
        )
        if self.batch_size < self.num_envs:
            self.observation_space = batch_space(self.single_observation_space, self.batch_size)
            self.action_space = batch_space(self.single_action_space, self.batch_size)

    def _open(
        self, deadline: Deadline, max_batches: int | None, *, spin: bool, reminder: float | None
    ) -> None:
        """Receives the spaces from the workers, makes the memory and opens the pool."""
        descriptions = self._group.describe(deadline)
        self._check_descriptions(descriptions)
        self._read_descriptions(descriptions)
        plan, masks = self._plan_memory(self._group.shards, max_batches)
        of_rows = {
            "autoreset_mode": self.autoreset_mode.value,
            "freeze": self.on_done == "freeze",
            "rules": self._rules.as_dict(),
        }
        memory, own_shard = launch.set_up(self._group, plan, of_rows)
        callbacks: _WorkerCallbacks = WorkerCallbacks(
            self, self._group, self.action_space, self.restart_policy.call_timeout, self.states
        )
        self._callbacks = callbacks
        try:
            self._pool = Pool(
                memory,
                plan["observations"],
                plan["actions"],
                shard=own_shard,
                pids=[process.pid for process in self._group.processes],
                objects=self._group.objects,
                channels=self._group.channels,
                callbacks=callbacks,
                class_name=self._class_name,
                timeout=self.restart_policy.call_timeout,
                columnar=type(self)._add_info is gym.vector.VectorEnv._add_info,
                spin=spin,
                inline=self.executor == "inline",
                restart=self.restart_policy.resumes,
                hang_limit=self.restart_policy.hang_limit,
                reminder=reminder,
                maniskill_names=self.final_names == "maniskill",
                reward_width=plan["reward_width"],
                masks=masks,
            )
        except ProcessLookupError:  # of a worker that has ended since it described its environments
            self._group.check_alive()
            raise
        try:
            launch.let_threads_serve(self._group)
            self._group.wait_until_ready(deadline)
        except BaseException:
            self._pool.close(LAST_GRACE)
            raise
        if self.executor == "process":
            make_private_on_fork(self._pool)

    # Attributes

    # Gymnasium has attributes of these names, which mypy does not let a property replace.
    @property  # type: ignore[misc]
    def np_random(self) -> tuple[np.random.Generator, ...]:  # type: ignore[override]
        """The random number generator of each environment; copies with worker processes."""
        return self._called("np_random", "np_random")

    @property
    def np_random_seed(self) -> tuple[int, ...]:  # type: ignore[override]
        """The seeds of the environments' random number generators."""
        return self._called("np_random_seed", "np_random_seed")

    @property
    def processes(self) -> list[Any]:
        """The worker processes, one for each worker; empty for other executors."""
        return self._group.processes

    @property
    def envs(self) -> list[Any]:
        """The environments themselves, for the ``inline`` executor; also after :meth:`close`.

        Raises:
            AttributeError: The environments are in other threads or processes.
        """
        if self._envs is None:
            raise AttributeError(
                f"the environments of executor={self.executor!r} are not in this thread; use call, "
                "get_attr and set_attr"
            )
        return self._envs


def _shut_down(pool: Pool, group: WorkerGroup, grace: float) -> None:
    join = functools.partial(group.join, grace=min(grace, 1.0))
    is_idle = pool.pending() is None and not pool.has_abandoned()
    with contextlib.suppress(Exception):  # a broken pool raises
        is_idle = is_idle and not pool.in_flight()
    late = pool.close(grace, join)
    if late is None:
        group.hang_up()  # a signal handler, or an environment, within a call of this thread
        return
    if is_idle and grace > 0:  # otherwise a call has timed out, or the caller does not wait
        group.log_late(late, grace)
    join()
