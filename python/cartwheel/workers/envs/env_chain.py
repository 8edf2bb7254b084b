"""Saves wrappers of an environment, and environments without methods, by their attributes.

An environment is a chain: wrappers around an environment. The outermost member of the chain that
has ``get_state`` and ``set_state`` saves itself and the members inside it. The wrappers around it,
and Gymnasium's ``TimeLimit`` and ``OrderEnforcing`` everywhere, are saved attribute by attribute,
except what their constructors make again: spaces, functions, and the attributes of every wrapper.
So are PettingZoo's conversions and wrappers around an environment of several agents.
References to members of the chain are saved as references.
"""

from __future__ import annotations

import io
import pickle
import time
import types
from typing import TYPE_CHECKING, Any

import cloudpickle
import gymnasium as gym
from gymnasium.spaces import Space
from gymnasium.utils import EzPickle
from gymnasium.wrappers import (
    NormalizeObservation,
    NormalizeReward,
    OrderEnforcing,
    RecordEpisodeStatistics,
    TimeLimit,
)

from cartwheel._internal.arguments import mismatched_signature
from cartwheel.workers.envs.agents_env import AgentsEnv
from cartwheel.workers.envs.attributes import own_attribute

if TYPE_CHECKING:
    from collections.abc import Callable

#: Gymnasium's wrappers with values of many episodes.
OF_MANY_EPISODES = (NormalizeObservation, NormalizeReward, RecordEpisodeStatistics)
#: The attributes that the constructor of every wrapper makes.
_MADE_AGAIN = (
    *("env", "_saved_kwargs", "_cached_spec", "_metadata"),
    *("_action_space", "_observation_space", "action_space", "observation_space"),
)
#: The attributes of a member that are not saved, and to which other members may refer.
_SHARED = ("spec", "observation_space", "action_space", "_observation_space", "_action_space")
#: Values of attributes that constructors make again.
_CODE = (
    *(types.FunctionType, types.MethodType, types.BuiltinFunctionType),
    *(types.MethodWrapperType, types.ModuleType, type),
)
_METHODS = (("get_state", ()), ("set_state", (None,)))
#: A moment of ``time.perf_counter``, which is saved as the seconds since then.
_STARTED = "episode_start_time"


