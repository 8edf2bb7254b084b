"""Counts and times of a vector environment."""

from __future__ import annotations

import dataclasses
import html
from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel.vector.prometheus import as_prometheus

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cartwheel.vector.worker_choice import WorkerChoice

#: The maximum number of rows, and of groups, in the tables of :class:`Stats`.
_MAX_SHOWN = 8


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Stats:
    """Counts and times of a vector environment, from :meth:`cartwheel.VectorEnv.stats`.

    The counts begin at the construction and are never reset; for a part of a run, take the
    difference of two. All arrays are copies. Times are in seconds.

    Environments written in Python are timed one by one. The time of a step includes the copy of its
    observation and the reset that the autoreset mode requires. Native steps are too short to be
    timed one by one. There, one task in 17 of each group is timed as a whole, from the ninth on.
    Each row of that task counts with the mean of its rows, and the times of rows and groups are
    estimated from this sample.

    Rows are divided among workers in *groups*. A worker process or thread, or the calling thread,
    has one group. The threads of a :class:`~cartwheel.NativeVectorEnv` share several.

    Attributes:
        elapsed: Time since the environments were opened.
        steps: ``int64``, shape ``(num_envs,)``: finished steps of each row, including steps that
            reset the environment or repeated its last frame.
        resets: ``int64``, shape ``(num_envs,)``: successful resets of each row's environment, by
            the caller and by the autoreset mode. In the mode ``NEXT_STEP`` an autoreset counts as a
            step, too.
        replacements: ``int64``, shape ``(num_envs,)``: how often each row's environment failed and
            was replaced (``on_error="restart"``).
        step_seconds: ``float64``, shape ``(num_envs,)``: time spent on the steps of each row.
        slowest_step: ``float64``, shape ``(num_envs,)``: time of each row's slowest step; for
            native rows, the largest mean of a task of their group.
        worker_rows: ``int64``, shape ``(num_groups, 2)``: for each group, its first row and the
            row after its last.
        step_times: ``int64``, shape ``(num_groups, 40)``: a histogram of the timed steps; column
            ``k`` counts the steps from ``bucket_edges[k]`` to ``bucket_edges[k + 1]``. If rows are
            timed one by one, ``step_times.sum() == steps.sum()``, unless a worker died in the
            middle of a step.
        timed_seconds: ``float64``, shape ``(num_groups,)``: time of the steps in ``step_times``.
        working: ``float64``, shape ``(num_groups,)``: time spent on each group's steps, resets and
            control calls.
        restarts: ``int64``, shape ``(num_groups,)``: how often the group's worker was replaced,
            because it died (``on_worker_death="restart"``), hung (``on_timeout="restart"``) or
            reached a limit (``max_episodes_per_worker``, ``max_worker_memory``).
        waited: Time that calls waited for workers, without the steps of the calling thread itself.
        batches: Batches that steps, resets and ``recv`` returned.
        observation_bytes: Bytes of the observations in these batches.
        copies: Batches that were copied because too many others are kept, see ``max_batches``.
        batches_reserved: Batches that have memory, including the reserve for copies.
        batches_kept: Batches that are being filled or that the caller keeps.
        worker_choice: The number of workers and the reason for it, if ``num_workers="auto"`` chose
            it; otherwise ``None``.
    """

    elapsed: float
    steps: NDArray[np.int64]
    resets: NDArray[np.int64]
    replacements: NDArray[np.int64]
    step_seconds: NDArray[np.float64]
    slowest_step: NDArray[np.float64]
    worker_rows: NDArray[np.int64]
    step_times: NDArray[np.int64]
    timed_seconds: NDArray[np.float64]
    working: NDArray[np.float64]
    restarts: NDArray[np.int64]
    waited: float
    batches: int
    observation_bytes: int
    copies: int
    batches_reserved: int
    batches_kept: int
    worker_choice: WorkerChoice | None = None

    @property
    def waiting(self) -> NDArray[np.float64]:
        """Idle time of each group, ``elapsed - working``, shape ``(num_groups,)``."""
        return self.elapsed - self.working

    @property
    def bucket_edges(self) -> NDArray[np.float64]:
        """Edges of the columns of :attr:`step_times`: 0, 2 ns, 4 ns, 8 ns, …, infinity; (41,)."""
        inner = 2.0 ** np.arange(1, self.step_times.shape[1]) * 1e-9
        return np.concatenate([[0.0], inner, [np.inf]])

    @property
    def mean_step(self) -> NDArray[np.float64]:
        """Mean time of each row's steps, shape ``(num_envs,)``; NaN before the first timed one."""
        with np.errstate(invalid="ignore"):
            means: NDArray[np.float64] = self.step_seconds / self.steps
        return np.where(means > 0, means, np.nan)

    def to_dict(self) -> dict[str, Any]:
        """Returns all counts and times as numbers and lists, for ``json`` and loggers.

        Example:
            >>> import cartwheel
            >>> envs = cartwheel.NativeVectorEnv("CartPole-v1", 2)
            >>> _ = envs.reset(seed=1)
            >>> envs.stats().to_dict()["resets"]
            [1, 1]
            >>> envs.close()
        """
        choice = self.worker_choice
        values = ((field.name, getattr(self, field.name)) for field in dataclasses.fields(self))
        return {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in values
        } | {"worker_choice": None if choice is None else dataclasses.asdict(choice)}

    def prometheus(self, **labels: Any) -> str:
        """Returns the counts and times in the text format of Prometheus, version 0.0.4.

        Values of rows are summed over the rows of a group; the label ``rows`` names them. Serve the
        text from a web server of your own, or write it to a file for the ``node_exporter``.

        Args:
            **labels: Labels of every value, such as ``task="Ant-v5"``.

        Raises:
            ValueError: The name of a label is not allowed.
        """
        return as_prometheus(self, labels)

    def __repr__(self) -> str:
        return (
            f"Stats({len(self.steps)} envs, {self.steps.sum():,} steps, "
            f"{self.resets.sum():,} resets, {self.elapsed:.3f} s)"
        )

    def __str__(self) -> str:
        """Totals, working and waiting of the busiest groups, and the slowest rows."""
        return "\n\n".join(["\n".join(self._totals()), *map(_as_text, self._tables())])

    def _repr_html_(self) -> str:
        """The same totals and tables for notebooks."""
        totals = "<br>".join(map(html.escape, self._totals()))
        return "\n".join([f"<p>{totals}</p>", *map(_as_html, self._tables())])

    def _totals(self) -> list[str]:
        choice = self.worker_choice
        return [
            f"{self.elapsed:.3f} s, of which calls waited {self.waited:.3f} s",
            f"{self.steps.sum():,} steps, {self.resets.sum():,} resets, {self.batches:,} "
            f"batches with {self.observation_bytes:,} bytes of observations",
            f"{self.batches_kept} of {self.batches_reserved} batches in memory are in use, "
            f"{self.copies:,} copies instead; {self.replacements.sum():,} environments and "
            f"{self.restarts.sum():,} workers replaced",
            *([] if choice is None else [f"{choice.num_workers} workers: {choice.reason}"]),
        ]

    def _tables(self) -> list[list[tuple[str, ...]]]:
        """The busiest groups and the slowest rows, each with its head."""
        rows = np.argsort(-np.nan_to_num(self.mean_step), kind="stable")
        groups = np.argsort(-self.working, kind="stable")
        return [
            [
                ("rows", "working", "waiting", "median step", "restarts"),
                *(self._group_cells(group) for group in groups[:_MAX_SHOWN]),
                *_left_out(len(groups), "groups"),
            ],
            [
                ("row", "mean step", "slowest", "steps", "resets"),
                *(self._row_cells(row) for row in rows[:_MAX_SHOWN]),
                *_left_out(len(rows), "rows"),
            ],
        ]

    def _group_cells(self, group: int) -> tuple[str, ...]:
        first, last = self.worker_rows[group]
        return (
            f"{first} to {last - 1}",
            f"{self.working[group]:.3f} s",
            f"{self.waiting[group]:.3f} s",
            self._median_step(group),
            f"{self.restarts[group]:,}",
        )

    def _median_step(self, group: int) -> str:
        """The upper edge of the bucket that holds the median."""
        counts = np.cumsum(self.step_times[group])
        if not counts[-1]:
            return "-"
        bucket = int(np.searchsorted(counts, (counts[-1] + 1) // 2))
        return f"< {_duration(self.bucket_edges[bucket + 1])}"

    def _row_cells(self, row: int) -> tuple[str, ...]:
        mean, slowest = _duration(self.mean_step[row]), _duration(self.slowest_step[row])
        return str(row), mean, slowest, f"{self.steps[row]:,}", f"{self.resets[row]:,}"


def _as_text(table: list[tuple[str, ...]]) -> str:
    lines = []
    for first, *cells in table:
        right = (f"{cell:>{width}}" for cell, width in zip(cells, (11, 11, 12, 9), strict=False))
        lines.append(" ".join([f"{first:>15}", *right]))
    return "\n".join(lines)


def _as_html(table: list[tuple[str, ...]]) -> str:
    lines = []
    for number, row in enumerate(table):
        kind = "td" if number else "th"
        span = f" colspan={len(table[0])}" if len(row) == 1 else ""
        cells = (f"<{kind}{span}>{html.escape(cell)}</{kind}>" for cell in row)
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return "\n".join(["<table>", *lines, "</table>"])


def _duration(seconds: float) -> str:
    """Formats seconds in a suitable unit; a dash where nothing was timed."""
    if not seconds > 0:
        return "-"
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def _left_out(rows: int, what: str) -> list[tuple[str, ...]]:
    return [(f"… {rows - _MAX_SHOWN:,} more {what}",)] if rows > _MAX_SHOWN else []
