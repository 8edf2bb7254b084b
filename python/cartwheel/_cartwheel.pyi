"""The native side of cartwheel. Private: users import :mod:`cartwheel`."""

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, Protocol, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Descriptor",
    "Memory",
    "NativeEnvs",
    "Pool",
    "RolloutSlab",
    "Shard",
    "SlabLease",
    "block_rows",
    "discounted",
    "fine_shards",
    "fork_begins",
    "fork_ended",
    "fork_ended_in_child",
    "gae",
    "is_first",
    "lambda_returns",
    "masked_mean",
    "masked_normalize",
    "n_step",
    "native_envs",
    "next_values",
    "plain_loop",
    "retrace",
    "serve",
    "shards",
    "usable_cpus",
    "valid_mask",
    "vtrace",
    "watch_parent",
]

# What native code calls by name: the classes that Python hands in have these methods. Arguments are
# positional. A message is announced by a triple: the worker or shard, the row that it is about, and
# its number.

#: A space by nested tuples, as `cartwheel.spaces.describe` makes them.
_Description: TypeAlias = tuple[Any, ...]
_Fault: TypeAlias = tuple[int, int | None, int]
_Rest: TypeAlias = tuple[int, int, int]

class _Worker(Protocol):
    """The environments of a shard, and everything that is not the step path."""

    @property
    def envs(self) -> list[Any]:
        """The environments, in the order of their rows."""

    @property
    def pickle(self) -> Callable[[Any], bytes]:
        """Pickles what a stream of infos has no form for."""

    def ready(self) -> None:
        """Tells the caller that tasks may come."""

    def receive_actions(self) -> list[Any]:
        """The actions of a step whose action space has no fixed shape."""

    def receive_reset(self) -> list[dict[str, Any] | None]:
        """For each row the keywords of ``reset``, or ``None`` where it is left as it is."""

    def take_action(self, row: int, /) -> Any:
        """The action of a row that was sent."""

    def take_reset(self, row: int, /) -> dict[str, Any]:
        """The keywords of ``reset`` for a row that was sent."""

    def replace(self, row: int, failure: BaseException, /) -> str | None:
        """Makes the environment of a row again: what failed, or ``None`` if that is raised."""

    def end_copy(self, failure: BaseException | None, /) -> NoReturn:
        """Ends a process that an environment forked and that came back from it."""

    def answer(self) -> None:
        """Carries out the control call that comes next."""

    def answer_failed(self, error: BaseException, /) -> None:
        """Answers that control call by an error of no environment."""

    def send_answer(self) -> None:
        """Announces what was answered."""

    def send_faults(self, faults: list[tuple[int, BaseException]], /) -> None:
        """Announces exceptions, with their rows."""

    def send_rest(self, stream: bytes, /) -> None:
        """Announces infos that do not fit into shared memory."""

    def close(self) -> None:
        """Closes the environments."""

class _Link(Protocol):
    """The methods that every pool calls in Python."""

    def post(self, number: int, messages: list[Any], /) -> None:
        """Sends each worker its message; with the same number again, only what was not sent."""

    def post_some(self, number: int, messages: list[Any], /) -> None:
        """Likewise for the workers that the messages name."""

    def raise_faults(self, announced: list[_Fault], received: list[int] | None, /) -> None:
        """Raises the fault of the lowest row; ``received`` are the rows of a batch of sent ones."""

    def receive_rest(self, announced: _Rest, /) -> bytes | None:
        """Infos that did not fit into shared memory; ``None`` if they were lost."""

    def receive_answers(
        self, answers: dict[int, list[Any]], announced: list[_Rest], /
    ) -> tuple[Any, ...] | None:
        """Answers to a control call, one a row; ``None`` if some have to be asked again."""

    def discard(self, faults: list[_Fault], rests: list[_Rest], /) -> None:
        """Receives and drops what was announced."""

    def add_info(
        self, infos: dict[str, Any], info: dict[str, Any], place: int, rows: int, /
    ) -> dict[str, Any]:
        """Adds one info to those of a batch of ``rows``, by ``VectorEnv._add_info``."""

    def still_waiting(self, call: str, seconds: float, owed: list[tuple[int, int]], /) -> None:
        """Warns that ``call`` has waited so long for the rows of ``owed``."""