class Chain:
    """The members of an environment's chain.

    Attributes:
        wrappers: Those that are saved by their attributes, from the outermost on.
        core: The member inside them, which saves itself.
    """

    def __init__(self, env: Any) -> None:
        self.wrappers: list[Any] = []
        self._members: list[Any] = []
        core = None
        while True:
            self._members.append(env)
            has_methods = all(_has(env, name) for name, _ in _METHODS)
            if core is None and (has_methods or not isinstance(env, gym.Wrapper)):
                core = env
            if isinstance(env, AgentsEnv) and env.wrappers:
                self.wrappers += env.wrappers
                self._members += env.chain()
            if not isinstance(env, gym.Wrapper):
                break
            is_saved = core is None or isinstance(env, TimeLimit | OrderEnforcing)
            if is_saved and not getattr(type(env), "is_saved_elsewhere", False):
                self.wrappers.append(env)
            env = env.env
        self.core: Any = core

    @property
    def kind(self) -> str:
        """The name of the class of the environment without its wrappers."""
        inner = self._members[-1]
        return _name(inner.unwrapped if isinstance(inner, AgentsEnv) else inner)

    @property
    def names(self) -> list[str]:
        """The names of the classes of :attr:`wrappers`."""
        return [_name(wrapper) for wrapper in self.wrappers]

    def methods(self, row: int) -> tuple[Callable[..., Any], ...]:
        """Returns ``get_state`` and ``set_state`` of the core; errors name the row.

        Raises:
            ValueError: A method is missing, or takes other arguments.
        """
        found = []
        pickle_it = ", or make the vector environment with `states='pickle'`"
        rest = "" if _is_not_whole(self.core) else pickle_it
        for name, arguments in _METHODS:
            method = getattr(self.core, name, None)
            if not callable(method):
                raise ValueError(  # noqa: TRY004 - as for native environments
                    f"the environment of row {row}, {self.kind}, cannot be saved: it has no method "
                    f"`{name}`. Give it `get_state()`, which returns anything that can be pickled, "
                    f"and `set_state(state)`, which takes that{rest}."
                )
            signature = mismatched_signature(method, *arguments)
            if signature is not None:
                form = "set_state(state)" if arguments else "get_state()"
                raise ValueError(
                    f"the environment of row {row}, {self.kind}, cannot be saved: its "
                    f"`{name}{signature}` must be callable as `{form}`. Give the environment, or a "
                    f"wrapper around it, methods of that form{rest}."
                )
            found.append(method)
        return tuple(found)

    def has_methods(self) -> bool:
        """Whether the core has both methods in the form that is called."""
        return all(
            callable(method := getattr(self.core, name, None))
            and mismatched_signature(method, *arguments) is None
            for name, arguments in _METHODS
        )

    # Wrappers

    def attributes(self, row: int) -> list[bytes]:
        """Returns the attributes of each wrapper.

        Raises:
            ValueError: An attribute cannot be pickled.
        """
        return [self._attributes_of(wrapper, row) for wrapper in self.wrappers]

    def attributes_by_place(self, kinds: tuple[type, ...], row: int) -> dict[int, bytes]:
        """Returns the attributes of the wrappers of some classes, by their place.

        Raises:
            ValueError: An attribute cannot be pickled.
        """
        return {
            at: self._attributes_of(wrapper, row)
            for at, wrapper in enumerate(self.wrappers)
            if isinstance(wrapper, kinds)
        }

    def set_attributes_by_place(self, saved: dict[int, bytes]) -> None:
        """Sets what :meth:`attributes_by_place` returned for a chain of the same wrappers."""
        for at, values in saved.items():
            _set_attributes(self.wrappers[at], self._unpickled(values))

    def _attributes_of(self, wrapper: Any, row: int) -> bytes:
        values = _saved(wrapper)
        if isinstance(wrapper, RecordEpisodeStatistics):
            values[_STARTED] = time.perf_counter() - values[_STARTED]
        try:
            return self._pickled(values, wrapper)
        except Exception as error:
            name = self._not_pickled(values, wrapper)
            raise ValueError(
                f"the environment of row {row}, {self.kind}, cannot be saved: `{name}` of the "
                f"wrapper {type(wrapper).__name__} around it cannot be pickled ({error}). Put a "
                "wrapper around it whose `get_state()` and `set_state(state)` have what is needed "
                "of it and of the environment inside it."
            ) from error

    def read_attributes(self, saved: list[bytes]) -> list[dict[str, Any]]:
        """Returns what :meth:`attributes` saved, for :meth:`set_attributes`.

        Raises:
            Exception: It cannot be unpickled.
        """
        return [self._unpickled(one) for one in saved]

    def set_attributes(self, saved: list[dict[str, Any]]) -> None:
        """Sets the attributes of each wrapper."""
        for wrapper, values in zip(self.wrappers, saved, strict=True):
            _set_attributes(wrapper, values)

    def forget_reset(self) -> None:
        """Lets the wrappers refuse a step as before the first reset."""
        for wrapper in self.wrappers:
            if isinstance(wrapper, OrderEnforcing):
                wrapper._has_reset = False
            elif isinstance(wrapper, TimeLimit):
                wrapper._elapsed_steps = None

    # Environments without methods

    def pickle_core(self, row: int) -> bytes:
        """Returns the attributes of the core, which has no methods to save it.

        Raises:
            ValueError: They are not all of its state, or cannot be pickled.
        """
        core = self.core
        if reason := _is_not_whole(core):
            raise ValueError(
                f"the environment of row {row}, {self.kind}, cannot be saved with "
                f"`states='pickle'`: {reason}. Give it `get_state()` and `set_state(state)`."
            )
        try:
            return self._pickled(_state_of(core), core)
        except Exception as error:
            name = self._not_pickled(vars(core), core)
            raise ValueError(
                f"the environment of row {row}, {self.kind}, cannot be saved with "
                f"`states='pickle'`: its `{name}` cannot be pickled ({error}). Give it "
                "`get_state()` and `set_state(state)`."
            ) from error

    def read_core(self, saved: bytes) -> Callable[[], None]:
        """Returns a function that restores the core from :meth:`pickle_core`.

        Raises:
            Exception: It cannot be unpickled.
        """
        state = self._unpickled(saved)
        return lambda: _set_state(self.core, state)

    # Pickles with references

    def _references(self, owner: Any) -> dict[int, tuple[str, Any]]:
        """Returns for the identity of each object that is not saved where it is found again.

        Members other than the ``owner`` of the saved attributes are not asked for their
        ``__dict__``, see :func:`own_attribute`.
        """
        found: dict[int, tuple[str, Any]] = {}
        for at, member in enumerate(self._members):
            for name in getattr(owner, "__dict__", ()) if member is owner else _SHARED:
                value = own_attribute(member, name)
                if isinstance(value, Space) or (name == "spec" and value is not None):
                    found[id(value)] = "attribute", (at, name)
        return found | {id(member): ("member", at) for at, member in enumerate(self._members)}

    def _pickled(self, content: Any, owner: Any) -> bytes:
        references = self._references(owner)
        try:
            return _dumps(_Pickler, content, references)
        except Exception:
            return _dumps(_CloudPickler, content, references)

    def _not_pickled(self, values: dict[str, Any], owner: Any) -> str:
        """Returns the name of the first value that cannot be pickled."""
        for name, value in values.items():
            try:
                self._pickled(value, owner)
            except Exception:  # the one that raises is asked for
                return name
        return "?"

    def _unpickled(self, saved: bytes) -> Any:
        return _Unpickler(io.BytesIO(saved), self._members).load()


