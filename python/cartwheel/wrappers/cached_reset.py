"""Resets that load one of some initial states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.error import ResetNeeded

from cartwheel._internal.arguments import as_integer
from cartwheel._internal.progress import Progress
from cartwheel.errors import add_note, named_rows
from cartwheel.vector.base import PoolVectorEnv
from cartwheel.vector.states import cache_draws, sample_states, use_cache
from cartwheel.wrappers._shared.kept_state import KeepsState
from cartwheel.wrappers.base import VectorWrapper
from cartwheel.wrappers.batch import RESET

if TYPE_CHECKING:
    from gymnasium.vector import VectorEnv

    from cartwheel.wrappers.batch import ActionBatch, Batch


class CachedReset(KeepsState, VectorWrapper):
    """Makes initial states once, and loads one of them in every reset. For slow resets.

    The construction resets the environments ``num_states`` times, each time with a seed of its own,
    and keeps states, observations and infos. From then on every reset of a row, explicit or
    automatic, in every autoreset mode, loads one of them at random. The cache is in the workers, or
    next to the native environments: nothing is sent for a reset, and steps cost nothing. Reset
    all rows before they are stepped, as usual: the construction leaves them in states of its own,
    and a step from these raises ``gymnasium.error.ResetNeeded``.

    Which state a row gets depends on ``seed``, on the row, and on the number of its resets; after a
    reset with a seed, on ``seed``, the reset's seed, and the number of resets since then. Options
    of resets have no effect, and neither has what :meth:`~cartwheel.VectorEnv.next_reset` was
    given, except its seeds.

    Random numbers. A state's own random numbers are not loaded: the row continues with its present
    ones (:attr:`np_random`), or begins those of the reset's seed. So two episodes that begin in the
    same state differ. An environment in Python that draws numbers from somewhere else than
    ``np_random`` decides in its ``set_state`` what becomes of them.

    A state is all that the environment saves. Native ones save their parameters, so those of
    ``set_attr`` become those that the environment had when the states were made.

    Example:
        >>> import cartwheel
        >>> from cartwheel.wrappers import CachedReset
        >>> envs = CachedReset(cartwheel.NativeVectorEnv("CartPole-v1", 4), num_states=2, seed=1)
        >>> observations, _ = envs.reset()
        >>> len({row.tobytes() for row in observations}) <= 2
        True

    Args:
        env: A vector environment of cartwheel, in any wrappers, whose environments can be saved:
            native ones, or ones in Python with ``get_state()`` and ``set_state(state)``, see
            :meth:`cartwheel.VectorEnv.get_state`.
        num_states: The number of initial states.
        seed: Decides the initial states and all draws; by default another one in each run.

    Raises:
        TypeError: ``env`` is not a vector environment of cartwheel.
        ValueError: ``num_states`` is not positive, ``seed`` is negative, the environments cannot be
            saved, or their resets load states of a cache already.
        gymnasium.error.AlreadyPendingCallError: A call is pending, or rows are in flight.
        Exception: An environment raised it. Resets of ``env`` may load states by then: wrap it
            again, or make another one.
    """

    _changes_steps = False
    row_entries = ("draw_keys", "draw_counts", "fresh")

    def __init__(
        self, env: VectorEnv[Any, Any, Any], num_states: int, seed: int | None = None
    ) -> None:
        """Makes the states. On a terminal, a bar shows the progress."""
        num_states = as_integer("num_states", num_states, 1, limit=1 << 32)
        if seed is not None:
            seed = as_integer("seed", seed, 0)
        inner = getattr(env, "unwrapped", env)
        if not isinstance(inner, PoolVectorEnv):
            raise TypeError(
                "`env` must be a vector environment of cartwheel, because others have no states: "
                f"got {type(inner)}"
            )
        if inner._caches_resets:
            raise ValueError("the resets of `env` load states of a `CachedReset` already")
        if getattr(inner, "writes_first_states", False):
            raise ValueError(
                "`env` has a function `reset`, which writes each first state: states of a "
                "`CachedReset` would leave it out. Load states within that function instead."
            )
        super().__init__(env)
        inner._pool.check("CachedReset", idle=True)
        words = np.random.SeedSequence(seed).generate_state(1 + self.num_envs + num_states, "u8")
        self._key, *seeds = words.tolist()
        own, rest = seeds[: self.num_envs], seeds[self.num_envs :]
        self._inner = inner
        self._states = self._sample(rest)
        use_cache(inner._pool, inner._callbacks, self._states, self._key, [(0, 0)] * len(own))
        inner.send_reset(seed=own)  # each row gets random numbers and draws of its own
        while inner.in_flight:
            inner.recv()
        inner._caches_resets = True  # if the resets raise, the constructor may be called again
        #: The rows that the caller has not reset yet.
        self._fresh = set(range(self.num_envs))

    def act(self, actions: Any, batch: ActionBatch) -> Any:
        """Refuses steps of rows that the caller has not reset yet."""
        if self._fresh:
            self._inner._pool.check("step", idle=False)
            if fresh := sorted(self._fresh.intersection(batch.rows.tolist())):
                raise add_note(
                    ResetNeeded("Cannot call env.step() before calling env.reset()"),
                    f"{named_rows(fresh)} were never reset",
                )
        return actions

    def transform(self, batch: Batch) -> None:
        """Notes which rows the caller has reset."""
        if self._fresh:
            begun = np.flatnonzero(batch.kinds == RESET)
            self._fresh -= set(batch.rows[begun].tolist())

    def _sample(self, seeds: list[int]) -> list[bytes]:
        states: list[bytes] = []
        progress, at_once = Progress(len(seeds)), self.num_envs
        try:
            for start in range(0, len(seeds), at_once):
                part: list[int | None] = [*seeds[start : start + at_once]]
                part += [None] * (at_once - len(part))
                states += sample_states(self._inner._pool, self._inner._callbacks, part)
                progress.advance("initial states", min(at_once, len(seeds) - start))
        finally:
            progress.close()
        return states

    @property
    def num_states(self) -> int:
        """The number of initial states."""
        return len(self._states)

    def get_own_state(self) -> dict[str, Any]:
        """The state of the cache.

        Returns:
            ``"states"``: the initial states, ``bytes``. ``"key"``: a part of every draw that a seed
            decides. ``"draw_keys"`` and ``"draw_counts"``, ``uint64`` ``[num_envs]``: the key of
            each row's draws, and their number so far. ``"fresh"``, ``bool`` ``[num_envs]``: which
            rows the caller has not reset yet.

        Raises:
            gymnasium.error.AlreadyPendingCallError: A call is pending, or rows are in flight.
        """
        inner = self._inner
        inner._pool.check("get_own_state", idle=True)
        draws = np.array(cache_draws(inner._pool, inner._callbacks), np.uint64)
        fresh = np.zeros(self.num_envs, np.bool_)
        fresh[list(self._fresh)] = True
        return {
            "states": list(self._states),
            "key": self._key,
            "draw_keys": draws[:, 0].copy(),
            "draw_counts": draws[:, 1].copy(),
            "fresh": fresh,
        }

    def _check_own_state(self, state: dict[str, Any]) -> None:
        super()._check_own_state(state)
        if len(state["states"]) != self.num_states:
            raise ValueError(
                f"`state['states']` must be num_states={self.num_states} initial states, got "
                f"{len(state['states'])}"
            )
        if not 0 <= state["key"] < 2**64:
            raise ValueError(f"`state['key']` must be from 0 to 2**64 - 1, got {state['key']}")

    def set_own_state(self, state: dict[str, Any]) -> None:
        """Continues with a state of :meth:`get_own_state`, of as many environments.

        The following resets load what those after :meth:`get_own_state` loaded. Random numbers
        are the environments'.

        Raises:
            ValueError: The state is not one of this wrapper. Nothing was changed.
            TypeError: An initial state is not ``bytes``.
            gymnasium.error.AlreadyPendingCallError: A call is pending, or rows are in flight.
        """
        self._inner._pool.check("set_own_state", idle=True)
        super().set_own_state(state)

    def _restore(self, state: dict[str, Any]) -> None:
        inner = self._inner
        pairs = zip(state["draw_keys"].tolist(), state["draw_counts"].tolist(), strict=True)
        use_cache(inner._pool, inner._callbacks, state["states"], state["key"], list(pairs))
        self._states, self._key = list(state["states"]), state["key"]
        self._fresh = set(np.flatnonzero(state["fresh"]).tolist())
