"""The scaling study measures what fits into memory and time, and says what it left out."""

import json
import multiprocessing
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.harness.rivals import RIVALS
from benchmarks.scaling import study
from benchmarks.scaling.footprint import Footprint, Wanted, footprint, pss
from benchmarks.scaling.study import SIZES, Run, worker_counts
from benchmarks.scaling.table import scaling_table
from cartwheel._internal.progress import Progress
from cartwheel.bench.race import Measurement
from tests.support.platforms import linux_only

METHODS = [
    m for m in ("fork", "forkserver", "spawn") if m in multiprocessing.get_all_start_methods()
]
MB = 10**6
ROOT = Path(__file__).parents[2]


class Machine:
    """A machine on which each process has 30 MB and starts in ``start_s`` seconds."""

    def __init__(self, monkeypatch, *, cores, memory, start_s=0.01):
        self.start_s = start_s
        self.started = []
        self.raced = []
        self.counted = 0
        self.total = 0
        monkeypatch.setattr(study, "usable_cpus", lambda: cores)
        monkeypatch.setattr(study, "memory_left", lambda: memory)
        monkeypatch.setattr(study, "footprint", self.footprint)
        monkeypatch.setattr(study, "race", self.race)
        monkeypatch.setattr(study, "Progress", self.progress)

    def footprint(self, wanted, limit_s):
        self.started.append(wanted)
        processes = wanted.num_envs if wanted.contender == "gymnasium async" else 1
        if processes * self.start_s > limit_s:
            return None
        memory = 30 * MB * processes + 1000 * wanted.num_envs
        return Footprint(processes * self.start_s, 50 * MB, memory)

    def race(self, _env_fn, num_envs, contenders, *, seconds, rounds, progress):
        assert seconds > 0
        names = [contender.name for contender in contenders]
        self.raced.append((num_envs, names))
        for name in names:
            for _ in range(1 + rounds):
                progress(name)
        speed = {name: float(name) if name.isdigit() else 1000.0 for name in names}
        return Measurement(num_envs, {name: [speed[name]] * rounds for name in names})

    def progress(self, total):
        self.total = total
        progress, advance = Progress(total), Progress.advance

        def count(label, parts=1):
            self.counted += parts
            advance(progress, label, parts)

        progress.advance = count
        return progress

    def run(self, sizes=SIZES, native_id="CartPole-v1", seconds=100.0, rivals=()):
        result = Run("CartPole-v1", native_id, sizes, seconds, 2, rivals).measure()
        assert self.counted == self.total, "the bar ends at its end"
        return result


def test_numbers_of_workers_are_powers_of_two_and_all():
    assert worker_counts(1) == [1]
    assert worker_counts(2) == [1, 2]
    assert worker_counts(64) == [1, 2, 4, 8, 16, 32, 64]
    assert worker_counts(192) == [1, 2, 4, 8, 16, 32, 64, 128, 192]


def test_a_large_machine_measures_everything_but_tens_of_thousands_of_processes(monkeypatch):
    machine = Machine(monkeypatch, cores=192, memory=10**12)
    found = machine.run()
    assert [(start.start_method, start.contender, start.num_envs) for start in found.starts] == [
        (method, name, 256)
        for method in METHODS
        for name in ("cartwheel process", "gymnasium async")
    ]
    counts = [str(count) for count in worker_counts(192)]
    assert machine.raced[-2:] == [(768, counts), (16_384, counts)]
    asynchronous = [rows for rows, names in machine.raced[:-2] if "gymnasium async" in names]
    assert asynchronous == [1, 4, 16, 64, 256]
    assert [rows for rows, _ in machine.raced[:-2]] == list(SIZES)
    assert found.left_out == [
        f"{rows} × gymnasium async: one process each; at most 256 are started" for rows in SIZES[5:]
    ]
    assert found.row_bytes["gymnasium async"] == 30 * MB + 1000
    assert found.row_bytes["cartwheel native"] == 1000


def test_processes_that_do_not_fit_into_memory_are_not_started(monkeypatch):
    machine = Machine(monkeypatch, cores=2, memory=2000 * MB)  # a half is 33 processes
    found = machine.run()
    assert max(w.num_envs for w in machine.started if w.contender == "gymnasium async") == 8
    assert [rows for rows, names in machine.raced if "gymnasium async" in names] == [1, 4, 16]
    reason = "would take about 1.9 GB, more than 50% of the 2.0 GB that are left"
    assert f"64 × gymnasium async: {reason}" in found.left_out
    refused = [text for text in found.left_out if "; started: 8" in text]
    assert len(refused) == len(METHODS)
    assert {start.num_envs for start in found.starts if start.contender == "gymnasium async"} == {8}


def test_more_worker_processes_than_fit_into_memory_are_not_raced(monkeypatch):
    machine = Machine(monkeypatch, cores=192, memory=20_000 * MB)  # 447 workers are 13 GB
    found = machine.run()
    assert list(found.workers) == ["native"]
    assert any(text.startswith("447 worker processes, process: ") for text in found.left_out)


