"""The base class of wrappers whose observations are a function of the observations inside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector.utils import create_empty_array

from cartwheel._internal import nested
from cartwheel.wrappers._shared.keys import Parts, advised
from cartwheel.wrappers.base import VectorWrapper

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gymnasium.spaces import Space
    from gymnasium.vector import VectorEnv
    from numpy.typing import NDArray

    from cartwheel.wrappers.base import Operation
    from cartwheel.wrappers.batch import Batch

    #: Of the space of one observation: the new space, and the function of a batch.
    Conversion = Callable[[Space[Any]], tuple[Space[Any], Callable[[Any], Any]]]


class ObservationWrapper(VectorWrapper):
    """Replaces observations by a function of them alone.

    A subclass has :attr:`_observe`, or calls :meth:`_convert_parts`, which sets it. It is called
    once for a batch of any number of rows, and once more for the final observations of
    ``SAME_STEP``. Rows that are left alone pass through it again, so it gives the same result for
    the same observation. Agents that are not there have no observation: their rows stay blank.
    """

    #: Returns the new observations of a batch; never writes into the old ones.
    _observe: Callable[[Any], Any]

    def __init__(self, env: VectorEnv[Any, Any, Any]) -> None:
        """Keeps the space of the observations that come in."""
        super().__init__(env)
        self._space_before: Space[Any] = env.single_observation_space

    def _convert_parts(self, keys: Sequence[str] | None, convert: Conversion) -> None:
        """Sets the new space, and the function of observations.

        Args:
            keys: The parts that are converted; ``None``: the observations as a whole.
            convert: Returns, for the space of one observation or part, the new space and a function
                of a batch. The function does not refer to this wrapper, which would keep itself.

        Raises:
            TypeError: As of ``convert``; or ``keys`` are not strings.
            ValueError: As of ``convert``; or ``keys`` do not fit the space.
        """
        space = self._space_before
        parts = None if keys is None else Parts(space, keys)
        spaces = {"": space} if parts is None else parts.spaces
        try:
            converted = {key: convert(part) for key, part in spaces.items()}
        except (TypeError, ValueError) as error:
            raise advised(error, space, convert) from None
        if parts is None:
            single, self._observe = converted[""]
        else:
            functions = {key: function for key, (_, function) in converted.items()}

            def observe(observations: Any) -> Any:
                found = parts.of(observations)
                new = {key: function(found[key]) for key, function in functions.items()}
                return parts.replaced(observations, new)

            single = parts.space_with({key: new for key, (new, _) in converted.items()})
            self._observe = observe
        self._set_observation_space(single)

    def _operation(self) -> Operation:
        return "observe", ()

    def transform(self, batch: Batch) -> None:
        """Replaces observations, and final observations of ``SAME_STEP``."""
        finals = batch.finals(self._space_before)
        batch.observations = self._seen(batch.observations, batch.absent)
        if finals is not None:
            space, absent = self.single_observation_space, batch.final_absent
            finals.observations = (
                self._seen(finals.observations, None if absent is None else absent[finals.places])
                if len(finals.places)  # dense ones may be of no row, which functions do not expect
                else nested.take(space, batch.observations, finals.places)
            )
            finals.space = space

    def _seen(self, observations: Any, absent: NDArray[np.bool_] | None) -> Any:
        """Returns the new observations of a batch; those of absent agents are blank."""
        if absent is None or not np.count_nonzero(absent):
            return self._observe(observations)
        blank_value = self._source.absent

        def filled(array: Any) -> Any:
            if isinstance(array, np.ndarray) and array.dtype.kind in "fc":
                array.fill(blank_value)
            return array

        space, places = self.single_observation_space, np.flatnonzero(~absent)
        blank = nested.apply(filled, create_empty_array(space, len(absent)))
        if not len(places):
            return blank
        new = self._observe(nested.take(self._space_before, observations, places))
        return nested.put(space, blank, places, new)
