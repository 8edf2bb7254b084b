"""Wrappers that make several calls for one step, so that rows cannot be sent and received."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from cartwheel.wrapping.wrapper import VectorWrapper

if TYPE_CHECKING:
    from gymnasium.vector import VectorEnv

    from cartwheel.arguments import ResetOptions


class WholeBatches(VectorWrapper):
    """Refuses ``send``, ``recv`` and ``async_reset``, and batches of fewer rows than are stepped.

    A row would have to be sent again before it is received. A subclass overrides ``step`` and
    :meth:`_refusal`.
    """

    #: A row would have to be sent again before it is received.
    sends_rows = False

    def _check_batches(self, envs: VectorEnv[Any, Any, Any], need: str) -> None:
        """Checks that batches have all rows.

        Args:
            envs: The wrapped environment.
            need: What needs that, and what to do.

        Raises:
            ValueError: ``batch_size`` is below ``num_envs``.
        """
        batch_size = getattr(envs, "batch_size", envs.num_envs)
        if batch_size < envs.num_envs:
            raise ValueError(
                f"`envs` has batch_size={batch_size} below num_envs={envs.num_envs}: {need}"
            )

    def _refusal(self, calling: str) -> TypeError:
        """The error of a method that is not possible."""
        raise NotImplementedError

    def send(self, actions: Any, env_index: Any = None) -> None:
        """Not possible: rows would have to be sent once more before they are received.

        Raises:
            TypeError: Always.
        """
        del actions, env_index
        raise self._refusal("send")

    def recv(self, timeout: float | None = None, **bounds: int | None) -> NoReturn:
        """Not possible: see :meth:`send`.

        Raises:
            TypeError: Always.
        """
        del timeout, bounds
        raise self._refusal("recv")

    def async_reset(self, seed: Any = None, options: ResetOptions = None) -> None:
        """Not possible: see :meth:`send`.

        Raises:
            TypeError: Always.
        """
        del seed, options
        raise self._refusal("async_reset")