def test_what_would_take_too_long_is_left_out(monkeypatch):
    machine = Machine(monkeypatch, cores=2, memory=10**12, start_s=1.0)
    found = machine.run(seconds=0.1)  # so 20 s for a program
    assert "256 × gymnasium async, spawn: would take about 256 s, more than 20 s; started: 8" in (
        found.left_out
    )
    # 1,000 steps a second: a batch of 4,096 rows takes 4 s, and is stepped four times.
    steps = [rows for rows, names in machine.raced[:-2] if "cartwheel process" in names]
    assert max(steps) == 1024
    assert any(
        text.startswith("4096 × cartwheel process: would take about ") for text in found.left_out
    )


def test_nothing_that_hangs_is_waited_for(monkeypatch):
    machine = Machine(monkeypatch, cores=2, memory=None, start_s=100.0)
    found = machine.run(seconds=0.1)
    assert found.starts == []
    assert "memory of gymnasium async: not there within 20 s" in found.left_out
    assert "gymnasium async, spawn: not started within 20 s" in found.left_out


def test_other_packages_are_raced_by_rows_and_those_with_a_number_of_workers_by_workers(
    monkeypatch,
):
    machine = Machine(monkeypatch, cores=6, memory=10**12)
    found = machine.run(rivals=RIVALS)
    by_name = {}
    for rows, names in machine.raced[:-4]:
        for name in names:
            by_name.setdefault(name, []).append(rows)
    few, all_rows = [1, 4, 16, 64, 256], list(SIZES)
    assert by_name["sb3 subproc"] == by_name["torchrl parallel"] == few
    assert by_name["sb3 dummy"] == by_name["pufferlib serial"] == all_rows
    assert by_name["pufferlib workers"] == by_name["envpool"] == all_rows
    counts = ["1", "2", "4", "6"]
    assert {name: list(race.rates) for name, race in found.workers.items()} == {
        "process": counts,
        "pufferlib workers": ["1", "2", "4"],  # 64 rows cannot be divided by six
        "envpool": counts,
        "native": counts,
    }
    reasons = [text for text in found.left_out if text.startswith("1024 × ")]
    assert [text.partition(": ")[2] for text in reasons] == [
        "one process each; at most 256 are started"
    ] * 3


def test_the_table_shows_every_part(monkeypatch):
    machine = Machine(monkeypatch, cores=4, memory=10**12)
    text = scaling_table(machine.run(sizes=(1, 512)))
    lines = {tuple(line.split()[:2]): line.split() for line in text.splitlines() if line}
    assert lines["512", "1,000"] == ["512", "1,000", "–", "1,000", "1,000"]
    assert lines["gymnasium", "async"][2:] == ["spawn", "256", "2.56", "7,730"]
    assert lines["4", "64"] == ["4", "64", "4", "4.00", "100%"]
    assert lines["left", "out:"][2:5] == ["512", "×", "gymnasium"]


def test_a_program_that_takes_too_long_has_no_footprint():
    assert footprint(Wanted("gymnasium async", "CartPole-v1", 4, "spawn"), limit_s=0.01) is None


@pytest.mark.slow
def test_a_program_that_fails_is_an_error():
    with pytest.raises(RuntimeError, match="Nothing-v7"):
        footprint(Wanted("cartwheel process", "Nothing-v7", 1), limit_s=60)


@pytest.mark.slow
@linux_only("it has files of the memory of processes")
def test_memory_is_that_of_all_processes():
    found = footprint(Wanted("cartwheel process", "CartPole-v1", 2, "spawn", 2), limit_s=120)
    assert found.start_s > 0
    assert found.program_bytes > MB
    assert found.workers_bytes > 2 * MB
    assert found.total_bytes == found.program_bytes + found.workers_bytes
    assert pss([]) == 0
    assert pss([2**22 + 1]) is None


@pytest.mark.slow
def test_the_command_measures_what_grows_and_draws_it(tmp_path):
    file, chart = tmp_path / "scaling.json", tmp_path / "scaling.svg"
    options = ["--num-envs", "1", "2", "--seconds", "0.01", "--rounds", "1"]
    options += ["--rivals"]
    files = ["--json", str(file), "--plot", str(chart)]
    command = [sys.executable, "-m", "benchmarks.scaling", *options, *files]
    subprocess.run(command, check=True, cwd=ROOT)
    outcome = json.loads(file.read_text())
    found = outcome["records"]
    assert {record["part"] for record in found} == {"memory", "start-up", "rows", "workers"}
    rows = {(r["contender"], r["num_envs"]): r for r in found if r["part"] == "rows"}
    names = ("cartwheel process", "gymnasium async", "gymnasium sync", "cartwheel native")
    assert set(rows) == {(name, size) for name in names for size in (1, 2)}
    assert all(record["steps_per_second"] > 0 for record in rows.values())
    starts = [r for r in found if r["part"] == "start-up"]
    assert {r["start_method"] for r in starts} == set(METHODS)
    assert outcome["left_out"] == []
    assert "Steps per second by workers" in chart.read_text()
