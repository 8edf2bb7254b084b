"""Pickles exceptions so that their type survives.

Python pickles an exception as its class and its ``args``, and loads it by calling the class with
them. That fails where the constructor takes other arguments, and loads another text where the
constructor changes them. Such an exception is pickled as what it holds instead, and loaded without
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

#: The object that lacks an attribute: mostly an environment, which Python does not pickle either.
_MISSING_IN = vars(AttributeError)["obj"]
_GROUPS = getattr(builtins, "BaseExceptionGroup", ())


def pickled_exception(error: BaseException) -> bytes | None:
    """The pickled exception; ``None`` if it cannot be pickled, or not be loaded."""
    for pickler in (_ByReference, _ByValue):
        with contextlib.suppress(BaseException):  # of the exception's own methods: any
            file = io.BytesIO()
            pickler(file, protocol=pickle.HIGHEST_PROTOCOL).dump(error)
            data = file.getvalue()
            if type(pickle.loads(data)) is type(error):
                return data
    return None


class _ByReference(pickle.Pickler):
    """Classes by their names."""

    def reducer_override(self, obj: Any) -> Any:
        """Takes exceptions apart that do not survive the pickling of their class."""
        if not isinstance(obj, BaseException) or _survives(obj, pickle.dumps):
            return NotImplemented
        return _taken_apart(obj)


class _ByValue(cloudpickle.Pickler):  # type: ignore[misc]
    """Classes that have no importable name by their contents."""

    def reducer_override(self, obj: Any) -> Any:
        """Takes exceptions apart that do not survive the pickling of their class."""
        if not isinstance(obj, BaseException) or _survives(obj, cloudpickle.dumps):
            return super().reducer_override(obj)
        return _taken_apart(obj)


def _survives(error: BaseException, dumps: Callable[[Any], bytes]) -> bool:
    try:
        loaded = pickle.loads(dumps(error))
        return type(loaded) is type(error) and bool(_fields(loaded) == _fields(error))
    except BaseException:  # of the exception's own methods: any
        return False


def _taken_apart(error: BaseException) -> tuple[Any, ...]:
    """How ``pickle`` makes an exception again: by ``__new__`` alone, and then what it holds."""
    arguments = (error.message, error.exceptions) if isinstance(error, _GROUPS) else ()
    state = (_fields(error), object.__getattribute__(error, "__dict__"))
    return _make, (type(error), arguments), state, None, None, _fill


def _make(cls: type[BaseException], arguments: tuple[Any, ...]) -> BaseException:
    """An exception whose constructor is not called, nor a ``__new__`` written in Python."""
    built_in = (types.BuiltinFunctionType, types.BuiltinMethodType)
    base = next(base for base in cls.__mro__ if isinstance(vars(base).get("__new__"), built_in))
    made: BaseException = base.__new__(cls, *arguments)
    return made


def _fill(error: BaseException, state: tuple[dict[str, Any], dict[str, Any]]) -> None:
    """Gives an exception what it held."""
    fields, attributes = state
    descriptors = _descriptors(type(error))
    made = _fields(error)
    for name, value in fields.items():
        # A field of C that nobody has set reads as `None`, and is another one once it is set to it.
        if name not in made or made[name] is not value:
            with contextlib.suppress(AttributeError, TypeError):  # read-only: set by `__new__`
                descriptors[name].__set__(error, value)
    object.__getattribute__(error, "__dict__").update(attributes)


def _fields(error: BaseException) -> dict[str, Any]:
    """What an exception holds beside its ``__dict__``: ``args``, slots, fields of C."""
    fields = {}
    for name, descriptor in _descriptors(type(error)).items():
        with contextlib.suppress(AttributeError, TypeError):  # it is not set
            fields[name] = descriptor.__get__(error)
    return fields


def _descriptors(cls: type[BaseException]) -> dict[str, Any]:
    """The descriptors of those fields."""
    kinds = (types.MemberDescriptorType, types.GetSetDescriptorType)
    return {
        name: descriptor
        for base in reversed(cls.__mro__)
        for name, descriptor in vars(base).items()
        if isinstance(descriptor, kinds)
        and not (name.startswith("__") and name.endswith("__"))
        and descriptor is not _MISSING_IN
    }
