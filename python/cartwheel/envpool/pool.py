"""The methods of all pools: send, receive, reset, close. Subclasses convert the results."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, NoReturn, TypeVar

import gymnasium as gym
import numpy as np

from cartwheel._internal import nested
from cartwheel._internal.arguments import as_timeout, check_dictionary
from cartwheel._internal.closing import ClosesAfterWith
from cartwheel._internal.reset_arguments import ROW_OPTIONS, as_reset_mask
from cartwheel._internal.suggestions import names_methods
from cartwheel.envpool import engine
from cartwheel.envpool.checks import EnvBusyError, as_env_ids, check_distinct
from cartwheel.envpool.config import spread_seeds
from cartwheel.envpool.formats import check_length, checked, form_of, read_actions, safe_dtypes
from cartwheel.envpool.players import Players, without_step
from cartwheel.envpool.registry import info_dtypes
from cartwheel.envpool.saved import SavedPool
from cartwheel.envpool.spec import EnvSpec
from cartwheel.native.vector_env import NativeVectorEnv

if TYPE_CHECKING:
    from gymnasium.spaces import Space
    from numpy.typing import NDArray

    from cartwheel.envpool.config import Config
    from cartwheel.envpool.registry import Task
    from cartwheel.vector.pool_owner import PoolOwner
    from cartwheel.vector.stats import Stats


#: What :meth:`EnvPool.step` returns, and ``recv`` without keywords.
Step = TypeVar("Step")

#: The exceptions with which the core refuses a send before anything is sent.
_REFUSALS = (TypeError, ValueError, gym.error.ResetNeeded, gym.error.AlreadyPendingCallError)


class Batch(NamedTuple):
    """A received batch: one row for each environment.

    With several players, observations and rewards have one row for each player.
    """

    observations: Any
    rewards: NDArray[np.float32]
    terminations: NDArray[np.bool_]
    truncations: NDArray[np.bool_]
    infos: dict[str, Any]


@names_methods
class EnvPool(SavedPool, ClosesAfterWith, Generic[Step]):
    """The methods of all pools; :func:`~cartwheel.envpool.make` documents their keywords.

    Only one thread may use a pool at a time: a call during a call of another thread raises
    ``gymnasium.error.AlreadyPendingCallError``.

    Attributes:
        num_envs: Number of environments.
        batch_size: Environments that :meth:`recv` returns.
        is_async: Whether batches have the environments that finish first: ``batch_size <
            num_envs``.
        observation_space: The space of one environment, or of one player; not of a batch.
        action_space: The space of one environment, or of one player; not of a batch.
        single_observation_space: The same as ``observation_space``.
        single_action_space: The same as ``action_space``.
        spec: The result of :func:`~cartwheel.envpool.make_spec` for this pool.
        metadata: The metadata of the environments, with ``autoreset_mode``.
    """

    recv: Any
    observation_space: Space[Any]
    action_space: Space[Any]
    single_observation_space: Space[Any]
    single_action_space: Space[Any]

    def __init__(self, task: Task, config: Config) -> None:
        self._envs = engine.start(task, config)
        self._native = isinstance(self._envs, NativeVectorEnv)
        self.num_envs = config.num_envs
        self.batch_size = config.batch_size
        self.is_async = self.batch_size < self.num_envs
        self.metadata = dict(self._envs.metadata)
        self.render_mode = self._envs.render_mode
        self._players: Players | None = None
        if task.parallel:
            observation, action, places = self.metadata.pop("players")
            self._players = Players(action, places, self.num_envs)
        else:
            observation = self._envs.single_observation_space
            action = self._envs.single_action_space
        form = form_of(observation)
        self.observation_space = self.single_observation_space = form.space
        self.action_space = self.single_action_space = action
        self._convert = form.convert
        self._info_dtypes = info_dtypes(task.task_id)
        #: Whether batches of the core already have EnvPool's form.
        self._has_form = not (self._players or self._convert or self._info_dtypes)
        self.spec: Any = EnvSpec(task, config, form.space, action)
        self._ids = np.arange(self.num_envs)
        #: The native pool, which also counts the steps of episodes and makes EnvPool's infos.
        self._pool = self._envs._pool
        self._pool.count_episodes(self.autoreset_mode.value)
        alone = self._native and self._players is None
        #: Dtypes of actions that the core casts and checks itself.
        self._core_dtypes = safe_dtypes(self.single_action_space) if alone else frozenset()
        #: The seed of each environment's next reset, until it has been reset.
        self._seeds: list[int | None] = list(config.seeds)
        self._timeout = as_timeout(config.timeout)

    @property
    def autoreset_mode(self) -> gym.vector.AutoresetMode:
        """When a finished environment restarts."""
        return self._envs.autoreset_mode

    @property
    def config(self) -> dict[str, Any]:
        """The configuration, as a new dictionary; ``seed`` is the seed that was used."""
        config: dict[str, Any] = self.spec.config._asdict()
        return config

    @property
    def all_env_ids(self) -> NDArray[np.int32]:
        """``0`` to ``num_envs - 1``, ``int32``."""
        return self._ids.astype(np.int32)

    def __len__(self) -> int:
        return self.num_envs

    @property
    def _pool_owner(self) -> PoolOwner:
        """The vector environment whose pool counts the steps and resets of all callers."""
        return self._envs

    # Sending

    def send(self, action: Any, env_id: Any = None) -> None:
        """Sends actions to environments and returns at once; :meth:`recv` returns the results.

        An environment that was never reset is reset instead, with its own seed, and its action is
        dropped, because EnvPool's environments begin in the state "done". The same holds for
        environments whose result was lost to an exception of :meth:`recv`. In the mode
        ``DISABLED``, both raise instead.

        If an argument is invalid, nothing is sent. Actions are copied.

        Args:
            action: One action for each environment, or for each player that was received last: an
                array or list of shape ``(rows, *shape)``, or a dictionary with the key ``"action"``
                or the keys of the action space, and optionally ``"env_id"`` and
                ``"players.env_id"``. Discrete actions are integers of any width, in range; floats
                are cast to the dtype of the space. Other kinds of dtype are refused. (EnvPool casts
                all dtypes.)
            env_id: The environments, an array or list of distinct integers; all by default.
                Required if ``batch_size`` is below ``num_envs``.

        Raises:
            ValueError: The number or the shape of the actions is wrong, an action is out of range
                or NaN, or ``env_id`` is empty, has repeated numbers, or is missing in asynchronous
                mode.
            TypeError: Actions or ``env_id`` have another kind of dtype, or actions are not a batch.
            IndexError: An environment does not exist.
            EnvBusyError: The last results of some of these environments were not received yet.
            EpisodeOverError: Some episodes are over, and the mode is ``DISABLED``.
            gymnasium.error.ResetNeeded: Some environments were never reset, or their last result
                was lost; and the mode is ``DISABLED``, or they have several players.
        """
        if (
            type(action) is np.ndarray
            and action.dtype in self._core_dtypes
            and (env_id is not None or not self.is_async)
        ):
            try:
                self._pool.send(action, env_id)
            except _REFUSALS:
                pass  # nothing was sent; the code below raises the error, or sends resets
            else:
                return
        self._send_checked(action, env_id)

    def step(self, action: Any, env_id: Any = None) -> Step:
        """Sends and receives: :meth:`send` followed by ``recv``, whose results it returns."""
        try:
            self.send(action, env_id)
        except EnvBusyError as busy:
            raise EnvBusyError("step", busy.env_ids) from None
        received: Step = self.recv()
        return received

    def _read(self, action: Any, env_id: Any) -> tuple[Any, Any, Any]:
        """Returns actions, the environments that they are for, and the environments of players."""
        owners = None
        if isinstance(action, dict):
            action, named, owners = read_actions(self.single_action_space, action)
            env_id = named if env_id is None else env_id
        if env_id is None and self.is_async:
            raise ValueError(
                f"`env_id` is required in asynchronous mode (batch_size={self.batch_size} of "
                f"num_envs={self.num_envs}): send to info['env_id']"
            )
        return action, env_id, owners

    def _send_checked(self, action: Any, env_id: Any) -> None:
        action, env_id, owners = self._read(action, env_id)
        ids = self._ids if env_id is None else as_env_ids(env_id, self.num_envs)
        self._pool.check("send", idle=False)
        without = self._pool.without_episode()
        fresh = np.isin(ids, without) if without else np.zeros(len(ids), np.bool_)
        begins = bool(without) and bool(fresh.any())
        if self._players is not None:
            if begins:
                raise gym.error.ResetNeeded(
                    f"environments {ids[fresh].tolist()} of several players must be reset first: "
                    "only a reset shows which players take part"
                )
            actions = self._players.places_of(ids, action, owners)
        else:
            actions = self._checked(action, ids, everything=begins)
        if begins:
            self._begin_some(actions, ids, fresh)
            return
        try:
            self._pool.send(actions, None if env_id is None else ids)
        except gym.error.AlreadyPendingCallError:
            self._refuse_busy("send", ids)
            raise

    def _checked(self, actions: Any, ids: NDArray[Any], *, everything: bool) -> Any:
        """Returns the actions, checked and cast, unless the core does both."""
        if not everything and self._core_dtypes:
            array = np.asarray(actions)
            check_length(array, len(ids))
            if array.dtype in self._core_dtypes:
                return array
        return checked(self.single_action_space, actions, ids)

    def _begin_some(self, actions: Any, ids: NDArray[Any], fresh: NDArray[np.bool_]) -> None:
        """Sends resets to environments that need one and actions to the others, in order."""
        check_distinct(ids)
        self._refuse_busy("send", ids)
        if self.autoreset_mode == gym.vector.AutoresetMode.DISABLED:
            raise gym.error.ResetNeeded(
                f"environments {ids[fresh].tolist()} have no episode: they were never reset, or "
                "their last result was lost; reset them first, because autoreset is disabled"
            )
        cuts = np.flatnonzero(np.diff(fresh)) + 1
        parts = [
            (ids[places], fresh[places[0]], nested.take(self.single_action_space, actions, places))
            for places in np.split(np.arange(len(ids)), cuts)
        ]
        for some, begin, own in parts:
            if begin:
                self._send_reset("send", some, None, {}, alone=False)
            else:
                self._pool.send(own, some)

    def async_reset(
        self, env_id: Any = None, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> None:
        """Begins the reset of environments and returns at once; :meth:`recv` returns the results.

        Args:
            env_id: The environments; all by default.
            seed: An integer ``s`` seeds environment ``i`` by ``s + i``; a list has one seed or
                ``None`` for each of ``env_id``. By default, the first reset uses the seed of the
                constructor, and later ones continue the random numbers.
            options: Passed to the environments.

        Raises:
            IndexError, TypeError, ValueError: As for :meth:`send`.
            EnvBusyError: The last results of some of these environments were not received yet.
                After a :meth:`recv` that timed out, this error is not raised: the method waits for
                all outstanding results and drops them.
        """
        self._begin_reset("async_reset", env_id, seed, options, alone=False)

    def _begin_reset(
        self,
        calling: str,
        env_id: Any,
        seed: Any,
        options: dict[str, Any] | None,
        *,
        alone: bool,
    ) -> None:
        ids = self._ids if env_id is None else as_env_ids(env_id, self.num_envs)
        check_dictionary("options", options)
        if options and not set(ROW_OPTIONS).isdisjoint(options):
            raise ValueError("name the environments by `env_id`; only `reset` takes a `reset_mask`")
        self._send_reset(calling, ids, seed, options or {}, alone=alone)

    def _send_reset(
        self, calling: str, ids: NDArray[Any], seed: Any, options: dict[str, Any], *, alone: bool
    ) -> None:
        """Sends resets; ``alone``: no results may be outstanding, of any environment."""
        if seed is None:
            seed = [self._seeds[row] for row in ids.tolist()]
        try:
            options = {**options, "env_index": ids}
            self._envs._send_resets(calling, seed, options, alone=alone)
        except gym.error.AlreadyPendingCallError:
            self._refuse_busy(calling, self._ids if alone else ids)
            raise
        self._forget_seeds(ids)

    def seed(self, seed: Any = None) -> None:
        """Sets the seed of each environment's next reset.

        The next reset is the next :meth:`reset` or :meth:`async_reset` without seeds of its own, or
        the first :meth:`send` to an environment without an episode. Autoresets continue the random
        numbers. ``config`` keeps the seed of the constructor. (EnvPool warns and does nothing.)

        Args:
            seed: As for :func:`~cartwheel.envpool.make`; ``None`` changes nothing.

        Raises:
            TypeError, ValueError: ``seed`` is neither an integer nor a list with one integer for
                each environment. No seed was changed.
        """
        if seed is not None:
            self._seeds = list(spread_seeds("seed", seed, self.num_envs))

    def _forget_seeds(self, ids: NDArray[Any]) -> None:
        """Drops the seeds of environments that were reset, which continue their random numbers."""
        for row in ids.tolist():
            self._seeds[row] = None

    def _refuse_busy(self, calling: str, ids: NDArray[Any]) -> None:
        """Raises if results of some of these environments are outstanding."""
        busy = ids[np.isin(ids, self._pool.in_flight())]
        if busy.size:
            raise EnvBusyError(calling, busy.tolist())

    # Receiving

    def _receive(self, timeout: float | None) -> Batch:
        """Receives the next batch in EnvPool's form."""
        batch = Batch(*self._pool.recv(self._timeout if timeout is None else as_timeout(timeout)))
        return batch if self._has_form else self._formed(batch)

    def _formed(self, batch: Batch) -> Batch:
        """Returns a batch of the core in EnvPool's form."""
        if self._players is not None:
            batch = self._by_player(batch)
        if self._convert is not None:
            batch = Batch(self._convert(batch.observations), *batch[1:])
        for key, dtype in self._info_dtypes.items():
            if key in batch.infos:
                batch.infos[key] = batch.infos[key].astype(dtype)
        return batch

    def _by_player(self, batch: Batch) -> Batch:
        assert self._players is not None, "asked by the caller"
        observations, rewards, players = self._players.rows(
            batch.infos["env_id"], batch.observations, batch.truncations
        )
        batch.infos["players"] = players
        return Batch(observations, rewards, *batch[2:])

    def _reset(self, env_id: Any, seed: Any, options: dict[str, Any] | None) -> Batch:
        """Resets environments and receives a batch."""
        check_dictionary("options", options)
        if options is not None and "reset_mask" in options:
            if env_id is not None:
                raise ValueError("name the environments by `env_id` or by a `reset_mask`, not both")
            return self._reset_masked(seed, options)
        # It returns no rewards, so those of no environment may be outstanding.
        self._begin_reset("reset", env_id, seed, options, alone=True)
        batch = self._receive(None)
        if len(batch.infos["env_id"]) == self.num_envs:
            self._envs._reset_at = self._pool.begun()
        return batch

    def _reset_masked(self, seed: Any, options: dict[str, Any]) -> Batch:
        """Resets the environments of a mask and returns all environments, as Gymnasium does."""
        if self.is_async:
            raise ValueError("`reset_mask` needs batch_size == num_envs: use `env_id` instead")
        mask = as_reset_mask(options, self.num_envs)
        assert mask is not None, "looked up by the caller"
        seeds = self._seeds if seed is None else seed
        try:
            self._envs.reset_async(seed=seeds, options=options)
        except gym.error.AlreadyPendingCallError:
            self._refuse_busy("reset", self._ids)
            raise
        ids = mask.nonzero()[0]
        self._forget_seeds(ids)
        try:
            observations, infos = self._envs.reset_wait(self._timeout)
        except BaseException:
            with contextlib.suppress(Exception):  # closed or broken
                self._pool.lose(ids)
            raise
        self._pool.begin_episodes(ids)
        infos["env_id"] = self.all_env_ids
        infos["players"] = {"env_id": self.all_env_ids}
        infos["elapsed_step"] = np.array(self._pool.elapsed(), np.int32)
        flags = np.zeros((2, self.num_envs), np.bool_)
        if self._players is not None:
            observations = without_step(observations)
        rewards = np.zeros(self.num_envs, np.float32)
        return self._formed(Batch(observations, rewards, flags[0], flags[1], infos))

    def stats(self) -> Stats:
        """Returns steps, resets and times of each row and worker, as of ``VectorEnv``."""
        return self._envs.stats()

    # Other methods

    def render(self, env_ids: Any = None) -> Any:
        """Renders environments; no results may be outstanding.

        Args:
            env_ids: The environments, an integer or an array or list of distinct integers; all by
                default.

        Returns:
            Frames, ``uint8`` of shape ``(len(env_ids), height, width, 3)``; a list if frames are
            not arrays; ``None`` with ``render_mode="human"``.

        Raises:
            RuntimeError: The pool was made without a ``render_mode``.
            IndexError, TypeError, ValueError: As for :meth:`send`, about ``env_ids``.
            gymnasium.error.AlreadyPendingCallError: Results are outstanding.
            gymnasium.error.ResetNeeded: Some of them have not been reset.
        """
        if self.render_mode is None:
            raise RuntimeError(
                "there is nothing to render: the pool was made without a render mode; "
                "render_mode='rgb_array' gives frames"
            )
        if isinstance(env_ids, int | np.integer):
            env_ids = [env_ids]
        ids = self._ids if env_ids is None else as_env_ids(env_ids, self.num_envs)
        check_distinct(ids)
        frames = self._envs.render(ids)
        if self.render_mode == "human":
            return None
        return np.stack(frames) if isinstance(frames[0], np.ndarray) else list(frames)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.spec.task_id!r}, num_envs={self.num_envs})"

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} cannot be pickled or copied: make another one")

    def xla(self) -> Any:
        """Returns functions for JAX, see :meth:`GymnasiumEnvPool.xla`; other forms have none.

        Raises:
            RuntimeError: Always.
        """
        raise RuntimeError(
            "XLA is unavailable for this form of results: make the pool with env_type='gymnasium'"
        )

    def close(self, **keywords: Any) -> None:
        """Closes the environments and ends their workers; later calls of other methods raise.

        Args:
            **keywords: The keywords of ``VectorEnv.close``: ``timeout`` (seconds) and
                ``terminate``.
        """
        self._envs.close(**keywords)
