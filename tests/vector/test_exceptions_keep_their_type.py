"""An exception arrives with its own type and contents, however its class is pickled."""

import pickle
from functools import partial

import gymnasium as gym
import pytest

import cartwheel
from cartwheel.workers.faults import pickled_exception
from tests.support import exceptions
from tests.support.comparison import assert_names_row, text_of
from tests.support.exceptions import KEPT, RaisingEnv
from tests.support.executors import SENDING
from tests.support.faulty import FaultyEnv, TwoArgumentsError, UnpicklableError

#: Attributes that cannot be sent, or that cartwheel adds.
NOT_COMPARED = {"lock", "__notes__"}


def contents(error):
    """The parts of an exception that must arrive unchanged."""
    found = {name: value for name, value in vars(error).items() if name not in NOT_COMPARED}
    inner = found.pop("inner", None)
    members = (
        "errno",
        "strerror",
        "filename",
        "filename2",
        "encoding",
        "object",
        "reason",
        "code",
        "name",
    )
    return {
        "type": type(error),
        "args": [contents(a) if isinstance(a, BaseException) else a for a in error.args[:1]],
        "number of args": len(error.args),
        "attributes": found,
        "inner": inner and contents(inner),
        "members": {name: getattr(error, name, None) for name in members},
        "group": [contents(one) for one in getattr(error, "exceptions", ())],
        "text": str(error),
    }


def raised(build, make_error):
    envs = build([FaultyEnv, partial(RaisingEnv, make_error, 1)])
    envs.reset()
    with pytest.raises(BaseException) as failure:  # noqa: PT011 (of every type there is)
        envs.step([0, 0])
    envs.close()
    return failure.value


def test_exceptions_of_a_step_keep_their_types_and_contents(build):
    envs = build([FaultyEnv, partial(RaisingEnv, None, 1)])
    for name, make_error in KEPT.items():
        envs.set_attr("make_error", [None, make_error])
        envs.reset()
        with pytest.raises(BaseException) as failure:  # noqa: PT011 (of every type there is)
            envs.step([0, 0])
        assert contents(failure.value) == contents(make_error()), name
        if name != "own notes":
            assert_names_row(failure.value, 1)


def test_notes_of_the_exception_come_before_the_row(build):
    error = raised(build, KEPT["with a note"])
    assert error.__notes__[0] == "a note of its own"
    assert "row 1" in error.__notes__[1]


#: Constructors fail on the way of steps, so two of them stand for all.
CONSTRUCTED = [
    pytest.param(name, marks=() if name in ("two arguments", "own notes") else pytest.mark.slow)
    for name in KEPT
]


@pytest.mark.parametrize("name", CONSTRUCTED)
def test_an_exception_of_a_constructor_keeps_its_type(build, name):
    def fail():
        raise KEPT[name]()

    with pytest.raises(BaseException) as failure:  # noqa: PT011 (of every type there is)
        build([FaultyEnv, fail])
    assert contents(failure.value) == contents(KEPT[name]())


def caused():
    error = TwoArgumentsError("salt", "pepper")
    error.__cause__ = exceptions.RewordingError("the cause")
    error.__cause__.__cause__ = OSError(2, "the root")
    return error


def test_the_causes_of_an_exception_are_kept(build):
    error = raised(build, caused)
    assert type(error) is TwoArgumentsError
    cause = error.__cause__
    if build.executor == "process":
        assert type(cause) is cartwheel.errors.RemoteTraceback
        assert "reworded: the cause" in str(cause)
        assert "the root" in str(cause)
        assert "in caused" not in str(cause)
        assert "exceptions.py" in str(cause)
        cause = cause.__cause__
    assert contents(cause) == contents(exceptions.RewordingError("the cause"))
    assert contents(cause.__cause__) == contents(OSError(2, "the root"))


def caused_by_what_cannot_be_pickled():
    error = TwoArgumentsError("salt", "pepper")
    error.__cause__ = UnpicklableError("the cause has a lock")
    return error


def caused_by_itself():
    error, cause = TwoArgumentsError("salt", "pepper"), ValueError("a circle")
    error.__cause__, cause.__cause__ = cause, error
    return error


@pytest.mark.parametrize("make_error", [caused_by_what_cannot_be_pickled, caused_by_itself])
def test_a_cause_that_cannot_be_sent_is_all_that_is_lost(build, make_error):
    error = raised(build, make_error)
    assert contents(error) == contents(make_error())
    if build.executor == "process":
        assert str(make_error().__cause__) in str(error.__cause__)


