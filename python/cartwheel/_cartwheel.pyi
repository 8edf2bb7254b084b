"""The native side of cartwheel. Private: users import :mod:`cartwheel`.

Above 400 lines: it is the stub of one module, so one file declares every native class and function.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NoReturn, Protocol, TypeAlias, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from typing_extensions import Self, disjoint_base

__all__ = [
    "COPIED_BYTES",
    "FAILED_PHASE",
    "LARGEST_MESSAGE",
    "PLATFORM",
    "VERSION",
    "Channel",
    "Descriptor",
    "EpisodeMetrics",
    "Flag",
    "FrameStack",
    "FusedStep",
    "ImagePlan",
    "Memory",
    "MujocoModel",
    "NativeEnvs",
    "ObservationNormalizer",
    "Pool",
    "RewardNormalizer",
    "RolloutSlab",
    "RowKinds",
    "RowStreams",
    "Shard",
    "SlabLease",
    "TensorExchange",
    "TimedEpisodes",
    "block_rows",
    "cache_draws",
    "copy_fields",
    "described_options",
    "discounted",
    "draw_cached",
    "env_keywords",
    "fine_shards",
    "fork_begins",
    "fork_ended",
    "fork_ended_in_child",
    "gae",
    "is_first",
    "keep_masks",
    "lambda_returns",
    "load_plugin",
    "make_first_uses",
    "masked_mean",
    "masked_normalize",
    "memory_left",
    "n_step",
    "native_envs",
    "next_values",
    "plain_loop",
    "register_plugin",
    "register_pool",
    "require_memory",
    "reset_option_names",
    "retrace",
    "serve",
    "shards",
    "store",
    "usable_cpus",
    "valid_mask",
    "vtrace",
    "watch_parent",
    "xla_handlers",
]

# The protocols of Python classes whose methods native code calls by name. Arguments are positional.
# A message is announced by a triple: the worker or shard, the row that the message is about, and
# the number of the message.

#: A space as nested tuples, made by `cartwheel._internal.spaces`.
_Description: TypeAlias = tuple[Any, ...]
_Fault: TypeAlias = tuple[int, int | None, int]
_Rest: TypeAlias = tuple[int, int, int]

#: Observation, reward, terminated, truncated, the reward as a list if rewards are arrays, and info.
_LastStep: TypeAlias = tuple[Any, float, bool, bool, list[float], Any]

class _Worker(Protocol):
    """Methods of :class:`cartwheel.workers.serving.worker.Worker` that native code calls."""

    @property
    def envs(self) -> list[Any]: ...
    @property
    def pickle(self) -> Callable[[Any], bytes]: ...
    @property
    def largest_infos(self) -> int: ...
    @property
    def channel(self) -> Any: ...
    def ready(self) -> None: ...
    def receive_actions(self) -> list[Any]: ...
    def receive_reset(self) -> list[dict[str, Any] | None]: ...
    def take_action(self, row: int, /) -> Any: ...
    def take_reset(self, row: int, /) -> dict[str, Any] | bytes: ...
    def receive_next_resets(self, rows: list[int], /) -> None: ...
    def take_next_reset(self, row: int, /) -> dict[str, Any] | None: ...
    def restore(self, row: int, state: bytes, /) -> tuple[bytes, list[Any]]: ...
    def save(self, row: int, place: bytes, shown: list[Any], lost: bool, /) -> bool: ...
    @property
    def retires(self) -> bool: ...
    @property
    def handoff(self) -> tuple[Any, _LastStep | None] | None: ...
    def retire(self, row: int, shown: Any, ended: _LastStep | None, /) -> None: ...
    @property
    def drawn(self) -> set[int]: ...
    def draw(self, row: int, /) -> Any: ...
    def replace(self, row: int, failure: BaseException, /) -> str | None: ...
    def end_copy(self, failure: BaseException | None, /) -> NoReturn: ...
    def answer(self) -> list[int] | None: ...
    def answer_failed(self, error: BaseException, /) -> Any: ...
    def pack_answer(self) -> Any: ...
    def pack_faults(self, faults: list[tuple[int, BaseException]], /) -> Any: ...
    def pack_in_advance(self) -> tuple[Any, Any]: ...
    def pack_rest(self, stream: bytes | None, /) -> Any: ...
    def close(self) -> None: ...

class _Callbacks(Protocol):
    """Methods of ``WorkerCallbacks`` and ``NativeCallbacks``, documented there, for every pool."""

    def raise_faults(
        self, announced: list[_Fault], received: list[int] | None, seconds: float | None, /
    ) -> None: ...
    def receive_rest(self, announced: _Rest, seconds: float | None, /) -> bytes | None: ...
    def receive_answers(
        self,
        answers: dict[int, list[Any]],
        announced: list[_Rest],
        rows: Any,
        seconds: float | None,
        /,
    ) -> tuple[Any, ...] | None: ...
    def discard(
        self, faults: list[_Fault], rests: list[_Rest], seconds: float | None, /
    ) -> None: ...
    def add_info(
        self, infos: dict[str, Any], info: dict[str, Any], place: int, rows: int, /
    ) -> dict[str, Any]: ...
    def timed_out(self, call: str, seconds: float, rows: list[int], /) -> Exception: ...
    def still_waiting(
        self, call: str, seconds: float, outstanding: list[tuple[int, int]], /
    ) -> None: ...

class _WorkerCallbacks(_Callbacks, Protocol):
    """Methods of ``WorkerCallbacks``, documented there, for a pool of Python environments."""

    #: The keywords of the last reset that was sent to each row, or its state.
    row_resets: dict[int, Any]

    def pack_actions(self, actions: Any, /) -> list[Any]: ...
    def pack_next_resets(self, rows: list[int], packed: list[Any], /) -> list[Any]: ...
    def pack_sent_actions(self, actions: Any, rows: list[int], /) -> list[Any]: ...
    def batch_opaque(self, space: Any, found: dict[int, Any], rows: int, /) -> Any: ...
    def exceptions_by_row(self, announced: list[_Fault], /) -> dict[int, BaseException]: ...
    def asked_again(self, answers: dict[int, list[Any]], messages: list[Any], /) -> list[Any]: ...
    def worker_died(self, worker: int, pid: int, phase: str, /) -> Exception: ...
    def reap(self, worker: int, /) -> None: ...
    def restart(
        self,
        worker: int,
        pid: int,
        phase: str,
        hung: bool,
        over: list[bool],
        resetting: list[int],
        announced: int,
        attempt: int,
        /,
    ) -> int | None: ...

class _ResetFunction(Protocol):
    """Writes the first states of rows that begin an episode."""

    def __call__(self, rows: list[int], known_as: list[Any], streams: RowStreams, /) -> int | None:
        """Returns the value of the parameter that makes them take effect, or ``None``."""

class _RewardFunction(Protocol):
    """Computes rewards and flags of all rows between the halves of a step."""

    def __call__(
        self, before: bytes, actions: Any, after: Any, stepped: bytes, /
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], list[tuple[str, Any]]]:
        """Returns contiguous arrays of shape ``(num_envs,)``."""

class _Transitions(Protocol):
    """The checked arrays of an estimator."""

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
    """Keeps a slab leased: the ``base`` of every array that is a view of it."""

    def results(self) -> tuple[NDArray[np.uint8], tuple[int | None, int, int, int]] | None:
        """Returns a view of all results of the batch as bytes, for a copy of them in one piece.

        Returns:
            Observations, dense final observations, their mask, rewards, terminations and
            truncations; and the offsets of the last four, ``None`` for the mask if there is none.
            The view keeps the slab leased. ``None`` for a batch of a rollout and for a part of a
            batch.
        """

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
        max_batches: int | None = None,
        dense_finals: bool = False,
        reward_width: int | None = None,
        worker: int | None = None,
        descriptors: Sequence[Descriptor] | None = None,
        shared: bool = False,
    ) -> Memory:
        """Makes the memory, or attaches in a worker process the memory of :meth:`descriptors`.

        One pool is made from the memory, and each worker is served once: by a thread of the process
        that made it, or, if it is shared, by the process that attaches it for this worker.

        Args:
            observations: The single observation space.
            actions: The single action space.
            shards: For each worker, its first row and the row after its last.
            batch_size: Rows of a batch.
            max_batches: The maximum number of batches that are kept as views; ``None`` for as many
                as fit in 1 GiB, at least 8 and at most 1024.
            dense_finals: Whether each batch has the true next observation of every row.
            reward_width: The length of rewards that are arrays; ``None`` for numbers.
            worker: The index of the worker that this process serves.
            descriptors: Four descriptors, with ``worker``.
            shared: Whether workers are processes.

        Raises:
            ValueError: The sizes are impossible, or the descriptors have other sizes.
            MemoryError: There is not enough memory.
            OSError: The system refuses memory or descriptors for another reason.
        """

    def attach_rollout(self, index: int, steps: int, descriptor: Descriptor) -> None:
        """Maps a rollout of the pool in a worker process."""

    def rollouts(self) -> list[tuple[int, int, Descriptor]]:
        """Returns index, steps and a descriptor of each rollout for a new worker process."""

    def descriptors(self) -> list[Descriptor]:
        """Returns the descriptors to send to worker processes; empty unless shared."""

@final
class Shard:
    """The native state that steps the environments of a worker."""

    def __new__(
        cls,
        worker: _Worker,
        observations: _Description,
        actions: _Description,
        *,
        autoreset_mode: str,
        freeze: bool,
        rules: Mapping[str, Any] | None = None,
        dense_finals: bool = False,
        reward_width: int | None = None,
        objects: Sequence[list[Any]] | None = None,
        over: Sequence[bool] | None = None,
    ) -> Shard:
        """Describes a shard.

        Args:
            worker: The worker that holds the environments.
            observations: The single observation space.
            actions: The single action space.
            autoreset_mode: The value of an ``AutoresetMode``.
            freeze: Whether finished rows repeat their last frame in the mode ``"Disabled"``.
            rules: ``max_episode_steps``, ``ignore_terminations``, ``action_repeat`` and
                ``staggered_reset``, as for ``VectorEnv``; ``None`` for their defaults.
            dense_finals: As for :class:`Memory`.
            reward_width: As for :class:`Memory`.
            objects: A list for each row, for the objects that its infos refer to; ``None`` to
                pickle these objects.
            over: In a restarted worker, which rows were over; each row reports the restart once.
                ``None`` in any other worker.

        Raises:
            ValueError: The mode does not exist.
        """

@final
class MujocoModel:
    """A model of MuJoCo for native environments, until this object is dropped.

    Only for :mod:`cartwheel.native.mujoco`: a wrong address is undefined behavior. Existing
    environments keep the model. While a model exists, cartwheel replaces MuJoCo's handlers of
    errors and warnings; the original ones get those that do not belong to a row, and are restored
    with the end of the last model. The same holds for its profiling clock, which does not advance
    in calls of rows: their ``MjData.timer`` stays zero.
    """

    def __new__(
        cls,
        *,
        functions: Mapping[str, int],
        sizes: Mapping[str, int],
        frame_skip: int,
        timestep: float,
        init_qpos: Sequence[float],
        init_qvel: Sequence[float],
        action_low: Sequence[float],
        action_high: Sequence[float],
        bodies: Mapping[str, int],
        state_spec: int,
        fused_norms: bool,
        scene: Sequence[str],
        make_row: Callable[
            [],
            tuple[
                int,
                tuple[int, int],
                dict[str, tuple[int, int]],
                dict[str, int],
                list[tuple[int, int]],
                object,
            ],
        ],
    ) -> MujocoModel:
        """Registers a model.

        Args:
            functions: Addresses of ``mj_step``, ``mj_forward``, ``mj_resetData``,
                ``mj_rnePostConstraint``, ``mj_stateSize``, ``mj_getState``, ``mj_setState``,
                ``mju_error``, ``mju_writeLog``, and of the variables ``mju_user_error``,
                ``mju_user_warning`` and ``mjcb_time``, in one loaded MuJoCo, 3.2 or newer.
            sizes: ``nq``, ``nv``, ``nu``, ``nbody``, ``nsite`` and ``ntendon`` of the model; other
                entries are ignored.
            frame_skip: How often a step calls ``mj_step``, at least once.
            timestep: Seconds of one ``mj_step``.
            init_qpos: Positions after a reset, before noise; ``nq`` numbers.
            init_qvel: Velocities after a reset, before noise; ``nv`` numbers.
            action_low: Lowest action, ``nu`` numbers.
            action_high: Highest action, ``nu`` numbers.
            bodies: Numbers of the bodies, by name.
            state_spec: ``mujoco.mjtState.mjSTATE_INTEGRATION``.
            fused_norms: Whether ``np.linalg.norm`` of a short vector uses fused multiply-add.
            scene: The arrays of a row for frames; the parameter ``scene`` has all of them, one
                after the other.
            make_row: Makes the simulation of a row, on any thread: its number, the addresses of its
                ``mjModel`` and ``mjData``, and of each array of ``float64`` its address and number
                of elements, by MuJoCo's name; of arrays that are copies of integers, the addresses
                of these; ranges of the memory that steps use most, as addresses and numbers of
                bytes, for speed alone; and an object that keeps all of
                them alive. It is called once more than there are rows.

        Raises:
            ValueError: An address or a size is missing, or numbers do not fit the sizes. There are
                environments of another copy of MuJoCo.
        """

    @property
    def number(self) -> int:
        """The number of the model: the option ``_simulation`` of an environment."""

def copy_fields(addresses: NDArray[np.int64], values: NDArray[np.uint8], *, write: bool) -> None:
    """Copies one array of each of several rows of MuJoCo, or writes it.

    Only for :mod:`cartwheel.mujoco`, between two calls of the rows: a wrong address is undefined
    behavior.

    Args:
        addresses: The addresses of the arrays, ``(n,)``.
        values: Their bytes, ``(n, bytes)``.
        write: Whether ``values`` are copied into the arrays, instead of the arrays into ``values``.

    Raises:
        TypeError: An argument is not such an array.
        ValueError: The shapes do not fit each other.
    """

@final
class RowStreams:
    """The random numbers of rows that begin an episode, while ``external_resets`` is called.

    The methods fill an array, ``(rows, n)``, each row with the next draws of its own generator.
    They raise ``RuntimeError`` after the call.
    """

    def random(self, into: NDArray[np.float64]) -> None:
        """Draws ``Generator.random``."""

    def standard_normal(self, into: NDArray[np.float64]) -> None:
        """Draws ``Generator.standard_normal``."""

    def integers(self, low: int, high: int, into: NDArray[np.int64]) -> None:
        """Draws ``Generator.integers(low, high, endpoint=True)``."""

@final
class NativeEnvs:
    """Native environments; after a pool has taken the environments, their mailboxes."""

    def __new__(
        cls,
        env_id: str,
        options: str,
        shards: Sequence[tuple[int, int]],
        *,
        autoreset_mode: str,
        freeze: bool,
        rules: Mapping[str, Any] | None = None,
        replacements: int = 0,
        dense_finals: bool = False,
        external_rewards: bool = False,
        external_resets: str | None = None,
    ) -> NativeEnvs:
        """Checks the arguments; :meth:`make` makes the environments.

        Args:
            env_id: One of :func:`native_envs`.
            options: Keywords of the environment, a JSON object.
            shards: For each shard, its first row and the row after its last.
            autoreset_mode: The value of an ``AutoresetMode``.
            freeze: Whether finished rows repeat their last frame in the mode ``"Disabled"``.
            rules: As for ``Shard``.
            replacements: How often an environment is replaced after a panic; the next panic is
                raised.
            dense_finals: As for :class:`Memory`.
            external_rewards: Whether the pool has ``external_rewards``.
            external_resets: If the pool has ``external_resets``, the parameter by which their
                callable knows a row.

        Raises:
            ValueError: The environment or an option does not exist, or a value is invalid.
        """

    def make(self) -> None:
        """Makes the environments in groups; a signal handler that raises interrupts it.

        Raises:
            ValueError: Their plugin refuses their keywords.
        """

    def spaces(self) -> tuple[Any, Any]:
        """Returns the single observation and action space as nested tuples: kind and arguments."""

    def parameters(self) -> list[str]:
        """Returns the names of the parameters."""

    def render_modes(self) -> list[str]:
        """Returns the render modes of environments that draw themselves."""

    def render_fps(self) -> int:
        """Returns the frames per second of videos and windows of such environments."""

    def agents(self) -> list[str]:
        """Returns the names of the agents of environments of several, in their order."""

    def check_reset_options(self, options: str) -> None:
        """Raises ``ValueError`` if options of a reset, a JSON object, are invalid."""

    def check_state(self, state: bytes) -> None:
        """Raises ``ValueError`` unless this is the state of such a row, which had not failed."""

    def first_failed(self, states: list[bytes]) -> int | None:
        """Returns the place of the first state of a row that had failed."""

    def post_next_reset(self, shard: int, row: int, seed: int | None, options: str | None) -> None:
        """Posts the details of the next automatic reset of a row, which is not in flight."""

    def next_reset_rows(self) -> list[int]:
        """Returns the rows whose next automatic reset has details that were not used yet."""

    def set_cache(self, states: Sequence[bytes], key: int) -> None:
        """Keeps states that resets load as soon as a control call tells the shards.

        Raises:
            ValueError: The list is empty, or a state was changed or is of another environment.
        """

    def take_answer(self, shard: int) -> list[Any] | None:
        """Takes the answer: one value for each row that was asked, or ``None`` after setting.

        Values are parameters, streams, states or frames: ``uint8`` arrays of the shape ``(height,
        width, 3)``, or text.
        """

    def take_faults(self, shard: int) -> list[tuple[int, BaseException]]:
        """Takes the faults of the last task: rows and exceptions."""

    def take_fault(self, shard: int, row: int) -> tuple[int, BaseException] | None:
        """Takes the fault of one row that was sent and received."""

    def take_rest(self, shard: int, row: int) -> bytes:
        """Takes infos, from row ``row`` on, that did not fit into their region."""

@final
class ImagePlan:
    """Processing of frames: the maximum of two, grayscale, resizing. Frozen, for any thread.

    Grayscale is Gymnasium's, bit for bit: ``0.2125 r + 0.7154 g + 0.0721 b``, rounded down. A
    resized pixel is the exact mean of the area that it covers, rounded to the nearest level, halves
    up. If both sides shrink, or both grow, that equals ``cv2.INTER_AREA`` up to one level.
    """

    def __new__(
        cls,
        height: int,
        width: int,
        channels: int | None,
        *,
        out_height: int,
        out_width: int,
        gray: bool,
        channel_first: bool = False,
        num_threads: int | None = None,
    ) -> ImagePlan:
        """Computes the weights.

        Args:
            height: Rows of pixels of a frame, 1 to 65,536, as all sides.
            width: Pixels of a row.
            channels: Levels of a pixel; ``None``: frames have no axis for them.
            out_height: Rows of pixels of an image.
            out_width: Pixels of its rows.
            gray: Makes one level of three channels; images have no axis for it.
            channel_first: Images have shape ``[C, H, W]`` instead of ``[H, W, C]``.
            num_threads: Threads; ``None``: one, or more for large batches.

        Raises:
            ValueError: A side is out of range, or ``gray`` with other than three channels.
        """

    def run(
        self, frames: NDArray[np.uint8], second: NDArray[np.uint8] | None = None
    ) -> NDArray[np.uint8]:
        """Returns a new array with the image of each frame; runs without the GIL.

        Args:
            frames: ``[N, H, W, C]`` or ``[N, H, W]``; copied first if it is not C-contiguous.
            second: The same number of frames; the result has the maximum of each pair of levels.

        Raises:
            TypeError: An array has another dtype than ``uint8``.
            ValueError: An array has another shape.
        """

@final
class RolloutSlab:
    """The memory of a rollout, for as long as it or one of its arrays is referenced."""

    @property
    def index(self) -> int:
        """The index of the rollout, by which workers identify it."""

    @property
    def steps(self) -> int:
        """The number of steps."""

    def take_descriptor(self) -> Descriptor | None:
        """Returns the descriptor for worker processes at the first call; then ``None``."""

@final
class Descriptor:
    """An open file, which is closed with the last reference to this object."""

    def __new__(cls, descriptor: int) -> Descriptor:
        """Takes over a file descriptor.

        Raises:
            ValueError: The number is negative.
        """

    def fileno(self) -> int:
        """Returns the file descriptor."""

@disjoint_base
class Channel:
    """An end of a channel between the caller and a worker process.

    Each method is one native call. A signal handler that raises interrupts it, and the channel
    stays intact: the next call sends the rest of a message, and the part of a message that has
    arrived is kept for the next call.
    """

    def __new__(cls, end: Descriptor, pid: int | None = None) -> Self:
        """Wraps an end of a socket pair, which programs of this process do not inherit.

        Process ``pid`` has the other end. Without it, this is a worker's end, which sends on a
        thread of its own.
        """

    def post(self, message: bytes | tuple[bytes, Sequence[Descriptor]], number: int = 0) -> None:
        """Sends a message. A worker sends no descriptors, but numbers.

        The caller's end waits for no reader: :meth:`flush` sends what the system's buffer did not
        take. If the other end is gone, :meth:`receive_bytes` raises.

        Raises:
            ValueError: It has more than ``LARGEST_MESSAGE`` bytes; nothing was sent.
        """

    def flush(self, timeout: float | None = None) -> bool:
        """Sends the rest of messages of the caller's end.

        Args:
            timeout: Seconds, rounded up to 0.05; ``None`` for no limit.

        Returns:
            Whether nothing is left to be sent, which is also so if the other end is gone.
        """

    def receive_bytes(self, number: int = 0, timeout: float | None = None) -> bytes:
        """Waits for a message.

        Args:
            number: The minimum number. Messages of the same process with lower numbers are dropped.
            timeout: Seconds to wait, rounded up to 0.05; ``None`` for no limit.

        Raises:
            EOFError: The process that should send it has ended.
            multiprocessing.TimeoutError: It has not come in time.
        """

    def take_descriptor(self) -> Descriptor:
        """Returns the first of the descriptors that came with messages.

        Raises:
            EOFError: No descriptor has come.
        """

    def follow(self, earlier: Channel, number: int) -> None:
        """Takes over the messages of processes that were replaced, and closes their channel.

        They have numbers up to ``number``, and can be received in any order.
        """

    @property
    def replaced(self) -> int:
        """The number up to which messages are those of processes that were replaced."""

    def close(self) -> None:
        """Closes this end. A worker's end sends everything first, unless the caller is gone."""

