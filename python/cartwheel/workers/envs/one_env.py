"""Detection of rows whose functions return the same environment.

In one process, such rows would step each other; in several processes, they would step copies. So
results would depend on the number of workers. Within a process, objects are compared. Between
processes, an environment that existed before the workers is identified by its place among those
that its function *holds*: the caller finds its own object at the same place.
"""

from __future__ import annotations

import collections
import functools
import gc
import itertools
import types
from typing import TYPE_CHECKING, Any

import gymnasium as gym

from cartwheel.workers.envs.agents_env import AgentsEnv

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from cartwheel._internal.arguments import EnvFn

#: The maximum number of objects that are examined, of one function and of one collection.
_MAX_OBJECTS = 128
_COLLECTIONS: tuple[Any, ...] = (list, tuple, set, frozenset, collections.deque)


class EnvIdentities:
    """Identities of the environments that a worker has made so far.

    Attributes:
        same: For each environment, its place among those that its function held before, or
            ``None``; if all workers are in one process, the ``id`` of its core.
    """

    def __init__(self, first_row: int, *, is_remote: bool) -> None:
        """Begins without environments; ``is_remote``: this is a worker process."""
        self.same: list[int | None] = []
        self._is_remote = is_remote
        self._first_row = first_row
        #: The cores, kept so that no other object gets the same id.
        self._cores: dict[int, tuple[Any, int]] = {}
        #: The environments that functions held before their first call.
        self._held: dict[int, list[Any]] = {}
        self._before: list[Any] = []

    def begin(self, env_fn: EnvFn) -> None:
        """Records the environments that a function holds before it is called."""
        if self._is_remote:
            if id(env_fn) not in self._held:
                self._held[id(env_fn)] = held(env_fn)
            self._before = self._held[id(env_fn)]

    def add(self, env: Any) -> None:
        """Adds the environment that the function returned.

        Raises:
            ValueError: An earlier row has the same environment.
        """
        inner, row = core(env), self._first_row + len(self.same)
        _, first = self._cores.setdefault(id(inner), (inner, row))
        if first != row:
            raise same_env(first, row)
        if not self._is_remote:
            self.same.append(id(inner))
            return
        places = (place for place, other in enumerate(self._before) if other is inner)
        self.same.append(next(places, None))


def core(env: Any) -> Any:
    """Returns the environment to which wrappers pass calls.

    A wrapper that has a ``step`` and a ``reset`` of its own counts as an environment: several of
    them may share one simulation and step parts of it.
    """
    while isinstance(env, gym.Wrapper) and _passes_calls_on(type(env)):
        env = env.env
    return env.made if isinstance(env, AgentsEnv) else env


def _passes_calls_on(wrapper: type[gym.Wrapper[Any, Any, Any, Any]]) -> bool:
    return _is_gymnasiums(wrapper.step) or _is_gymnasiums(wrapper.reset)


def _is_gymnasiums(function: Any) -> bool:
    return str(getattr(function, "__module__", "")).partition(".")[0] == "gymnasium"


def held(env_fn: EnvFn) -> list[Any]:
    """Returns the environments that a function can return without making them, in a fixed order.

    They are in its closure, its defaults, the globals that it names, the object of a method or the
    arguments of a ``functools.partial``; or in collections, functions and attributes there. User
    code is not called.
    """
    # An object that was asked for its `__dict__` reads its attributes more slowly, see
    # `own_attribute`. Its referents come in another order in another process, so they only tell
    # whether there is an environment. Among them are classes and dictionaries of attributes.
    if not _found(env_fn, gc.get_referents, 3 * _MAX_OBJECTS):
        return []
    return _found(env_fn, _attributes, _MAX_OBJECTS)


def _found(env_fn: EnvFn, parts: Callable[[Any], Iterable[Any]], max_objects: int) -> list[Any]:
    """Returns the environments among at most ``max_objects``; ``parts`` are those of an object."""
    found: list[Any] = []
    seen: dict[int, Any] = {}  # the objects are kept, so that no other one gets the same id
    ahead = collections.deque([env_fn])
    while ahead and len(seen) < max_objects:
        one = ahead.popleft()
        if id(one) in seen:
            continue
        seen[id(one)] = one
        if _is_env(type(one)):
            inner = core(one)
            if all(inner is not other for other in found):
                found.append(inner)
        else:
            ahead.extend(itertools.islice(_parts(one, parts), _MAX_OBJECTS))
    return found


def _is_env(kind: type[Any]) -> bool:
    return issubclass(kind, gym.Env) or (hasattr(kind, "reset") and hasattr(kind, "step"))


def _parts(one: Any, of_object: Callable[[Any], Iterable[Any]]) -> Iterable[Any]:
    """Returns the objects to which an object refers."""
    if isinstance(one, types.FunctionType):
        return () if _is_gymnasiums(one) else _parts_of_function(one)
    if isinstance(one, functools.partial):
        return (one.func, *one.args, *one.keywords.values())
    if isinstance(one, types.MethodType):
        return (one.__self__, one.__func__)
    if isinstance(one, types.BuiltinMethodType):
        return (one.__self__,)
    if isinstance(one, dict):
        return dict.values(one)
    for kind in _COLLECTIONS:
        if isinstance(one, kind):
            elements: Iterable[Any] = kind.__iter__(one)
            return elements
    is_opaque = isinstance(one, type | types.ModuleType) or not hasattr(type(one), "__dict__")
    return () if is_opaque else of_object(one)


def _attributes(one: Any) -> Iterable[Any]:
    try:
        own = object.__getattribute__(one, "__dict__")
    except AttributeError:
        return ()
    return dict.values(own) if isinstance(own, dict) else ()


def _parts_of_function(function: types.FunctionType) -> Iterable[Any]:
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # the variable has no value yet
            continue
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    yield from vars(function).values()
    names = dict.fromkeys(_names(function.__code__))  # a set would have another order elsewhere
    for name in names:
        value = function.__globals__.get(name)
        if isinstance(value, type | types.ModuleType):
            yield from (vars(value)[part] for part in names if part in vars(value))
        else:
            yield value


def _names(code: types.CodeType) -> Iterable[str]:
    """The names of globals and attributes in a code object and in the functions inside it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def check_distinct(
    env_fns: Sequence[EnvFn], same: Sequence[int | None], *, is_remote: bool
) -> None:
    """Raises if two rows have one environment.

    Args:
        env_fns: The functions, in the caller's process.
        same: For each row, as reported by its worker: the place among the environments that the
            function held, or ``None``; within this process, the ``id`` of the core.
        is_remote: Whether the workers are other processes.

    Raises:
        ValueError: The error names both rows.
    """
    rows: dict[int, int] = {}
    own: dict[int, list[Any]] = {}
    for row, identity in enumerate(same):
        key = identity
        if is_remote and identity is not None:
            env_fn = env_fns[row]
            if id(env_fn) not in own:
                own[id(env_fn)] = held(env_fn)
            envs = own[id(env_fn)]
            key = id(envs[identity]) if identity < len(envs) else None
        if key is not None and rows.setdefault(key, row) != row:
            raise same_env(rows[key], row)


def same_env(first: int, second: int) -> ValueError:
    """Returns the error for two rows with one environment."""
    return ValueError(
        f"env_fns[{first}] and env_fns[{second}] returned the same environment: each call has to "
        "make a new one, as `lambda: gymnasium.make(…)` does and `lambda: env` does not."
    )
