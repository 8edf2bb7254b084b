"""Exceptions of environments, in the form in which workers send them to the caller.

Python pickles an exception as its class and its ``args``, and loads it by calling the class with
these arguments. The call fails if the constructor takes other arguments, and gives another text if
the constructor changes them. Such an exception is pickled as its fields instead, and loaded without
a call of its constructor.
"""

from __future__ import annotations

import bdb
import builtins
import contextlib
import dataclasses
import io
import os
import pickle
import threading
import traceback
import types
from typing import TYPE_CHECKING, Any

import cloudpickle
import gymnasium as gym

from cartwheel.errors import RAISED_BY, RemoteEnvError, RemoteTraceback, add_note, named_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from gymnasium.vector import VectorEnv

#: These read and set the attributes even if a class has others of the same names, or forbids
#: assignment, as frozen dataclasses do.
_CAUSE, _TRACEBACK = (vars(BaseException)[name] for name in ("__cause__", "__traceback__"))
#: The note on the exception of a debugger that quits. A worker process has no terminal to read
#: from, and the threads of a process would share one.
_NO_TERMINAL = (
    '`breakpoint()` needs a terminal: use executor="inline", which runs the environments on the '
    "calling thread"
)
#: The note on the exception for an id that a worker process does not know.
_NO_ID = (
    "a worker process knows the ids that are registered where it imports them: register yours in a "
    'module, and name that: gym.make("my_module:MyEnv-v0")'
)


@dataclasses.dataclass
class Fault:
    """An exception that is sent to another thread or process, mostly that of one row's environment.

    Attributes:
        row: The row; ``None`` if the exception does not concern a single row.
        error: The exception itself, within one process, until it is taken.
        pickle: The pickled exception, between processes; ``None`` if it cannot be pickled.
        causes: The pickled causes of the exception, up to the first that cannot be pickled.
        summary: Type and text.
        trace: The formatted traceback, with the tracebacks of the causes.
        pid: The id of the worker's process.
        thread: The id of the worker's thread in its process.
    """

    row: int | None
    error: BaseException | None
    pickle: bytes | None
    causes: list[bytes]
    summary: str
    trace: str
    pid: int
    thread: int = dataclasses.field(default_factory=threading.get_ident)

    @classmethod
    def from_exception(cls, row: int | None, error: BaseException, *, is_remote: bool) -> Fault:
        """Describes ``error``; with ``is_remote``, in a form that can always be pickled."""
        if not is_remote:
            return cls(row, error, None, [], "", "", os.getpid())
        if isinstance(error, SystemExit) and _has_quit_pdb(error):
            error = bdb.BdbQuit().with_traceback(error.__traceback__)
        # An exit such as `SystemExit` is reported to the caller, but does not end the caller.
        data = pickled_exception(error) if isinstance(error, Exception) else None
        return cls(row, None, data, _pickled_causes(error), *described(error), os.getpid())

    @classmethod
    def from_text(cls, text: str) -> Fault:
        """Describes what kept a worker from sending an exception; it has no row."""
        return cls(None, None, None, [], text, text, os.getpid())

    def take_exception(self) -> BaseException:
        """Returns the exception to raise here, of its original type if possible.

        The fault does not keep it, because the exception refers to frames, which refer to faults.
        """
        error, self.error = self.error, None
        if error is None:
            error = _loaded(self.pickle) or RemoteEnvError(self.summary)
            cause: BaseException = RemoteTraceback(self.trace)
            _CAUSE.__set__(error, cause)
            for data in self.causes:
                earlier = _loaded(data)
                if earlier is None:
                    break
                _CAUSE.__set__(cause, earlier)
                cause = earlier
        if self.row is not None:
            where = "" if self.pid == os.getpid() else f" (worker process {self.pid})"
            add_note(error, f"{RAISED_BY} {self.row}{where}")
            if where and isinstance(error, gym.error.UnregisteredEnv):
                add_note(error, _NO_ID)
        here = os.getpid(), threading.get_ident()
        if isinstance(error, bdb.BdbQuit) and (self.pid, self.thread) != here:
            add_note(error, _NO_TERMINAL)
        return error