@final
class Pool:
    """Steps and resets the environments of all workers, from one thread at a time.

    Every method raises ``gymnasium.error.ClosedEnvironmentError`` after :meth:`close`,
    ``gymnasium.error.AlreadyPendingCallError`` while another thread is in a call,
    ``cartwheel.ForkedProcessError`` in a forked child, and ``cartwheel.BrokenPoolError`` once the
    pool is broken, unless its documentation says otherwise.
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
        channels: list[Any],
        callbacks: _WorkerCallbacks | _Callbacks,
        class_name: str,
        timeout: float | None,
        columnar: bool,
        spin: bool,
        inline: bool,
        restart: bool = False,
        deferred: bool = False,
        hang_limit: float | None = None,
        reminder: float | None = None,
        num_threads: int = 1,
        affinity_offset: int | None = None,
        maniskill_names: bool = False,
        external_rewards: _RewardFunction | None = None,
        reward_width: int | None = None,
        external_resets: tuple[_ResetFunction, str] | None = None,
        before_step: Callable[[], None] | None = None,
        masks: tuple[str, int, int | None, bool] | None = None,
    ) -> Pool:
        """Opens a pool over workers that serve or begin to serve.

        Args:
            memory: The workers' memory.
            observations: The single observation space.
            actions: The single action space.
            shard: Native environments, or the caller's own shard. With threads and processes, only
                the settings of the shard are used.
            pids: Process ids of worker processes, 0 for one that is started later and counts as
                dead until then; empty otherwise.
            objects: For each worker, one list for each row: the objects that its infos refer to;
                ``None`` for workers that pickle them.
            channels: The caller's end of the channel to each worker; empty for native
                environments. The restart of a worker replaces its entry. An end is a
                :class:`Channel`, or has a function ``post`` in C, and its queue ``outbox``. Its
                ``hang_up`` ends the waits of its worker.
            callbacks: Makes and receives messages outside of shared memory; a
                ``_WorkerCallbacks`` if ``shard`` is a :class:`Shard`.
            class_name: The name in errors.
            timeout: Seconds that a synchronous step may take.
            columnar: Whether infos may be batched without ``VectorEnv._add_info``.
            spin: Whether waiting threads may spin before they sleep.
            inline: Whether the calling thread steps ``shard`` itself.
            restart: Whether ``callbacks`` may restart dead workers.
            deferred: Whether dead workers are replaced by :meth:`resume` instead, while
                :meth:`recv_rows` goes on.
            hang_limit: Seconds without progress after which a worker process is killed and
                replaced; ``None`` for never.
            reminder: Seconds after which a waiting call calls ``callbacks.still_waiting``,
                repeatedly.
            num_threads: Threads that step native environments, including the calling one.
            affinity_offset: The processor of the first additional thread; ``None``: do not pin.
            maniskill_names: Whether final observations have ManiSkill's names, too.
            external_rewards: Computes rewards, terminations and truncations of native rows in each
                step, from
                the bytes of what they showed before it, a copy of the actions, what they show
                now, which are not the arrays that the step returns, and a truth value for each row:
                whether it was stepped, so that its reward counts.
                Their time limits and automatic resets come after it. If it raises, the step
                does, and the rows that were stepped need a reset.
            reward_width: As for :class:`Memory`.
            external_resets: Writes the first states of native rows that begin an episode, in any
                call in which they do; and a parameter. It gets these rows in ascending order, the
                parameter by which it knows each, and their random numbers. It returns the number to
                which the parameter is then set in each of them, which makes what it wrote take
                effect, or ``None`` if it wrote nothing. If it raises, the call does, and the
                rows of the call need a reset.
            before_step: Called before each step of all rows, if they have ``external_rewards``.
            masks: Where masks of actions are, from ``cartwheel.vector.action_masks``; ``None``:
                there are none.
        """

    def step(self, actions: Any, rows: Any = None) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Steps rows: :meth:`step_async` and :meth:`step_wait` in one."""

    def step_async(self, actions: Any, rows: Any = None) -> None:
        """Checks and copies the actions and begins a step of ``rows``, by default of all rows.

        Raises:
            ValueError: ``rows`` is ``None``, and batches have fewer than all rows.
        """

    def step_wait(self, timeout: float | None = None) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Waits for a step: observations, rewards, terminations, truncations, infos."""

    def reset(
        self,
        messages: Sequence[Any],
        mask: NDArray[np.bool_] | None,
        calling: str,
        timeout: float | None,
    ) -> tuple[Any, dict[str, Any]]:
        """Resets rows: :meth:`reset_async` and :meth:`reset_wait` in one."""

    def reset_async(
        self, messages: Sequence[Any], mask: NDArray[np.bool_] | None, calling: str
    ) -> None:
        """Begins a reset with a message for each worker; ``calling`` is named in errors.

        The messages reset the rows in ``mask``, ``bool`` of shape ``(num_envs,)``; ``None``: all
        rows. These rows drop the seeds and options of :meth:`keep_next_resets`.
        """

    def reset_wait(self, timeout: float | None = None) -> tuple[Any, dict[str, Any]]:
        """Waits for a reset: observations and infos."""

    def step_by_row(
        self, actions: Any, reset_infos: list[dict[str, Any]]
    ) -> tuple[Any, Any, Any, list[dict[str, Any]]]:
        """Steps every row: :meth:`step_async` and :meth:`step_wait_by_row` in one."""

    def step_wait_by_row(
        self, reset_infos: list[dict[str, Any]], timeout: float | None = None
    ) -> tuple[Any, Any, Any, list[dict[str, Any]]]:
        """Waits for a step in the mode ``SAME_STEP``, in the form of Stable-Baselines3.

        Args:
            reset_infos: One entry for each row; infos of resets replace those of their rows.
            timeout: Seconds to wait, or ``None`` for as long as it takes.

        Returns:
            Observations, rewards (``float32``), whether episodes are over, and a dictionary of
            infos for each row: the environment's own, ``TimeLimit.truncated``, at the end of an
            episode ``terminal_observation``, and ``episode`` after :meth:`record_episodes`.
        """

    def reset_by_row(
        self, messages: Sequence[Any], mask: NDArray[np.bool_] | None, timeout: float | None
    ) -> tuple[Any, list[dict[str, Any]]]:
        """Resets rows: observations, and a dictionary of infos for each of all rows."""

    def record_episodes(self) -> None:
        """Adds episodes that end from now on to the infos of :meth:`step_wait_by_row`.

        ``episode`` is a dictionary with the return ``r`` (rounded to six decimals), the length
        ``l`` and the seconds ``t`` since this call.
        """

    def has_action_masks(self) -> bool | None:
        """Whether environments show masks of actions; ``None`` while no batch has had infos."""

    def action_masks(self, rows: Sequence[int] | None) -> NDArray[np.bool_] | None:
        """Returns the masks of actions of rows; ``None`` if no environment has shown one.

        ``rows=None``: those of the last batch.

        Raises:
            ValueError: A mask has another length than the action space.
        """

    def kept_action_masks(self) -> bytes | None:
        """Returns the masks of all rows for :meth:`keep_action_masks`.

        ``None`` if there are none, or if observations have them.
        """

    def keep_action_masks(self, masks: bytes | None) -> None:
        """Continues with the masks of :meth:`kept_action_masks`; ``None`` changes nothing."""

    def call(
        self, messages: Sequence[Any], rows: Any, calling: str, timeout: float | None
    ) -> tuple[Any, ...]:
        """Makes a control call: :meth:`call_async` and :meth:`call_wait` in one."""

    def call_async(self, messages: Sequence[Any], rows: Any, calling: str) -> None:
        """Begins a control call with a message for each worker; ``calling`` is named in errors.

        The call returns the answers of ``rows``, in their order; ``None``: those of all rows.
        """

    def call_wait(self, timeout: float | None = None) -> tuple[Any, ...]:
        """Waits for a control call; returns the answers of its rows."""

    def check(self, calling: str, idle: bool) -> None:
        """Raises if the pool is closed; with ``idle`` also if a call is pending."""

    def pending(self) -> str | None:
        """Returns the name of the pending call.

        Returns ``None`` if no call is pending, if another thread is in a call, or if the pool is
        broken.
        """

    def give_up(self) -> None:
        """Allows a later reset to drop the pending call and the rows in flight."""

    def has_abandoned(self) -> bool:
        """Whether the last wait was given up, by a timeout or Ctrl-C, and not continued."""

    def discard_abandoned(self, timeout: float | None, calling: str) -> None:
        """Waits for a call that timed out or was interrupted, and drops its result."""

    def keep_next_resets(
        self, rows: Sequence[int], packed: Sequence[Any | None], calling: str
    ) -> None:
        """Keeps seeds and options of next automatic resets, which rows get with their next step.

        The callbacks' ``pack_next_resets`` makes the messages. ``None`` removes kept ones.
        """

    def next_reset_rows(self) -> list[int]:
        """Returns the rows that get details of their next automatic reset with their next step."""

    def send(self, actions: Any, rows: Any = None) -> None:
        """Checks and copies actions for some rows, or all rows, and begins to step them."""

    def reset_rows(
        self,
        rows: Sequence[int],
        messages: Sequence[Any],
        full: bool,
        calling: str,
        timeout: float | None,
    ) -> tuple[Any, dict[str, Any]]:
        """Resets some rows: :meth:`send_reset` and :meth:`recv_resets` in one."""

    def send_reset(
        self,
        rows: Sequence[int],
        messages: Sequence[Any],
        full: bool,
        calling: str,
        in_order: bool,
    ) -> None:
        """Begins to reset some rows, with messages for their workers.

        A ``full`` reset does not name rows, by numbers or by a mask. The rows drop the seeds and
        options of :meth:`keep_next_resets`. They are received ``in_order`` where the caller waits
        for exactly these.
        """

    def recv(
        self, timeout: float | None = None, portion: tuple[int, int] | None = None
    ) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Waits for the next batch of rows that were sent, see ``VectorEnv.recv``.

        ``portion`` has the minimum and the maximum number of its rows; ``None``: a whole batch.
        """

    def recv_rows(
        self, timeout: float | None = None
    ) -> (
        tuple[
            list[int],
            Any,
            NDArray[np.float64],
            NDArray[np.bool_],
            NDArray[np.bool_],
            list[dict[str, Any]],
            dict[int, BaseException],
        ]
        | None
    ):
        """Waits for rows that were sent, each the only one of its worker.

        Rows are returned as soon as some are done, also if others have failed. If workers are
        replaced by :meth:`resume`, the rows of dead ones stay in flight until then.

        Args:
            timeout: Seconds to wait; ``None`` for no limit.

        Returns:
            Rows, observations, rewards, terminations, truncations, the info of each row, and the
            exceptions of rows that failed. ``None`` if no row is done: after :meth:`wake`, after
            the death of a worker, and after ``timeout``.
        """

    def wake(self) -> None:
        """Ends the present or the next :meth:`recv_rows`, from any thread; never raises."""

    def dead_workers(self) -> list[int]:
        """Returns the workers that died, or were never started, and were not replaced."""

    def lost(self, worker: int) -> tuple[list[bool], list[int], list[int], int]:
        """Takes the lost work of such a worker, whose process has ended.

        Returns:
            For each of its rows, whether the episode was over; its rows, counted from its first,
            whose reset was sent; the rows in flight whose results are complete; and the number
            after which its next process numbers its messages.
        """

    def resume(self, worker: int, pid: int, filled: list[int]) -> None:
        """Lets a process that serves replace such a worker, and repeat what it lost.

        Args:
            worker: The worker.
            pid: The process.
            filled: The rows whose results are complete, from :meth:`lost`.
        """

    def receives_in_order(self) -> bool:
        """Whether rows are received in the order of the sends, not in that of completion."""

    def receive_in_order(self, sent: bool) -> None:
        """Sets this order for rows that are sent while none is in flight.

        Raises:
            gymnasium.error.AlreadyPendingCallError: Rows are in flight that were not given up.
        """

    def recv_resets(
        self, timeout: float | None = None, calling: str = "reset_wait"
    ) -> tuple[Any, dict[str, Any]]:
        """Waits for the next batch of rows that were reset; raises if steps are in flight."""

    def in_flight(self) -> list[int]:
        """Returns the rows that were sent and not received, by :meth:`send` without rows too."""

    def count_episodes(self, autoreset_mode: str) -> None:
        """Counts the steps of episodes from now on, and gives batches the form of EnvPool.

        Rewards of :meth:`recv` are ``float32``. ``infos`` have ``env_id``, ``players`` (with
        ``env_id``) and ``elapsed_step`` (all ``int32``) instead of ``env_index``. Rows without an
        episode are not stepped: they raise ``gymnasium.error.ResetNeeded``.
        """

    def elapsed(self) -> list[int]:
        """Returns for each row the steps of the episode of its last reward and flags."""

    def without_episode(self) -> list[int]:
        """Returns rows that were never reset, or whose last result was lost to an exception."""

    def episodes(self) -> tuple[list[int], list[bool], list[bool]] | None:
        """Returns steps, ends and lack of each row's episode; ``None`` if they are not counted."""

    def set_episodes(self, elapsed: list[int], ended: list[bool], fresh: list[bool]) -> None:
        """Continues to count the episodes of :meth:`episodes`.

        Raises:
            ValueError: Episodes are not counted, or there are more or fewer rows.
            gymnasium.error.AlreadyPendingCallError: Rows are in flight, or a call is pending.
        """

    def begin_episodes(self, rows: Any) -> None:
        """Marks rows as reset by :meth:`reset_async`."""

    def lose(self, rows: Any) -> None:
        """Marks rows whose last results will not be received."""

    def dropped(
        self, since: int, level: int
    ) -> tuple[int, list[int], list[bool], list[bool]] | None:
        """Returns the rows whose results no follower of this level saw.

        They belonged to a call that was abandoned, or that raised. Rows that failed are not
        included: they have to be reset.

        Args:
            since: What this method returned the last time; 0 at first.
            level: 1, or above that of a follower inside.

        Returns:
            The present number, the rows, and for each of them whether the dropped result was one of
            an explicit reset, and whether it ended an episode. ``None`` if nothing was dropped.
        """

    def drop_rows(self, rows: list[int], resets: list[bool], over: list[bool], level: int) -> None:
        """Records that results of rows, which followers up to this level saw, are dropped."""

    def rows_over(self) -> list[int]:
        """Returns the rows whose episode is over, according to the received results."""

    def rows_begun(self) -> list[int]:
        """Returns the native rows that were ever reset, according to the received results."""

    def new_rollout(self, steps: int) -> RolloutSlab:
        """Makes a rollout of ``steps`` steps, or reuses a free one.

        Raises:
            ValueError: Observations have no fixed shape, batches do not have all rows, or there are
                too many steps.
            MemoryError: There is not enough memory; nothing was allocated.
        """

    def record(self, rollout: RolloutSlab) -> tuple[Any, Any, Any, Any]:
        """Records the next batches in a rollout, and returns its arrays."""

    def stop_recording(self) -> None:
        """Ends a recording; later batches go to slabs."""

    def recorded_steps(self) -> int | None:
        """Returns the recorded steps of the present rollout, including a pending step."""

    def begun(self) -> int:
        """Returns the number of steps and resets that have begun, of all rows or of some.

        Any thread may call it, also while another thread is in a call.
        """

    def stats(self) -> dict[str, Any]:
        """Returns the counts and times so far, by the fields of ``cartwheel.Stats``.

        Any thread may call it, also while another thread is in a call.
        """

    def make_private(self) -> None:
        """Makes the batches private in a forked child, unless the pool is closed.

        Raises:
            MemoryError: No address space is left; the batches stay shared.
        """

    def abandon(self) -> None:
        """Frees memory of the pool that no array uses, in a forked child.

        Does nothing if another thread was in a call at the fork.
        """

    def close(self, grace: float, after: Callable[[], object] | None = None) -> list[int] | None:
        """Ends the workers; returns the workers that did not end within ``grace`` seconds.

        ``None``: this thread is in a call, and a signal handler or an environment in it calls this
        method. The call ends the workers when it returns, and then calls ``after``.
        """