class _WorkersLink(_Link, Protocol):
    """The methods that a pool of Python environments calls too."""

    def pack_actions(self, actions: Any, /) -> list[Any]:
        """The messages of a step whose action space has no fixed shape."""

    def pack_sent_actions(self, actions: Any, rows: list[int], /) -> list[Any]:
        """The messages of actions that are sent to rows and that memory cannot hold."""

    def batch_opaque(self, space: Any, found: dict[int, Any], rows: int, /) -> Any:
        """A batch of values, by row, of a space without a fixed shape."""

    def asked_again(self, answers: dict[int, list[Any]], /) -> list[Any]:
        """The messages for workers that died before they answered a control call."""

    def hang_up(self) -> None:
        """Ends every channel: workers that wait for a message raise."""

    def worker_died(self, worker: int, pid: int, rows: list[int], phase: str, /) -> Exception:
        """The exception for a worker that was found dead."""

    def bury(self, worker: int, /) -> None:
        """Waits until nothing is left of a dead worker that could serve."""

    def restart(
        self,
        worker: int,
        phase: str,
        over: list[bool],
        resetting: list[int],
        announced: int,
        /,
    ) -> int:
        """Starts a process in the place of a dead one; its process id."""

    def post_again(self, worker: int, /) -> None:
        """Sends a restarted worker its message of the pending call."""

class _Transitions(Protocol):
    """The arrays of an estimator that are checked already, read attribute by attribute."""

    @property
    def rewards(self) -> NDArray[Any]: ...
    @property
    def terminated(self) -> NDArray[np.bool_]: ...
    @property
    def truncated(self) -> NDArray[np.bool_]: ...
    @property
    def valid(self) -> NDArray[np.bool_] | None: ...
    @property
    def gamma(self) -> float | NDArray[Any]: ...
    @property
    def bootstrap(self) -> str: ...
    @property
    def num_threads(self) -> int | None: ...

@final
class SlabLease:
    """Keeps a slab leased: the ``base`` of every array that shows it."""

