"""The interface of Gymnasium: five values a step, and a ``gymnasium.vector.VectorEnv``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium as gym
from gymnasium.vector.utils import batch_space

from cartwheel.arguments import as_timeout
from cartwheel.envpool.pool import EnvPool

if TYPE_CHECKING:
    from cartwheel.envpool.config import Config
    from cartwheel.envpool.registry import Task


class GymnasiumEnvPool(EnvPool, gym.vector.VectorEnv[Any, Any, Any]):
    """A pool whose results have Gymnasium's form.

    In every batch ``info`` has the entries ``env_id`` (``int32``, the environment of each row),
    ``players`` (a dictionary whose ``env_id``, ``int32``, is the environment of each row of
    observations and rewards) and ``elapsed_step`` (``int32``: steps of the episode to which the
    row's reward and flags belong, 0 where the row is the result of a reset), beside the infos of
    the environments, batched as Gymnasium does with ``_key`` masks.

    With several players, observations and rewards have one row a player: all players of the batch's
    first environment, then of its second. ``players`` also has ``id`` (``int32``, counting the
    environment's possible agents), ``terminated`` and ``truncated`` (``bool``), and an agent's
    infos are under its name. ``terminated`` and ``truncated`` of the batch have one row an
    environment.

    Where it differs from EnvPool: rewards are ``float64``; ``terminated`` and ``truncated`` may
    both be true; ``observation_space`` and ``action_space`` are those of a batch; in the mode
    ``SAME_STEP`` the infos have ``final_obs`` and ``final_info``, and ``elapsed_step`` of a row
    that ends is the length of the episode, though its observation is the next one's first.

    Attributes:
        observation_space: Of a batch. With several players a batch may have fewer rows.
        action_space: Of a batch.
    """

    def __init__(self, task: Task, config: Config) -> None:
        """Makes the environments and starts what steps them."""
        EnvPool.__init__(self, task, config)
        places = 1 if self._players is None else self._players.places
        rows = self.batch_size * places
        self.observation_space = batch_space(self.single_observation_space, rows)
        self.action_space = batch_space(self.single_action_space, rows)

    def reset(
        self,
        env_id: Any = None,
        *,
        seed: Any = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Resets environments and receives a batch.

        Args:
            env_id: The environments; all of them by default.
            seed: As for :meth:`async_reset`. (EnvPool ignores it.)
            options: Handed to the environments. The entry ``"reset_mask"``, ``bool`` of shape
                ``(num_envs,)``, says instead of ``env_id`` which are reset; all are returned, the
                others with their last observation. (EnvPool returns those of the mask.)

        Returns:
            Observations, of shape ``(rows, *shape)``, and infos. With a ``batch_size`` below
            ``num_envs`` the first that are done; :meth:`recv` brings the others.

        Raises:
            EnvBusyError: Any environments have not been received since they were sent to: their
                rewards have no place in what this returns. (EnvPool drops them.) As for
                :meth:`async_reset` after a call of :meth:`recv` that timed out.
            Exception: As :meth:`async_reset` and :meth:`recv`.
        """
        batch = self._reset(env_id, seed, options)
        return batch.observations, batch.infos

    def recv(
        self,
        reset: bool = False,  # noqa: FBT001 - EnvPool's signature
        return_info: bool = True,  # noqa: FBT001 - EnvPool's signature
        timeout: float | None = None,
    ) -> Any:
        """Receives the next batch: the first ``batch_size`` environments to be done.

        If fewer are outstanding, it is all of them. With ``batch_size`` equal to ``num_envs`` they
        are in the order of the sends, otherwise in the order of completion.

        Args:
            reset: Return observations and infos only.
            return_info: With ``reset``: false to return observations only.
            timeout: Seconds to wait; by default the ``timeout`` of the constructor.

        Returns:
            Observations ``(rows, *shape)``, rewards (``float64``), terminated, truncated (``bool``)
            and infos. The arrays are the caller's own and never overwritten.

        Raises:
            gymnasium.error.NoAsyncCallError: Nothing is outstanding.
            multiprocessing.TimeoutError: Environments are still busy; nothing is lost.
            Exception: What an environment raised. The whole batch is lost: its environments begin
                a new episode with their next step.
        """
        if self._players is None and not reset:
            seconds = self._timeout if timeout is None else as_timeout(timeout)
            return self._pool.recv(seconds)  # what `_receive` does, with nothing around it
        batch = self._receive(timeout)
        if reset:
            return (batch.observations, batch.infos) if return_info else batch.observations
        return tuple(batch)

    def step(self, action: Any, env_id: Any = None) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Sends and receives: :meth:`send` followed by :meth:`recv`."""
        self.send(action, env_id)
        result: tuple[Any, Any, Any, Any, dict[str, Any]] = self.recv()
        return result

    def close(self, **keywords: Any) -> None:
        """Closes the environments and ends their workers; later calls raise."""
        EnvPool.close(self, **keywords)
        self.closed = True