def serve(memory: Memory, index: int, shard: Shard, *, spin: bool) -> None:
    """Serves worker ``index`` until the pool closes it; calls the worker's ``ready`` first."""

#: How this build uses the operating system: ``"linux"``, or ``"portable"`` on other systems, and in
#: builds with the feature ``portable``.
PLATFORM: Final[str]

#: The version of cartwheel.
VERSION: Final[str]

#: Batches of observations of at most this many bytes are copied out of their slab.
COPIED_BYTES: Final[int]

#: The first byte of the place of a row that failed, see ``_Worker.save``.
FAILED_PHASE: Final[int]

#: The maximum size of a message between processes in bytes: 1 GiB.
LARGEST_MESSAGE: Final[int]

def watch_parent(pid: int, lifeline: Descriptor) -> None:
    """Ends this process when process ``pid``, which started it, ends or executes another program.

    Args:
        pid: The process.
        lifeline: The end for reading of a pipe, whose other end that process keeps open until then.
    """

def register_pool(pool: Pool) -> int:
    """Returns the number by which compiled functions know a pool of native environments.

    It is the same at each call, and no other pool of this process gets it. Nothing is kept alive.
    """

def xla_handlers() -> dict[str, int]:
    """Returns the addresses of the functions that XLA calls, for version 0.1 of its interface.

    ``init``, ``step``, ``reset``, ``send`` and ``recv`` are calls of the pool whose number is the
    attribute ``pool``. ``device`` is for other devices than the CPU, and returns an error.
    """

