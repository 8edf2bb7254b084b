"""Wrappers that transform actions: by functions, by clipping, scaling and flattening."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from gymnasium.error import InvalidBound
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete, Space, Tuple
from gymnasium.spaces.utils import flatdim, flatten_space
from gymnasium.vector.utils import batch_space

from cartwheel._internal import nested
from cartwheel._internal.nested import as_array
from cartwheel.wrappers._shared.affine import Affine
from cartwheel.wrappers._shared.fit import Fit, single_space
from cartwheel.wrappers._shared.flattening import flatten_batch, is_regular, without_empty
from cartwheel.wrappers.base import VectorWrapper, rows_of_batch

if TYPE_CHECKING:
    from collections.abc import Callable

    from gymnasium.vector import VectorEnv
    from numpy.typing import NDArray

    from cartwheel.wrappers.batch import ActionBatch


class ActionWrapper(VectorWrapper):
    """Replaces actions by a function of them; the results get the dtypes of their space.

    A subclass overrides :meth:`_convert`, which is called with a batch of any number of rows.
    """

    _changes_steps = False

    def __init__(self, env: VectorEnv[Any, Any, Any]) -> None:
        """Keeps the space of the actions that go out."""
        super().__init__(env)
        self._space_after: Space[Any] = env.single_action_space

    def _convert(self, actions: Any) -> Any:
        """Returns the actions for the wrapped environment; never writes into ``actions``."""
        raise NotImplementedError

    def _set_action_space(self, single: Space[Any]) -> None:
        self.single_action_space = single
        self.action_space = batch_space(single, rows_of_batch(self.env))

    def act(self, actions: Any, batch: ActionBatch) -> Any:
        """Returns the actions that the wrapped environment gets."""
        del batch
        return as_space(self._space_after, self._convert(actions))


class TransformAction(ActionWrapper):
    """Applies a function to actions, batch by batch.

    Args:
        env: A vector environment.
        func: Called with a batch of actions of **any number of rows**, in the form in which the
            caller gave it, which it does not write into. Returns as many actions for ``env``; they
            get the dtypes of its space.
        action_space: The new space of a batch.
        single_action_space: The new space of one environment. By default it is found from
            ``action_space``; with neither, the space does not change.

    Raises:
        TypeError: ``func`` cannot be called.
        ValueError: The spaces contradict each other. From ``step`` and ``send``: the result does
            not fit the space of ``env``; nothing was stepped.
    """

    def __init__(
        self,
        env: VectorEnv[Any, Any, Any],
        func: Callable[[Any], Any],
        action_space: Space[Any] | None = None,
        single_action_space: Space[Any] | None = None,
    ) -> None:
        super().__init__(env)
        if not callable(func):
            raise TypeError(f"`func` must be a function of actions, got {type(func)}.")
        self.func = func
        spaces = action_space, single_action_space, self._space_after
        self._set_action_space(single_space("action_space", *spaces, rows_of_batch(env)))
        self._fit = Fit("actions", self._space_after)

    def act(self, actions: Any, batch: ActionBatch) -> Any:
        """Applies the function, and checks its result."""
        result = super().act(actions, batch)
        # A batch for all rows has all of them, those of a batch of some rows as many as it names.
        wanted = self.num_envs if batch.env_index is None else np.size(batch.env_index)
        self._fit.check(result, wanted)
        return result

    def _convert(self, actions: Any) -> Any:
        return self.func(actions)


def as_space(space: Space[Any], batch: Any) -> Any:
    """Gives the arrays of a batch the dtypes of their space; ``space`` is the space of one row."""
    if isinstance(space, nested.ARRAY_SPACES):
        array = as_array("actions", batch)
        try:
            return array if array.dtype == space.dtype else array.astype(space.dtype)
        except (TypeError, ValueError):  # not numbers: the environments refuse them
            return batch
    if isinstance(space, Dict) and isinstance(batch, dict):
        parts = space.spaces
        return {
            key: as_space(parts[key], value) if key in parts else value
            for key, value in batch.items()
        }
    if isinstance(space, Tuple) and isinstance(batch, tuple):
        if len(batch) != len(space.spaces):
            return batch
        return tuple(as_space(part, value) for part, value in zip(space.spaces, batch, strict=True))
    return batch


def _of_box(space: Space[Any], actions: Any, num_envs: int) -> NDArray[Any]:
    """Actions of a ``Box`` as an array. NumPy would repeat those of some other shapes."""
    array = as_array("actions", actions)
    if not array.ndim or array.shape[1:] != space.shape or len(array) > num_envs:
        raise ValueError(
            f"`actions` must have an array of shape {space.shape} for each of at most {num_envs} "
            f"rows, got the shape {array.shape}."
        )
    return array


class ClipAction(ActionWrapper):
    """Clips actions to the bounds of the action space; the new space has no bounds.

    Args:
        env: A vector environment whose actions are of a ``Box`` space.

    Raises:
        TypeError: The action space is not a ``Box``.
        ValueError: From ``step`` and ``send``: actions have another shape; nothing was stepped.
    """

    def __init__(self, env: VectorEnv[Any, Any, Any]) -> None:
        super().__init__(env)
        space = self._space_after
        if not isinstance(space, Box):
            raise TypeError(f"ClipAction needs actions of a Box space, got {space}.")
        # One copy a row: NumPy is several times slower where it repeats short rows.
        self._low, self._high = (
            np.repeat(bound[None], env.num_envs, axis=0) for bound in (space.low, space.high)
        )
        self._set_action_space(Box(-np.inf, np.inf, shape=space.shape, dtype=space.dtype.type))

    def _convert(self, actions: Any) -> Any:
        array = _of_box(self._space_after, actions, self.num_envs)
        rows = len(array)
        return array.clip(self._low[:rows], self._high[:rows])


#: How discrete actions are written as numbers.
Form = Literal["index", "onehot"]


class FlattenAction(ActionWrapper):
    """Takes the actions of each environment as one array ``[D]``, for any action space of arrays.

    The parts of nested ``Dict`` and ``Tuple`` spaces follow one another in the order of
    ``gymnasium.spaces.flatten``. The new space is a ``Box`` with the bounds of the parts, and the
    dtype to which all parts convert.

    Example:
        >>> import cartwheel
        >>> from cartwheel.wrappers import FlattenAction
        >>> envs = FlattenAction(cartwheel.NativeVectorEnv("CartPole-v1", 3))
        >>> envs.single_action_space
        Box(0, 1, (1,), int64)
        >>> envs.flatten(envs.env.action_space.sample()).shape
        (3, 1)
        >>> envs.close()

    Args:
        env: A vector environment whose actions are ``Box``, ``Discrete``, ``MultiDiscrete`` or
            ``MultiBinary`` spaces, or nested ``Dict`` and ``Tuple`` spaces of these.
        discrete: ``"index"``: a ``Discrete`` action is one number, from ``start`` on, and a
            ``MultiDiscrete`` one has a number for each of its parts. ``"onehot"``: each choice of
            ``n`` is ``n`` numbers, as ``gymnasium.spaces.flatten`` has it; the greatest of them is
            chosen, the first of equal ones. Where discrete parts are given as floating-point
            numbers (because another part needs them), indices and bits are rounded.

    Raises:
        TypeError: A part of the action space is not an array of fixed shape.
        ValueError: ``discrete`` is neither. From ``step`` and ``send``: actions are not one array
            of ``D`` numbers for each row; nothing was stepped.
    """

    def __init__(self, env: VectorEnv[Any, Any, Any], discrete: Form = "index") -> None:
        super().__init__(env)
        if discrete not in get_args(Form):
            raise ValueError(f"`discrete` must be 'index' or 'onehot', got {discrete!r}.")
        if not is_regular(self._space_after):
            raise TypeError(
                "FlattenAction needs actions of Box, Discrete, MultiDiscrete and MultiBinary "
                f"spaces, or of nested Dict and Tuple spaces of these, got {self._space_after}."
            )
        self.discrete = discrete
        space = self._space_after if discrete == "onehot" else _by_index(self._space_after)
        flat = flatten_space(without_empty(space))
        assert isinstance(flat, Box)
        self._set_action_space(flat)
        self._length = flat.shape[0]
        self._take, end = _taker(self._space_after, discrete, 0)
        assert end == self._length

    def flatten(self, actions: Any) -> NDArray[Any]:
        """Flattens a batch of actions of the wrapped environment: the inverse of this wrapper.

        Args:
            actions: Of any number of rows, in the form of the wrapped environment's action space.

        Returns:
            ``[K, D]``, in the dtype of the new space.
        """
        space = self._space_after
        values = as_space(space, actions)
        join = _joined if self.discrete == "index" else flatten_batch
        flat = join(space, values)
        return flat.astype(self.single_action_space.dtype, copy=False)

    def _convert(self, actions: Any) -> Any:
        flat = as_array("actions", actions)
        if flat.ndim != 2 or flat.shape[1] != self._length:
            raise ValueError(
                f"`actions` must have the shape (rows, {self._length}), got {flat.shape}."
            )
        return self._take(flat)


def _taker(space: Space[Any], form: Form, at: int) -> tuple[Callable[[NDArray[Any]], Any], int]:
    """Makes the function that takes the values of a space from its columns of flat actions.

    Args:
        space: The space of one environment's actions, or a part of it.
        form: How discrete actions are written.
        at: The first column of the part.

    Returns:
        The function, and the first column after the part.
    """
    if isinstance(space, Dict | Tuple):
        takers: dict[Any, Callable[[NDArray[Any]], Any]] = {}
        for key, part in nested.parts(space):
            takers[key], at = _taker(part, form, at)
        if isinstance(space, Dict):
            return (lambda flat: {key: take(flat) for key, take in takers.items()}), at
        return (lambda flat: tuple(take(flat) for take in takers.values())), at
    if isinstance(space, Discrete | MultiDiscrete) and form == "onehot":
        return functools.partial(_chosen, space, at), at + flatdim(space)
    shape, dtype = tuple(space.shape or ()), space.dtype
    end = at + math.prod(shape)
    rounds = not isinstance(space, Box)

    def take(flat: NDArray[Any]) -> NDArray[Any]:
        columns = flat[:, at:end]
        if rounds and columns.dtype.kind == "f":
            columns = np.rint(columns)
        if columns.dtype != dtype:
            columns = columns.astype(dtype)
        return columns.reshape((len(flat), *shape))

    return take, end


def _by_index(space: Space[Any]) -> Space[Any]:
    """The space with a ``Box`` of indices for each discrete part."""
    if isinstance(space, Dict):
        return Dict(  # pairs keep the order of the parts
            [(key, _by_index(part)) for key, part in space.spaces.items()]
        )
    if isinstance(space, Tuple):
        return Tuple([_by_index(part) for part in space.spaces])
    if isinstance(space, Discrete):
        last = int(space.start) + int(space.n) - 1
        return Box(int(space.start), last, (1,), dtype=space.dtype.type)
    if isinstance(space, MultiDiscrete):
        return Box(space.start, space.start + space.nvec - 1, dtype=space.dtype.type)
    return space


def _joined(space: Space[Any], batch: Any) -> NDArray[Any]:
    """The numbers of a batch, with indices as they are, ``[K, D]``."""
    if isinstance(space, Dict | Tuple):
        parts = [(key, part) for key, part in nested.parts(space) if nested.has_leaf(part)]
        columns = [_joined(part, batch[key]) for key, part in parts]
        return np.concatenate(columns, axis=1)
    array: NDArray[Any] = batch.reshape(len(batch), -1)
    return array


def _chosen(space: Discrete | MultiDiscrete, at: int, flat: NDArray[Any]) -> NDArray[Any]:
    """The choices of one-hot vectors, which begin at a column."""
    numbers: Any = space.n if isinstance(space, Discrete) else space.nvec
    sizes = [int(size) for size in np.ravel(numbers)]
    chosen = np.empty((len(flat), len(sizes)), space.dtype)
    for number, size in enumerate(sizes):
        chosen[:, number] = flat[:, at : at + size].argmax(axis=1)
        at += size
    shape = tuple(space.shape or ())
    return chosen.reshape((len(flat), *shape)) + np.asarray(space.start, space.dtype)


class RescaleAction(ActionWrapper):
    """Rescales actions linearly, from new bounds to the bounds of the ``Box`` of ``env``.

    Args:
        env: A vector environment whose actions are of a ``Box`` space.
        min_action: The new lower bounds: a number, or an array of the shape of one action.
        max_action: The new upper bounds.

    Raises:
        TypeError: The action space is not a ``Box``, or a bound is neither a number nor an array.
        ValueError: Bounds have the wrong shape, ``min_action`` is above ``max_action``, or a bound
            is infinite where the old one is finite, or vice versa; old bounds are equal somewhere;
            or the numbers are integers, and rescaled ones would not be. From ``step`` and ``send``:
            actions have another shape; nothing was stepped.
        gymnasium.error.InvalidBound: The bounds are equal somewhere, so that the rescaling has no
            inverse.
    """

    def __init__(self, env: VectorEnv[Any, Any, Any], min_action: Any, max_action: Any) -> None:
        super().__init__(env)
        space = self._space_after
        if not isinstance(space, Box):
            raise TypeError(f"RescaleAction needs actions of a Box space, got {space}.")
        bounds = (min_action, max_action)
        self._affine = Affine(space, ("min_action", "max_action"), bounds, env.num_envs)
        if np.any(self._affine.box.low == self._affine.box.high):
            raise InvalidBound(
                "`min_action` must be below `max_action` everywhere, because the rescaling has no "
                f"inverse where they are equal: got {min_action} and {max_action}."
            )
        self._set_action_space(self._affine.box)

    def _convert(self, actions: Any) -> Any:
        return self._affine.backward(_of_box(self._space_after, actions, self.num_envs))
