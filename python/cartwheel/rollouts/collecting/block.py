"""Arrays into which each row writes at its own step, and spare environments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from gymnasium.vector.utils import batch_space

import cartwheel.returns as estimators
from cartwheel._cartwheel import store
from cartwheel._internal import nested
from cartwheel._internal.arguments import as_integer
from cartwheel._internal.policy import MASKS
from cartwheel.rollouts.rollout import Rollout

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gymnasium.spaces import Space
    from gymnasium.vector import AutoresetMode
    from numpy.typing import NDArray

    from cartwheel._device.mirror import Mirror
    from cartwheel.rollouts.buffers import Carry


class Finals(NamedTuple):
    """Final observations, and the step and the row of each."""

    steps: NDArray[np.int64]
    rows: NDArray[np.int64]
    observations: Any


class Block:
    """One column of ``num_steps`` steps for each of ``num_rows`` rows, time-major.

    Attributes:
        observations: ``[T + 1, N, …]``.
        actions: ``[T, N, …]``; those nearest to 0 where the policy was not asked.
        rewards: ``[T, N]``, or ``[T, N, k]``.
        terminated: ``[T, N]``.
        truncated: ``[T, N]``.
        failed: Which steps failed, and are not transitions, ``[T, N]``.
        versions: Of the policy, ``[T, N]``.
        extras: ``[T, N, …]``, by name; :func:`unasked` where the policy was not asked.
    """

    def __init__(
        self,
        space: Space[Any],
        actions: Any,
        num_steps: int,
        num_rows: int,
        reward_shape: tuple[int, ...] = (),
    ) -> None:
        """``space`` is that of one observation; ``actions`` have the form ``[1, N, …]``."""
        shape = (num_steps, num_rows)
        self.shape = shape
        self.observations: Any = nested.empty(
            batch_space(space, num_rows), num_steps + 1, "observations"
        )
        self.actions = nested.apply(lambda form: unasked("actions", form, shape), actions)
        self.rewards = np.zeros((*shape, *reward_shape))
        self.terminated, self.truncated = np.zeros(shape, np.bool_), np.zeros(shape, np.bool_)
        self.failed = np.zeros(shape, np.bool_)
        self.versions = np.zeros(shape, np.int64)
        self.extras: dict[str, NDArray[Any]] = {}
        self._space = space
        self._finals: list[Finals] = []
        self._mirror: Mirror | None = None

    def on_device(self, mirror: Callable[[Any], Mirror]) -> Mirror:
        """The observations on a device; ``mirror`` allocates memory for them."""
        if self._mirror is None:
            self._mirror = mirror(self.observations)
        return self._mirror

    def act(
        self,
        steps: NDArray[np.int64],
        rows: NDArray[np.int64],
        actions: Any,
        extras: Mapping[str, NDArray[Any]],
        version: int,
    ) -> None:
        """Writes the actions and extras of one version, one for each of these steps and rows."""
        for name, extra in extras.items():
            if name not in self.extras:
                self.extras[name] = unasked(name, extra[None], self.shape)
        chosen = {name: self.extras[name] for name in extras}
        leaves = [*_leaves(self.actions, actions), *_leaves(chosen, extras)]
        versions = np.full(len(rows), version)
        store([*leaves, (versions, self.versions, 0)], steps, rows)

    def take_in(
        self,
        steps: NDArray[np.int64],
        rows: NDArray[np.int64],
        observations: Any,
        results: tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]],
        failed: NDArray[np.bool_] | None,
    ) -> None:
        """Writes the observations after these steps, and rewards, terminations, truncations."""
        recorded = (self.rewards, self.terminated, self.truncated)
        leaves = [*_leaves(self.observations, observations, 1), *_leaves(recorded, results)]
        if failed is not None:
            leaves.append((failed, self.failed, 0))
        store(leaves, steps, rows)

    def show(self, steps: Any, rows: NDArray[np.int64], observations: Any) -> None:
        """Replaces the observations at these steps."""
        nested.assign(self.observations, (steps, rows), observations)

    def expect(self, forms: Mapping[str, NDArray[Any]]) -> None:
        """Adds extras of the policy that no row of this block has; ``forms`` are ``[1, N, …]``."""
        for name, form in forms.items():
            self.extras.setdefault(name, unasked(name, form, self.shape))

    def add_finals(self, finals: Finals) -> None:
        """Keeps final observations that the next rows do not show."""
        self._finals.append(finals)

    def finals(self) -> Finals:
        """All final observations, in the order of time."""
        none = np.empty(0, np.int64)
        if not self._finals:
            return Finals(none, none, nested.stack(self._space, []))
        steps, rows = (np.concatenate(part) for part in list(zip(*self._finals, strict=True))[:2])
        joined = nested.concat([finals.observations for finals in self._finals])
        order = np.lexsort((rows, steps))
        return Finals(steps[order], rows[order], nested.at(joined, order))

    def rollout(self, mode: AutoresetMode, carry: Carry, env_index: NDArray[np.int64]) -> Rollout:
        """Returns the columns as a rollout that has these arrays."""
        flags, before = (self.terminated, self.truncated), carry.done
        valid = estimators.valid_mask(mode, *flags, before)
        valid &= ~self.failed
        finals = self.finals()
        return Rollout(
            observations=self.observations,
            actions=self.actions,
            rewards=self.rewards,
            terminated=self.terminated,
            truncated=self.truncated,
            valid=valid,
            is_first=estimators.is_first(mode, *flags, before, carry.is_first),
            final_observations=finals.observations,
            final_index=np.stack([finals.steps, finals.rows], axis=1),
            extras=self.extras,
            autoreset_mode=mode,
            carry=carry,
            policy_version=self.versions,
            env_index=env_index,
        )

    @classmethod
    def gathered(cls, columns: list[tuple[Block, NDArray[np.int64], NDArray[np.int64]]]) -> Block:
        """Returns a block of chosen columns.

        Args:
            columns: Blocks, which of their rows, and which columns of the result these become. The
                places of all of them are ``0`` to ``B - 1``.
        """
        one = columns[0][0]
        width = sum(len(rows) for _, rows, _ in columns)
        actions = nested.at(one.actions, (slice(1), np.zeros(width, np.int64)))
        result = cls(one._space, actions, one.shape[0], width, one.rewards.shape[2:])
        for block, rows, places in columns:
            for name in ("observations", "actions", "rewards", "terminated", "truncated"):
                nested.assign(
                    getattr(result, name),
                    (slice(None), places),
                    nested.at(getattr(block, name), (slice(None), rows)),
                )
            result.failed[:, places] = block.failed[:, rows]
            result.versions[:, places] = block.versions[:, rows]
            for name, extra in block.extras.items():
                if name not in result.extras:
                    result.extras[name] = unasked(name, extra, result.shape)
                result.extras[name][:, places] = extra[:, rows]
            place_of = np.full(block.shape[1], -1)
            place_of[rows] = places
            finals = block.finals()
            chosen = place_of[finals.rows] >= 0
            if chosen.any():
                result.add_finals(
                    Finals(
                        finals.steps[chosen],
                        place_of[finals.rows[chosen]],
                        nested.at(finals.observations, chosen),
                    )
                )
        return result


def _leaves(
    arrays: Any, batch: Any, offset: int = 0
) -> list[tuple[NDArray[Any], NDArray[Any], int]]:
    """Returns the leaves of a batch, with the arrays into which they are stored."""
    leaves: list[tuple[NDArray[Any], NDArray[Any], int]] = []

    def add(into: NDArray[Any], part: Any) -> None:
        leaves.append((np.ascontiguousarray(part, into.dtype), into, offset))

    nested.apply(add, arrays, batch)
    return leaves


def unasked(name: str, like: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Values of rows for which the policy is not asked: zeros, but masks allow every action.

    Dtype and last dimensions are those of ``like``, which has two dimensions before.
    """
    fill = np.ones if name == MASKS else np.zeros
    return fill((*shape, *like.shape[2:]), like.dtype)


