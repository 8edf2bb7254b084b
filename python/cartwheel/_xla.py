"""Calls of native environments from functions that JAX compiles, by XLA's interface for them.

``cartwheel.jax`` and ``cartwheel.envpool`` make functions of them, and say how to install JAX.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import mlir

from cartwheel._cartwheel import register_pool, xla_handlers
from cartwheel._internal.spaces import describe, describe_actions
from cartwheel._internal.suggestions import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cartwheel._internal.spaces import Description
    from cartwheel.vector.base import PoolVectorEnv

#: Kinds of dtypes, in the order in which actions are cast. Signed integers are unsigned ones, too,
#: if they are not negative, which is checked when they are read.
_KINDS = "buifc"


class Leaf(NamedTuple):
    """An array of a batch: its dtype in NumPy, the shape of a row, and its place in errors."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    where: str


def leaves_of(description: Description, where: str = "") -> list[Leaf]:
    """Returns the arrays of a space, in the order of the native code.

    Raises:
        ValueError: Some part has no fixed shape.
    """
    kind, parts = description[0], description[1]
    if kind == "leaf":
        return [Leaf(np.dtype(parts), description[2], where)]
    if kind == "opaque":
        raise ValueError(f"compiled functions need spaces of fixed shape, got {parts}{where}")
    named = parts if kind == "dict" else enumerate(parts)
    return [leaf for key, part in named for leaf in leaves_of(part, f"{where}[{key!r}]")]


def assembled(description: Description, arrays: Iterator[Any]) -> Any:
    """Returns arrays in the structure of a space."""
    kind, parts = description[0], description[1]
    if kind == "leaf":
        return next(arrays)
    if kind == "dict":
        return {key: assembled(part, arrays) for key, part in parts}
    return tuple(assembled(part, arrays) for part in parts)


def _parts(description: Description, value: Any, where: str = "") -> Iterator[Any]:
    """Takes actions apart, in the order of the leaves."""
    kind, parts = description[0], description[1]
    if kind == "leaf":
        yield value
    elif kind == "dict":
        names = [key for key, _ in parts]
        if not isinstance(value, dict) or set(value) != set(names):
            raise ValueError(
                f"actions{where} must be a dictionary with the keys {names}, got {shown(value)}"
            )
        for key, part in parts:
            yield from _parts(part, value[key], f"{where}[{key!r}]")
    else:
        if not isinstance(value, tuple | list) or len(value) != len(parts):
            raise ValueError(
                f"actions{where} must be a tuple of {len(parts)} batches, got {shown(value)}"
            )
        for at, (part, own) in enumerate(zip(parts, value, strict=True)):
            yield from _parts(part, own, f"{where}[{at}]")


def as_array(value: Any, name: str) -> Any:
    """Returns an array of JAX.

    Raises:
        TypeError: ``value`` is not an array.
    """
    if value is None:
        raise TypeError(f"`{name}` must be an array, got None")
    try:
        return jnp.asarray(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"`{name}` must be an array, got {shown(value)}: {error}") from None


class Calls:
    """The calls of one pool: each is a function of arrays, inside and outside of ``jit``.

    It keeps the pool's number, and not the pool: functions that were compiled may outlive it.

    Attributes:
        observations: The description of the space of one row's observations.
        actions: The description of the action space of one row.
    """

    def __init__(self, envs: PoolVectorEnv[Any, Any]) -> None:
        """Registers the pool.

        Raises:
            ValueError: A space has no fixed shape.
        """
        self.observations = describe(envs.single_observation_space)
        self.actions = describe_actions(envs.single_action_space)
        self.observation_leaves = leaves_of(self.observations, " of the observation space")
        self.action_leaves = leaves_of(self.actions)
        self._number = register_pool(envs._pool)

    def call(
        self,
        name: str,
        results: Callable[[], Sequence[jax.ShapeDtypeStruct]],
        *,
        has_effect: bool = False,
    ) -> Callable[..., tuple[Any, ...]]:
        """Returns a function of arrays that calls the pool.

        The first argument and the first result of each call but ``init`` are the state or the
        handle. The next one takes the memory of the last, which a loop would have to copy; XLA
        keeps the last one where it is used again.

        Args:
            name: The call.
            results: The forms of the results; asked when the function is traced, since dtypes
                depend on JAX's configuration.
            has_effect: Whether the call is made although none of its results is used. JAX calls
                compiled functions with effects by way of Python, which takes it 0.1 ms longer.
        """
        number = np.int64(self._number)

        def foreign(*arguments: Any) -> tuple[Any, ...]:
            if has_effect:
                call = jax.ffi.ffi_call(
                    _target(name),
                    results(),
                    has_side_effect=True,
                    input_output_aliases=_shared(name),
                )
                return tuple(call(*arguments, pool=number))
            forms = tuple(results())
            return tuple(_call_p.bind(*arguments, name=name, forms=forms, pool=number))

        batched = jax.custom_batching.custom_vmap(foreign)

        @batched.def_vmap
        def refuse_vmap(axis_size: int, *_: Any) -> Any:
            raise NotImplementedError(
                f"`{name}` steps all rows at once and cannot be mapped by `jax.vmap` (over an axis "
                f"of {axis_size}): make the environments with a larger `num_envs`"
            )

        differentiable = jax.custom_jvp(batched)

        @differentiable.defjvp
        def refuse_gradient(*_: Any) -> Any:
            raise TypeError(
                f"`{name}` has no gradient: pass its arguments through `jax.lax.stop_gradient`"
            )

        return jax.jit(differentiable)  # type: ignore[no-any-return]

    def forms(self, rows: int) -> list[jax.ShapeDtypeStruct]:
        """Returns the forms of the observations of ``rows`` rows."""
        return [form((rows, *leaf.shape), leaf.dtype) for leaf in self.observation_leaves]

    def as_actions(self, actions: Any, rows: int, expected: str) -> list[Any]:
        """Returns the arrays of actions of ``rows`` rows.

        Raises:
            TypeError: They are not arrays, or of another kind of dtype.
            ValueError: They have another structure or shape.
        """
        parts = _parts(self.actions, actions)
        return [
            _as_actions(part, leaf, rows, expected)
            for part, leaf in zip(parts, self.action_leaves, strict=True)
        ]