def make_first_uses() -> None:
    """Looks up the Python objects that native code uses; must be called before anything else here.

    A later look-up would hang processes that are forked at that moment. From then on, the locks
    that threads take without the interpreter are held at each fork.
    """

def fork_begins() -> None:
    """Must be called before a fork, so that held batches are not reused."""

def fork_ended() -> None:
    """Must be called after a fork in the parent, also if the fork failed."""

def fork_ended_in_child() -> None:
    """Must be called after a fork in the child."""

def shards(num_envs: int, num_workers: int) -> list[tuple[int, int]]:
    """Returns for each worker its first row and the row after its last; all have rows."""

def fine_shards(num_envs: int, num_workers: int, block: int) -> list[tuple[int, int]]:
    """Divides rows of native environments: several shards for each of several threads.

    Shards begin at multiples of ``block``, unless there are fewer blocks than threads. The rest of
    the rows belongs to the last shard.
    """

def block_rows(env_id: str) -> int:
    """Returns the maximum number of rows that a native environment steps at once, at least 1.

    Raises:
        ValueError: The environment does not exist.
    """

def native_envs() -> list[tuple[str, int | None, float | None, str]]:
    """Returns every native environment: id, step limit, reward threshold, keywords (JSON)."""

def env_keywords(env_id: str) -> list[str] | None:
    """Returns the names of the keywords of a native environment; ``None`` if it does not list them.

    Raises:
        ValueError: The environment does not exist.
    """