class _Pickler(pickle.Pickler):
    references: dict[int, tuple[str, Any]]

    def persistent_id(self, obj: Any) -> tuple[str, Any] | None:
        return self.references.get(id(obj))


class _CloudPickler(cloudpickle.Pickler):  # type: ignore[misc]
    references: dict[int, tuple[str, Any]]

    def persistent_id(self, obj: Any) -> tuple[str, Any] | None:
        return self.references.get(id(obj))


def _dumps(kind: Any, content: Any, references: dict[int, tuple[str, Any]]) -> bytes:
    buffer = io.BytesIO()
    pickler = kind(buffer, protocol=pickle.HIGHEST_PROTOCOL)
    pickler.references = references
    pickler.dump(content)
    return buffer.getvalue()


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, members: list[Any]) -> None:
        super().__init__(file)
        self._members = members

    def persistent_load(self, pid: tuple[str, Any]) -> Any:
        kind, where = pid
        if kind == "member":
            return self._members[where]
        at, name = where
        return getattr(self._members[at], name)


def _saved(wrapper: Any) -> dict[str, Any]:
    """Returns the attributes of a wrapper that its constructor does not make again."""
    return {
        name: value
        for name, value in vars(wrapper).items()
        if name not in _MADE_AGAIN and not isinstance(value, (*_CODE, Space))
    }


def _set_attributes(wrapper: Any, values: dict[str, Any]) -> None:
    """Sets the saved attributes of a wrapper, and deletes those that it did not have."""
    own = vars(wrapper)
    for name in set(_saved(wrapper)).difference(values):
        del own[name]
    own.update(values)
    if isinstance(wrapper, RecordEpisodeStatistics):
        own[_STARTED] = time.perf_counter() - own[_STARTED]


def _is_not_whole(env: Any) -> str | None:
    """Returns why the attributes of an environment are not all of its state; ``None``: they are."""
    if isinstance(env, AgentsEnv):
        reasons = map(_is_not_whole, env.chain())
        return next((reason for reason in reasons if reason is not None), None)
    if isinstance(env, EzPickle):
        return (
            "it is a `gymnasium.utils.EzPickle`, whose pickle has the arguments of its constructor "
            "and nothing else"
        )
    own = {name for kind in type(env).__mro__ if kind is not object for name in vars(kind)}
    if not own.isdisjoint(("__reduce__", "__reduce_ex__")):
        return "its class has a `__reduce__` of its own, which may leave parts out"
    return None


def _state_of(env: Any) -> Any:
    """Returns the state that ``pickle`` would save of an object."""
    return env.__reduce_ex__(2)[2]


def _set_state(env: Any, state: Any) -> None:
    """Gives an object the state that ``pickle`` would give a new one."""
    if hasattr(env, "__setstate__"):
        env.__setstate__(state)
        return
    own, slots = state if isinstance(state, tuple) else (state, None)
    vars(env).clear()
    vars(env).update(own or {})
    for name, value in (slots or {}).items():
        setattr(env, name, value)


def _has(env: Any, name: str) -> bool:
    """Whether an object has a method of its own, which it does not take from what it wraps."""
    return hasattr(type(env), name) or own_attribute(env, name) is not None


def _name(env: Any) -> str:
    kind = type(env)
    return f"{kind.__module__}.{kind.__qualname__}"
