"""Batches on their way through wrappers: kinds of rows, actions, results, final observations."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from cartwheel._internal import nested
from cartwheel._internal.arguments import as_integers, as_rows
from cartwheel.vector.infos import is_dense
from cartwheel.workers.envs.attributes import own_attribute

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gymnasium.spaces import Space
    from numpy.typing import NDArray

    from cartwheel._cartwheel import RowKinds

    Ended = tuple[NDArray[np.intp], NDArray[np.intp]]

# The kinds of rows, in :attr:`Batch.kinds`. The first three are those of :attr:`ActionBatch.kinds`.
#: The environment was stepped; before a step, it is about to be.
TRANSITION: Final = 0
#: The row shows the first observation of an episode, after an explicit reset, in the autoreset step
#: of ``NEXT_STEP``, or because its agent came. Or its agent is absent (:attr:`Batch.absent`), and
#: begins an episode when it acts. Reward 0, no flags. Before a step, the row will only be reset.
RESET: Final = 1
#: The row was left alone and shows its last observation again, outside of a ``reset_mask`` or
#: finished (``on_done="freeze"``). Before a step, the row is finished and will rest.
SHOWN: Final = 2
#: The environment failed and was replaced; the episode was truncated by that. The observation is
#: not a new one.
FAILED: Final = 3
#: A transition of an episode of which a step was lost, because a call raised or was given up, or
#: of one that began before the wrapper was made. Its observation is new; its sums are incomplete.
#: In the batch of a reset: a row that was left alone shows an observation that was lost before.
INCOMPLETE: Final = 4
#: No place of a batch.
NOWHERE: Final = np.zeros(0, np.intp)


class Late(NamedTuple):
    """A batch as seen by the wrappers that missed results before it.

    Attributes:
        kinds: The kind of each place for them.
        gaps: At which places they missed the observation before the present one.
        skipped: For each place, how many episodes began that they missed, without one that begins
            in this batch; -1 where the number since the last seed is unknown.
        seen_by: For each place, the number of the first such wrapper, from the innermost on.
        joined: For each transition, the number of the first wrapper that was made after its episode
            began; ``None`` for none.
        before: What was known of the rows before the batch, for :meth:`Unseen.take_back`.
    """

    kinds: NDArray[np.uint8]
    gaps: NDArray[np.bool_]
    skipped: NDArray[np.int64]
    seen_by: NDArray[np.intp]
    joined: NDArray[np.intp] | None
    before: tuple[NDArray[Any], ...]


class ActionBatch:
    """The rows that a call is about to step.

    It describes them until the call is made. Rows and kinds are computed when they are first read.

    Attributes:
        env_index: The row numbers as the caller gave them; ``None`` for all rows.
    """

    __slots__ = ("_kinds", "_num_envs", "_row_kinds", "_rows", "env_index")

    def __init__(self, row_kinds: RowKinds, num_envs: int, env_index: Any) -> None:
        self._row_kinds, self._num_envs, self.env_index = row_kinds, num_envs, env_index
        self._rows: NDArray[np.int64] | None = None
        self._kinds: NDArray[np.uint8] | None = None

    @property
    def rows(self) -> NDArray[np.int64]:
        """The environment of each action, ``int64`` ``[K]``.

        Raises:
            TypeError: The row numbers are not a one-dimensional collection of integers.
            ValueError: There are none, or one does not exist.
        """
        if self._rows is None:
            num_envs = self._num_envs
            if self.env_index is None:
                self._rows = np.arange(num_envs)
            else:
                rows = as_integers("env_index", self.env_index)
                if not len(rows) or rows.min() < 0 or rows.max() >= num_envs:
                    as_rows(self.env_index, num_envs)  # raises the error that names the row
                self._rows = rows.astype(np.int64)
        return self._rows

    @property
    def kinds(self) -> NDArray[np.uint8]:
        """The kind of step of each row, ``uint8`` ``[K]``.

        :data:`TRANSITION`: a step. :data:`RESET`: only the automatic reset of ``NEXT_STEP``, so the
        action is ignored. :data:`SHOWN`: nothing, because the row is finished and ``DISABLED``.
        """
        if self._kinds is None:
            rows = None if self.env_index is None else self.rows
            self._kinds = self._row_kinds.ahead(rows)
        return self._kinds


@dataclasses.dataclass(eq=False, repr=False)
class Batch:
    """The results of one call, on their way from the environments to the caller.

    Wrappers replace attributes. They never write into the arrays and dictionaries, which may be
    views of rollouts, or belong to others.

    Attributes:
        env_index: The environment of each place of the batch, ``int64`` ``[K]``; ``None`` if the
            batch has all environments in their order. :attr:`rows` is always an array.
        kinds: The kind of each place, ``uint8`` ``[K]``: :data:`TRANSITION`, :data:`RESET`,
            :data:`SHOWN`, :data:`FAILED` or :data:`INCOMPLETE`.
        observations: In the form of the batched observation space, with ``K`` rows.
        rewards: ``float64`` ``[K]``, or ``[K, k]`` with a ``reward_space`` of shape ``(k,)``;
            ``None`` for the result of ``reset``.
        terminations: ``bool`` ``[K]``; ``None`` for the result of ``reset``.
        truncations: ``bool`` ``[K]``; ``None`` for the result of ``reset``.
        infos: As returned by the environments; without final observations once a wrapper has taken
            them by :meth:`finals`.
        seeds: The seed that the reset of each place was given, by ``reset`` or, for an automatic
            one, by ``next_reset``, ``int64`` ``[K]``; -1 where none was given, or one above the
            greatest ``int64``. In ``SAME_STEP`` a place that ended an episode has the seed of the
            next one. ``None`` if no place of the batch was given any.
        options: The options that resets of this batch were given, without those that select rows:
            a copy for each environment that was given any; ``None`` if there is none.
        is_restored: Whether the rows continue from states (``set_state``), and not from resets.
        final_names: The keys under which the infos may have final observations: none but in steps
            in ``SAME_STEP``. Elsewhere they are infos of the environments' own.
        late: The batch for wrappers that missed results before it; ``None`` if none did.
        gaps: Of which places the wrapper that has the batch now missed the observation before the
            present one, ``bool`` ``[K]``; ``None`` if there are none.
        skipped: How many episodes of each place began that the wrapper that has the batch now
            missed, ``int64`` ``[K]``; -1 where that is unknown; ``None`` if it missed none.
        absent: Of rows of agents (``ParallelVectorEnv.as_rows``), which places show no observation,
            because their agent is not there, ``bool`` ``[K]``; ``None`` for other environments.
        final_absent: Of rows of agents, which places have no last observation in their final one,
            because their agent ended without one, ``bool`` ``[K]``; ``None`` for none.
        rejoined: Of rows of agents in another mode than ``SAME_STEP``, which places ended an
            episode, and show the first observation of the next one, too, because their agent is
            back in the same step, ``bool`` ``[K]``; ``None`` for none.
    """

    env_index: NDArray[np.int64] | None
    kinds: NDArray[np.uint8]
    observations: Any
    rewards: Any
    terminations: Any
    truncations: Any
    infos: dict[str, Any]
    # A step makes one such object, so what is rare is set afterwards.
    seeds: NDArray[np.int64] | None = dataclasses.field(default=None, init=False)
    options: dict[int, dict[str, Any]] | None = dataclasses.field(default=None, init=False)
    is_restored: bool = dataclasses.field(default=False, init=False)
    final_names: tuple[str, ...] = dataclasses.field(default=(), init=False)
    late: Late | None = dataclasses.field(default=None, init=False)
    gaps: NDArray[np.bool_] | None = dataclasses.field(default=None, init=False)
    skipped: NDArray[np.int64] | None = dataclasses.field(default=None, init=False)
    absent: NDArray[np.bool_] | None = dataclasses.field(default=None, init=False)
    final_absent: NDArray[np.bool_] | None = dataclasses.field(default=None, init=False)
    rejoined: NDArray[np.bool_] | None = dataclasses.field(default=None, init=False)
    _kinds_of_others: NDArray[np.uint8] | None = dataclasses.field(default=None, init=False)
    _finals: Finals | None = dataclasses.field(default=None, init=False)

    @property
    def rows(self) -> NDArray[np.int64]:
        """The environment of each place of the batch, ``int64`` ``[K]``."""
        return np.arange(len(self.kinds)) if self.env_index is None else self.env_index

    def begun_by_rejoined(self) -> NDArray[np.uint8]:
        """The kinds of a reset that begins the next episodes of :attr:`rejoined` agents."""
        assert self.rejoined is not None, "asked for where there are some"
        return np.where(self.rejoined, RESET, SHOWN).astype(np.uint8)

    @property
    def final_infos(self) -> dict[str, Any] | None:
        """The last infos of the episodes that ended in a step in ``SAME_STEP``, if there are some.

        Without final observations, taken or not, ``final_info`` is an info of the environment's.
        """
        found = self.infos.get("final_info")
        has_finals = self._finals is not None or not self.infos.keys().isdisjoint(self.final_names)
        return found if has_finals and isinstance(found, dict) else None

    def finals(self, space: Space[Any]) -> Finals | None:
        """Takes the final observations of a step in ``SAME_STEP`` out of the infos.

        Args:
            space: The observation space of one environment, as of the present observations.

        Returns:
            The rows that ended an episode and show the first observation of the next one; ``None``
            if there are none. A wrapper replaces their ``observations``; they are put back into
            the infos at the end.
        """
        names = [name for name in self.final_names if name in self.infos]
        if self._finals is None and names:
            over = np.logical_or(self.terminations, self.truncations)
            # An environment may have an info of this name of its own, before its episode ends.
            if is_dense(self.infos[names[0]]) or np.count_nonzero(over):
                self._finals, self.infos = Finals.from_infos(space, self.infos, names, over)
        return self._finals

    @property
    def kinds_of_others(self) -> NDArray[np.uint8]:
        """The kind of each place for wrappers that missed nothing."""
        return self.kinds if self._kinds_of_others is None else self._kinds_of_others

    def catch_up(self, number: int) -> None:
        """Comes to the wrapper with this number, from the innermost on; :attr:`late` is there."""
        assert self.late is not None
        self._kinds_of_others = self.kinds_of_others
        kinds, gaps, skipped, seen_by, joined, _ = self.late
        missed = seen_by <= number
        self.kinds = np.where(missed, kinds, self._kinds_of_others)
        if joined is not None:
            self.kinds[joined <= number] = INCOMPLETE
        gaps = gaps & missed
        self.gaps = gaps if gaps.any() else None
        skipped = np.where(missed, skipped, 0)
        self.skipped = skipped if skipped.any() else None

    def set_finals(self, finals: Finals) -> None:
        """Sets the final observations, which infos do not have."""
        self._finals = finals

    def ended(self, space: Space[Any], mode: AutoresetMode) -> tuple[Ended | None, Finals | None]:
        """The places that ended an episode in ``SAME_STEP``.

        Args:
            space: As for :meth:`finals`.
            mode: The autoreset mode; in another one than ``SAME_STEP`` there are none.

        Returns:
            The places that show the first observation of the next episode, ascending, and those
            among them whose final observations are there; ``None`` if there are none. And these
            observations; ``None`` without any. They may be lost with a worker.
        """
        has_infos = self.infos or self._finals is not None
        if mode != AutoresetMode.SAME_STEP or self.rewards is None or not has_infos:
            return None, None
        finals, over = self.finals(space), self.terminations | self.truncations
        places = NOWHERE if finals is None else finals.places
        count = np.count_nonzero(over)  # a tenth of the time of finding them
        if not count:
            return None, None
        return (places if len(places) == count else np.flatnonzero(over), places), finals

    def add_info(self, key: str, values: Any, mask: NDArray[np.bool_]) -> None:
        """Adds an info with its mask, as Gymnasium names it; the dictionary received is kept."""
        self.infos = {**self.infos, key: values, f"_{key}": mask}

    def put_finals_back(self) -> None:
        """Puts final observations that :meth:`finals` took into the infos again."""
        if self._finals is not None:
            self.infos = self._finals.into(self.infos, self.observations, len(self.kinds))
            self._finals = None

    def as_step(self) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """The result of ``step``."""
        if self._finals is not None:
            self.put_finals_back()
        return self.observations, self.rewards, self.terminations, self.truncations, self.infos

    def as_reset(self) -> tuple[Any, dict[str, Any]]:
        """The result of ``reset``."""
        return self.observations, self.infos


def check_acted(act: Any, given: Any, actions: Any) -> None:
    """Checks what the method ``act`` of a wrapper returned for the actions that it was given.

    Raises:
        TypeError: It returned nothing.
        ValueError: It returned an array with another number of actions.
    """
    if actions is None:
        name = type(act.__self__).__name__
        raise TypeError(f"`act` of {name} returned None: it must return the actions.")
    if (
        isinstance(actions, np.ndarray)
        and isinstance(given, np.ndarray)
        and actions.shape[:1] != given.shape[:1]
    ):
        raise ValueError(
            f"`act` of {type(act.__self__).__name__} was given actions of shape {given.shape} and "
            f"returned actions of shape {actions.shape}: it must return as many."
        )


def refuse_transformed(wrapper: Any, batch: Batch, returned: object = None) -> NoReturn:
    """Raises for a method ``transform`` that returned something, or left ``None`` in the batch.

    Raises:
        TypeError: Always.
    """
    if returned is not None:
        raise TypeError(
            f"`transform` of {type(wrapper).__name__} returned {type(returned).__name__}: it must "
            "return None, and set `batch.observations`, `batch.rewards` and so on."
        )
    name = "observations" if batch.observations is None else "rewards"
    raise TypeError(
        f"`transform` of {type(wrapper).__name__} set `batch.{name}` to None: it must "
        f"replace the {name} by others, or leave them as they are."
    )


#: The keys under which infos have final observations: Gymnasium's name, and ManiSkill's.
NAMES = ("final_obs", "final_observation")


def final_names_of(envs: VectorEnv[Any, Any, Any], mode: AutoresetMode) -> tuple[str, ...]:
    """Returns the keys under which infos of steps may have final observations.

    Args:
        envs: A vector environment.
        mode: Its autoreset mode; in another one than ``SAME_STEP`` there are none.
    """
    if mode != AutoresetMode.SAME_STEP:
        return ()
    # Other vector environments than cartwheel's may have ManiSkill's name alone.
    is_gymnasiums = getattr(envs.unwrapped, "final_names", "maniskill") == "gymnasium"
    return NAMES[:1] if is_gymnasiums else NAMES


class Finals:
    """The true last observations of the rows that ended an episode in ``SAME_STEP``.

    Wrappers replace ``observations``; :meth:`into` puts them back into infos, in the form in which
    they came: one array of objects, or dense arrays of the whole batch.

    Attributes:
        places: The places of the batch, ascending, ``int64`` ``[M]``.
        observations: In the form of the batched observation space, with ``M`` rows.
        space: The observation space of one environment, for which ``observations`` are nested. A
            wrapper that nests them otherwise replaces it.
    """

    __slots__ = ("_is_dense", "_names", "observations", "places", "space")

    def __init__(
        self,
        places: NDArray[np.intp],
        observations: Any,
        names: list[str],
        *,
        is_dense: bool,
        space: Space[Any] | None = None,
    ) -> None:
        """Keeps the parts; ``names`` are the keys of the infos."""
        self.places, self.observations, self.space = places, observations, space
        self._names, self._is_dense = names, is_dense

    @classmethod
    def from_infos(
        cls, space: Space[Any], infos: dict[str, Any], names: list[str], over: NDArray[np.bool_]
    ) -> tuple[Finals, dict[str, Any]]:
        """Takes the final observations out of infos.

        Args:
            space: The observation space of one environment.
            infos: Of a step in ``SAME_STEP``.
            names: The keys of :func:`final_names_of` that the infos have, with their masks.
            over: The places at which an episode ended.

        Returns:
            The final observations, and a copy of the infos without them.
        """
        first, mask = infos[names[0]], infos[f"_{names[0]}"]
        (places,) = (mask & over).nonzero()  # half the time of `np.flatnonzero`
        rest = dict(infos)
        for name in names:
            del rest[name], rest[f"_{name}"]
        dense = is_dense(first)
        if dense:
            observations = nested.take(space, first, places)
        else:
            observations = nested.stack(space, first[places].tolist())
        return cls(places, observations, names, is_dense=dense, space=space), rest

    def like(self, places: NDArray[np.intp], observations: Any) -> Finals:
        """Returns the final observations of other rows, in the form of these.

        Args:
            places: Their places in a batch, ascending.
            observations: Of these places, in the form of the batched observation space.
        """
        return Finals(places, observations, self._names, is_dense=self._is_dense)

    def among(self, observations: Any) -> Any:
        """Returns a copy of the observations of a batch, with these at their places."""
        if self.space is not None:
            return nested.put(self.space, observations, self.places, self.observations)
        replaced = nested.apply(np.copy, observations)
        nested.assign(replaced, self.places, self.observations)
        return replaced

    def into(self, infos: dict[str, Any], observations: Any, size: int) -> dict[str, Any]:
        """Returns infos with these final observations.

        Args:
            infos: Of the batch.
            observations: Of the batch; dense final observations equal them where no episode ended.
            size: The number of places of the batch.
        """
        mask = np.zeros(size, np.bool_)
        mask[self.places] = True
        if self._is_dense and not len(self.places):  # wrappers may leave none as they were
            values: Any = nested.apply(_copied, observations)
        elif self._is_dense:
            values = self.among(observations)
        else:
            values = np.empty(size, object)  # of None
            rows = nested.rows(self.space, self.observations, len(self.places))
            for place, row in zip(self.places.tolist(), rows, strict=True):  # only rows that ended
                values[place] = row
        filled = dict(infos)
        for name in self._names:
            filled[name], filled[f"_{name}"] = values, mask
        return filled


def _copied(part: Any) -> Any:
    return part if isinstance(part, str) else np.copy(part)


def chain(envs: Any) -> Iterator[Any]:
    """Yields the wrappers of a vector environment, the outermost first, and it itself."""
    while isinstance(envs, VectorEnv):
        yield envs
        envs = own_attribute(envs, "env")