def reset_option_names(env_id: str) -> list[str] | None:
    """Returns the names of the options of an environment's reset, as :func:`env_keywords`.

    Raises:
        ValueError: The environment does not exist.
    """

def described_options(env_id: str, of_reset: bool) -> list[tuple[str, str | None, str]] | None:
    """Returns the keywords of a native environment, or the options of its reset.

    Each has a name, its default as JSON (``None`` if it is not known) and a text, which may be
    empty. ``None`` if the environment does not list them.

    Raises:
        ValueError: The environment does not exist.
    """

def register_plugin(capsule: object, module: str | None) -> list[str]:
    """Registers the table in a capsule; ``module`` offers it. Returns the ids of its environments.

    Raises:
        TypeError: It is not a capsule, or a capsule with another name.
        ImportError: The table does not fit this version, or is incomplete.
        ValueError: An id is taken, or has the wrong form.
    """

def load_plugin(path: str | os.PathLike[str]) -> list[str]:
    """Registers the table of a library. Returns the ids of its environments.

    Raises:
        ImportError: The file cannot be loaded, has no table, or as for :func:`register_plugin`.
        ValueError: As for :func:`register_plugin`.
    """

def cache_draws(key: int, seed: int) -> int:
    """Returns the key of a row's draws after a reset with a seed, from a cache with this key."""

