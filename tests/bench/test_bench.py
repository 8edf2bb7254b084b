"""Benchmarks report what was measured: ratios, ceilings, notes, and why a contender is missing."""

import importlib.util
import itertools
import json
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from gymnasium.spaces import Discrete

import cartwheel.envpool
from cartwheel import __main__, _cartwheel
from cartwheel.bench import ceiling as loops
from cartwheel.bench import command, envpool, machine
from cartwheel.bench import runner as runners
from cartwheel.bench.contenders import Contender
from cartwheel.bench.race import Measurement, parts, race
from cartwheel.bench.table import records, table
from tests.support.native_ids import OF_RUST

RATES = {
    "gymnasium async": [100.0, 200.0, 400.0],
    "cartwheel native": [4000.0, 4000.0, 5000.0],
    "native ceiling": [5000.0, 8000.0, 10_000.0],
    "envpool": [200.0, 400.0, 400.0],
}
MEASUREMENT = Measurement(4, RATES, {"envpool": "1 of 1, 2 threads, the fastest"})


class Steady:
    """A runner that always gives the same rate."""

    def __init__(self, rate, note=""):
        self.rate = rate
        self.note = note
        self.is_closed = False

    def run(self, _seconds):
        return self.rate

    def close(self):
        self.is_closed = True


def test_a_record_has_the_median_ratio_of_all_rounds_and_the_share_of_its_ceiling():
    by_name = {record["contender"]: record for record in records([MEASUREMENT])}
    native = by_name["cartwheel native"]
    assert native["ratio_to_async"] == 20.0  # of 40, 20 and 12.5
    assert native["ratio_to_envpool"] == 12.5  # of 20, 10 and 12.5
    assert native["share_of_ceiling"] == 0.5  # of the native ceiling: 0.8, 0.5 and 0.5
    assert native["ratio_to_sync"] is None, "gymnasium sync was not in the race"
    assert by_name["envpool"]["share_of_ceiling"] is None, "EnvPool has no ceiling"
    assert by_name["native ceiling"]["share_of_ceiling"] == 1.0
    assert by_name["gymnasium async"]["share_of_ceiling"] is None, (
        "the ceiling of Python environments was not in the race"
    )
    assert by_name["envpool"]["note"] == "1 of 1, 2 threads, the fastest"


def test_the_table_shows_what_was_measured_and_a_dash_for_what_was_not():
    text = table([MEASUREMENT])
    lines = {line.split("  ")[0]: line.split() for line in text.splitlines() if line}
    assert lines["contender"][-4:] == ["×", "envpool", "of", "ceiling"]
    assert lines["cartwheel native"][2:] == ["4", "4,000", "±12%", "20.00", "–", "12.50", "50%"]
    assert lines["envpool"][-3:] == ["–", "1.00", "–"]
    assert "envpool, 4 envs: 1 of 1, 2 threads, the fastest" in text
    assert "native ceiling: " in text


def test_without_envpool_the_table_has_no_column_for_it():
    rates = {name: rates for name, rates in RATES.items() if name != "envpool"}
    assert "× envpool" not in table([Measurement(4, rates)])


def test_a_race_alternates_its_contenders_keeps_notes_and_closes_them():
    plain, choosy, seen = Steady(2.0), Steady(3.0, "two threads"), []
    racers = [
        Contender("plain", lambda env_fns: plain if len(env_fns) == 5 else None),
        Contender("choosy", lambda _: choosy),
    ]
    measurement = race(None, 5, racers, seconds=0.1, rounds=3, progress=seen.append)
    assert measurement == Measurement(
        5, {"plain": [2.0] * 3, "choosy": [3.0] * 3}, {"choosy": "two threads"}
    )
    assert seen[2:] == ["plain", "choosy", "choosy", "plain", "plain", "choosy"]
    assert len(seen) == parts(2, 3)
    assert plain.is_closed
    assert choosy.is_closed


class Clock:
    """Time that passes in calls alone: a quarter of a second in each, whatever they return."""

    num_envs, now = 3, 7.0

    def perf_counter(self):
        return self.now

    def passes(self, *_):
        self.now += 0.25
        return None, None, False, False, {"env_id": None}

    step = recv = reset = passes

    def send(self, actions, env_id):
        pass


