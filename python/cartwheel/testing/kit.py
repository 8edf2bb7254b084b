"""The state that all checks share: the environment, its variants and reference traces."""

from __future__ import annotations

import contextlib
import functools
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from cartwheel._internal.versions import autoreset_mode_of
from cartwheel.testing.player import Player
from cartwheel.testing.report import EnvCheckError, Unchecked
from cartwheel.testing.traces import Actions, compare, field_of, moment
from cartwheel.testing.variants import variants_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gymnasium.vector import AutoresetMode, VectorEnv

    from cartwheel.testing.traces import Trace

#: The most rows of a vector environment whose traces are recorded.
MAX_TRACED = 17


class Kit:
    """The environment under test, and the references that checks compare it with.

    Attributes:
        envs: The vector environment under test.
        variants: Makes vector environments like it.
        name: Its id, or the name of its class, for errors.
        seed: The seed of row 0; row ``i`` gets ``seed + i``.
        steps: Steps of each run.
        ignored: Keys of infos that are not compared.
        actions: The actions of the rows.
        check: The name of the check that runs.
        notes: Remarks for the report.
    """

    def __init__(
        self, envs: VectorEnv[Any, Any, Any], seed: int, steps: int, ignored: Iterable[str]
    ) -> None:
        """Keeps the vector environment under test; resets nothing."""
        self.given = envs
        self.variants = variants_of(envs)
        self.seed = seed
        self.steps = steps
        self.ignored = frozenset(ignored)
        self.actions = Actions(envs.single_action_space)
        self.check = ""
        self.notes: list[str] = []
        self.name = self._name()
        self._singles: dict[int | None, Singles] = {}
        self._whole: Any = None

    def _name(self) -> str:
        """The id of the environment, or the name of its class."""
        env_id = getattr(self.given, "env_id", None)
        spec = self.given.spec
        if env_id is not None or spec is not None:
            return str(env_id if spec is None else spec.id)
        env = self.variants.make_single()
        if env is None:
            described = getattr(self.given, "description", None)  # rows of several agents have one
            return type(self.given).__name__ if described is None else str(described["env_id"])
        name = type(env.unwrapped).__name__ if env.spec is None else env.spec.id
        with contextlib.suppress(Exception):  # the first check closes one, too, and reports it
            env.close()
        return name

    # Environments

    @property
    def envs(self) -> Any:
        """The given vector environment; with a smaller ``batch_size``, one that steps all rows."""
        if getattr(self.given, "batch_size", self.given.num_envs) == self.given.num_envs:
            return self.given
        if self._whole is None:
            self._whole = self.variants.make(min(self.given.num_envs, MAX_TRACED), mode=self.mode)
        return self._whole

    @property
    def mode(self) -> AutoresetMode:
        """The autoreset mode of the given vector environment."""
        mode: AutoresetMode = autoreset_mode_of(self.given)
        return mode

    @contextlib.contextmanager
    def made(self, num_envs: int, **keywords: Any) -> Iterator[Any]:
        """A vector environment like the given one, for the time of the block."""
        envs = self.variants.make(num_envs, **keywords)
        try:
            yield envs
        finally:
            envs.close()

    @contextlib.contextmanager
    def several(self) -> Iterator[Any]:
        """The given vector environment if it has several rows, otherwise three rows like it."""
        if self.envs.num_envs > 1:
            yield self.envs
        else:
            with self.made(3, mode=self.mode) as envs:
                yield envs

    def close(self) -> None:
        """Closes the environments that this kit made, and drops its traces."""
        self._singles.clear()
        if self._whole is not None:
            self._whole.close()

    # Runs

    def player(self, envs: Any, *, seed: int | None = None, **keywords: Any) -> Player:
        """A player of ``envs``, which were not reset, with up to 17 traced rows."""
        traced = sorted({*range(min(envs.num_envs, MAX_TRACED - 1)), envs.num_envs - 1})
        seed = self.seed if seed is None else seed
        return Player(envs, seed, self.actions, traced, **keywords)

    def run(self, envs: Any, *, seed: int | None = None, steps: int | None = None) -> Player:
        """Resets with the seed and plays; returns the player."""
        seed = self.seed if seed is None else seed
        player = self.player(envs, seed=seed)
        player.reset(seed=seed)
        return player.run(self.steps if steps is None else steps)

    def singles(self, *, ending: bool = False) -> Singles:
        """The traces of single environments; ``ending``: with the limit :attr:`short`."""
        limit = self.short if ending else None
        if limit not in self._singles:
            self._singles[limit] = Singles(self, limit)
        return self._singles[limit]

    @property
    def short(self) -> int | None:
        """A step limit with which episodes end in a run; ``None`` if some end without one."""
        traces = (self.singles().trace(row) for row in range(3))
        ends = any(event.is_end for trace in traces for event in trace)
        return None if ends else max(1, self.steps // 8)

    def note_mixed(self) -> None:
        """Adds a note for each key of :attr:`mixed`."""
        for key, types in self.mixed.items():
            self.notes.append(
                f"info[{key!r}] is {types[True]} at resets and {types[False]} in steps; a batch "
                "with both has the type of its first row, as in Gymnasium"
            )

    @functools.cached_property
    def mixed(self) -> dict[str, dict[bool, str]]:
        """Info keys with one type at resets (``True``) and another in steps (``False``).

        Gymnasium gives a batch the type of its first row, so in batches with both kinds of rows
        these values are rounded. They are not compared.
        """
        kinds: defaultdict[str, dict[bool, str]] = defaultdict(dict)
        with contextlib.suppress(Unchecked):
            for row in range(3):
                for event in self.singles().trace(row):
                    for key, value in event.info.items():
                        kinds[key].setdefault(event.is_reset, type_of(value))
        mixed = {key: kind for key, kind in kinds.items() if len(set(kind.values())) > 1}
        return dict(sorted(mixed.items()))

    # Failures

    def fail(self, finding: str, remedy: str) -> NoReturn:
        """Raises the error of the check that runs."""
        raise EnvCheckError(self.check, self.name, finding, remedy)

    def assert_same(
        self,
        player: Player,
        others: dict[int, Trace] | Singles,
        places: tuple[str, str],
        remedy: str,
        *,
        rows: Iterable[int] | None = None,
        strict_infos: bool = False,
    ) -> None:
        """Fails unless rows of a player have the same traces as others.

        Args:
            player: The player.
            others: The other traces, by row.
            places: Where the player's values are from, and where the others, for the error.
            remedy: How to fix a difference.
            rows: The rows; by default all traced ones.
            strict_infos: Compare infos that have two types, too.
        """
        without = self.ignored if strict_infos else self.ignored | self.mixed.keys()
        for row in player.traces if rows is None else rows:
            trace = player.traces[row]
            other = others.trace(row) if isinstance(others, Singles) else others[row]
            found = compare(trace, other, without)
            if found is not None:
                number, (path, one, two) = found
                path = field_of(path)
                if path.startswith("info["):
                    key = path.split("]")[0].removeprefix("info[")
                    remedy += (
                        " If this info is a clock or a counter, or shows `options`, pass "
                        f"`ignore_infos=[{key}]`."
                    )
                self.fail(
                    f"{path} of row {row} {moment(trace, number)} is {one} {places[0]} and "
                    f"{two} {places[1]} (seed {self.seed + row})",
                    remedy,
                )


class Singles:
    """Traces of single environments: row ``i`` alone, with the seed ``seed + i``."""

    def __init__(self, kit: Kit, limit: int | None) -> None:
        self._kit = kit
        self._limit = limit
        self._traces: dict[int, Trace] = {}

    def trace(self, row: int) -> Trace:
        """Returns the trace of one row, as long as a run."""
        if row not in self._traces:
            with self._kit.made(1, first=row, limit=self._limit) as envs:
                self._traces[row] = self._kit.run(envs, seed=self._kit.seed + row).traces[0]
        return self._traces[row]


def type_of(value: Any) -> str:
    """The type of an info as it is batched: dtype and shape, or the name of the type."""
    if isinstance(value, np.generic):
        return str(value.dtype)
    if isinstance(value, np.ndarray):
        return f"{value.dtype} of shape {value.shape}"
    return type(value).__name__
