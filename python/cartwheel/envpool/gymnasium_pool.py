"""The interface of Gymnasium: a ``gymnasium.vector.VectorEnv`` whose step returns five values."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from cartwheel.arguments import as_timeout
from cartwheel.envpool.pool import EnvPool
from cartwheel.gymnasium_versions import keep_open


class GymnasiumEnvPool(  # type: ignore[misc]  # they differ in np_random_seed
    EnvPool, gym.vector.VectorEnv[Any, Any, Any], gym.Env[Any, Any]
):
    """A pool whose results have Gymnasium's form.

    As in EnvPool, the pool is a ``gymnasium.vector.VectorEnv`` and a ``gymnasium.Env``, so vector
    wrappers and subclasses of ``gymnasium.Wrapper`` can wrap it.

    In every batch, ``info`` has three entries beside the infos of the environments, which are
    batched with ``_key`` masks as in Gymnasium. ``env_id`` (``int32``) is the environment of each
    row. ``players`` is a dictionary whose ``env_id`` (``int32``) is the environment of each row of
    observations and rewards. ``elapsed_step`` (``int32``) is the number of steps of the episode to
    which the reward and flags of the row belong; 0 if the row is the result of a reset. After
    2,147,483,647 steps it stays at that number.

    With several players, observations and rewards have one row for each player: first all players
    of the first environment of the batch, then all of the second, and so on. ``players`` also has
    ``id`` (``int32``, the index in the environment's possible agents), ``terminated`` and
    ``truncated`` (``bool``). The infos of an agent are under its name. ``terminated`` and
    ``truncated`` of the batch have one row for each environment.

    In the mode ``SAME_STEP``, infos have ``final_obs`` and ``final_info``, and if a row ends,
    ``elapsed_step`` is the length of the ended episode, although the observation belongs to the
    next one. ``final_obs`` has the form of the environment's own observations.

    Attributes:
        is_vector_env: True, for programs written for gym before 0.26.
    """

    is_vector_env = True
    __del__ = keep_open

    def reset(
        self,
        env_id: Any = None,
        *,
        seed: Any = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Resets environments and receives a batch.

        Args:
            env_id: The environments; all by default.
            seed: As for :meth:`async_reset`. (EnvPool ignores the seed.)
            options: Passed to the environments. The entry ``"reset_mask"``, ``bool`` of shape
                ``(num_envs,)``, selects the environments in place of ``env_id``. Then all
                environments are returned, the others with their last observation. (EnvPool returns
                only the environments of the mask.)

        Returns:
            Observations, of shape ``(rows, *shape)``, and infos. With a ``batch_size`` below
            ``num_envs``, the batch has the environments that finish first; :meth:`recv` returns the
            others.

        Raises:
            EnvBusyError: Results of any environment are outstanding, because a reset does not
                return their rewards. (EnvPool drops them.) After a :meth:`recv` that timed out,
                see :meth:`async_reset`.
            Exception: As for :meth:`async_reset` and :meth:`recv`.
        """
        batch = self._reset(env_id, seed, options)
        return batch.observations, batch.infos

    def recv(
        self,
        reset: bool = False,  # noqa: FBT001 - EnvPool's signature
        return_info: bool = True,  # noqa: FBT001 - EnvPool's signature
        timeout: float | None = None,
    ) -> Any:
        """Receives the next batch: the first ``batch_size`` environments that are done.

        If fewer are outstanding, the batch has all of them. With ``batch_size`` equal to
        ``num_envs`` they are in the order of the sends, otherwise in the order of completion.

        Args:
            reset: Return observations and infos only.
            return_info: With ``reset``: false to return observations only.
            timeout: Seconds to wait; by default the ``timeout`` of the constructor.

        Returns:
            Observations ``(rows, *shape)``, rewards (``float32``), terminated, truncated (``bool``)
            and infos. The arrays are never overwritten.

        Raises:
            gymnasium.error.NoAsyncCallError: Nothing is outstanding.
            multiprocessing.TimeoutError: Environments are still busy; nothing is lost.
            Exception: An environment raised it. The whole batch is lost: its environments begin a
                new episode with their next step.
        """
        if self._ready_made and not reset:
            seconds = self._timeout if timeout is None else as_timeout(timeout)
            return self._pool.recv(seconds)  # like `_receive`, without its overhead
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