def test_rates_are_steps_by_the_time_that_they_took(monkeypatch):
    for make in (runners.VectorRunner, runners.SendRecvRunner):
        clock = Clock()
        monkeypatch.setattr(runners, "time", clock)
        runs = make(clock, [np.zeros(3)] * 2)
        for seconds, ended in ((0, 7.25), (2.0, 9.25), (0.3, 9.5)):
            assert runs.run(seconds) == 12.0
            assert clock.now == ended
    clock = Clock()
    monkeypatch.setattr(loops, "time", clock)
    for seconds, ended in ((0, 7.25), (2.0, 9.25)):
        assert loops._rate([clock], itertools.repeat((0,)), seconds, None) == 4.0
        assert clock.now == ended


def test_the_processor_is_named_as_linux_names_it(monkeypatch, tmp_path):
    file = tmp_path / "cpuinfo"
    monkeypatch.setattr(machine, "Path", lambda _: file)
    monkeypatch.setattr(machine.platform, "processor", str)
    assert machine.machine()["processor"] == "an unnamed processor"
    file.write_text("processor\t: 0\nmodel name\t: Fast 9\nprocessor\t: 1\nmodel name\t: Slow\n")
    assert machine.machine()["processor"] == "Fast 9"


def test_environments_that_do_not_fit_into_memory_are_refused_before_any_is_made(
    monkeypatch, capsys
):
    arguments = ["bench", "--env", "None-v0", "--num-envs", "4", "2049"]
    monkeypatch.setattr("sys.argv", ["cartwheel", *arguments])
    monkeypatch.setattr(command, "memory_left", lambda: 4 * 2**30)
    with pytest.raises(SystemExit) as ended:
        __main__.main()
    printed, error = capsys.readouterr()
    assert (ended.value.code, printed) == (2, "")
    assert "--num-envs 2049: " in error
    assert "4.0 GiB of memory at least, and 4.0 GiB are left: at most 2048 environments" in error
    for left in (None, 2049 * command.PROCESS_BYTES):
        monkeypatch.setattr(command, "memory_left", lambda left=left: left)
        with pytest.raises(SystemExit):
            __main__.main()
        assert "--env None-v0: " in capsys.readouterr().err  # what is looked at next


def test_envpool_is_left_out_with_the_reason(monkeypatch):
    monkeypatch.setitem(sys.modules, "envpool", None)
    assert envpool.why_not_envpool("CartPole-v1").endswith(": pip install envpool")
    monkeypatch.setitem(sys.modules, "envpool", SimpleNamespace(list_all_envs=lambda: ["Pong-v5"]))
    assert envpool.why_not_envpool("CartPole-v1") == "envpool has no CartPole-v1"
    assert envpool.why_not_envpool("Pong-v5") is None


