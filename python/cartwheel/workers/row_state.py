"""Saved states of rows with Python environments, and environments whose resets load them.

::

    state := magic 8 bytes, version u32 (little-endian), BLAKE2b digest of the body 16 bytes, body
    body  := pickled dictionary, see `saved`

The caller checks everything except the body, which only a worker can unpickle: its classes may not
exist in the caller's process.
"""

from __future__ import annotations

import dataclasses
import hashlib
import pickle
import struct
from typing import TYPE_CHECKING, Any

import gymnasium as gym
from gymnasium.utils import seeding
from gymnasium.wrappers import (
    AtariPreprocessing,
    Autoreset,
    DelayObservation,
    FrameStackObservation,
    MaxAndSkipObservation,
    NormalizeObservation,
    NormalizeReward,
    OrderEnforcing,
    RecordEpisodeStatistics,
    StickyAction,
    TimeAwareObservation,
    TimeLimit,
)

from cartwheel._cartwheel import cache_draws, draw_cached
from cartwheel._internal.arguments import mismatched_signature
from cartwheel.workers.channels import pickled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MAGIC = b"cartwpy\n"
_VERSION = 1
_HEAD = struct.Struct("<8sI16s")
#: Gymnasium's wrappers with state, and the names of the vector wrappers of cartwheel that replace
#: them.
_STATEFUL: dict[type, str | None] = {
    AtariPreprocessing: "AtariPreprocessing",
    Autoreset: None,
    DelayObservation: None,
    FrameStackObservation: "FrameStack",
    MaxAndSkipObservation: None,
    NormalizeObservation: "NormalizeObservation",
    NormalizeReward: "NormalizeReward",
    RecordEpisodeStatistics: "RecordEpisodeStatistics",
    StickyAction: None,
    TimeAwareObservation: None,
}


def check_state(state: Any) -> None:
    """Raises unless this is a whole state of this version.

    Raises:
        TypeError: It is not ``bytes``.
        ValueError: It is not a state, was cut or changed, or has another version.
    """
    if not isinstance(state, bytes):
        raise TypeError(f"a state must be bytes from `get_state`, got {type(state)}")
    if len(state) < _HEAD.size or not state.startswith(_MAGIC):
        raise ValueError("this is not a state of a Python environment")
    _, version, digest = _HEAD.unpack_from(state)
    if version != _VERSION:
        raise ValueError(f"the state has version {version}; this cartwheel reads {_VERSION}")
    if digest != _digest(state[_HEAD.size :]):
        raise ValueError(f"the state of {len(state)} bytes was cut or changed")


def saved(
    env: Any,
    row: int,
    place: bytes,
    shown: list[Any],
    *,
    lost: bool = False,
    info: dict[str, Any] | None = None,
) -> bytes:
    """Saves an environment.

    Args:
        env: The environment, with its wrappers.
        row: Its row, for errors.
        place: Its place in the episode, from the engine.
        shown: The observation that the row shows; empty if it was never reset.
        info: The info of the reset, for a state to cache.
        lost: Whether the row lost its environment and has not been stepped or reset since then.

    Raises:
        ValueError: The environment is lost, or has no methods to save and to restore it.
        Exception: Its ``get_state`` raised it, or its state cannot be pickled.
    """
    if lost:
        raise ValueError(
            f"row {row} cannot be saved: it lost its environment when its worker was restarted. "
            "Step or reset it first."
        )
    get_state, _ = _methods(env, row)
    body = {
        "kind": _kind(env),
        "place": place,
        "shown": shown,
        "info": info,
        "env": get_state(),
        "elapsed": [limit._elapsed_steps for limit in _wrappers(env, TimeLimit)],
        "begun": [order._has_reset for order in _wrappers(env, OrderEnforcing)],
    }
    packed = pickled(body)
    return _HEAD.pack(_MAGIC, _VERSION, _digest(packed)) + packed


def load(env: Any, row: int, state: bytes) -> dict[str, Any]:
    """Restores an environment from a checked state.

    Returns:
        The saved ``place``, ``shown`` and ``info``, see :func:`saved`.

    Raises:
        ValueError: The state is of another kind of environment.
        Exception: The environment's ``set_state`` raised it, or the state cannot be unpickled.
    """
    body: dict[str, Any] = pickle.loads(memoryview(state)[_HEAD.size :])
    if body["kind"] != (own := _kind(env)):
        raise ValueError(f"the state is of {body['kind']}, not of {own}")
    limits, orders = list(_wrappers(env, TimeLimit)), list(_wrappers(env, OrderEnforcing))
    for name, own_wrappers in (("elapsed", limits), ("begun", orders)):
        if len(body[name]) != len(own_wrappers):
            wrapper = "TimeLimit" if name == "elapsed" else "OrderEnforcing"
            raise ValueError(
                f"the state is of an environment with {len(body[name])} wrappers {wrapper}, the "
                f"environment of row {row} has {len(own_wrappers)}"
            )
    _, set_state = _methods(env, row)
    set_state(body["env"])
    for limit, elapsed in zip(limits, body["elapsed"], strict=True):
        limit._elapsed_steps = elapsed
    for order, begun in zip(orders, body["begun"], strict=True):
        order._has_reset = begun
    return body


