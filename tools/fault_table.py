"""Runs every fault in every executor and in Gymnasium, and writes a table of the outcomes.

    python -m tools.fault_table [--write docs/faults.md] [--only WORDS]

Each fault runs in its own program (``tools/fault_cells.py``) with a limit of fifteen seconds. The
table goes to standard output, or between the two markers in the file that ``--write`` names.
"""

import argparse
import contextlib
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cartwheel.bench.machine import machine_line
from tests.support.processes import is_alive
from tools.fault_cells import BUILDERS, CELLS, NATIVE, POLICED

ROOT = Path(__file__).parents[1]
LIMIT_S = 15.0
BEGIN = "<!-- The table: written by `make faults`, not by hand. -->"
END = "<!-- The end of the table. -->"
HEADER = ("fault", "executor", "the call", "names", "after", "`reset`", "`close`", "left")


@dataclass
class Outcome:
    """The output of a program, and its end."""

    stages: dict[str, dict[str, Any]] = field(default_factory=dict)
    code: int | None = None
    lines: int = 0
    left: int = 0
    gone_s: float | None = None


def session(leader):
    """The living processes of a session."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                stat = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(stat[3]) == leader and stat[0] not in "ZX":
                    found.add(int(entry.name))
    return found


def stages(path):
    """The stages printed so far."""
    lines = path.read_text().splitlines() if path.exists() else []
    told = [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]
    return {stage.pop("stage"): stage for stage in told}


def run(fault, executor, *arguments):
    """Runs one fault in one executor, in a program with its own process session."""
    outcome = Outcome()
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        with out.open("w") as stdout, err.open("w") as stderr:
            program = subprocess.Popen(
                [sys.executable, "-m", "tools.fault_cells", fault, executor, *arguments],
                cwd=ROOT,
                stdout=stdout,
                stderr=stderr,
                env={**os.environ, "TMPDIR": folder, "RUST_BACKTRACE": "0"},
                start_new_session=True,
            )
            deadline = time.monotonic() + LIMIT_S
            while program.poll() is None and time.monotonic() < deadline:
                time.sleep(0.005)
                if "ready" in stages(out):
                    break
            outcome.code = program.poll()
            program.kill()
            program.wait()
        killed = time.monotonic()
        while (left := session(program.pid)) and time.monotonic() < killed + 1:
            time.sleep(0.001)
        outcome.gone_s = time.monotonic() - killed
        outcome.left = len(left)
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        while any(map(is_alive, left)):
            time.sleep(0.005)
        outcome.stages, outcome.lines = stages(out), len(err.read_text().splitlines())
    return outcome


def duration(seconds):
    """A duration as text: milliseconds below a second, else seconds."""
    return f"{1e3 * seconds:.0f} ms" if seconds < 0.9995 else f"{seconds:.1f} s"


def ending(code):
    """The end of a program, in words."""
    return f"code {code}" if code >= 0 else signal.Signals(-code).name


def code_font(outcome):
    """Puts the names of exceptions in code font."""
    return re.sub(r"\b(\w+(Error|Interrupt))\b", r"`\1`", outcome)


def the_call(outcome):
    """The outcome of the call, what its exception names, and how long it took."""
    told = outcome.stages
    if "ready" in told:
        if outcome.left:
            return "**processes go on**", "–", "> 1 s"
        return "all processes end", "–", duration(outcome.gone_s)
    if "call" in told:
        call = told["call"]
        lines = "1 line" if outcome.lines == 1 else f"{outcome.lines} lines"
        noise = f", {lines} on stderr" if outcome.lines else ""
        names = ", ".join(call["says"]) or "–"
        return code_font(call["outcome"]) + noise, names, duration(call["seconds"])
    if outcome.code is None:
        return "**hangs**", "–", "–"
    if outcome.code == 0:
        return "–", "–", "–"  # this fault has no call, only `close()`
    return f"the program ends: {ending(outcome.code)}", "–", "–"


def later(stages, name, *, tried):
    """The outcome of the ``reset`` or ``close`` after the fault."""
    if name in stages:
        return f"{code_font(stages[name]['outcome'])}, {duration(stages[name]['seconds'])}"
    return "**hangs**" if tried else "–"


def row(fault, executor, outcome, closing):
    """The cells of one line; ``closing`` is the outcome of a second run, without the reset."""
    told = outcome.stages
    usable = {"made", "call"} <= told.keys()
    closed = usable or CELLS[fault][0] == "closing"
    return [
        fault,
        executor,
        *the_call(outcome),
        later(told, "reset", tried=usable),
        later({**closing.stages, **told}, "close", tried=closed),
        str(outcome.left),
    ]


def pairs():
    """Every fault with the executors in which it runs."""
    for fault, executor in itertools.product(CELLS, BUILDERS):
        if executor == "native" and fault not in NATIVE:
            continue  # this fault needs an environment written in Python
        if executor == "process, policies" and fault not in POLICED:
            continue  # the policies do not affect this fault
        yield fault, executor


def table(only):
    """The lines of the table."""
    lines = ["| " + " | ".join(HEADER) + " |", "|" + "---|" * len(HEADER)]
    shown = None
    for fault, executor in pairs():
        if only not in f"{fault} {executor}":
            continue
        outcome = closing = run(fault, executor)
        if "call" in outcome.stages and "reset" not in outcome.stages:
            closing = run(fault, executor, "close")
        cells = row(fault, executor, outcome, closing)
        if fault == shown:
            cells[0] = ""
        lines.append("| " + " | ".join(cells) + " |")
        print(lines[-1], file=sys.stderr, flush=True)
        shown = fault
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, help="the file whose table is replaced")
    parser.add_argument("--only", default="", help="only faults and executors with this text")
    arguments = parser.parse_args()
    lines = [machine_line(), "", *table(arguments.only)]
    if arguments.write is None:
        print("\n".join(lines))
        return
    before, _, rest = arguments.write.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    text = "\n".join([BEGIN, "", *lines, "", END])
    arguments.write.write_text(before + text + after)


if __name__ == "__main__":
    main()
