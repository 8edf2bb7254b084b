"""Wrappers that transform observations: functions, dtypes, parts, shapes, scales."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Space, Tuple
from gymnasium.spaces.utils import flatten, flatten_space

from cartwheel._internal import nested
from cartwheel._internal.versions import dict_like
from cartwheel.wrappers._shared.affine import Affine
from cartwheel.wrappers._shared.fit import Fit, single_space
from cartwheel.wrappers._shared.flattening import filled, flatten_batch, is_regular, without_empty
from cartwheel.wrappers._shared.keys import Parts
from cartwheel.wrappers._shared.observation_wrapper import ObservationWrapper
from cartwheel.wrappers.base import rows_of_batch

if TYPE_CHECKING:
    from collections.abc import Callable

    from gymnasium.vector import VectorEnv
    from numpy.typing import NDArray

    from cartwheel.wrappers.base import Operation


class TransformObservation(ObservationWrapper):
    """Applies a function to observations, batch by batch.

    Unlike Gymnasium's vector wrapper it works in every autoreset mode: in ``SAME_STEP`` the final
    observations are transformed too, in one more call.

    Example:
        >>> import cartwheel
        >>> from cartwheel.wrappers import TransformObservation
        >>> envs = TransformObservation(
        ...     cartwheel.NativeVectorEnv("CartPole-v1", 2), lambda observations: observations * 2
        ... )
        >>> observations, infos = envs.reset(seed=1)
        >>> envs.close()

    Args:
        env: A vector environment.
        func: Called with a batch of observations of **any number of rows**, which it does not write
            into; returns a batch with as many rows, in the form of the new space. The same
            observation gives the same result: rows that are left alone pass through it again.
        observation_space: The new space of a batch.
        single_observation_space: The new space of one environment. By default it is found from
            ``observation_space``; with neither, the space does not change.
        keys: The parts of nested observations that are changed, such as ``["camera"]`` or
            ``["state.joints"]``; the others pass unchanged. ``func`` is called with one part at a
            time, and the two spaces are those of a part: one for all, or a dictionary of them by
            key.

    Raises:
        ValueError: ``keys`` do not fit the space, or the spaces contradict each other. From
            ``reset`` on: the result does not fit the space in nesting, dtype, shape or number of
            rows. (Bounds are not checked.)
    """

    def __init__(
        self,
        env: VectorEnv[Any, Any, Any],
        func: Callable[[Any], Any],
        observation_space: Space[Any] | None = None,
        single_observation_space: Space[Any] | None = None,
        *,
        keys: Sequence[str] | None = None,
    ) -> None:
        super().__init__(env)
        self._held = held = SimpleNamespace(func=None)
        self.func = func
        rows = rows_of_batch(env)
        given = observation_space, single_observation_space
        if keys is None:
            self._convert_parts(None, lambda space: _checked(held, *given, space, rows))
            return
        parts = list(Parts(self._space_before, keys).spaces)
        names = "observation_space", "single_observation_space"
        pairs = zip(names, given, strict=True)
        by_part = zip(*(_of_parts(*each, parts) for each in pairs), strict=True)

        def convert(space: Space[Any]) -> tuple[Space[Any], Callable[[Any], Any]]:
            batched, single = next(by_part)
            return _checked(held, batched, single, space, rows)

        self._convert_parts(keys, convert)

    @property
    def func(self) -> Callable[[Any], Any]:
        """The function; can be set to another one, with results of the same space."""
        func: Callable[[Any], Any] = self._held.func
        return func

    @func.setter
    def func(self, func: Callable[[Any], Any]) -> None:
        if not callable(func):
            raise TypeError(f"`func` must be a function of observations, got {type(func)}.")
        self._held.func = func


def _of_parts(name: str, spaces: Any, keys: list[str]) -> list[Any]:
    """The space of each part, from one for all of them or from a dictionary."""
    if not isinstance(spaces, dict):
        return [spaces] * len(keys)
    if not spaces.keys() <= set(keys):
        raise ValueError(f"`{name}` has the keys {list(spaces)}, but `keys` are {keys}.")
    return [spaces.get(key) for key in keys]


def _checked(
    held: SimpleNamespace, batched: Any, single: Any, before: Space[Any], rows: int
) -> tuple[Space[Any], Callable[[Any], Any]]:
    """The new space, and the function that is held, with a check of its results."""
    after = single_space("observation_space", batched, single, before, rows)
    fit = Fit("observations", after)

    def observe(observations: Any) -> Any:
        result = held.func(observations)
        fit.check(result, nested.count(before, observations))
        return result

    return after, observe


class DtypeObservation(ObservationWrapper):
    """Converts observations to another dtype, as NumPy's ``astype`` does.

    Args:
        env: A vector environment whose observations, or the parts of ``keys``, are one array.
        dtype: A dtype of NumPy.
        keys: The parts of nested observations that are changed, such as ``["camera"]`` or
            ``["state.joints"]``; the others pass unchanged. By default the whole observation.

    Raises:
        TypeError: Observations are not of a ``Box``, ``Discrete``, ``MultiDiscrete`` or
            ``MultiBinary`` space, or ``dtype`` is not a dtype of numbers.
        ValueError: ``keys`` do not fit the space, or a finite bound of the observations is outside
            of a dtype of integers.
    """

    def __init__(
        self, env: VectorEnv[Any, Any, Any], dtype: Any, *, keys: Sequence[str] | None = None
    ) -> None:
        try:
            given = None if dtype is None else np.dtype(dtype)
        except TypeError:
            given = None
        if given is None or given.kind not in "biuf":
            raise TypeError(f"`dtype` must be a dtype of numbers, got {dtype!r}.")
        super().__init__(env)
        self.dtype = dtype

        def convert(space: Space[Any]) -> tuple[Space[Any], Callable[[Any], Any]]:
            converted = _of_dtype(space, dtype)
            numbers = converted.dtype
            return converted, lambda observations: observations.astype(numbers, copy=False)

        self._convert_parts(keys, convert)
        self._makes_float64 = keys is None and self.single_observation_space.dtype == np.float64

    def _operation(self) -> Operation:
        return ("widen", ()) if self._makes_float64 else super()._operation()


def _of_dtype(space: Space[Any], dtype: Any) -> Space[Any]:
    if isinstance(space, Box):
        low, high = space.low, space.high
        with np.errstate(over="ignore", invalid="ignore"):
            if np.issubdtype(dtype, np.floating):  # the Box would warn of lower precision
                low, high = low.astype(dtype), high.astype(dtype)
            elif np.issubdtype(dtype, np.integer):  # as wide as the dtype at most
                low, high = _as_integers(low, dtype), _as_integers(high, dtype)
        return Box(low, high, shape=space.shape, dtype=dtype)
    if isinstance(space, Discrete):
        last = space.start + space.n - 1
        return Box(int(space.start), int(last), shape=(), dtype=dtype)
    if isinstance(space, MultiDiscrete) and not np.issubdtype(dtype, np.integer):
        return Box(space.start, space.start + space.nvec - 1, dtype=dtype)
    if isinstance(space, MultiDiscrete):
        bounds = space.start, space.nvec, space.start + space.nvec - 1
        start, nvec, _ = (_as_integers(bound, dtype) for bound in bounds)
        return MultiDiscrete(nvec, dtype=dtype, start=start)
    if isinstance(space, MultiBinary):
        return Box(0, 1, shape=space.shape, dtype=dtype)
    raise TypeError(
        "DtypeObservation needs observations of a Box, Discrete, MultiDiscrete or MultiBinary "
        f"space, got {space}."
    )


def _as_integers(bounds: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """Bounds as integers, rounded toward zero as observations are.

    Those that no integer dtype has stand for infinite ones, and are the limits of the dtype.
    """
    limits, whole = np.iinfo(dtype), np.trunc(bounds)
    wrong = (np.abs(whole) < 2.0**64) & ((whole < limits.min) | (whole > limits.max))
    if wrong.any():
        raise ValueError(
            f"the bound {bounds[wrong][0]:g} of the observations is outside of {np.dtype(dtype)}, "
            f"which has {limits.min} to {limits.max}: clip or rescale them before DtypeObservation"
        )
    integers = bounds.astype(dtype)
    integers[whole <= limits.min] = limits.min
    integers[whole >= limits.max] = limits.max
    return integers


class FilterObservation(ObservationWrapper):
    """Keeps some keys of ``Dict`` observations, or some places of ``Tuple`` observations.

    Args:
        env: A vector environment.
        filter_keys: The keys, strings; or the places, integers.

    Raises:
        TypeError: ``filter_keys`` is not a sequence, or has another type than the space's keys.
        ValueError: A key is missing or named twice, nothing would be left, or the space is neither
            a ``Dict`` nor a ``Tuple``.
    """

    def __init__(self, env: VectorEnv[Any, Any, Any], filter_keys: Sequence[str | int]) -> None:
        super().__init__(env)
        space = self._space_before
        is_dict = isinstance(space, Dict)
        if not isinstance(space, Dict | Tuple):
            raise ValueError(  # noqa: TRY004 - Gymnasium's type
                f"FilterObservation needs observations of a Dict or a Tuple space, got {space}."
            )
        kind: type[str | int] = str if is_dict else int
        if not isinstance(filter_keys, Sequence) or isinstance(filter_keys, str):
            raise TypeError(
                f"`filter_keys` must be a sequence, got {filter_keys!r} of {type(filter_keys)}."
            )
        if not all(isinstance(key, kind) for key in filter_keys):
            raise TypeError(
                f"all of `filter_keys` must be {kind.__name__} for a {type(space).__name__} space, "
                f"got {list(filter_keys)}."
            )
        self.filter_keys = tuple(filter_keys)
        there: Any = list(space.spaces) if is_dict else range(-len(space), len(space))
        missing = [key for key in filter_keys if key not in there]
        if missing:
            has = f"the keys {there}" if is_dict else f"places 0 to {len(space) - 1}"
            raise ValueError(f"`filter_keys` has {missing}, but observations have {has}.")
        named = filter_keys if is_dict else [int(key) % len(space) for key in filter_keys]
        if not filter_keys or len(set(named)) < len(filter_keys):
            raise ValueError(
                "`filter_keys` must name at least one part of the observations, and none twice, "
                f"got {list(filter_keys)}."
            )
        # Copies: making a batched space seeds the parts of the space that it is made from, and they
        # may be those of an environment in this process.
        parts: Any = copy.deepcopy(space.spaces)
        kept: Space[Any]
        if isinstance(space, Dict):
            kept = dict_like(space, {str(key): parts[key] for key in filter_keys})
        else:
            kept = Tuple([parts[key] for key in filter_keys])
        self._is_dict = is_dict
        self._set_observation_space(kept)

    def _observe(self, observations: Any) -> Any:
        if self._is_dict:
            return {key: observations[key] for key in self.filter_keys}
        return tuple(observations[key] for key in self.filter_keys)


class FlattenObservation(ObservationWrapper):
    """Flattens observations, as ``gymnasium.spaces.flatten`` does, all rows at once.

    Discrete parts become one-hot vectors, and empty parts nothing. The dtype is the one to which
    all parts convert. Spaces that cannot be flattened to an array (``Graph``, ``Sequence``) stay
    nested as Gymnasium leaves them; they, and ``Text`` and ``OneOf``, are flattened row by row.

    Args:
        env: A vector environment.

    Raises:
        NotImplementedError: Gymnasium cannot flatten the space.
        TypeError: The space has no part but empty dictionaries and tuples.
    """

    def __init__(self, env: VectorEnv[Any, Any, Any]) -> None:
        super().__init__(env)
        self._filled = without_empty(self._space_before)
        self._set_observation_space(flatten_space(self._filled))
        self._is_regular = is_regular(self._space_before)
        space = self._space_before
        #: The dtype of observations that get another shape, and that alone; and their new length.
        self._dtype_of_plain = space.dtype if isinstance(space, Box) else None
        self._length_of_plain = math.prod(space.shape) if isinstance(space, Box) else 0

    def _operation(self) -> Operation:
        if self._dtype_of_plain is None:
            return super()._operation()
        return "flatten", (self._dtype_of_plain, self._length_of_plain)

    def _observe(self, observations: Any) -> Any:
        if type(observations) is np.ndarray and observations.dtype is self._dtype_of_plain:
            return observations.reshape(len(observations), self._length_of_plain)
        if self._is_regular:
            return flatten_batch(self._space_before, observations)
        space, flat = self._space_before, self.single_observation_space
        size = nested.count(space, observations)
        rows = nested.rows(space, observations, size)
        values = [flatten(self._filled, filled(space, row)) for row in rows]
        return nested.stack(flat, values)


class RescaleObservation(ObservationWrapper):
    """Rescales observations linearly, from the bounds of their ``Box`` to other bounds.

    Args:
        env: A vector environment whose observations are of a ``Box`` space.
        min_obs: The new lower bounds: a number, or an array of the shape of one observation.
        max_obs: The new upper bounds.
        keys: The parts of nested observations that are changed, such as ``["camera"]`` or
            ``["state.joints"]``; the others pass unchanged. By default the whole observation.

    Raises:
        TypeError: The space is not a ``Box``, or a bound is neither a number nor an array.
        ValueError: ``keys`` do not fit the space. Bounds have the wrong shape, ``min_obs`` is above
            ``max_obs``, or a bound is infinite where the old one is finite, or vice versa; old
            bounds are equal somewhere; or the numbers are integers, and rescaled ones would not be:
            images from 0 to 255 are made floating-point numbers first, by
            :class:`DtypeObservation`.
    """

    def __init__(
        self,
        env: VectorEnv[Any, Any, Any],
        min_obs: Any,
        max_obs: Any,
        *,
        keys: Sequence[str] | None = None,
    ) -> None:
        super().__init__(env)

        def convert(space: Space[Any]) -> tuple[Space[Any], Callable[[Any], Any]]:
            if not isinstance(space, Box):
                raise TypeError(
                    f"RescaleObservation needs observations of a Box space, got {space}."
                )
            affine = Affine(space, ("min_obs", "max_obs"), (min_obs, max_obs), env.num_envs)
            return affine.box, affine.forward

        self._convert_parts(keys, convert)


class ReshapeObservation(ObservationWrapper):
    """Gives the observations of each environment another shape; bounds move with their numbers.

    Args:
        env: A vector environment whose observations are of a ``Box`` space.
        shape: The new shape of one observation, of as many numbers.
        keys: The parts of nested observations that are changed, such as ``["camera"]`` or
            ``["state.joints"]``; the others pass unchanged. By default the whole observation.

    Raises:
        TypeError: The space is not a ``Box``, or ``shape`` is not a tuple of integers.
        ValueError: ``keys`` do not fit the space, or the new shape has another number of elements.
    """

    def __init__(
        self,
        env: VectorEnv[Any, Any, Any],
        shape: tuple[int, ...],
        *,
        keys: Sequence[str] | None = None,
    ) -> None:
        super().__init__(env)
        if not isinstance(shape, tuple) or not all(
            isinstance(size, int | np.integer) for size in shape
        ):
            raise TypeError(f"`shape` must be a tuple of integers, got {shape!r}.")
        new = self.shape = tuple(map(int, shape))

        def convert(space: Space[Any]) -> tuple[Space[Any], Callable[[Any], Any]]:
            if not isinstance(space, Box):
                raise TypeError(
                    f"ReshapeObservation needs observations of a Box space, got {space}."
                )
            if any(size < 1 for size in new) or math.prod(new) != math.prod(space.shape):
                raise ValueError(
                    f"`shape` must have as many elements as observations of shape {space.shape}, "
                    f"got {new}."
                )
            low, high = space.low.reshape(new), space.high.reshape(new)
            box = Box(low, high, shape=new, dtype=space.dtype.type)
            return box, lambda observations: observations.reshape((len(observations), *new))

        self._convert_parts(keys, convert)