def draw_cached(key: int, count: int, states: int) -> int:
    """Returns which of ``states`` states a row gets after ``count`` draws since its key was set."""

def usable_cpus() -> int:
    """Returns the number of processors for this process, by affinity and cgroup quota.

    Raises:
        ValueError: ``CARTWHEEL_CPUS`` is set, and not to a number.
    """

def require_memory(bytes: int) -> None:
    """Checks that so much memory is available, as far as the system reports it.

    Raises:
        MemoryError: Less memory is available.
    """

def memory_left() -> int | None:
    """Returns the available memory in bytes, by control groups and the machine.

    ``None`` if the system does not report it.
    """

def plain_loop(
    env_id: str,
    num_envs: int,
    *,
    seconds: float,
    threads: int,
    options: str = "",
    blocks: bool = True,
) -> float:
    """Steps native environments without a vector environment, in one loop for each thread.

    A loop calls each of its environments in turn with random actions, and stores observations,
    rewards and flags. An environment whose episode is over is reset in its next turn, which counts
    as a step. So the work for each counted step is the same as in autoreset mode ``NEXT_STEP``.

    Args:
        env_id: One of :func:`native_envs`.
        num_envs: Environments of all loops together.
        seconds: How long to step; Ctrl-C is only noticed afterwards.
        threads: Loops that run at once; at most one for each environment.
        options: Keywords of the environment, a JSON object.
        blocks: Step several rows at once if the environment can, as a pool does.

    Returns:
        Environment steps per second, of all loops together.

    Raises:
        ValueError: The environment or an option does not exist, or a value is invalid.
    """

# Return estimators. Arrays are C-contiguous and have the dtype of the transitions' rewards, and
# outputs share no memory with inputs; `cartwheel.returns` checks all this. All functions raise
# ValueError for shapes that do not agree and numbers out of range.

_Floats: TypeAlias = NDArray[Any]
_Flags: TypeAlias = NDArray[np.bool_]

def gae(
    transitions: _Transitions,
    values: _Floats,
    next_values: _Floats,
    gae_lambda: float | _Floats,
    normalized: bool,
    out: tuple[_Floats, ...],
) -> None:
    """Computes advantages and returns; ``normalized``: by ``gae_normalized``."""

def lambda_returns(
    transitions: _Transitions, next_values: _Floats, lambda_: float | _Floats, out: _Floats
) -> None:
    """Computes lambda-returns."""

def discounted(transitions: _Transitions, next_values: _Floats | None, out: _Floats) -> None:
    """Computes discounted sums of rewards."""

def n_step(
    transitions: _Transitions, next_values: _Floats | None, n: int, out: tuple[NDArray[Any], ...]
) -> None:
    """Computes returns, discounts and lengths (``int64``) of windows of up to ``n`` steps."""

def vtrace(
    transitions: _Transitions,
    arrays: tuple[_Floats, ...],
    lambda_: float | _Floats,
    caps: tuple[float, float, float],
    out: tuple[_Floats, ...],
) -> None:
    """Computes targets and policy advantages from values, next values and ratios."""

def retrace(
    transitions: _Transitions,
    arrays: tuple[_Floats, ...],
    lambda_: float | _Floats,
    c_bar: float,
    out: _Floats,
) -> None:
    """Computes targets from action values, next values and ratios."""