def test_an_import_error_of_envpool_is_part_of_the_reason(monkeypatch, tmp_path):
    (tmp_path / "envpool.py").write_text("raise ImportError('libGL.so.1: cannot open')\n")
    monkeypatch.delitem(sys.modules, "envpool", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    assert (
        envpool.why_not_envpool("CartPole-v1")
        == "envpool cannot be imported: libGL.so.1: cannot open"
    )


class Rival:
    """Replaces EnvPool: spaces of a single environment, actions of one dtype."""

    single_action_space = Discrete(2)
    spec = SimpleNamespace(action_array_spec={"action": SimpleNamespace(dtype=np.int32)})

    def __init__(self, env_id, num_envs, num_threads, seed):
        self.num_envs = num_envs
        self.num_threads = num_threads
        self.made = (env_id, seed)
        self.dtypes = set()

    def reset(self):
        pass

    def step(self, actions):
        assert actions.shape == (self.num_envs,)
        self.dtypes.add(actions.dtype)


def test_envpool_runs_with_its_fastest_number_of_threads_and_its_action_dtype(monkeypatch):
    monkeypatch.setitem(sys.modules, "envpool", SimpleNamespace(make_gymnasium=Rival))
    monkeypatch.setattr(envpool, "usable_cpus", lambda: 6)
    speeds = {1: 5.0, 2: 7.0, 4: 9.0, 6: 8.0}
    step = envpool.VectorRunner.run

    def run(runner, seconds):
        step(runner, min(seconds, 1e-3))
        return speeds[runner.envs.num_threads]

    monkeypatch.setattr(envpool.VectorRunner, "run", run)
    runner = envpool.fastest_envpool("CartPole-v1", 3)
    assert runner.note == "4 of 1, 2, 4, 6 threads, the fastest"
    assert runner.envs.num_threads == 4
    assert runner.envs.dtypes == {np.dtype(np.int32)}
    assert runner.envs.made == ("CartPole-v1", 0)


@pytest.mark.parametrize("blocks", [True, False])
@pytest.mark.parametrize("env_id", OF_RUST)
def test_every_native_environment_runs_in_plain_loops(env_id, blocks):
    assert _cartwheel.plain_loop(env_id, 3, seconds=0.0, threads=2, blocks=blocks) > 0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"env_id": "Nothing-v0"}, "no native environment"),
        ({"num_envs": 0}, "got 0 and 1"),
        ({"threads": 0}, "got 1 and 0"),
        ({"seconds": -1.0}, "seconds is -1"),
        ({"options": '{"color": 1}'}, "unknown field `color`"),
        ({"options": '{"work_spread": 1.5}'}, "work_spread is 1.5"),
    ],
)
def test_bad_arguments_of_a_plain_loop_are_refused(wrong, message):
    right = {"env_id": "Null-v0", "num_envs": 1, "seconds": 0.0, "threads": 1}
    with pytest.raises(ValueError, match=message):
        _cartwheel.plain_loop(**{**right, **wrong})


#: Runs the command as if EnvPool were not installed, whose import takes 2 s.
WITHOUT_ENVPOOL = """
import sys
sys.modules["envpool"] = None
from cartwheel.__main__ import main
sys.exit(main())
"""


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(["-c", WITHOUT_ENVPOOL], id="without EnvPool"),
        pytest.param(["-m", "cartwheel"], id="as installed", marks=pytest.mark.slow),
    ],
)
def test_the_command_measures_native_environments_and_their_ceiling(tmp_path, command):
    file = tmp_path / "bench.json"
    chart = tmp_path / "bench.svg"
    options = ["--num-envs", "2", "--seconds", "0.01", "--rounds", "1", "--executors", "inline"]
    files = ["--json", str(file), "--plot", str(chart)]
    finished = subprocess.run(
        [sys.executable, *command, "bench", *options, *files],
        check=True,
        capture_output=True,
        text=True,
    )
    outcome = json.loads(file.read_text())
    names = [record["contender"] for record in outcome["records"]]
    is_hidden = WITHOUT_ENVPOOL in command
    rivals = ["envpool"] if importlib.util.find_spec("envpool") and not is_hidden else []
    assert names == [
        "gymnasium sync",
        "gymnasium async",
        "cartwheel inline",
        "ceiling",
        "gymnasium native",
        *rivals,
        "cartwheel native",
        "native ceiling",
    ]
    assert ("without envpool: envpool" in finished.stdout) is not bool(rivals)
    by_name = {record["contender"]: record for record in outcome["records"]}
    native, ceiling = by_name["cartwheel native"], by_name["native ceiling"]
    expected = native["steps_per_second"] / ceiling["steps_per_second"]
    assert native["share_of_ceiling"] == pytest.approx(expected)
    assert outcome["machine"]["load"] >= 0
    assert "native ceiling: plain loops in Rust" in chart.read_text()


@pytest.mark.parametrize("batch_size", [None, 2])
def test_a_pool_runs_whole_or_in_batches(batch_size):
    runner = envpool.envpool_runner(cartwheel.envpool, "CartPole-v1", 4, batch_size)
    assert runner.run(0.01) > 0
    assert runner.run(0.01) > 0
    runner.close()


@pytest.mark.slow
def test_envpool_resets_in_the_next_step_like_every_contender():
    """Runs in its own program, because EnvPool has no way to end its threads."""
    program = """
import gymnasium as gym
from cartwheel.bench import envpool

runner = envpool.fastest_envpool("CartPole-v1", 2)
assert runner.envs.metadata["autoreset_mode"] is gym.vector.AutoresetMode.NEXT_STEP
assert runner.run(0.01) > 0
runner.close()
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True, timeout=120)