def _has_quit_pdb(error: BaseException) -> bool:
    """Whether ``breakpoint()`` ends with this: from Python 3.14 on, not with ``BdbQuit``."""
    frames = traceback.walk_tb(_TRACEBACK.__get__(error))
    return any(frame.f_globals.get("__name__") == "pdb" for frame, _ in frames)


def _pickled_causes(error: BaseException) -> list[bytes]:
    causes: list[bytes] = []
    known = [error]
    while (cause := _CAUSE.__get__(known[-1])) is not None:
        if any(cause is one for one in known):
            break
        data = pickled_exception(cause) if isinstance(cause, Exception) else None
        if data is None:
            break
        causes.append(data)
        known.append(cause)
    return causes


def _loaded(data: bytes | None) -> BaseException | None:
    """Loads an exception; ``None`` if that fails, as without its class."""
    if data is None:
        return None
    try:
        error = pickle.loads(data)
    except Exception:
        return None
    return error if isinstance(error, BaseException) else None


def described(error: BaseException) -> tuple[str, str]:
    """Returns type and text of an exception, and its formatted traceback."""
    kind, trace = type(error), _TRACEBACK.__get__(error)
    try:
        summary = "".join(traceback.format_exception_only(kind, error)).strip()
        return summary, "".join(traceback.format_exception(kind, error, trace))
    except BaseException:  # the exception's own methods may raise anything
        summary = f"{kind.__module__}.{kind.__qualname__}: <it cannot be printed>"
        return summary, "".join([*traceback.format_tb(trace), summary, "\n"])


def raise_first(faults: list[Fault], received: list[int] | None = None) -> None:
    """Raises the exception of the lowest row and mentions the others in a note.

    ``received`` are the rows of the batch, if they were sent by ``send``.
    """
    raise _first(faults, received)


def _first(faults: list[Fault], received: list[int] | None) -> BaseException:
    faults = sorted(faults, key=lambda fault: -1 if fault.row is None else fault.row)
    error = faults[0].take_exception()
    others = [fault.row for fault in faults[1:] if fault.row is not None]
    if others:
        add_note(error, f"the environments of {named_rows(others)} raised too")
    if received is not None:
        rows = named_rows(received)
        add_note(error, f"it came with the batch of {rows}, whose results are dropped")
    return error


#: The object without the attribute, often an environment. Python does not pickle it either.
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
    """Returns the instructions by which ``pickle`` loads an exception: ``__new__``, then fields."""
    arguments = (error.message, error.exceptions) if isinstance(error, _GROUPS) else ()
    state = (_fields(error), object.__getattribute__(error, "__dict__"))
    return _make, (type(error), arguments), state, None, None, _fill


def _make(cls: type[BaseException], arguments: tuple[Any, ...]) -> BaseException:
    """Makes an exception without calling its constructor or a ``__new__`` written in Python."""
    built_in = (types.BuiltinFunctionType, types.BuiltinMethodType)
    base = next(base for base in cls.__mro__ if isinstance(vars(base).get("__new__"), built_in))
    return base.__new__(cls, *arguments)


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


def add_info(
    owner: VectorEnv[Any, Any, Any] | None,
    infos: dict[str, Any],
    info: dict[str, Any],
    place: int,
    rows: int,
) -> dict[str, Any]:
    """Adds one environment's info to the infos of a batch, by ``VectorEnv._add_info``.

    While the function runs, ``owner.num_envs`` is the number of rows of the batch.

    Args:
        owner: The vector environment, whose class may override ``_add_info``.
        infos: The batch's infos so far.
        info: The info to add.
        place: The place of its row in the batch.
        rows: The number of rows of the batch, at most ``owner.num_envs``.

    Raises:
        RuntimeError: The vector environment is gone.
    """
    if owner is None:
        raise RuntimeError("the vector environment is gone")
    if rows == owner.num_envs:
        return owner._add_info(infos, info, place)
    # `_add_info` makes arrays of `num_envs` rows. An override may keep state on the owner, so
    # `num_envs` is changed on the owner itself and not on a copy.
    num_envs, owner.num_envs = owner.num_envs, rows
    try:
        return owner._add_info(infos, info, place)
    finally:
        owner.num_envs = num_envs