def test_only_an_exception_that_cannot_be_pickled_becomes_a_remote_error(build):
    error = raised(build, partial(UnpicklableError, "holds a lock"))
    if build.executor == "process":
        assert type(error) is cartwheel.RemoteEnvError
        assert "UnpicklableError: holds a lock" in str(error)
    else:
        assert type(error) is UnpicklableError
    assert_names_row(error, 1)


@pytest.mark.parametrize(
    "kind",
    [
        exceptions.ExitsWhenPrintedError,
        exceptions.RaisesItsCauseError,
        exceptions.RaisesItsTracebackError,
    ],
)
def test_an_exception_that_cannot_be_described_keeps_its_type(build, kind):
    assert type(raised(build, kind)) is kind


class OnlyInTheWorkerEnv(FaultyEnv):
    """Raises an exception of a class that is created in this process, in ``__main__``."""

    def step(self, action):  # noqa: ARG002 - Gymnasium's signature
        import __main__

        __main__.HomelessError = type("HomelessError", (ValueError,), {"__module__": "__main__"})
        raise __main__.HomelessError("never seen before")


def test_a_class_that_the_caller_does_not_have_becomes_a_remote_error(build_processes):
    envs = build_processes([FaultyEnv, OnlyInTheWorkerEnv])
    envs.reset()
    with pytest.raises(
        cartwheel.RemoteEnvError, match="HomelessError: never seen before"
    ) as failure:
        envs.step([0, 0])
    assert_names_row(failure.value, 1)
    assert "test_exceptions_keep_their_type.py" in text_of(failure.value.__cause__)


@pytest.mark.parametrize("context", SENDING)
def test_a_class_that_was_pickled_by_value_is_the_callers_own(build_processes, context):
    class LocalError(Exception):
        def __init__(self, first, second):
            super().__init__(first + second)

    envs = build_processes([partial(RaisingEnv, lambda: LocalError(1, 2))] * 2, context=context)
    envs.reset()
    with pytest.raises(LocalError, match="3"):
        envs.step([0, 0])


BUILT_IN = [
    (OSError, (2, "no", "file")),
    (OSError, (2, "no", "file", None, "other file")),
    (BlockingIOError, (1, "a", 5)),
    (UnicodeDecodeError, ("utf8", b"ab", 0, 1, "bad")),
    (UnicodeEncodeError, ("utf8", "ab", 0, 1, "bad")),
    (SyntaxError, ("text", ("file", 1, 2, "line", 1, 3))),
    (ImportError, ("text",)),
    (StopIteration, (4,)),
    (KeyError, ("key",)),
    (ValueError, ()),
    (ValueError, ("text", 7)),
]


def of_a_tuple(base):
    """A subclass whose constructor takes the arguments of ``base`` as one tuple."""

    def __init__(self, arguments):
        base.__init__(self, *arguments)

    name = f"{base.__name__}OfATuple"
    return type(name, (base,), {"__init__": __init__, "__module__": __name__})


OF_A_TUPLE = {base: of_a_tuple(base) for base, _ in BUILT_IN}
globals().update((cls.__name__, cls) for cls in OF_A_TUPLE.values())


@pytest.mark.parametrize(("base", "arguments"), BUILT_IN, ids=repr)
def test_the_fields_of_built_in_classes_are_kept(base, arguments):
    for error in (base(*arguments), OF_A_TUPLE[base](arguments)):
        loaded = pickle.loads(pickled_exception(error))
        assert type(loaded) is type(error)
        assert str(loaded) == str(error)
        for name in dir(base):
            value = getattr(error, name, None)
            if not name.startswith("_") and not callable(value):
                assert getattr(loaded, name, None) == value, name


@pytest.mark.parametrize("context", ["spawn", "forkserver"])
def test_an_id_that_only_the_caller_registered_says_where_to_register_it(build_processes, context):
    gym.register("OnlyTheCaller-v0", "gymnasium.envs.classic_control:CartPoleEnv")
    try:
        with pytest.raises(gym.error.NameNotFound, match="OnlyTheCaller") as failure:
            build_processes([partial(gym.make, "OnlyTheCaller-v0")] * 2, context=context)
        assert 'gym.make("my_module:MyEnv-v0")' in failure.value.__notes__[1]
        named = partial(gym.make, "tests.nowhere:Other-v0")
        with pytest.raises(ModuleNotFoundError) as failure:
            build_processes([named] * 2, context=context)
        assert not any("gym.make" in note for note in failure.value.__notes__)
    finally:
        del gym.registry["OnlyTheCaller-v0"]
