"""The interface of gym before 0.26: a step returns four values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium as gym

from cartwheel.envpool.pool import EnvPool

if TYPE_CHECKING:
    from cartwheel.envpool.pool import Batch


class GymEnvPool(EnvPool, gym.Env[Any, Any]):
    """A pool whose results have the form of gym before 0.26.

    ``done`` is true where an episode ended. ``info["TimeLimit.truncated"]`` (``bool``) is true
    where it was truncated but not terminated, so that its last observation still has a value. The
    other entries of ``info`` are the same as in :class:`~cartwheel.envpool.GymnasiumEnvPool`.

    The pool is a ``gymnasium.Env``, so subclasses of ``gymnasium.Wrapper`` can wrap it.
    """

    def reset(
        self,
        env_id: Any = None,
        *,
        seed: Any = None,
        options: dict[str, Any] | None = None,
        return_info: bool = False,
    ) -> Any:
        """Resets environments and receives a batch.

        The arguments are the same as for :meth:`GymnasiumEnvPool.reset`.

        Returns:
            Observations; with ``return_info`` observations and infos.
        """
        batch = self._reset(env_id, seed, options)
        return (batch.observations, _infos(batch)) if return_info else batch.observations

    def recv(
        self,
        reset: bool = False,  # noqa: FBT001 - EnvPool's signature
        return_info: bool = False,  # noqa: FBT001 - EnvPool's signature
        timeout: float | None = None,
    ) -> Any:
        """Receives the next batch, see :meth:`GymnasiumEnvPool.recv`.

        Returns:
            Observations, rewards, done, infos; with ``reset`` the same as :meth:`reset`.
        """
        batch = self._receive(timeout)
        infos = _infos(batch)
        if reset:
            return (batch.observations, infos) if return_info else batch.observations
        return batch.observations, batch.rewards, batch.terminations | batch.truncations, infos

    def step(  # type: ignore[override]  # four values, as in gym before 0.26
        self, action: Any, env_id: Any = None
    ) -> tuple[Any, Any, Any, dict[str, Any]]:
        """Sends and receives: :meth:`send` followed by :meth:`recv`."""
        self.send(action, env_id)
        result: tuple[Any, Any, Any, dict[str, Any]] = self.recv()
        return result


def _infos(batch: Batch) -> dict[str, Any]:
    return {**batch.infos, "TimeLimit.truncated": batch.truncations & ~batch.terminations}