@final
class Memory:
    """The memory of a pool: control words, actions, infos and slabs."""

    def __new__(
        cls,
        observations: _Description,
        actions: _Description,
        shards: Sequence[tuple[int, int]],
        *,
        batch_size: int,
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
            batch_size: Rows of a batch.
            max_slabs: Most batches that may exist at once, at least one more than can be filled at
                one time.
            info_bytes: Bytes for the infos of each worker.
            descriptors: Four descriptors, which are taken over.
            shared: Whether workers are processes.

        Raises:
            ValueError: The plan is impossible, or the descriptors belong to another one.
            MemoryError: There is not enough memory.
            OSError: The system refuses memory or descriptors for another reason.
        """

    def attach_rollout(self, index: int, steps: int, descriptor: int) -> None:
        """Maps, in a worker process, a rollout that the pool made; takes ``descriptor`` over."""

    def rollouts(self) -> list[tuple[int, int, int]]:
        """The rollouts that a new worker process has to attach.

        Returns:
            Number, steps and a descriptor of each, which is the caller's to close.
        """

    def descriptors(self) -> list[int]:
        """The descriptors to send to worker processes; empty unless shared."""

@final
class Shard:
    """What the environments of a worker are driven by."""

    def __new__(
        cls,
        worker: _Worker,
        observations: _Description,
        actions: _Description,
        *,
        autoreset_mode: str,
        freeze: bool,
        objects: Sequence[list[Any]] | None = None,
        over: Sequence[bool] | None = None,
    ) -> Shard:
        """Describes a shard.

        Args:
            worker: Holds the environments.
            observations: The single observation space.
            actions: The single action space.
            autoreset_mode: The value of an ``AutoresetMode``.
            freeze: Whether over rows repeat their last frame when the mode is ``"Disabled"``.
            objects: A list for each row, to hold what its infos refer to; ``None`` to pickle it.
            over: In the place of a worker that died, which of its rows were over: each row tells
                of its loss once. ``None`` in a worker from the beginning.

        Raises:
            ValueError: There is no such mode.
        """

@final
class NativeEnvs:
    """Native environments, until a pool takes them, and their mailboxes afterwards."""

    def __new__(
        cls,
        env_id: str,
        options: str,
        shards: Sequence[tuple[int, int]],
        *,
        autoreset_mode: str,
        freeze: bool,
        max_episode_steps: int | None,
        replacements: int = 0,
    ) -> NativeEnvs:
        """Makes environments.

        Args:
            env_id: One of :func:`native_envs`.
            options: Keywords of the environment, a JSON object.
            shards: First and last row, exclusive, of each shard.
            autoreset_mode: The value of an ``AutoresetMode``.
            freeze: Whether over rows repeat their last frame when the mode is ``"Disabled"``.
            max_episode_steps: Steps after which an episode is truncated.
            replacements: How often an environment is replaced after a panic; beyond it the panic
                is an exception.

        Raises:
            ValueError: There is no such environment or option, or a value is invalid.
        """

    def spaces(self) -> tuple[Any, Any]:
        """The single observation and action space, as nested tuples: kind, then its arguments."""

    def parameters(self) -> list[str]:
        """The names of the parameters."""

    def check_reset_options(self, options: str) -> None:
        """Raises ``ValueError`` unless a reset can have these options, a JSON object."""

    def post_reset(
        self, shard: int, mask: Sequence[bool], seeds: Sequence[int | None], options: str | None
    ) -> None:
        """Leaves the details of the next reset with one shard: which rows, with which seeds."""

    def post_row_reset(self, shard: int, row: int, seed: int | None, options: str | None) -> None:
        """Leaves the details of the reset of one row that is going to be sent."""

    def post_request(self, shard: int, name: str, values: Sequence[Any] | None) -> None:
        """Leaves a request to read a parameter, or to set it to one value a row."""

    def post_streams(self, shard: int, streams: Sequence[tuple[int, Any]] | None) -> None:
        """Leaves a request to read the random streams, or to set them, one a row.

        A stream is its seed, ``-1`` when it is unknown, and the ``state`` of a ``PCG64``.
        """

    def take_answer(self, shard: int) -> list[Any] | None:
        """Takes the answer to a request: one value or stream a row, ``None`` after setting."""

    def take_faults(self, shard: int) -> list[tuple[int, BaseException]]:
        """Takes the faults of the last task: rows and exceptions."""

    def take_fault(self, shard: int, row: int) -> tuple[int, BaseException] | None:
        """Takes the fault of one row that was sent and received."""

    def take_rest(self, shard: int, row: int) -> bytes:
        """Takes infos that did not fit into their room and begin with row ``row``."""

@final
class RolloutSlab:
    """The memory of a rollout, for as long as it or one of its arrays is referenced."""

    @property
    def index(self) -> int:
        """Its number, by which workers know it."""

    @property
    def steps(self) -> int:
        """Steps that it has room for."""

    def take_descriptor(self) -> Descriptor | None:
        """The descriptor that worker processes have to attach; once."""

@final
class Descriptor:
    """An open file, which is closed with the last reference to this object."""

    def fileno(self) -> int:
        """The number of its descriptor."""

@final
class Pool:
    """Steps and resets the environments of all workers, from one thread at a time.

    Every method raises ``gymnasium.error.ClosedEnvironmentError`` after :meth:`close`,
    ``gymnasium.error.AlreadyPendingCallError`` while another thread is inside,
    ``cartwheel.ForkedProcessError`` in a forked child, and ``cartwheel.BrokenPoolError`` once a
    call has panicked, unless it says otherwise.
    """

    def __new__(
        cls,
        memory: Memory,
        observations: _Description,
        actions: _Description,
        *,
        shard: Shard | NativeEnvs,
        pids: Sequence[int],
        objects: Sequence[Sequence[list[Any]] | None],
        link: _WorkersLink | _Link,
        class_name: str,
        timeout: float | None,
        columnar: bool,
        spin: bool,
        inline: bool,
        restart: bool = False,
        reminder: float | None = None,
        num_threads: int = 1,
        affinity_offset: int | None = None,
    ) -> Pool:
        """Opens a pool over workers that serve, or are about to.

        Args:
            memory: The workers' memory.
            observations: The single observation space.
            actions: The single action space.
            shard: Native environments; or the caller's own shard, of which only the settings
                count for other executors.
            pids: Process ids of worker processes; empty otherwise.
            objects: Per worker, a list for each row with what its infos refer to; ``None`` for all
                workers that pickle it.
            link: Sends and receives what does not go through shared memory; a ``_WorkersLink``
                where ``shard`` is a :class:`Shard`.
            class_name: Named in errors.
            timeout: Seconds that a synchronous step may take.
            columnar: Whether infos may be gathered without ``VectorEnv._add_info``.
            spin: Whether it may look for results before sleeping.
            inline: Whether the calling thread steps ``shard`` itself.
            restart: Whether ``link`` may put a process in the place of one that died.
            reminder: Seconds after which a call that waits has ``link`` say so, again and again.
            num_threads: Threads that step native environments, the calling one included.
            affinity_offset: Processor of the first further thread, to pin them.
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
        """The call that has not been waited for.

        ``None`` too while another thread is inside, and when the pool is broken.
        """

    def give_up(self) -> None:
        """Lets a reset drop what is pending or in flight: the caller does not wait for it."""

    def discard_late(self, timeout: float | None = None) -> None:
        """Waits for a call that was given up after a timeout or an interrupt, and drops it."""

    def send(self, actions: Any, rows: Any = None) -> None:
        """Checks and copies actions for some rows, or all, and begins to step them."""

    def send_reset(self, rows: Sequence[int], messages: Sequence[tuple[int, Any]]) -> None:
        """Begins to reset some rows, with messages for their workers."""

    def recv(self, timeout: float | None = None) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Waits for the next batch of rows that were sent, as ``VectorEnv.recv`` describes it."""

    def recv_resets(self, timeout: float | None = None) -> tuple[Any, dict[str, Any]]:
        """Waits for the next batch of rows that were reset; refused while rows step."""

    def step_rows(self, actions: Any, rows: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Sends actions to some rows and receives a batch."""

    def in_flight(self) -> list[int]:
        """The rows that were sent and not received."""

    def count_episodes(self, autoreset_mode: str) -> None:
        """Counts the steps of episodes from now on, and names the rows of batches as EnvPool does.

        ``infos`` of :meth:`recv` have ``env_id``, ``players`` (with ``env_id``) and
        ``elapsed_step`` (all ``int32``) in place of ``env_index``, and rows without an episode are
        not stepped: they raise ``gymnasium.error.ResetNeeded``.
        """

    def elapsed(self) -> list[int]:
        """Of each row, steps of the episode to which its last reward and flags belong."""

    def without_episode(self) -> list[int]:
        """Rows that were never reset, or whose last result was lost to an exception."""

    def begin_episodes(self, rows: Any) -> None:
        """Notes which rows were reset by :meth:`reset_async`."""

    def lose(self, rows: Any) -> None:
        """Notes that the last results of rows will not be received."""

    def new_rollout(self, steps: int) -> RolloutSlab:
        """Takes a rollout of ``steps`` steps, a used one that is free if there is one.

        Raises:
            ValueError: Observations have no fixed shape, batches have not all rows, or there are
                too many steps.
            MemoryError: There is not enough memory; nothing was taken.
        """

    def record(self, rollout: RolloutSlab) -> tuple[Any, Any, Any, Any]:
        """Records the next batches in a rollout that every worker knows; its arrays."""

    def stop_recording(self) -> None:
        """Ends a recording; further batches go to slabs."""

    def recorded_steps(self) -> int | None:
        """Steps of the rollout that is being recorded, with one that is pending."""

    def num_slabs(self) -> int:
        """Batches of observations that have memory behind them, those in reserve included."""

    def stats(self) -> dict[str, Any]:
        """What was counted so far, by the names of the fields of ``cartwheel.Stats``.

        From any thread, also while another one is inside.
        """

    def part(self) -> None:
        """Makes the batches that a forked child sees its own; only there, and not after a close.

        Raises:
            MemoryError: There is no address space left; they stay shared.
        """

    def close(self, grace: float) -> list[int]:
        """Ends the workers; returns those that did not end within ``grace`` seconds."""

def serve(memory: Memory, index: int, shard: Shard, *, spin: bool) -> None:
    """Serves worker ``index`` until the pool closes it; calls the worker's ``ready`` first."""

def watch_parent(pidfd: int) -> None:
    """Ends this process as soon as the one behind ``pidfd``, which is taken over, is gone."""

def fork_begins() -> None:
    """Tells that the process is about to fork: batches that are held are not reused then."""

def fork_ended() -> None:
    """Tells that the process has forked, or has failed to; for the parent."""

def fork_ended_in_child() -> None:
    """Tells that this process was forked."""

def shards(num_envs: int, num_workers: int) -> list[tuple[int, int]]:
    """Deals rows to workers: first and last row, exclusive, of each; none is empty."""

def fine_shards(num_envs: int, num_workers: int, block: int) -> list[tuple[int, int]]:
    """Deals rows of native environments: several shards for each of several threads.

    They begin at multiples of ``block``, unless there are fewer blocks than threads; rows that are
    left over go to the last one.
    """

def block_rows(env_id: str) -> int:
    """Most rows that a native environment steps at once; 1 where it steps each on its own.

    Raises:
        ValueError: There is no such environment.
    """

def native_envs() -> list[tuple[str, int | None, float | None, str]]:
    """Every native environment: id, step limit, reward threshold, default keywords (JSON)."""

def usable_cpus() -> int:
    """Processors that this process may use, honouring affinity and cgroup quota."""

def plain_loop(
    env_id: str,
    num_envs: int,
    *,
    seconds: float,
    threads: int,
    options: str = "",
    blocks: bool = True,
) -> float:
    """Steps native environments with no interface at all, a loop on each thread, none waiting.

    A loop calls each of its environments in turn with random actions and stores observations,
    rewards and flags. One whose episode is over is reset in its next turn, which counts as a step:
    the same work for each counted step as in autoreset mode ``NEXT_STEP``.

    Args:
        env_id: One of :func:`native_envs`.
        num_envs: Environments of all loops together.
        seconds: How long to step; Ctrl-C has to wait for its end.
        threads: Loops that run at once; at most one an environment.
        options: Keywords of the environment, a JSON object.
        blocks: Step several rows at once where the environment can, as a pool does.

    Returns:
        Environment steps per second, of all loops together.

    Raises:
        ValueError: There is no such environment or option, or a value is invalid.
    """

# Return estimators. Arrays are C-contiguous, of the dtype of the transitions' rewards, and outputs
# share no memory with them; `cartwheel.returns` sees to that. All raise ValueError for shapes that
# do not agree and numbers out of range.

_Floats: TypeAlias = NDArray[Any]
_Flags: TypeAlias = NDArray[np.bool_]

def gae(
    transitions: _Transitions,
    values: _Floats,
    next_values: _Floats,
    lam: float | _Floats,
    normalized: bool,
    out: tuple[_Floats, ...],
) -> None:
    """Advantages and returns; with ``normalized`` those of a finite horizon."""

def lambda_returns(
    transitions: _Transitions, next_values: _Floats, lam: float | _Floats, out: _Floats
) -> None:
    """Lambda-returns."""

def discounted(transitions: _Transitions, next_values: _Floats | None, out: _Floats) -> None:
    """Discounted sums of rewards."""

def n_step(
    transitions: _Transitions, next_values: _Floats | None, n: int, out: tuple[NDArray[Any], ...]
) -> None:
    """Returns, discounts and lengths (``int64``) of windows of up to ``n`` steps."""

def vtrace(
    transitions: _Transitions,
    arrays: tuple[_Floats, ...],
    lam: float | _Floats,
    caps: tuple[float, float, float],
    out: tuple[_Floats, ...],
) -> None:
    """Targets and policy advantages from values, next values and ratios."""

def retrace(
    transitions: _Transitions,
    arrays: tuple[_Floats, ...],
    lam: float | _Floats,
    c_bar: float,
    out: _Floats,
) -> None:
    """Targets from action values, next values and ratios."""

def valid_mask(
    mode: tuple[str, bool], flags: tuple[_Flags, _Flags], prev_done: _Flags, out: _Flags
) -> None:
    """Which rows are transitions; ``mode`` says also whether over rows are frozen."""

def is_first(
    mode: tuple[str, bool],
    flags: tuple[_Flags, _Flags],
    prev_done: _Flags,
    initial: _Flags,
    out: _Flags,
) -> None:
    """Which observations begin an episode."""

def next_values(
    mode: tuple[str, bool],
    values: _Floats,
    flags: tuple[_Flags, _Flags],
    bootstrap: str,
    finals: tuple[_Floats, NDArray[np.int64]] | None,
    out: _Floats,
) -> None:
    """Values of the true next observations."""

def masked_mean(numbers: _Floats, valid: _Flags) -> float:
    """The mean of the numbers, of one dimension, that are valid."""

def masked_normalize(numbers: _Floats, valid: _Flags, epsilon: float, out: _Floats) -> None:
    """The numbers, of one dimension, that are valid, brought to mean 0 and deviation 1."""
