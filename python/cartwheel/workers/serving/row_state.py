"""Saved states of rows with Python environments, and environments whose resets load them.

::

    state := magic 8 bytes, version u32 (little-endian), why the row cannot be loaded 1 byte,
             BLAKE2b digest of the body 16 bytes, body
    body  := pickled dictionary, see `saved`; nothing of a row that cannot be loaded

The caller checks everything except the body, which only a worker can unpickle: its classes may not
exist in the caller's process.
"""

from __future__ import annotations

import dataclasses
import hashlib
import pickle
import struct
from typing import Any

import gymnasium as gym
from gymnasium.utils import seeding

from cartwheel._cartwheel import FAILED_PHASE, cache_draws, draw_cached
from cartwheel.workers.channels import pickled
from cartwheel.workers.envs.env_chain import OF_MANY_EPISODES, Chain

_MAGIC = b"cartwpy\n"
_VERSION = 1
_HEAD = struct.Struct("<8sIB16s")
#: Why a row has no state that can be loaded, by the byte of its head, which is 0 if it has one.
WHY_NOT_SAVED = {
    1: "it failed in an earlier call. Reset it first.",
    2: "it lost its environment when its worker was restarted. Step or reset it first.",
}


def check_state(state: Any) -> None:
    """Raises unless this is a whole state of this version.

    Raises:
        TypeError: It is not ``bytes``.
        ValueError: It is not a state, was cut or changed, has another version, or is of a row that
            failed.
    """
    if not isinstance(state, bytes):
        raise TypeError(f"a state must be bytes from `get_state`, got {type(state)}")
    if len(state) < _HEAD.size or not state.startswith(_MAGIC):
        raise ValueError("this is not a state of a Python environment")
    _, version, failed, own = _HEAD.unpack_from(state)
    if version != _VERSION:
        raise ValueError(
            f"the state has version {version}; this cartwheel reads {_VERSION}: load it with the "
            "cartwheel that saved it"
        )
    if own != digest(state[_HEAD.size :]):
        raise ValueError(f"the state of {len(state)} bytes was cut or changed")
    if failed:
        raise ValueError("the state is of an environment that failed")


def first_unsaved(states: list[bytes]) -> tuple[int, str] | None:
    """Returns the place of the first state that cannot be loaded, and why."""
    marks = ((at, _HEAD.unpack_from(state)[2]) for at, state in enumerate(states))
    return next(((at, WHY_NOT_SAVED[mark]) for at, mark in marks if mark), None)


def saved(
    env: Any,
    row: int,
    place: bytes,
    shown: list[Any],
    *,
    lost: bool = False,
    pickles: bool = False,
    info: dict[str, Any] | None = None,
    seed: tuple[int, int] | None = None,
) -> bytes:
    """Saves an environment.

    Args:
        env: The environment, with its wrappers.
        row: Its row, for errors.
        place: Its place in the episode, from the engine.
        shown: The observation that the row shows; empty if it was never reset.
        info: The info of the reset, for a state to cache.
        seed: What the next replacement of the row is seeded from, see ``Replacements.seed_of``.
        pickles: Whether an environment without methods is pickled.
        lost: Whether the row lost its environment and has not been stepped or reset since then.

    Raises:
        ValueError: The environment has no methods to save and to restore it.
        Exception: Its ``get_state`` raised it, or what that returned cannot be pickled.
    """
    # A row that failed cannot go on, and nothing is known of a new one: there is nothing to save.
    if mark := 2 if lost else int(place[:1] == bytes([FAILED_PHASE])):
        return _HEAD.pack(_MAGIC, _VERSION, mark, digest(b""))
    chain = Chain(env)
    saves = None if pickles and not chain.has_methods() else chain.methods(row)[0]
    body: dict[str, Any] = {
        "kind": chain.kind,
        "place": place,
        "shown": shown,
        "info": info,
        "seed": seed,
        "wrappers": chain.names,
        "attributes": None,
        "env": None,
        "pickle": None,
    }
    if shown:  # an environment that was never reset has no state yet
        body["attributes"] = chain.attributes(row)
        if saves is None:
            body["pickle"] = chain.pickle_core(row)
        else:
            body["env"] = saves()
    packed = pickled(body)
    return _HEAD.pack(_MAGIC, _VERSION, 0, digest(packed)) + packed


