"""The interface of gym before 0.26: a step returns four values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cartwheel.envpool.pool import Batch, EnvPool

if TYPE_CHECKING:
    from cartwheel.envpool.config import Config
    from cartwheel.envpool.registry import Task


class GymEnvPool(EnvPool):
    """A pool whose results have the form of gym before 0.26.

    ``done`` is true where an episode ended. ``info["TimeLimit.truncated"]`` (``bool``) is true
    where it was truncated but not terminated, so that its last observation still has a value. The
    other entries of ``info`` are the same as in :class:`~cartwheel.envpool.GymnasiumEnvPool`.

    Attributes:
        observation_space: The space of one environment, as in old versions of EnvPool.
        action_space: The space of one environment.
    """

    def __init__(self, task: Task, config: Config) -> None:
        """Makes the environments and starts the workers."""
        super().__init__(task, config)
        self.observation_space = self.single_observation_space
        self.action_space = self.single_action_space

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

    def step(self, action: Any, env_id: Any = None) -> tuple[Any, Any, Any, dict[str, Any]]:
        """Sends and receives: :meth:`send` followed by :meth:`recv`."""
        self.send(action, env_id)
        result: tuple[Any, Any, Any, dict[str, Any]] = self.recv()
        return result


def _infos(batch: Batch) -> dict[str, Any]:
    return {**batch.infos, "TimeLimit.truncated": batch.truncations & ~batch.terminations}
