"""What every pool does, whatever form its results have: send, receive, reset, close."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import gymnasium as gym
import numpy as np

from cartwheel.arguments import as_reset_mask
from cartwheel.envpool import engine
from cartwheel.envpool.actions import check_length, checked, read_actions, safe_dtypes, take
from cartwheel.envpool.env_ids import as_env_ids, check_distinct
from cartwheel.envpool.episodes import EVERY, Episodes
from cartwheel.envpool.errors import EnvBusyError
from cartwheel.envpool.players import Players
from cartwheel.envpool.spec import EnvSpec
from cartwheel.errors import EpisodeOverError
from cartwheel.native import NativeVectorEnv

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cartwheel.envpool.config import Config
    from cartwheel.envpool.registry import Task


class Batch(NamedTuple):
    """What was received: one row an environment, or observations and rewards one a player."""

    observations: Any
    rewards: NDArray[np.float64]
    terminations: NDArray[np.bool_]
    truncations: NDArray[np.bool_]
    infos: dict[str, Any]


class EnvPool:
    """The methods that all pools have; :func:`~cartwheel.envpool.make` documents their keywords.

    A pool belongs to one thread at a time: a call while another thread is in one raises
    ``gymnasium.error.AlreadyPendingCallError``.

    Attributes:
        num_envs: Number of environments.
        batch_size: Environments that :meth:`recv` returns.
        is_async: Whether it returns those that are done first: ``batch_size < num_envs``.
        single_observation_space: Of one environment, or of one player.
        single_action_space: Of one environment, or of one player.
        spec: What :func:`~cartwheel.envpool.make_spec` returns.
        metadata: Holds ``autoreset_mode``.
    """

    def __init__(self, task: Task, config: Config) -> None:
        """Makes the environments and starts what steps them."""
        self._envs = engine.start(task, config)
        self._native = isinstance(self._envs, NativeVectorEnv)
        self.num_envs = config.num_envs
        self.batch_size = config.batch_size
        self.is_async = self.batch_size < self.num_envs
        self.autoreset_mode = config.autoreset_mode
        self.metadata = dict(self._envs.metadata)
        self.render_mode = self._envs.render_mode
        self._players: Players | None = None
        if task.parallel:
            observation, action, places = self.metadata.pop("players")
            self._players = Players(observation, action, places, self.num_envs)
            self.single_observation_space, self.single_action_space = observation, action
        else:
            self.single_observation_space = self._envs.single_observation_space
            self.single_action_space = self._envs.single_action_space
        self.spec: Any = EnvSpec(
            task, config, self.single_observation_space, self.single_action_space
        )
        self._all_env_ids = np.arange(self.num_envs, dtype=np.int32)
        self._rows = self._all_env_ids.astype(np.intp)
        self._episodes = Episodes(self.num_envs, self.autoreset_mode)
        self._taken_as_they_are = (
            safe_dtypes(self.single_action_space) if self._native else frozenset()
        )
        #: The first seed of each environment, until it has been reset.
        self._seeds: list[int | None] = list(config.seeds)
        self._timeout = config.timeout

    @property
    def config(self) -> dict[str, Any]:
        """The configuration, a dictionary of the caller's own; ``seed`` is that which was used."""
        config: dict[str, Any] = self.spec.config
        return config

    @property
    def all_env_ids(self) -> NDArray[np.int32]:
        """``0`` to ``num_envs - 1``."""
        return self._all_env_ids.copy()

    def __len__(self) -> int:
        """Number of environments."""
        return self.num_envs

    # Sending

    def send(self, action: Any, env_id: Any = None) -> None:
        """Sends actions to environments and returns at once; :meth:`recv` brings the results.

        An environment that has never been reset is reset instead, with its own seed, and its action
        is discarded: EnvPool's environments begin in the state "done". So are those whose result
        was lost to an exception of :meth:`recv`. Not where the autoreset mode is ``DISABLED``.

        Nothing is sent if anything is wrong. Actions are copied.

        Args:
            action: One action per environment (one per player that was received, where there are
                several): an array or list of shape ``(rows, *shape)``, or a dictionary with the key
                ``"action"`` or the keys of the action space, and perhaps ``"env_id"`` and
                ``"players.env_id"``. Integers of any width, in range, are discrete actions; floats
                are cast to the dtype of the space. Neither form may hold another kind of dtype.
                (EnvPool casts anything.)
            env_id: The environments, an array or list of distinct integers; all of them by default,
                which must be named where ``batch_size`` is below ``num_envs``.

        Raises:
            ValueError: Not one action each, another shape, an action out of range or NaN, an empty
                or repeated ``env_id``, or none in asynchronous mode.
            TypeError: Actions or ``env_id`` of another kind of dtype.
            IndexError: An ``env_id`` that does not exist.
            EnvBusyError: Some of them have not been received since they were sent to.
            EpisodeOverError: Some are over, or were never reset, and the mode is ``DISABLED``.
        """
        owners = None
        if isinstance(action, dict):
            action, named, owners = read_actions(self.single_action_space, action)
            env_id = named if env_id is None else env_id
        if env_id is None and self.is_async:
            raise ValueError(
                f"`env_id` is required in asynchronous mode (batch_size={self.batch_size} of "
                f"num_envs={self.num_envs}): send to info['env_id']"
            )
        ids = self._rows if env_id is None else as_env_ids(env_id, self.num_envs)
        begins = self._episodes.any_fresh and bool(self._episodes.fresh[ids].any())
        if self._players is not None:
            self._refuse_unseen(ids)
            actions = self._players.places_of(ids, action, owners)
        else:
            actions = self._checked(action, ids, everything=begins)
        if begins:
            self._begin_some(actions, ids)
            return
        try:
            self._envs.send(actions, None if env_id is None else ids)
        except gym.error.AlreadyPendingCallError:
            self._refuse_busy("send", ids)
            raise
        self._episodes.step_sent(ids if env_id is not None else EVERY)

    def _checked(self, actions: Any, ids: NDArray[Any], *, everything: bool) -> Any:
        """The actions, checked and of their space's dtype, as far as nobody does that later."""
        if self._native and not everything:
            # The core looks at the values of what needs no cast.
            array = np.asarray(actions)
            check_length(array, len(ids))
            if array.dtype in self._taken_as_they_are:
                return array
        return checked(self.single_action_space, actions, ids)

    def _refuse_unseen(self, ids: NDArray[Any]) -> None:
        """Raises where it is not known how many players are to act."""
        unseen = ids[self._episodes.fresh[ids]]
        if unseen.size:
            raise gym.error.ResetNeeded(
                f"environments {unseen.tolist()} of several players have to be reset first: who "
                "plays is not known before"
            )

    def _begin_some(self, actions: Any, ids: NDArray[Any]) -> None:
        """Sends resets to environments that need one and actions to the others, in order."""
        check_distinct(ids)
        self._refuse_busy("send", ids)
        fresh = self._episodes.fresh[ids]
        if self.autoreset_mode == gym.vector.AutoresetMode.DISABLED:
            raise EpisodeOverError(ids[fresh].tolist())
        cuts = np.flatnonzero(np.diff(fresh)) + 1
        for places in np.split(np.arange(len(ids)), cuts):
            if fresh[places[0]]:
                self._send_reset(ids[places], None, {})
            else:
                self._envs.send(take(actions, places), ids[places])
                self._episodes.step_sent(ids[places])

    def async_reset(
        self, env_id: Any = None, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> None:
        """Begins the reset of environments and returns at once; :meth:`recv` brings the results.

        Args:
            env_id: The environments; all of them by default.
            seed: An integer ``s`` seeds environment ``i`` by ``s + i``; a list holds one seed or
                ``None`` for each of ``env_id``. By default each goes on with its random numbers, or
                begins with the seed of the constructor.
            options: Handed to the environments.

        Raises:
            IndexError, TypeError, ValueError: As for :meth:`send`.
            EnvBusyError: Some of them have not been received since they were sent to. A call of
                :meth:`recv` that timed out is given up instead, and its results are dropped.
        """
        ids = self._rows if env_id is None else as_env_ids(env_id, self.num_envs)
        if options and not {"reset_mask", "env_index"}.isdisjoint(options):
            raise ValueError("name the environments by `env_id`; only `reset` takes a `reset_mask`")
        self._send_reset(ids, seed, options or {})

    def _send_reset(self, ids: NDArray[Any], seed: Any, options: dict[str, Any]) -> None:
        if seed is None:
            seed = [self._seeds[row] for row in ids.tolist()]
        try:
            self._envs.async_reset(seed=seed, options={**options, "env_index": ids})
        except gym.error.AlreadyPendingCallError:
            self._refuse_busy("async_reset", ids)
            raise
        self._note_lost()
        self._forget_seeds(ids)
        self._episodes.reset_sent(ids)

    def _forget_seeds(self, ids: NDArray[Any]) -> None:
        """Lets environments that were reset go on with their random numbers."""
        for row in ids.tolist():
            self._seeds[row] = None

    def _refuse_busy(self, calling: str, ids: NDArray[Any]) -> None:
        """Raises if there are busy environments among these."""
        busy = ids[self._episodes.outstanding[ids]]
        if busy.size:
            raise EnvBusyError(calling, busy.tolist())

    # Receiving

    def _receive(self, timeout: float | None) -> Batch:
        """The next batch, with the infos that EnvPool gives."""
        try:
            received = self._envs.recv(timeout)
        except (
            gym.error.AlreadyPendingCallError,
            gym.error.ClosedEnvironmentError,
            gym.error.NoAsyncCallError,
        ):
            raise
        except BaseException:
            self._note_lost()
            raise
        observations, rewards, terminations, truncations, infos = received
        rows = infos.pop("env_index")
        ids = self.all_env_ids if self._episodes.every else rows.astype(np.int32)
        elapsed = self._episodes.received(rows, terminations, truncations)
        return self._batch(ids, observations, rewards, terminations, truncations, infos, elapsed)

    def _batch(
        self,
        ids: NDArray[np.int32],
        observations: Any,
        rewards: NDArray[np.float64],
        terminations: NDArray[np.bool_],
        truncations: NDArray[np.bool_],
        infos: dict[str, Any],
        elapsed: NDArray[np.int32],
    ) -> Batch:
        """What was received with EnvPool's infos, which own ``ids`` from now on."""
        players: dict[str, Any] = {"env_id": ids.copy()}
        if self._players is not None:
            observations, rewards, players = self._players.rows(ids, observations, truncations)
        infos |= {"env_id": ids, "players": players, "elapsed_step": elapsed}
        return Batch(observations, rewards, terminations, truncations, infos)

    def _note_lost(self) -> None:
        """Notes which results will not come, after a call that may have dropped some."""
        with contextlib.suppress(Exception):  # closed or broken: nothing can be sent any more
            if self._envs._pool.pending() is None:
                self._episodes.only_outstanding(self._envs._pool.in_flight())

    def _reset(self, env_id: Any, seed: Any, options: dict[str, Any] | None) -> Batch:
        """Resets environments and receives a batch."""
        if options is not None and "reset_mask" in options:
            if env_id is not None:
                raise ValueError("name the environments by `env_id` or by a `reset_mask`, not both")
            return self._reset_masked(seed, options)
        self.async_reset(env_id, seed=seed, options=options)
        return self._receive(None)

    def _reset_masked(self, seed: Any, options: dict[str, Any]) -> Batch:
        """Resets those of a mask and returns all, as Gymnasium does; EnvPool returns the former."""
        if self.is_async:
            raise ValueError("`reset_mask` needs batch_size == num_envs; name them by `env_id`")
        mask = as_reset_mask(options, self.num_envs)
        assert mask is not None, "looked up by the caller"
        seeds = self._seeds if seed is None else seed
        try:
            self._envs.reset_async(seed=seeds, options=options)
        except gym.error.AlreadyPendingCallError:
            self._refuse_busy("reset", self._rows)
            raise
        ids = mask.nonzero()[0]
        self._forget_seeds(ids)
        self._note_lost()
        try:
            observations, infos = self._envs.reset_wait(self._timeout)
        except BaseException:
            self._episodes.lost(ids)
            raise
        self._episodes.reset_done(ids)
        flags, rewards = np.zeros(self.num_envs, np.bool_), np.zeros(self.num_envs)
        self._episodes.received(ids, flags[ids], flags[ids])
        elapsed = self._episodes.elapsed.copy()
        return self._batch(
            self.all_env_ids, observations, rewards, flags, flags.copy(), infos, elapsed
        )

    # The rest

    def __reduce__(self) -> NoReturn:
        """Raises: workers cannot travel.

        Raises:
            TypeError: Always.
        """
        raise TypeError(f"{type(self).__name__} cannot be pickled or copied: make another one")

    def xla(self) -> NoReturn:
        """Raises: there is no XLA interface.

        Raises:
            RuntimeError: Always.
        """
        raise RuntimeError(
            "cartwheel has no XLA interface: step outside of compiled functions, with send and recv"
        )

    def close(self, **keywords: Any) -> None:
        """Closes the environments and ends their workers; later calls raise. Twice is harmless.

        Args:
            **keywords: Those of ``VectorEnv.close``: ``timeout`` (seconds) and ``terminate``.
        """
        self._envs.close(**keywords)
