"""Scaling with rows, workers and processes.

Four parts: memory a row, start-up by each start method, steps per second by the number of rows, and
by the number of workers. Each is a measurement of this machine: what would need more memory than is
left, or more time than the seconds allow, is left out with its reason, and nothing is extrapolated.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import multiprocessing
from typing import TYPE_CHECKING, Any

import gymnasium as gym

from benchmarks.harness.rivals import (
    ONE_PROCESS_EACH,
    PUFFERLIB,
    Rival,
    pufferlib_with,
    python_rivals,
)
from benchmarks.scaling.footprint import Footprint, Wanted, footprint
from cartwheel._cartwheel import memory_left, usable_cpus
from cartwheel._internal.progress import Progress
from cartwheel.bench.contenders import (
    ASYNC,
    ENVPOOL,
    NATIVE,
    SYNC,
    Contender,
    cartwheel_native,
    cartwheel_with,
    envpool,
)
from cartwheel.bench.race import Measurement, parts, race
from cartwheel.bench.table import records

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SIZES = (1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536)
"""Numbers of environments."""
STARTED = 256
"""Environments that are started by each start method; each is a process of AsyncVectorEnv."""
TRIED = 8
"""Environments that are started first, to know what more of them will take."""
MEMORY_SHARE = 0.5
"""Of the memory that is left, what a measurement may take."""
LIMIT_S, LIMIT_PER_S = 20.0, 30.0
"""A program, or the steps of one contender, may take this long: at least, and for each second."""
PROCESS = "cartwheel process"


@dataclasses.dataclass(frozen=True)
class Start:
    """A start of ``num_envs`` environments by one start method."""

    contender: str
    start_method: str
    num_envs: int
    footprint: Footprint


@dataclasses.dataclass
class Scaling:
    """Results of the study.

    Attributes:
        row_bytes: Memory a row, by contender.
        starts: Starts of Python environments.
        rows: Races, by the number of rows.
        workers: A race of different numbers of workers, by whose they are: ``"process"``,
            ``"native"`` or the name of another package's contender.
        left_out: What was not measured, and why.
    """

    row_bytes: dict[str, float] = dataclasses.field(default_factory=dict)
    starts: list[Start] = dataclasses.field(default_factory=list)
    rows: list[Measurement] = dataclasses.field(default_factory=list)
    workers: dict[str, Measurement] = dataclasses.field(default_factory=dict)
    left_out: list[str] = dataclasses.field(default_factory=list)

    def records(self) -> list[dict[str, Any]]:
        """A dict for each number, with plain values under stable names."""
        return [
            *(
                {"part": "memory", "contender": name, "bytes_per_row": count}
                for name, count in self.row_bytes.items()
            ),
            *(
                {
                    "part": "start-up",
                    "contender": start.contender,
                    "start_method": start.start_method,
                    "num_envs": start.num_envs,
                    "seconds": start.footprint.start_s,
                    "bytes": start.footprint.total_bytes,
                }
                for start in self.starts
            ),
            *({"part": "rows", **record} for record in records(self.rows)),
            *(
                {"part": "workers", "executor": executor, **record}
                for executor, measurement in self.workers.items()
                for record in records([measurement])
            ),
        ]


def worker_counts(limit: int) -> list[int]:
    """Returns 1, 2, 4 and so on, and ``limit``."""
    return sorted({*(1 << bit for bit in range(limit.bit_length())), limit})


@dataclasses.dataclass
class Run:
    """A run of all parts.

    Attributes:
        env_id: Of the Python environments.
        native_id: Of the native ones, if there are any.
        sizes: Numbers of environments.
        seconds: Per contender and number.
        rounds: Slices of these seconds.
        rivals: Other packages that take part in what is timed by rows and by workers.
    """

    env_id: str
    native_id: str | None
    sizes: Sequence[int]
    seconds: float
    rounds: int
    rivals: Sequence[Rival] = ()
    result: Scaling = dataclasses.field(default_factory=Scaling)

    def __post_init__(self) -> None:
        """Prepares what all parts use."""
        self.cores = usable_cpus()
        self.limit_s = max(LIMIT_S, LIMIT_PER_S * self.seconds)
        self.started = min(STARTED, max(self.sizes))
        self.names = [PROCESS, ASYNC.name, *([NATIVE] if self.native_id else [])]
        self.methods = [
            method
            for method in ("fork", "forkserver", "spawn")
            if method in multiprocessing.get_all_start_methods()
        ]
        self._start_s: dict[str, float] = {}  # of a row
        self._worker_bytes = 0.0

    def measure(self) -> Scaling:
        """Runs all parts and shows how far they are."""
        counts = len(worker_counts(self.cores))
        total = 2 * len(self.names) + 4 * len(self.methods)
        total += parts(len(self._contenders()), self.rounds) * len(self.sizes)
        total += parts(counts, self.rounds) * len(self._worker_groups())
        with contextlib.closing(Progress(total)) as self.progress:
            for name in self.names:
                self._measure_memory(name)
            for method in self.methods:
                for name in (PROCESS, ASYNC.name):
                    self._measure_start(name, method)
            for size in self.sizes:
                self._measure_rows(size)
            self._measure_workers()
        return self.result

    def _footprint(self, wanted: Wanted) -> Footprint | None:
        self.progress.advance(f"{wanted.num_envs} × {wanted.contender} {wanted.start_method or ''}")
        return footprint(wanted, self.limit_s)

    def _leave_out(self, what: str, why: str) -> None:
        self.result.left_out.append(f"{what}: {why}")

    def _measure_memory(self, name: str) -> None:
        """The difference between few rows and many, with one worker where rows share workers."""
        env_id = self.native_id if name == NATIVE and self.native_id else self.env_id
        few, many = (2, TRIED) if name == ASYNC.name else (TRIED, max(64, max(self.sizes)))
        many = min(many, 1024) if name == PROCESS else many
        workers = 1 if name == PROCESS else None
        small, large = (
            self._footprint(Wanted(name, env_id, number, num_workers=workers))
            for number in (few, many)
        )
        if small is None or large is None:
            self._leave_out(f"memory of {name}", f"not there within {self.limit_s:g} s")
            return
        self._start_s[name] = large.start_s / many
        if small.total_bytes is None or large.total_bytes is None:
            self._leave_out(f"memory of {name}", "this system does not say")
            return
        self.result.row_bytes[name] = max(
            0.0, (large.total_bytes - small.total_bytes) / (many - few)
        )
        if name == PROCESS:
            self._worker_bytes = float(small.workers_bytes or 0)

    def _measure_start(self, name: str, method: str) -> None:
        """A few environments, then as many as memory and time allow."""
        wanted = Wanted(name, self.env_id, min(TRIED, self.started), method)
        tried = self._footprint(wanted)
        if tried is None:
            self._leave_out(f"{name}, {method}", f"not started within {self.limit_s:g} s")
            self.progress.advance(name)
            return
        number, what = self.started, f"{self.started} × {name}, {method}"
        times = self._processes(name, number) / self._processes(name, wanted.num_envs)
        expected = times * (tried.workers_bytes or 0)
        if name == PROCESS:  # each has more rows then
            expected += number * self.result.row_bytes.get(name, 0.0)
        shortage = self._no_memory(expected)
        expected_s = times * tried.start_s
        if shortage is None and expected_s > self.limit_s:
            shortage = f"would take about {expected_s:.0f} s, more than {self.limit_s:g} s"
        if shortage is not None:
            self._leave_out(what, f"{shortage}; started: {wanted.num_envs}")
            number = wanted.num_envs
        found = tried if number == wanted.num_envs else None
        if found is None:
            found = self._footprint(dataclasses.replace(wanted, num_envs=number))
        else:
            self.progress.advance(name)
        if found is None:
            self._leave_out(what, f"not started within {self.limit_s:g} s")
            return
        self.result.starts.append(Start(name, method, number, found))

    def _processes(self, name: str, num_envs: int) -> int:
        """The number of processes that step so many environments."""
        if name == NATIVE:
            return 0
        return num_envs if name == ASYNC.name else min(self.cores, num_envs)

    def _measure_rows(self, size: int) -> None:
        """A race of those contenders for which memory and time allow so many rows."""
        contenders = [each for each in self._contenders() if self._has_room(each.name, size)]
        left_out = len(self._contenders()) - len(contenders)
        self.progress.advance(f"{size} rows", parts(left_out, self.rounds))
        if contenders:
            self.result.rows.append(self._race(size, contenders))

    def _contenders(self) -> list[Contender]:
        """Those that are raced by rows."""
        contenders = [SYNC, ASYNC, *python_rivals(self.rivals), cartwheel_with("process")]
        if self.native_id:
            if "envpool" in self.rivals:
                contenders.append(envpool(self.native_id))
            contenders.append(cartwheel_native(self.native_id))
        return contenders

    def _has_room(self, name: str, size: int) -> bool:
        """Whether so many rows fit into memory and time; says so if not."""
        reason = None
        has_process_each = name == ASYNC.name or name in ONE_PROCESS_EACH
        if has_process_each and size > STARTED:
            reason = f"one process each; at most {STARTED} are started"
        # Other packages are not weighed: a process of theirs is taken for one of AsyncVectorEnv.
        like = ASYNC.name if has_process_each else NATIVE if name in (NATIVE, ENVPOOL) else PROCESS
        expected = size * self.result.row_bytes.get(like, 0.0)
        if name in (PROCESS, PUFFERLIB.name):
            expected += self._processes(PROCESS, size) * self._worker_bytes
        reason = reason or self._no_memory(expected)
        if reason is None:
            expected_s = size * self._start_s.get(like, 0.0)
            last = next((m for m in reversed(self.result.rows) if name in m.rates), None)
            if last is not None:  # a round has one step at least, and two come before the first
                expected_s += (self.rounds + 2) * size / last.rate(name)
            if expected_s > self.limit_s:
                reason = f"would take about {expected_s:.0f} s, more than {self.limit_s:g} s"
        if reason is not None:
            self._leave_out(f"{size} × {name}", reason)
        return reason is None

    def _no_memory(self, expected: float) -> str | None:
        """Why so many bytes are too many; ``None`` if they are not, or the memory is unknown."""
        left = memory_left()
        if left is None or expected <= MEMORY_SHARE * left:
            return None
        return (
            f"would take about {expected / 1e9:.1f} GB, more than "
            f"{MEMORY_SHARE:.0%} of the {left / 1e9:.1f} GB that are left"
        )

    def _worker_groups(self) -> dict[str, Callable[[int], Contender]]:
        """Those whose workers can be numbered, by their names in the result."""
        groups: dict[str, Callable[[int], Contender]] = {
            "process": functools.partial(cartwheel_with, "process")
        }
        if "pufferlib" in self.rivals:
            groups[PUFFERLIB.name] = pufferlib_with
        if self.native_id:
            native_id = self.native_id
            if "envpool" in self.rivals:
                groups[ENVPOOL] = functools.partial(envpool, native_id)
            groups["native"] = lambda count: cartwheel_native(native_id, num_workers=count)
        return groups

    def _measure_workers(self) -> None:
        """For each group of workers, all numbers of workers in one race."""
        counts = worker_counts(self.cores)
        for name, build in self._worker_groups().items():
            is_native = name in ("native", ENVPOOL)
            rows = min(16_384 if is_native else max(64, 4 * self.cores), max(self.sizes))
            reason = None if is_native else self._no_memory(sum(counts) * self._worker_bytes)
            if reason is None:
                self._race_workers(name, rows, build, counts)
            else:
                self._leave_out(f"{sum(counts)} worker processes, {name}", reason)
                self.progress.advance("workers", parts(len(counts), self.rounds))

    def _race_workers(
        self, name: str, rows: int, build: Callable[[int], Contender], counts: Sequence[int]
    ) -> None:
        contenders = [
            dataclasses.replace(build(count), name=str(count)) for count in counts if count <= rows
        ]
        if name == PUFFERLIB.name:  # it deals rows evenly only
            contenders = [each for each in contenders if rows % int(each.name) == 0]
        self.progress.advance(name, parts(len(counts) - len(contenders), self.rounds))
        self.result.workers[name] = self._race(rows, contenders)

    def _race(self, size: int, contenders: Sequence[Contender]) -> Measurement:
        return race(
            functools.partial(gym.make, self.env_id),
            size,
            contenders,
            seconds=self.seconds,
            rounds=self.rounds,
            progress=lambda name: self.progress.advance(f"{size} × {name}"),
        )
