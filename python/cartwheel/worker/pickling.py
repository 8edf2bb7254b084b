"""Pickles exceptions so that their type survives.

Python pickles an exception as its class and its ``args``, and loads it by calling the class with
these arguments. The call fails if the constructor takes other arguments, and gives another text if
the constructor changes them. Such an exception is pickled as its fields instead, and loaded without
a call of its constructor.
"""

from __future__ import annotations

import builtins
import contextlib
import io
import pickle
import types
from typing import TYPE_CHECKING, Any

import cloudpickle

if TYPE_CHECKING:
    from collections.abc import Callable

#: The object that lacks an attribute, often an environment. Python does not pickle it either.
_MISSING_IN = vars(AttributeError)["obj"]
_GROUPS = getattr(builtins, "BaseExceptionGroup", ())


def pickled_exception(error: BaseException) -> bytes | None:
    """Pickles an exception; returns ``None`` if it cannot be pickled or cannot be loaded again."""
    for pickler in (_ByReference, _ByValue):
        with contextlib.suppress(BaseException):  # its own methods may raise anything
            file = io.BytesIO()
            pickler(file, protocol=pickle.HIGHEST_PROTOCOL).dump(error)
            data = file.getvalue()
            if type(pickle.loads(data)) is type(error):
                return data
    return None


class _ByReference(pickle.Pickler):
    """Pickles classes by their names."""

    def reducer_override(self, obj: Any) -> Any:
        """Pickles an exception by its fields if the usual pickling does not preserve it."""
        if not isinstance(obj, BaseException) or _survives(obj, pickle.dumps):
            return NotImplemented
        return _taken_apart(obj)


class _ByValue(cloudpickle.Pickler):  # type: ignore[misc]
    """Pickles classes by their contents if they cannot be imported by name."""

    def reducer_override(self, obj: Any) -> Any:
        """Pickles an exception by its fields if the usual pickling does not preserve it."""
        if not isinstance(obj, BaseException) or _survives(obj, cloudpickle.dumps):
            return super().reducer_override(obj)
        return _taken_apart(obj)


def _survives(error: BaseException, dumps: Callable[[Any], bytes]) -> bool:
    try:
        loaded = pickle.loads(dumps(error))
        return type(loaded) is type(error) and bool(_fields(loaded) == _fields(error))
    except BaseException:  # the exception's own methods may raise anything
        return False


def _taken_apart(error: BaseException) -> tuple[Any, ...]:
    """Returns how ``pickle`` loads an exception: by ``__new__`` alone, and then by its fields."""
    arguments = (error.message, error.exceptions) if isinstance(error, _GROUPS) else ()
    state = (_fields(error), object.__getattribute__(error, "__dict__"))
    return _make, (type(error), arguments), state, None, None, _fill


def _make(cls: type[BaseException], arguments: tuple[Any, ...]) -> BaseException:
    """Makes an exception without calling its constructor or a ``__new__`` written in Python."""
    built_in = (types.BuiltinFunctionType, types.BuiltinMethodType)
    base = next(base for base in cls.__mro__ if isinstance(vars(base).get("__new__"), built_in))
    made: BaseException = base.__new__(cls, *arguments)
    return made


def _fill(error: BaseException, state: tuple[dict[str, Any], dict[str, Any]]) -> None:
    """Sets the fields and attributes of an exception."""
    fields, attributes = state
    descriptors = _descriptors(type(error))
    made = _fields(error)
    for name, value in fields.items():
        # A C field that was never set reads as `None`, but setting it to `None` changes the state.
        if name not in made or made[name] is not value:
            with contextlib.suppress(AttributeError, TypeError):  # read-only: set by `__new__`
                descriptors[name].__set__(error, value)
    object.__getattribute__(error, "__dict__").update(attributes)


def _fields(error: BaseException) -> dict[str, Any]:
    """Returns the state of an exception outside its ``__dict__``: ``args``, slots, C fields."""
    fields = {}
    for name, descriptor in _descriptors(type(error)).items():
        with contextlib.suppress(AttributeError, TypeError):  # not set
            fields[name] = descriptor.__get__(error)
    return fields


def _descriptors(cls: type[BaseException]) -> dict[str, Any]:
    """Returns the descriptors of the state outside ``__dict__``."""
    kinds = (types.MemberDescriptorType, types.GetSetDescriptorType)
    return {
        name: descriptor
        for base in reversed(cls.__mro__)
        for name, descriptor in vars(base).items()
        if isinstance(descriptor, kinds)
        and not (name.startswith("__") and name.endswith("__"))
        and descriptor is not _MISSING_IN
    }
