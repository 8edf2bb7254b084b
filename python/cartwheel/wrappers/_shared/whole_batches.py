"""The base class of vector wrappers that need whole batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from cartwheel.wrappers.base import VectorWrapper

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from gymnasium.vector import VectorEnv
    from numpy.typing import NDArray

    from cartwheel._internal.reset_arguments import ResetOptions


class WholeBatches(VectorWrapper):
    """Refuses ``send``, ``recv`` and ``send_reset``, and batches of fewer rows than are stepped.

    A row would have to be sent again before it is received. A subclass overrides ``step`` and
    :meth:`_refusal`.
    """

    #: A row would have to be sent again before it is received.
    sends_rows = False
    #: The rows of the last step, whose calls may be of others; ``None``: those of the last call.
    _step_rows: NDArray[np.int64] | None = None

    @property
    def action_masks(self) -> Callable[..., NDArray[np.bool_]]:
        """As of the wrapped environment; by default of the rows that were returned last."""
        inner: Any = self.env
        masks, rows = inner.action_masks, self._step_rows
        return lambda env_index=None: masks(rows if env_index is None else env_index)

    def _loaded(self) -> None:
        super()._loaded()
        self._step_rows = None

    def _check_batches(self, envs: VectorEnv[Any, Any, Any], need: str) -> None:
        """Refuses batches of some rows; ``need`` is the reason and the remedy, for the error."""
        batch_size = getattr(envs, "batch_size", envs.num_envs)
        if batch_size < envs.num_envs:
            raise ValueError(
                f"`env` has batch_size={batch_size} below num_envs={envs.num_envs}: {need}"
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

    def send_reset(self, seed: Any = None, options: ResetOptions = None) -> None:
        """Not possible: see :meth:`send`.

        Raises:
            TypeError: Always.
        """
        del seed, options
        raise self._refusal("send_reset")
