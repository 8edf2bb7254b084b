"""Environments of LeRobot in cartwheel's worker processes.

LeRobot makes its environments by ``gymnasium.vector.AsyncVectorEnv`` or ``SyncVectorEnv``, so the
way in is to replace the former before its factory is called. LeRobot 0.4 reads attributes of
``envs.envs[0]``, which an ``AsyncVectorEnv`` of Gymnasium does not have; :class:`WorkerEnvs` does.

Call :func:`use_workers` before ``lerobot.envs.factory.make_env(…, use_async_envs=True)``, or before
LeRobot's own scripts: ``lerobot-eval … --eval.use_async_envs=true`` in one process with it.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym

import cartwheel


class Row:
    """One environment in its worker: its attributes, and its frame."""

    def __init__(self, envs: WorkerEnvs, row: int) -> None:
        """Stands for the environment of a row."""
        self._envs, self._row = envs, row

    def __getattr__(self, name: str) -> Any:
        """Reads an attribute of the environment or of its wrappers."""
        if name.startswith("__"):  # asked for by `copy` and `pickle`
            raise AttributeError(name)
        return self._envs.get_attr(name, env_index=[self._row])[0]

    def render(self) -> Any:
        """The frame of the environment."""
        return self._envs.render([self._row])[0]


class WorkerEnvs(cartwheel.AsyncVectorEnv):
    """Environments in worker processes that can be reached one by one."""

    @property
    def envs(self) -> list[Row]:
        """The environments."""
        return [Row(self, row) for row in range(self.num_envs)]


def use_workers() -> None:
    """Lets LeRobot's factory make :class:`WorkerEnvs` where it is asked for asynchronous ones."""
    gym.vector.AsyncVectorEnv = WorkerEnvs  # type: ignore[misc,assignment]