def _as_actions(actions: Any, leaf: Leaf, rows: int, expected: str) -> Any:
    name = f"actions{leaf.where}"
    array = as_array(actions, name)
    shape = (rows, *leaf.shape)
    if array.shape != shape:
        raise ValueError(
            f"`{name}` must have shape {shape} ({expected}), got shape {tuple(array.shape)}"
        )
    given = np.dtype(array.dtype)
    kind = "f" if jnp.issubdtype(array.dtype, jnp.floating) else given.kind
    wanted = leaf.dtype.kind
    if kind not in _KINDS or (
        _KINDS.index(kind) > _KINDS.index(wanted) and (kind, wanted) != ("i", "u")
    ):
        raise TypeError(
            f"`{name}` are {given.name}, and the action space's dtype is {leaf.dtype.name}: cast "
            "them, because a cast to another kind of dtype may lose values"
        )
    # Integers are converted where they are checked, and floats of 32 and 64 bits as outside of JAX.
    as_it_is = kind in "ui" and wanted in "ui"
    as_it_is |= given.name in _FLOATS and leaf.dtype.name in _FLOATS
    return array if as_it_is else array.astype(form((), leaf.dtype).dtype)


_FLOATS = ("float32", "float64")


def form(shape: tuple[int, ...], dtype: Any) -> jax.ShapeDtypeStruct:
    """Returns the form of an array: without ``jax_enable_x64``, JAX has no 64-bit numbers."""
    return jax.ShapeDtypeStruct(shape, jax.dtypes.canonicalize_dtype(dtype))


def _target(name: str) -> str:
    """The name of a call in compiled code, with its version: such code may be in a cache."""
    _register()
    return _NAME.format(name)


def _shared(name: str) -> dict[int, int] | None:
    """Returns the operands whose memory a result may take: the state, unless the call has none."""
    return None if name == "init" else {0: 0}


#: A call without an effect of JAX's. XLA knows its effect: it neither moves, joins nor drops calls.
_call_p = Primitive("cartwheel_call")
_call_p.multiple_results = True


@_call_p.def_abstract_eval
def _results(*_: Any, forms: tuple[jax.ShapeDtypeStruct, ...], **__: Any) -> list[Any]:
    return [jax.core.ShapedArray(own.shape, own.dtype) for own in forms]


@_call_p.def_impl
def _run(*arguments: Any, **parameters: Any) -> Any:
    """Compiles the call alone, in ``jax.disable_jit()``."""
    with jax.disable_jit(False):
        return jax.jit(functools.partial(_call_p.bind, **parameters))(*arguments)


def _lower(context: Any, *operands: Any, name: str, pool: np.int64, **_: Any) -> Any:
    rule = jax.ffi.ffi_lowering(
        _target(name), has_side_effect=True, operand_output_aliases=_shared(name)
    )
    return rule(context, *operands, pool=pool)


mlir.register_lowering(_call_p, _lower)

#: The name of a handler.
_NAME = "cartwheel_{}_v1"


@functools.cache
def _register() -> None:
    """Registers the handlers, once; on devices, one that says what to do instead."""
    addresses = xla_handlers()
    device = addresses.pop("device")
    for name, address in addresses.items():
        target = _NAME.format(name)
        jax.ffi.register_ffi_target(target, jax.ffi.pycapsule(address), platform="cpu")
        for platform in ("CUDA", "ROCM"):
            jax.ffi.register_ffi_target(target, jax.ffi.pycapsule(device), platform=platform)
