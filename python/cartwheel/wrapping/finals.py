"""Final observations of rows that were reset in the step that ended their episode."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel.spaces import nested
from cartwheel.vector.infos import is_dense

if TYPE_CHECKING:
    from gymnasium.spaces import Space
    from numpy.typing import NDArray

#: The keys under which infos have final observations: Gymnasium's name, and ManiSkill's.
NAMES = ("final_obs", "final_observation")


class Finals:
    """The true last observations of the rows that ended an episode in ``SAME_STEP``.

    Wrappers replace ``observations``; :meth:`into` puts them back into infos, in the form in which
    they came: one array of objects, or dense arrays of the whole batch.

    Attributes:
        places: The places of the batch, ascending, ``int64`` ``[M]``.
        observations: In the form of the batched observation space, with ``M`` rows.
        space: The observation space of one environment, for which ``observations`` are nested. A
            wrapper that nests them otherwise replaces it.
    """

    __slots__ = ("_is_dense", "_names", "observations", "places", "space")

    def __init__(
        self,
        places: NDArray[np.intp],
        observations: Any,
        names: list[str],
        *,
        is_dense: bool,
        space: Space[Any] | None = None,
    ) -> None:
        """Keeps the parts; ``names`` are the keys of the infos."""
        self.places, self.observations, self.space = places, observations, space
        self._names, self._is_dense = names, is_dense

    @classmethod
    def of(cls, space: Space[Any], infos: dict[str, Any]) -> tuple[Finals, dict[str, Any]]:
        """Takes the final observations out of infos.

        Args:
            space: The observation space of one environment.
            infos: With the key ``final_obs`` and its mask.

        Returns:
            The final observations, and a copy of the infos without them.
        """
        names = [name for name in NAMES if name in infos]
        first, mask = infos[names[0]], infos[f"_{names[0]}"]
        places = mask.nonzero()[0]
        rest = dict(infos)
        for name in names:
            del rest[name], rest[f"_{name}"]
        dense = is_dense(first)
        if dense:
            observations = nested.take(space, first, places)
        else:
            observations = nested.stack(space, first[places].tolist())
        return cls(places, observations, names, is_dense=dense, space=space), rest

    def like(self, places: NDArray[np.intp], observations: Any) -> Finals:
        """Returns the final observations of other rows, in the form of these.

        Args:
            places: Their places in a batch, ascending.
            observations: Of these places, in the form of the batched observation space.
        """
        return Finals(places, observations, self._names, is_dense=self._is_dense)

    def among(self, observations: Any) -> Any:
        """Returns a copy of the observations of a batch, with these at their places."""

        def replaced(shown: Any, finals: Any) -> Any:
            dense = shown.copy()
            dense[self.places] = finals
            return dense

        return nested.apply(replaced, observations, self.observations)

    def into(self, infos: dict[str, Any], observations: Any, size: int) -> dict[str, Any]:
        """Returns infos with these final observations.

        Args:
            infos: Of the batch.
            observations: Of the batch; dense final observations equal them where no episode ended.
            size: The number of places of the batch.
        """
        mask = np.zeros(size, np.bool_)
        mask[self.places] = True
        if self._is_dense and not len(self.places):  # wrappers may leave none as they were
            values: Any = nested.apply(np.copy, observations)
        elif self._is_dense:
            values = self.among(observations)
        else:
            values = np.empty(size, object)  # of None
            rows = nested.rows(self.space, self.observations, len(self.places))
            for place, row in zip(self.places.tolist(), rows, strict=True):  # only rows that ended
                values[place] = row
        filled = dict(infos)
        for name in self._names:
            filled[name], filled[f"_{name}"] = values, mask
        return filled
