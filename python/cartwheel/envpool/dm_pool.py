"""The interface of dm_env: time steps."""

from __future__ import annotations

from typing import Any

from cartwheel.envpool.pool import EnvPool
from cartwheel.envpool.time_step import time_step


class DMEnvPool(EnvPool):
    """A pool whose results are batches of time steps.

    Every method that receives returns a ``TimeStep`` of arrays, that of ``dm_env`` where it is
    installed: ``step_type`` (``int32``: 0 first, 1 mid, 2 last), ``reward`` and ``discount``
    (``float64``), ``observation`` (a named tuple of ``obs``, or the keys of a ``Dict`` space, with
    ``env_id``, ``elapsed_step``, ``players`` and further infos; ``info`` is the dictionary of all
    infos). A ``Dict`` space with keys that are no identifiers, or are ``env_id``, ``elapsed_step``,
    ``players`` or ``info``, is in ``obs`` as a dictionary. Rows that are first have reward 0 and
    discount 1, as arrays have no ``None``.

    The discount is 0 only where an episode terminated. (EnvPool's is 0 where it was truncated too,
    which readers take for a termination.)
    """

    def reset(
        self, env_id: Any = None, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> Any:
        """Resets environments and receives a batch. As :meth:`GymnasiumEnvPool.reset`."""
        return time_step(*self._reset(env_id, seed, options))

    def recv(
        self,
        reset: bool = False,  # noqa: ARG002, FBT001 - EnvPool's signature
        return_info: bool = True,  # noqa: ARG002, FBT001 - EnvPool's signature
        timeout: float | None = None,
    ) -> Any:
        """Receives the next batch, as :meth:`GymnasiumEnvPool.recv`.

        Args:
            reset: Changes nothing: a time step says which of its rows are first.
            return_info: Changes nothing: infos are a part of every time step.
            timeout: Seconds to wait; by default the ``timeout`` of the constructor.
        """
        return time_step(*self._receive(timeout))

    def step(self, action: Any, env_id: Any = None) -> Any:
        """Sends and receives: :meth:`send` followed by :meth:`recv`."""
        self.send(action, env_id)
        return self.recv()

    def observation_spec(self) -> Any:
        """As :meth:`EnvSpec.observation_spec`."""
        return self.spec.observation_spec()

    def action_spec(self) -> Any:
        """As :meth:`EnvSpec.action_spec`."""
        return self.spec.action_spec()

    def reward_spec(self) -> Any:
        """As :meth:`EnvSpec.reward_spec`."""
        return self.spec.reward_spec()

    def discount_spec(self) -> Any:
        """As :meth:`EnvSpec.discount_spec`."""
        return self.spec.discount_spec()