def valid_mask(
    mode: tuple[str, bool], flags: tuple[_Flags, _Flags], prev_done: _Flags, out: _Flags
) -> None:
    """Computes which rows are transitions; ``mode`` has the mode and ``freeze``."""

def is_first(
    mode: tuple[str, bool],
    flags: tuple[_Flags, _Flags],
    prev_done: _Flags,
    initial: _Flags,
    out: _Flags,
) -> None:
    """Computes which observations begin an episode."""

def next_values(
    mode: tuple[str, bool],
    values: _Floats,
    flags: tuple[_Flags, _Flags],
    bootstrap: str,
    finals: tuple[_Floats, NDArray[np.int64]] | None,
    out: _Floats,
) -> None:
    """Computes the values of the true next observations."""

def masked_mean(numbers: _Floats, valid: _Flags) -> float:
    """Returns the mean of the valid numbers; arrays have one dimension."""

def masked_normalize(numbers: _Floats, valid: _Flags, epsilon: float, out: _Floats) -> None:
    """Normalizes the valid numbers to mean 0 and deviation 1; arrays have one dimension."""

def keep_masks(
    known: _Flags,
    rows: NDArray[np.int64] | None,
    shown: tuple[_Flags, int, _Flags] | None,
    ignored: _Flags,
    /,
    *,
    replaces: bool,
) -> None:
    """Keeps the masks of actions of one agent that a batch of ``n`` rows shows.

    An agent may take every action where its next one is ignored, and where its mask has none. All
    arrays are C-contiguous.

    Args:
        known: The masks of all environments, ``(environments, actions)``, which are changed.
        rows: The environment of each row; ``None`` for all in their order.
        shown: Masks ``(n, agents, actions)``, the place of the agent among them, and which rows
            have a mask of it, ``(n,)``; ``None``: none has.
        ignored: In which rows the next action of the agent has no effect, ``(n,)``.
        replaces: Whether rows without a mask allow every action from now on; otherwise they keep
            theirs.

    Raises:
        TypeError: An array is not one of flags, or has other dimensions.
        ValueError: Shapes do not agree, or an array is not C-contiguous.
        IndexError: An environment does not exist.
    """

def store(
    leaves: Sequence[tuple[NDArray[Any], NDArray[Any], int]],
    steps: NDArray[np.int64],
    rows: NDArray[np.int64],
    /,
) -> None:
    """Stores rows of batches into time-major arrays: all leaves, or nothing if one does not fit.

    For each entry ``i`` and leaf: ``destination[steps[i] + offset, rows[i]] = source[i]``. Of
    entries with the same step and row the last one remains.

    Args:
        leaves: Source ``[K, *shape]``, destination ``[T, N, *shape]`` and offset of each leaf. Both
            arrays have the same dtype, of numbers or flags, and are C-contiguous.
        steps: Step of each entry, ``int64`` ``[K]``; with the offset from 0 to ``T - 1``.
        rows: Row of each entry, ``int64`` ``[K]``, from 0 to ``N - 1``.

    Raises:
        TypeError: A leaf is not such a tuple, a dtype differs, or ``steps`` or ``rows`` is not a
            contiguous array of ``int64`` with one dimension.
        ValueError: Shapes or lengths do not agree, an array is not C-contiguous, or a destination
            is read-only.
        IndexError: The step or the row does not exist.
    """

# Wrappers. A batch has a place for each row that a call returned; ``rows`` are the environments of
# the places, ``None`` for all in their order. Arrays are copied; the caller owns the results.

@final
class RowKinds:
    """Tells transitions, resets, repeated rows and failures apart, in every autoreset mode.

    Kinds are those of ``cartwheel.wrappers.batch``. Row numbers that do not exist raise
    ``IndexError``; then nothing is changed.
    """

    def __new__(cls, num_envs: int, autoreset_mode: str) -> RowKinds:
        """Begins with running rows; a vector environment has to be reset first in any case."""

    def reset(self, rows: ArrayLike | None, mask: NDArray[np.bool_] | None, /) -> NDArray[np.uint8]:
        """Returns the kinds after a reset: of all rows, of a mask, or of these ``rows``."""

    def ahead(self, rows: NDArray[np.int64] | None, /) -> NDArray[np.uint8]:
        """Returns what the next step of these rows (``None``: all) will do; changes nothing."""

    def state(self) -> NDArray[np.uint8]:
        """Returns what is known of each row, for :meth:`set_state`."""

    def set_state(self, state: NDArray[np.uint8], /) -> None:
        """Continues with a state of as many rows.

        Raises:
            ValueError: The state has another length, or values that no row has.
        """

    def note_change(self) -> None:
        """Records that a wrapper changed: a :class:`FusedStep` that was made before is not used."""

    def send_reset(self, rows: ArrayLike, /) -> None:
        """Records that resets of these rows were sent, for :meth:`step`, which receives them."""

    def lose(self, rows: ArrayLike | None, is_known: bool, /) -> None:
        """Records that results of these rows (``None``: all) were lost because the call raised.

        ``is_known``: :meth:`step` got the flags of the call; otherwise no episode may be over.
        """

    def step(
        self,
        rows: NDArray[np.int64] | None,
        terminations: NDArray[np.bool_],
        truncations: NDArray[np.bool_],
        failed: NDArray[np.bool_] | None,
        /,
    ) -> NDArray[np.uint8]:
        """Returns the kinds of the batch of a step, ``uint8`` ``[K]``.

        ``failed`` marks replaced environments, ``bool`` ``[K]``; ``None`` if none was replaced.
        """

_Flag: TypeAlias = NDArray[np.bool_] | None
#: Rows, kinds, rewards, terminations and truncations of a batch.
_StepArrays: TypeAlias = tuple[NDArray[np.int64] | None, NDArray[np.uint8], Any, Any, Any]

@final
class TensorExchange:
    """Makes tensors over the memory of arrays, and arrays over that of tensors, by DLPack."""

    @staticmethod
    def of(kind: type, modes: dict[str, Any], name: str, /) -> TensorExchange | None:
        """Returns the functions of a type of tensors.

        ``None`` if it has none, as in older versions of PyTorch, or those of another version.
        ``modes[name]`` says, whenever a tensor is made, whether a mode is active that must see it,
        such as ``FakeTensorMode``.
        """

    def array(self, tensor: Any, /) -> NDArray[Any] | None:
        """Returns an array over the memory of a tensor, which it keeps.

        ``None`` if the tensor is of another class, on a device, not in one piece, empty, without
        dimensions or with more than 8, or of a dtype that is not converted here; or if it cannot be
        exported.
        """

    def actions(self, wrapper: Any, actions: Any, /) -> Any:
        """Returns actions as arrays, or calls ``_as_arrays`` of the wrapper for others."""

    def tensor(self, array: Any, /) -> Any:
        """Returns a tensor over the memory of an array, which it keeps.

        ``None`` if it is not an array of NumPy's own class, or is not in one piece, read-only,
        empty, without dimensions or with more than 8, or of a dtype that is not converted here; or
        if a mode is active or ``modes`` does not have the name.
        """

@final
class Flag:
    """A flag that native code reads in every step, without a call of Python."""

    is_set: bool

    def __new__(cls) -> Flag:
        """It is not set."""