def load(env: Any, row: int, state: bytes) -> dict[str, Any]:
    """Restores an environment from a checked state.

    Returns:
        The saved ``place``, ``shown``, ``info`` and ``seed``, see :func:`saved`.

    Raises:
        ValueError: The state is of another kind of environment, or of one that failed.
        Exception: The environment's ``set_state`` raised it, or the state cannot be unpickled.
    """
    if first_unsaved([state]):
        raise ValueError(f"the state is of an environment that failed: reset row {row}")
    body: dict[str, Any] = pickle.loads(memoryview(state)[_HEAD.size :])
    chain = Chain(env)
    if body["kind"] != chain.kind:
        raise ValueError(f"the state is of {body['kind']}, not of {chain.kind}")
    if body["wrappers"] != chain.names:
        raise ValueError(
            f"the state is of an environment with the wrappers {body['wrappers']}, the environment "
            f"of row {row} has {chain.names}"
        )
    if body["attributes"] is None:
        chain.forget_reset()
        return body
    attributes = chain.read_attributes(body["attributes"])
    if body["pickle"] is None:
        chain.methods(row)[1](body["env"])
    else:
        chain.read_core(body["pickle"])()
    chain.set_attributes(attributes)
    return body


def _check_cached(env: Any, row: int) -> None:
    """Refuses wrappers whose values each reset from a cache would turn back."""
    for wrapper in Chain(env).wrappers:
        name = next((kind.__name__ for kind in OF_MANY_EPISODES if isinstance(wrapper, kind)), None)
        if name is not None:
            raise ValueError(
                f"the environment of row {row} cannot have cached resets: Gymnasium's wrapper "
                f"{name} around it gathers values over many episodes, and each reset would turn "
                f"them back. Use cartwheel.wrappers.{name} around the vector environment."
            )


def digest(body: bytes) -> bytes:
    """Returns the BLAKE2b digest of the bytes of a state, which finds cut or changed ones."""
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


def sampled(env: gym.Env[Any, Any], row: int, seed: int, *, pickles: bool) -> bytes:
    """Resets an environment and returns its state, with observation and info.

    Raises:
        ValueError: The environment cannot be saved, see ``get_state``.
        Exception: The environment raised it.
    """
    _check_cached(env, row)
    observation, info = env.reset(seed=seed)
    return saved(env, row, b"", [observation], pickles=pickles, info=info)


class CachedEnv(gym.Wrapper[Any, Any, Any, Any]):
    """Loads a state from a cache in each reset.

    The random numbers do not come from the state: the generator ``np_random`` of the environment
    continues, or begins with the seed of the reset.

    Attributes:
        draw: The key of the row's draws, and the number of draws so far.
    """

    #: It belongs to the state of ``cartwheel.wrappers.CachedReset``, not to that of a row.
    is_saved_elsewhere = True

    def __init__(
        self, env: gym.Env[Any, Any], row: int, cache: ResetCache, draw: tuple[int, int]
    ) -> None:
        super().__init__(env)
        self._row = row
        self._cache = cache
        self.draw = draw

    def around(self, env: gym.Env[Any, Any]) -> CachedEnv:
        """Returns this wrapper around another environment, which replaces the wrapped one."""
        return CachedEnv(env, self._row, self._cache, self.draw)

    def begin_numbers(self, seed: int) -> None:
        """Begins the random numbers of the environment with a seed."""
        inner = self.env.unwrapped
        inner._np_random, inner._np_random_seed = seeding.np_random(seed)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Loads a state; ``options`` have no effect."""
        del options
        if seed is not None:
            self.begin_numbers(seed)
            self.draw = cache_draws(self._cache.key, seed), 0
        inner = self.env.unwrapped
        generator, number = inner.np_random, inner._np_random_seed
        at = generator.bit_generator.state
        (key, count), states = self.draw, self._cache.states
        self.draw = key, count + 1
        body = load(self.env, self._row, states[draw_cached(key, count, len(states))])
        generator.bit_generator.state = at
        inner._np_random, inner._np_random_seed = generator, number
        return body["shown"][0], body["info"]
