"""The interface of dm_env: time steps."""

from __future__ import annotations

from typing import Any

from cartwheel.envpool.pool import EnvPool
from cartwheel.envpool.spec import Specs
from cartwheel.envpool.time_step import Environment, time_step


class DMEnvPool(Specs, EnvPool, Environment):  # type: ignore[misc]  # dm_env ships no types
    """A pool whose results are batches of time steps; a ``dm_env.Environment`` if it is installed.

    Every method that receives returns a ``TimeStep`` of arrays (of ``dm_env`` if it is installed):
    ``step_type`` (``int32``: 0 first, 1 mid, 2 last), ``reward`` and ``discount`` (``float32``) and
    ``observation``. The observation is a named tuple of ``env_id``, ``players``, ``obs`` (or the
    keys of a ``Dict`` space), ``elapsed_step`` and further infos; ``info`` has all infos as a
    dictionary. If a key of a ``Dict`` space is not an identifier, or is ``env_id``,
    ``elapsed_step``, ``players`` or ``info``, then ``obs`` has the observation as a dictionary.
    First rows have reward 0 and discount 1, because arrays have no ``None``.

    The discount is 0 only where an episode terminated. In EnvPool it is 0 after a truncation, too,
    which looks like a termination.
    """

    def reset(
        self, env_id: Any = None, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> Any:
        """Resets environments and receives a batch, see :meth:`GymnasiumEnvPool.reset`."""
        return time_step(*self._reset(env_id, seed, options))

    def recv(
        self,
        reset: bool = False,  # noqa: ARG002, FBT001 - EnvPool's signature
        return_info: bool = True,  # noqa: ARG002, FBT001 - EnvPool's signature
        timeout: float | None = None,
    ) -> Any:
        """Receives the next batch, see :meth:`GymnasiumEnvPool.recv`.

        Args:
            reset: Has no effect: ``step_type`` marks the first rows.
            return_info: Has no effect: every time step has the infos.
            timeout: Seconds to wait; by default the ``timeout`` of the constructor.
        """
        return time_step(*self._receive(timeout))

    def step(self, action: Any, env_id: Any = None) -> Any:
        """Sends and receives: :meth:`send` followed by :meth:`recv`."""
        self.send(action, env_id)
        return self.recv()
