"""Vector environments over environments written in Rust."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, cast

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from cartwheel._cartwheel import Memory, NativeEnvs, Pool, block_rows, fine_shards, native_envs
from cartwheel._internal.arguments import (
    as_drawn_rows,
    as_integer,
    as_num_envs,
    as_num_workers,
    as_timeout,
    check_max_batches,
)
from cartwheel._internal.literals import NativeExecutor, check_choice
from cartwheel._internal.logging import LOGGER, reminder_s
from cartwheel._internal.suggestions import keywords_of, names_methods
from cartwheel.errors import named_rows
from cartwheel.native.attributes import NativeAttributes
from cartwheel.native.callbacks import NativeCallbacks
from cartwheel.native.ids import as_env_id
from cartwheel.native.keywords import (
    as_json,
    check_keywords,
    environment_keywords,
    read_spec,
)
from cartwheel.native.mujoco.env import MujocoBackend, is_mujoco
from cartwheel.native.mujoco.renderer import RowsRenderer
from cartwheel.native.registration import registered_id
from cartwheel.native.renderer import GymnasiumRenderer, OwnRenderer, WindowedPool
from cartwheel.native.spaces import as_space, vector_spec
from cartwheel.vector.episode_rules import Rules
from cartwheel.vector.memory_plan import require_native_rows, spins
from cartwheel.vector.pool_owner import ActType, ObsType
from cartwheel.workers.restart_policy import RestartPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cartwheel._internal.literals import FinalNames, FinalObs, Mode, OnDone, OnError
    from cartwheel.native.renderer import Renderer


@names_methods
class NativeVectorEnv(
    NativeAttributes[ObsType, ActType], gym.vector.VectorEnv[ObsType, ActType, Any]
):
    """Steps many copies of an environment written in Rust, on threads, without the GIL.

    Example:
        >>> import cartwheel
        >>> envs = cartwheel.NativeVectorEnv("CartPole-v1", 1024)
        >>> observations, infos = envs.reset(seed=7)
        >>> observations.shape
        (1024, 4)
        >>> envs.close()

    Results equal those of Gymnasium's environment of the same id, bit for bit. After
    ``reset(seed=s)``, row ``i`` equals the single environment with the seed ``s + i``. Results do
    not depend on ``num_workers``.

    Actions are checked before anything is stepped: their number, shape and dtype, the range of
    discrete actions, and NaN in floats. Actions of another dtype are cast to the dtype of the space
    by NumPy's rule ``same_kind``: ``float64`` to ``float32``, but never floats to integers.
    MuJoCo's environments get ``float64`` actions as they are, as in Gymnasium.
    Returned arrays follow the same rules as for :class:`~cartwheel.VectorEnv`.

    Wrappers of ``gymnasium.wrappers.vector`` wrap all rows together; :class:`~cartwheel.VectorEnv`
    has their limits. ``gymnasium.make_vec`` refuses ``wrappers`` and ``vector_kwargs`` for native
    ids, as for every id with a vector entry point: pass the keywords themselves, as in
    ``gymnasium.make_vec("cartwheel/CartPole-v1", 4, executor="inline")``.

    Args:
        env_id: A native environment, with or without the namespace ``cartwheel/``; ``python -m
            cartwheel envs`` lists them. Or one of a plugin, see :func:`~cartwheel.register`,
            possibly with the module to import first: ``"my_game:my_game/Maze-v0"``. Or its
            ``EnvSpec``, whose keywords and step limit become the defaults.
        num_envs: Number of environments.
        autoreset_mode: When a finished environment restarts, as for :class:`~cartwheel.VectorEnv`.
        max_episode_steps: Steps after which an episode is truncated. As for ``gymnasium.make``,
            ``None`` means the limit of the ``EnvSpec`` or of Gymnasium's registry, and ``-1`` means
            no limit.
        render_mode: The kind of result of :meth:`render`: ``"rgb_array"``, ``"ansi"`` if
            Gymnasium's environment has it, or ``None``. ``"human"`` draws windows after every step
            and reset. Environments of plugins have the modes of their ``metadata``, and draw no
            windows.
        executor: ``"thread"`` or ``"auto"``: threads and the calling thread share the rows, but the
            calling thread steps small batches alone, because waking a thread takes longer.
            ``"inline"``: the calling thread steps every batch.
        num_workers: Number of threads, including the calling one. The default is one for each
            usable processor, or fewer if there are few rows and the environment steps many rows at
            once. With a ``batch_size`` below ``num_envs``, half as many rows are enough for a
            thread.
        max_concurrency: As for :class:`~cartwheel.VectorEnv`.
        batch_size: As for :class:`~cartwheel.VectorEnv`.
        on_done: As for :class:`~cartwheel.VectorEnv`.
        on_error: As for :class:`~cartwheel.VectorEnv`, for panics and failures of native
            environments. The row shows the first observation of the new environment.
        max_restarts: As for :class:`~cartwheel.VectorEnv`.
        timeout: As for :class:`~cartwheel.VectorEnv`. The calling thread checks the time after each
            shard that it steps. There are up to ten shards for each thread, or one shard if there
            is only one thread, but more if there are tens of thousands of rows.
        max_batches: As for :class:`~cartwheel.VectorEnv`.
        ignore_terminations: As for :class:`~cartwheel.VectorEnv`. Rows continue like Gymnasium's
            environments that are stepped past their termination. Needs a step limit.
        action_repeat: As for :class:`~cartwheel.VectorEnv`.
        staggered_reset: As for :class:`~cartwheel.VectorEnv`. A row without a new seed keeps its
            seed, see :attr:`np_random_seed`, and so its number of steps.
        final_obs: As for :class:`~cartwheel.VectorEnv`.
        final_names: As for :class:`~cartwheel.VectorEnv`.
        full_batch: As for :class:`~cartwheel.VectorEnv`.
        action_mask: As for :class:`~cartwheel.VectorEnv`.
        thread_affinity_offset: Pin the threads (not the calling one) to consecutive processors from
            this number on, modulo the number of processors. By default they are not pinned.
        **options: Keywords of the environment, as in Gymnasium. Other keywords of
            :class:`~cartwheel.VectorEnv` are accepted, too, so that the same call works for both.
            ``shared_memory``, ``copy``, ``context``, ``daemon`` and ``states`` change nothing;
            ``worker``, ``observation_mode``, ``on_worker_death``, ``on_timeout``,
            ``max_episodes_per_worker`` and ``max_worker_memory`` must have their defaults.
            MuJoCo's environments have ``model_per_row``, too: with ``True`` each row has a copy of
            the model, whose fields :meth:`set_attr` can set.

    Raises:
        ImportError: The environment needs MuJoCo, which is not installed or older than 3.2.
        OSError: The ``xml_file`` of MuJoCo's environment does not exist.
        TypeError: The ``EnvSpec`` is not native, or belongs to a vector or a wrapped environment.
            A keyword does not exist; the error names those that exist. Or a switch such as
            ``full_batch`` is not a ``bool``.
        ValueError: The environment does not exist, or a value is invalid.
    """

    #: Computes rewards and flags, if the environments in Rust do not.
    _external_rewards: Callable[..., Any] | None = None
    #: Called before each step.
    _before_step: Callable[[], None] | None = None
    #: Writes the first states of episodes, if the environments in Rust do not.
    _external_resets: Callable[..., Any] | None = None

    def __init__(
        self,
        env_id: str | EnvSpec,
        num_envs: int,
        *,
        autoreset_mode: Mode = AutoresetMode.NEXT_STEP,
        max_episode_steps: int | None = None,
        render_mode: str | None = None,
        executor: NativeExecutor = "auto",
        num_workers: int | None = None,
        max_concurrency: int | None = None,
        batch_size: int | None = None,
        on_done: OnDone = "raise",
        on_error: OnError = "raise",
        max_restarts: int | None = 10,
        timeout: float | None = None,
        max_batches: int | None = None,
        ignore_terminations: bool = False,
        action_repeat: int = 1,
        staggered_reset: bool = False,
        final_obs: FinalObs = "object",
        final_names: FinalNames = "gymnasium",
        full_batch: bool = False,
        action_mask: str | None = "action_mask",
        thread_affinity_offset: int | None = None,
        **options: Any,
    ) -> None:
        arguments = dict(locals())
        limit = max_episode_steps
        if isinstance(env_id, EnvSpec):
            if limit is None:  # a spec without a limit overrides the registered limit
                limit = -1 if env_id.max_episode_steps is None else env_id.max_episode_steps
            env_id, defaults = read_spec(env_id)
            default_mode = defaults.pop("render_mode", None)
            render_mode = default_mode if render_mode is None else render_mode
            options = defaults | options
        options = environment_keywords(options)
        self.restart_policy = RestartPolicy(on_error, max_restarts=max_restarts)
        check_choice("executor", executor, NativeExecutor)
        check_max_batches(max_batches)
        timeout = as_timeout(timeout)
        self._set_batches(
            as_num_envs(num_envs),
            batch_size,
            full_batch=full_batch,
            autoreset_mode=autoreset_mode,
            on_done=on_done,
            final_obs=final_obs,
            final_names=final_names,
            action_mask=action_mask,
        )
        self.executor = "inline" if executor == "inline" else "thread"
        self.env_id = self._known_id(env_id, options)
        block = block_rows(self.env_id)
        self.num_workers = self._choose_workers(num_workers, max_concurrency, block)
        self._rules = Rules.from_keywords(
            _as_limit(limit, self.env_id), ignore_terminations, action_repeat, staggered_reset
        )
        self._rules.check_limits([False])
        if thread_affinity_offset is not None:
            as_integer("thread_affinity_offset", thread_affinity_offset, 0, limit=2**32)
        self.render_mode = render_mode
        native_id = registered_id(self.env_id)
        self.spec = vector_spec(NativeVectorEnv.__init__, arguments, native_id)

        self._mujoco = self._mujoco_backend(options)
        shards = fine_shards(self.num_envs, self.num_workers, block)
        envs = NativeEnvs(
            self.env_id,
            as_json(options if self._mujoco is None else self._mujoco.options),
            shards,
            autoreset_mode=self.autoreset_mode.value,
            freeze=on_done == "freeze",
            rules=self._rules.as_dict(),
            replacements=self.restart_policy.replacements,
            dense_finals=final_obs == "dense",
            external_rewards=self._external_rewards is not None,
            external_resets=None if self._external_resets is None else "simulation",
        )
        self._renderer = self._renderer_of(envs, native_id, options)
        self._open(envs, shards, max_batches, timeout, thread_affinity_offset)
        self._opened(_shut_down)
        LOGGER.debug(
            "%s of %d environments: %d threads", native_id, self.num_envs, self.num_workers
        )
        if render_mode == "human":
            self._pool = cast("Pool", WindowedPool(self._pool, self._draw))

    def _choose_workers(
        self, num_workers: int | None, max_concurrency: int | None, block: int
    ) -> int:
        """Returns the number of threads, for an environment that steps ``block`` rows at once."""
        max_workers = self.num_envs
        if num_workers is None:
            # If rows are received in parts, workers step the others in parallel, which pays off
            # sooner.
            rows_each = block if self.batch_size == self.num_envs else max(1, block // 2)
            max_workers = max(1, self.num_envs // rows_each)
        threads = as_num_workers(num_workers, max_concurrency, max_workers)
        return 1 if self.executor == "inline" else threads

    def _known_id(self, env_id: str, options: dict[str, Any]) -> str:
        """Returns the id without ``cartwheel/``; raises if it or an option does not exist."""
        name = as_env_id(env_id)
        check_keywords(
            name, options, "NativeVectorEnv", _KEYWORDS, 'envs.set_attr("{name}", {value})'
        )
        return name

    def _mujoco_backend(self, options: dict[str, Any]) -> MujocoBackend | None:
        """Returns the MuJoCo part; ``None`` for environments that Rust computes itself."""
        return MujocoBackend(self.env_id, options) if is_mujoco(self.env_id) else None

    def _renderer_of(self, envs: NativeEnvs, native_id: str, options: dict[str, Any]) -> Renderer:
        """Returns the renderer of the environments; those of plugins draw themselves."""
        if self._mujoco is not None:
            return RowsRenderer(self._shown_id, self._mujoco, self.render_mode)
        modes = envs.render_modes()
        if modes or native_id == self.env_id:  # Gymnasium does not have environments of plugins
            return OwnRenderer(self.env_id, modes, envs.render_fps(), self.render_mode)
        return GymnasiumRenderer(self.env_id, options, self.render_mode, native_id=native_id)

    def _open(
        self,
        envs: NativeEnvs,
        shards: list[tuple[int, int]],
        max_batches: int | None,
        timeout: float | None,
        affinity_offset: int | None,
    ) -> None:
        """Sets the spaces, makes the memory and opens the pool."""
        observation, action = envs.spaces()
        self.single_observation_space = as_space(observation)
        self.single_action_space = as_space(action)
        plan, masks = self._plan_memory(shards, max_batches, native=True)
        require_native_rows(plan, self.num_envs)
        memory = Memory(**plan)  # first, because it may be refused
        self.observation_space = batch_space(self.single_observation_space, self.batch_size)
        self.action_space = batch_space(self.single_action_space, self.batch_size)
        self.metadata = {**self._renderer.metadata, "autoreset_mode": self.autoreset_mode}
        envs.make()

        callbacks = NativeCallbacks(self, self.env_id, envs, shards, timeout)
        callbacks.draw_kept = self._renderer.draw_kept
        self._callbacks = callbacks
        self._pool = Pool(
            memory,
            plan["observations"],
            plan["actions"],
            shard=envs,
            pids=[],
            objects=[None] * len(shards),
            channels=[],
            callbacks=callbacks,
            class_name=self._class_name,
            timeout=timeout,
            columnar=type(self)._add_info is gym.vector.VectorEnv._add_info,
            spin=spins(),
            inline=False,
            reminder=reminder_s(),
            num_threads=self.num_workers,
            affinity_offset=affinity_offset,
            maniskill_names=self.final_names == "maniskill",
            masks=masks,
            external_rewards=None if self._external_rewards is None else callbacks.external_rewards,
            external_resets=(
                None if self._external_resets is None else (callbacks.external_resets, "written")
            ),
            before_step=None if self._before_step is None else callbacks.before_step,
        )

    def close_extras(self, timeout: float | None = None, terminate: bool = False) -> None:  # noqa: FBT001 - Gymnasium's signature
        """Like :meth:`cartwheel.VectorEnv.close_extras`; also closes windows."""
        super().close_extras(timeout, terminate)
        self._renderer.close()

    @property
    def _shown_id(self) -> str:
        return self.env_id

    # Rendering

    def render(self, env_index: Any = None) -> tuple[Any, ...]:
        """Renders environments: like Gymnasium's of the same id, or as their plugin draws them.

        Args:
            env_index: Row numbers, in any order: only these rows are drawn. By default all rows.

        Returns:
            One frame for each of these rows, in this order. Frames are arrays of ``uint8`` and
            shape ``(height, width, 3)`` for ``"rgb_array"``, text for ``"ansi"``, and ``None`` for
            ``"human"``. Without a render mode also ``None``, with a warning.

        Raises:
            gymnasium.error.ResetNeeded: Some of the rows were never reset.
            TypeError: ``env_index`` is not a one-dimensional collection of integers.
            ValueError: ``env_index`` is empty, or a row does not exist or is named twice.
            gymnasium.error.DependencyNotInstalled: pygame is missing.
            NotImplementedError: Gymnasium has no environment of this id.
            EnvFailedError: A plugin could not draw a row.
        """
        self._pool.check("render", idle=True)
        rows = self._numbers(env_index)
        fresh = sorted(set(rows).difference(self._pool.rows_begun()))
        if fresh:
            raise gym.error.ResetNeeded(
                f"Cannot call `render()` before `reset()`: {named_rows(fresh)} have not been reset."
            )
        return self._draw(rows)

    def _draw(self, rows: Sequence[int] | None = None) -> tuple[Any, ...]:
        """Draws rows; by default every row that was ever reset."""
        if rows is None:
            rows = self._pool.rows_begun()
        return self._renderer.draw(
            rows, self._callbacks, functools.partial(self._control, "render")
        )

    def draw_final_frames(self, env_index: Any = None) -> None:
        """Like :meth:`cartwheel.VectorEnv.draw_final_frames`.

        Environments that come with cartwheel keep their parameters before the reset; Gymnasium's
        environment of the same id draws from them when the step returns. Plugins draw before the
        reset; one that cannot draw fails the row, with any ``on_error``.

        Raises:
            Exception: As for :meth:`cartwheel.VectorEnv.draw_final_frames`.
        """
        self._pool.check("draw_final_frames", idle=True)
        rows = as_drawn_rows(env_index, self.num_envs, self.render_mode)
        self._control("draw_final_frames", self._callbacks.pack_keep(rows, self._renderer.keeps))

    def _read(self, calling: str, name: str, env_index: Any) -> tuple[Any, ...]:
        if name == "render":
            return self.render(env_index)
        return super()._read(calling, name, env_index)


#: The keywords of every native vector environment.
_KEYWORDS = keywords_of(NativeVectorEnv) - {"env_id", "num_envs"}


def _as_limit(limit: Any, env_id: str) -> Any:
    """Returns the steps after which an episode is truncated, unchecked; ``None`` for no limit.

    Args:
        limit: The argument ``max_episode_steps``.
        env_id: The environment, without ``cartwheel/``.
    """
    if limit is None:
        limit = {name: own for name, own, _, _ in native_envs()}.get(env_id)
    return None if limit == -1 else limit  # -1 is Gymnasium's name for no limit


def _shut_down(pool: Pool, grace: float) -> None:
    pool.close(grace)


def make_native(
    num_envs: int, *, env_id: str, autoreset_mode: Mode | None = None, **keywords: Any
) -> NativeVectorEnv:
    """Makes a native vector environment: the entry point of every native id.

    Like :class:`NativeVectorEnv`, but ``autoreset_mode=None`` means the default mode.
    """
    if autoreset_mode is not None:
        keywords["autoreset_mode"] = autoreset_mode
    return NativeVectorEnv(env_id, num_envs, **keywords)