@final
class FusedStep:
    """One pass over the batch of a step for all wrappers around a pool.

    A batch of all rows goes from operation to operation in native code. One in which a row failed,
    or that is not plain for another reason, goes through the methods ``transform``, by ``_pass_on``
    of the outermost wrapper. Final observations that are not arrays like the observations are taken
    out of the infos by ``_taken`` of a wrapper, and put back by ``Finals``.
    """

    def __new__(
        cls,
        kinds: RowKinds,
        final_names: Sequence[str],
        beginnings: Flag,
        unseen: Flag,
        operations: Sequence[tuple[Any, str, tuple[Any, ...]]],
    ) -> FusedStep:
        """Keeps the parts.

        Args:
            kinds: The kinds of rows.
            final_names: The keys under which infos may have final observations; none but in the
                mode ``SAME_STEP``.
            beginnings: Set if seeds or options belong to a batch.
            unseen: Set if results before a batch were lost.
            operations: Of each wrapper, from the innermost to the outermost: the wrapper, ``None``
                for the outermost; a name and its arguments. ``transform`` and ``observe`` call
                ``transform`` and ``_observe`` of the wrapper. ``flatten`` and ``widen`` call
                ``_observe``, too, but ``flatten`` does not where observations are an array of a
                dtype with a number of columns, both given, and ``widen`` makes ``float64`` of an
                array of ``float32``. ``reward`` has a function, whose result ``_checked`` of the
                wrapper looks at; ``clip`` has two limits; ``normalize_rewards`` and
                ``normalize_observations`` a normalizer and a limit or ``None``; ``stack`` what it
                uses; ``episodes`` and ``metrics`` that, and the keys of values and mask;
                ``tensors`` a function of an array and a :class:`TensorExchange` or ``None``.

        Raises:
            ValueError: A name is unknown.
        """

    def pass_on(self, wrapper: Any, result: tuple[Any, ...], /) -> Any:
        """Returns what the outermost wrapper makes of the result of a step of all rows.

        Raises:
            Exception: A function of a wrapper raised it; ``_lose_at`` of the outermost one was
                told how many wrappers have seen the batch.
        """

@final
class TimedEpisodes:
    """Returns, lengths and durations of the running episodes of vector environments."""

    #: The numbers of complete episodes and of dropped ones.
    counts: tuple[int, int]
    #: Whether episodes that end are counted.
    updates: bool

    def __new__(cls, num_envs: int, is_same_step: bool, max_recent: int) -> TimedEpisodes: ...
    def begin(self, rows: NDArray[np.int64] | None, kinds: NDArray[np.uint8], /) -> None:
        """Adds a reset."""

    def step(self, arrays: _StepArrays, /) -> tuple[Any, Any] | None:
        """Adds a step.

        Returns:
            If complete episodes ended: their values ``r``, ``l`` and ``t`` by name, and the mask.
        """

    def take_recent(self) -> list[list[Any]]:
        """Takes returns, lengths and seconds of the last ``most`` complete episodes, in order."""

    def running(self) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:
        """Returns the returns and the lengths of the running episodes, and when they began.

        The last are seconds since this object was made.
        """

    def state(self) -> dict[str, Any]:
        """Returns the state as arrays by name."""

    def set_state(self, state: dict[str, Any], /) -> None:
        """Restores a state; other entries are ignored."""

@final
class EpisodeMetrics:
    """Metrics of the running episodes of vector environments, and episodes that have ended."""

    #: Whether episodes that end are kept for :meth:`finished` and :meth:`mean`.
    updates: bool
    #: Whether the pair of success is shown, and that of failure.
    shown: tuple[bool, bool]

    def __new__(
        cls, num_envs: int, is_same_step: bool, window: int, max_waiting: int
    ) -> EpisodeMetrics: ...
    def begin(
        self,
        rows: NDArray[np.int64] | None,
        kinds: NDArray[np.uint8],
        seeds: NDArray[np.int64] | None,
        /,
    ) -> None:
        """Adds a reset."""

    def step(
        self, arrays: _StepArrays, reported: tuple[_Flag, _Flag], seeds: NDArray[np.int64] | None, /
    ) -> tuple[dict[str, NDArray[Any]], NDArray[np.bool_], tuple[Any, Any] | None]:
        """Adds a step, with the successes and failures that places report.

        Returns:
            Values by name, with the pairs of success and failure that are ``shown``; the mask of
            the episodes that ended; in ``SAME_STEP``, if there are any, both for them alone.
        """

    def finished(self) -> tuple[dict[str, NDArray[Any]], int]:
        """Takes the episodes that have ended, and the number of those that were dropped."""

    def mean(self) -> list[float] | None:
        """Returns the means over the window of return, length, reward and the four flags."""

    def state(self) -> dict[str, Any]:
        """Returns the state as arrays by name."""

    def set_state(self, state: dict[str, Any], /) -> None:
        """Restores a state; other entries are ignored."""

#: The places of a batch that ended an episode in ``SAME_STEP``; those of them with known final
#: observations; and these observations. Places ascend. ``None``: no episode ended.
_Ended: TypeAlias = tuple[NDArray[np.intp], NDArray[np.intp], Any] | None

@final
class ObservationNormalizer:
    """Normalizes observations ``[K, *shape]`` by running moments; keeps rows' last observations."""

    #: The number that is added to the variances.
    epsilon: float
    #: Whether observations change the moments.
    updates: bool

    def __new__(
        cls, num_envs: int, shape: Sequence[int], epsilon: float, autoreset_mode: str
    ) -> ObservationNormalizer:
        """Begins with mean 0, variance 1 and count 1e-4."""

    def normalize(
        self,
        rows: NDArray[np.int64] | None,
        kinds: NDArray[np.uint8],
        observations: Any,
        ended: _Ended,
        /,
    ) -> tuple[NDArray[np.float32], NDArray[np.float32] | None]:
        """Returns the normalized observations of a batch, and of ``ended`` the final ones."""

    def state(self) -> tuple[NDArray[np.float64], NDArray[np.float64], float, NDArray[np.float32]]:
        """Returns copies of mean, variance, count, and the last observation of each environment."""

    def set_state(
        self,
        mean: NDArray[np.float64],
        variance: NDArray[np.float64],
        count: float,
        shown: NDArray[np.float32],
        /,
    ) -> None:
        """Restores a state; raises ``ValueError`` for arrays of other shapes."""

@final
class RewardNormalizer:
    """Divides rewards by the deviation of the discounted returns of episodes."""

    #: The discount.
    gamma: float
    #: The number that is added to the variance.
    epsilon: float
    #: Whether transitions change the moments.
    updates: bool

    def __new__(cls, num_envs: int, gamma: float, epsilon: float) -> RewardNormalizer:
        """Begins with mean 0, variance 1 and count 1e-4; all returns are 0."""

    def reset(self, rows: NDArray[np.int64] | None, kinds: NDArray[np.uint8], /) -> None:
        """Sets the returns of the rows that were reset to 0."""

    def normalize(self, arrays: _StepArrays, /) -> NDArray[np.float64]:
        """Returns the normalized rewards of a batch, 0 for places without a transition."""

    def state(self) -> tuple[float, float, float, NDArray[np.float64]]:
        """Returns mean, variance and count of the returns, and the return of each environment."""

    def set_state(
        self, mean: float, variance: float, count: float, returns: NDArray[np.float64], /
    ) -> None:
        """Restores a state; raises ``ValueError`` for an array of another shape."""

@final
class FrameStack:
    """The last frames of each environment: observations of one leaf of a space."""

    def __new__(
        cls, num_envs: int, depth: int, padding: NDArray[Any], *, repeats: bool
    ) -> FrameStack:
        """Begins with zeros.

        ``padding`` is a frame. With ``repeats`` only its dtype and shape count, and an episode
        begins with its first frame ``depth`` times.
        """

    def advance(
        self,
        rows: NDArray[np.int64] | None,
        kinds: NDArray[np.uint8],
        frames: Any,
        ended: _Ended,
        /,
    ) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Returns the stacks of a batch, and the final ones of ``ended``.

        They are ``[K, depth, *shape]``, oldest frames first.
        """

    def state(self) -> NDArray[Any]:
        """Returns the stacks of all environments, a copy."""

    def set_state(self, stacks: NDArray[Any], /) -> None:
        """Goes on with stacks; raises ``ValueError`` for another shape."""