def _methods(env: Any, row: int) -> tuple[Callable[[], Any], Callable[[Any], Any]]:
    """Returns ``get_state`` and ``set_state`` of an environment or of one of its wrappers.

    Raises:
        ValueError: A method is missing, or takes other arguments.
    """
    found = []
    for name, arguments in (("get_state", ()), ("set_state", (None,))):
        try:
            method = env.get_wrapper_attr(name)
        except AttributeError:
            method = getattr(env, name, None)
        if not callable(method):
            raise ValueError(  # noqa: TRY004 - as for native environments
                f"the environment of row {row}, {_kind(env)}, cannot be saved: it has no method "
                f"`{name}`. Give it `get_state()`, which returns anything that can be pickled, and "
                "`set_state(state)`, which takes that."
            )
        signature = mismatched_signature(method, *arguments)
        if signature is not None:
            form = "set_state(state)" if arguments else "get_state()"
            raise ValueError(
                f"the environment of row {row}, {_kind(env)}, cannot be saved: its "
                f"`{name}{signature}` must be callable as `{form}`. Give the environment, or a "
                "wrapper around it, methods of that form."
            )
        found.append(method)
    _check_wrappers(env, row)
    return found[0], found[1]


def _check_wrappers(env: Any, row: int) -> None:
    """Checks that no stateful wrapper of Gymnasium is outside of the saved environment.

    Raises:
        ValueError: One of them wraps the object that has ``get_state`` and ``set_state``.
    """
    missing = {"get_state", "set_state"}
    while isinstance(env, gym.Wrapper):
        missing -= {name for name in missing if hasattr(env, name)}
        if not missing:
            return
        kind = next((kind for kind in _STATEFUL if isinstance(env, kind)), None)
        if kind is not None:
            ours = _STATEFUL[kind]
            instead = f"use cartwheel.wrappers.{ours} around the vector environment, or "
            raise ValueError(
                f"the environment of row {row}, {_kind(env)}, cannot be saved: Gymnasium's "
                f"wrapper {type(env).__name__} around it has values of its own, which a state "
                f"would lack. To save it, {instead if ours else ''}put a wrapper around it "
                "whose `get_state()` and `set_state(state)` have these values, too."
            )
        env = env.env


def _kind(env: Any) -> str:
    """Returns the name of the class of an environment without its wrappers."""
    inner = type(getattr(env, "unwrapped", env))
    return f"{inner.__module__}.{inner.__qualname__}"


def _wrappers(env: Any, kind: type) -> Iterator[Any]:
    """Yields the wrappers of a kind, the outermost first."""
    while isinstance(env, gym.Wrapper):
        if isinstance(env, kind):
            yield env
        env = env.env


def _digest(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=16).digest()


@dataclasses.dataclass(frozen=True)
class ResetCache:
    """Initial states that resets load.

    Attributes:
        states: Saved states, each with the observation and the info of a reset.
        key: Part of every draw that a seed decides.
    """

    states: list[bytes]
    key: int


def sampled(env: gym.Env[Any, Any], row: int, seed: int) -> bytes:
    """Resets an environment and returns its state, with observation and info.

    Raises:
        ValueError: The environment cannot be saved, see ``get_state``.
        Exception: The environment raised it.
    """
    observation, info = env.reset(seed=seed)
    return saved(env, row, b"", [observation], info=info)


class CachedEnv(gym.Wrapper[Any, Any, Any, Any]):
    """Loads a state from a cache in each reset.

    The random numbers do not come from the state: the generator ``np_random`` of the environment
    continues, or begins with the seed of the reset.

    Attributes:
        draw: The key of the row's draws, and the number of draws so far.
    """

    def __init__(
        self, env: gym.Env[Any, Any], row: int, cache: ResetCache, draw: tuple[int, int]
    ) -> None:
        """Wraps the environment of a row."""
        super().__init__(env)
        self._row = row
        self._cache = cache
        self.draw = draw

    def around(self, env: gym.Env[Any, Any]) -> CachedEnv:
        """Returns this wrapper around another environment, which replaces the wrapped one."""
        return CachedEnv(env, self._row, self._cache, self.draw)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Loads a state; ``options`` have no effect."""
        del options
        inner = self.env.unwrapped
        if seed is None:
            generator, number = inner.np_random, inner._np_random_seed
        else:
            generator, number = seeding.np_random(seed)
            self.draw = cache_draws(self._cache.key, seed), 0
        at = generator.bit_generator.state
        (key, count), states = self.draw, self._cache.states
        self.draw = key, count + 1
        body = load(self.env, self._row, states[draw_cached(key, count, len(states))])
        generator.bit_generator.state = at
        inner._np_random, inner._np_random_seed = generator, number
        return body["shown"][0], body["info"]
