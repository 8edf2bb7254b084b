"""Exceptions that are hard to pickle and to raise again."""

import builtins
import dataclasses
import threading

from tests.support.faulty import FaultyEnv, RefusesToPickleError, TwoArgumentsError


class RewordingError(Exception):
    """Its pickle can be loaded, but the text changes."""

    def __init__(self, text):
        super().__init__(f"reworded: {text}")


class DemandingNewError(Exception):
    def __new__(cls, first, second):
        return super().__new__(cls, f"{first}, {second}")

    def __init__(self, first, second):
        super().__init__(first)
        self.second = second


class ExitsWhenPickledError(Exception):
    def __reduce__(self):
        raise SystemExit(3)


class RefusesItsStateError(Exception):
    def __init__(self, text):
        super().__init__(text)
        self.state = "kept"

    def __setstate__(self, state):
        raise RuntimeError("no state, please")


class SlottedError(Exception):
    __slots__ = ("code", "unset")

    def __init__(self, text, code=0):
        super().__init__(text)
        self.code = code


@dataclasses.dataclass(frozen=True)
class FrozenError(Exception):
    """No attribute can be assigned, not even ``__cause__`` and ``__notes__``."""

    first: int
    second: str = "two"


class TwoArgumentsOSError(OSError):
    def __init__(self, code, path, *, hint="a hint"):
        super().__init__(code, "no such thing", path)
        self.hint = hint


class TwoArgumentsDecodeError(UnicodeDecodeError):
    def __init__(self, data, hint):
        super().__init__("utf-8", data, 0, 1, "a bad byte")
        self.hint = hint


class OwnWordsError(Exception):
    """Has a lock, which its pickle leaves out."""

    def __init__(self, text):
        super().__init__(text)
        self.lock = threading.Lock()

    def __reduce__(self):
        return type(self), self.args


class OwnNotesError(Exception):
    """Refuses notes."""

    def add_note(self, note):
        raise RuntimeError(f"no note: {note}")

    @property
    def __notes__(self):
        return "not even a list"


class ExitsWhenPrintedError(Exception):
    def __str__(self):
        raise SystemExit(4)

    __repr__ = __str__


class RaisesItsCauseError(Exception):
    @property
    def __cause__(self):
        raise self


class RaisesItsTracebackError(Exception):
    @property
    def __traceback__(self):
        raise self


def with_note():
    error = TwoArgumentsError("salt", "pepper")
    error.__notes__ = ["a note of its own"]
    return error


def missing_attribute():
    return AttributeError("no such thing", name="thing", obj=threading.Lock())


def in_an_attribute():
    error = ValueError("outer")
    error.inner = TwoArgumentsError("salt", "pepper")
    return error


def in_a_group():
    return builtins.ExceptionGroup("a group", [TwoArgumentsError(1, 2), OSError(2, "no", "file")])


#: Exceptions that must keep their type, ``args`` and attributes in every executor.
KEPT = {
    "two arguments": lambda: TwoArgumentsError("salt", "pepper"),
    "rewording": lambda: RewordingError("once"),
    "demanding new": lambda: DemandingNewError(1, 2),
    "refuses to pickle": lambda: RefusesToPickleError("refuses", 1),
    "exits when pickled": lambda: ExitsWhenPickledError("exits"),
    "refuses its state": lambda: RefusesItsStateError("stateless"),
    "slots": lambda: SlottedError("slotted", code=7),
    "frozen": lambda: FrozenError(1),
    "OSError": lambda: TwoArgumentsOSError(2, "file", hint="another"),
    "UnicodeDecodeError": lambda: TwoArgumentsDecodeError(b"\xff", "look at it"),
    "own words": lambda: OwnWordsError("a lock is left out"),
    "own notes": lambda: OwnNotesError("noted"),
    "with a note": with_note,
    "a missing attribute": missing_attribute,
    "in an attribute": in_an_attribute,
}
if hasattr(builtins, "ExceptionGroup"):
    KEPT["in a group"] = in_a_group


class RaisingEnv(FaultyEnv):
    """Raises the exception that ``make_error`` returns, in each step."""

    def __init__(self, make_error, row=0):
        super().__init__(row)
        self.make_error = make_error

    def step(self, action):  # noqa: ARG002 - Gymnasium's signature
        raise self.make_error()