class Resets(NamedTuple):
    """The consequences of the ends of episodes.

    Attributes:
        envs: Environments to reset,
        seeds: each with its seed.
        rows: Rows that can continue at once,
        shown: each with its first observation.
    """

    envs: list[int]
    seeds: list[int]
    rows: list[int]
    shown: list[Any]

    def observations(self) -> Any:
        """The first observations as a batch."""
        return nested.concat(self.shown)


class Standby:
    """The assignment of environments to rows, and of spares to their next episodes.

    Episode ``k`` of row ``n`` is reset with a seed that depends on ``seed``, ``n`` and ``k`` only.
    So results do not depend on the environment.

    Args:
        num_envs: Environments in all; the last ``standby`` of them are spares at first.
        standby: Number of spares.
    """

    def __init__(self, num_envs: int, standby: int) -> None:
        self.num_rows = num_envs - standby
        self._entropy: Any = np.random.SeedSequence().entropy
        self._num_envs = num_envs
        #: The number of the present episode of each row.
        self._episode = np.full(self.num_rows, -1)

    def begin(self, seed: Any) -> list[int]:
        """Every row begins an episode; spares are for the next ones of the first rows.

        Args:
            seed: An integer begins all rows anew, with episode 0; with ``None``, episodes that no
                row has begun yet follow.

        Returns:
            One seed for each environment, for the reset of all.

        Raises:
            ValueError: The seed is neither.
        """
        every, rows = np.arange(self._num_envs), self.num_rows
        if seed is not None:
            self._entropy = as_integer("seed", seed, 0)
            self._episode[:] = -1
        # A spare may have begun the episode after the highest.
        self._episode[:] = self._episode.max() + (1 if self._episode.max() < 0 else 2)
        self.env_of = every[:rows].copy()
        self.row_of = np.where(every < rows, every, -1)
        #: Steps of the present episode of each row.
        self.lengths = np.zeros(rows, np.int64)
        #: The environment that is reset for the row's next episode; -1: none.
        self._spare = np.full(rows, -1)
        spares = every[rows : 2 * rows]
        self._spare[: len(spares)] = spares
        #: First observations of spares, by environment.
        self._kept: dict[int, Any] = {}
        self.spares = every[rows:]
        begun = self._episode[0]
        return [self.seed(env % rows, begun + env // rows) for env in every.tolist()]

    def seed(self, row: int, episode: int | np.int64) -> int:
        """The seed of an episode: the first word of a ``SeedSequence`` of the three numbers."""
        sequence = np.random.SeedSequence((self._entropy, row, int(episode)))
        return int(sequence.generate_state(1)[0])

    def keep(self, envs: NDArray[np.int64], observations: Any) -> None:
        """Spares were reset and show these observations."""
        for place, env in enumerate(envs.tolist()):
            one = nested.at(observations, slice(place, place + 1))
            self._kept[env] = nested.apply(np.copy, one)

    def replace(self, rows: NDArray[np.int64]) -> Resets:
        """Lets the spares of rows play whose episodes are over; plans the resets of the others."""
        resets = Resets([], [], [], [])
        free = []
        for row in rows.tolist():
            self._episode[row] += 1
            self.lengths[row] = 0
            env, spare = int(self.env_of[row]), int(self._spare[row])
            if spare < 0:
                self._plan(resets, env, row, int(self._episode[row]))
                continue
            self.env_of[row], self.row_of[spare], self.row_of[env] = spare, row, -1
            self._spare[row] = -1
            free.append(env)
            if spare in self._kept:
                resets.rows.append(row)
                resets.shown.append(self._kept.pop(spare))
        for env in free:
            without = np.flatnonzero(self._spare < 0)
            # The longest episode will probably be over next.
            row = int(without[self.lengths[without].argmax()])
            self._spare[row] = env
            self._plan(resets, env, row, int(self._episode[row]) + 1)
        return resets

    def _plan(self, resets: Resets, env: int, row: int, episode: int) -> None:
        resets.envs.append(env)
        resets.seeds.append(self.seed(row, episode))
