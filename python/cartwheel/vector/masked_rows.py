"""Masks of actions of the rows of a vector environment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cartwheel.vector.action_masks import no_masks
from cartwheel.vector.pool_owner import ActType, ObsType, PoolOwner

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class MaskedRows(PoolOwner[ObsType, ActType]):
    """The methods of a vector environment that read masks of actions."""

    #: The key of masks of actions in infos or observations; ``None``: there are none.
    action_mask: str | None

    @property
    def has_action_masks(self) -> bool:
        """Whether environments show masks of actions; masks in infos are known after a reset."""
        return self._pool.has_action_masks() is True

    def action_masks(self, env_index: Any = None) -> NDArray[np.bool_]:
        """Returns which actions each row of the last batch allows next.

        The batch is that of the last ``step``, ``reset`` or ``recv`` of this vector environment.
        Masks come from the part of the observations, or from the infos, that the keyword
        ``action_mask`` of the constructor names. In the mode ``SAME_STEP``, the mask of a row that
        ended is that of the reset.

        A row allows every action if its next action is ignored, because its episode is over; if
        its mask allows none; and if it shows none, as after ``set_state`` where infos have masks.

        Example:
            >>> import cartwheel
            >>> envs = cartwheel.make_vec("cartwheel/Taxi-v4", 2)
            >>> observations, infos = envs.reset(seed=1)
            >>> envs.action_masks().shape
            (2, 6)
            >>> envs.close()

        Args:
            env_index: Row numbers, in any order; by default the rows of the last batch, in its
                order. Rows in flight have the masks that they showed last.

        Returns:
            ``bool`` of shape ``(rows, actions)``, the caller's own. The parts of ``MultiDiscrete``
            and ``MultiBinary`` spaces are concatenated.

        Raises:
            ValueError: The environments show no masks, the mask of a row has another length than
                the action space, or a row does not exist or is named twice.
            TypeError: ``env_index`` is not a one-dimensional collection of integers.
        """
        rows = None if env_index is None else self._numbers(env_index)
        masks = self._pool.action_masks(rows)
        if masks is None:
            raise no_masks(self)
        return masks
