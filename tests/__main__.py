"""Runs all tests, some files in each process: ``python -m tests [--processes N] [OPTION…]``.

The other options are pytest's. Tests fork thousands of processes, and a fork takes longer the more
memory and libraries its parent has: three times as long after every test has been collected. So
each process collects a few files, and a new process runs the next ones. They are forked from this
one, which has imported what all of them need.
"""

import argparse
import collections
import contextlib
import importlib
import os
import re
import signal
import sys
import tempfile
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
#: The source code of the tests of one process, in bytes.
SIZE = 180_000
#: The folders whose tests take longest: their processes start first, so that none ends alone.
SLOW = ("vector", "contract", "native", "envpool", "workers")
#: A line of pytest's progress.
PROGRESS = re.compile(r"[.sxXFE]+( +\[ *\d+%\])?\n?")
COUNTED = ("failed", "error", "passed", "skipped", "deselected", "xfailed", "xpassed")
COUNT = re.compile(rf"(\d+) ({'|'.join(COUNTED)})")
#: The last line of pytest, after which programs may print.
SUMMARY = re.compile(rf"(\d+ ({'|'.join(COUNTED)})s?(, )?)+ in \d.*\n?")
#: What pytest says of failures: what was wrong, and which tests they were.
FAILURE = re.compile(r"(E  |FAILED |ERROR ).*\n?")
#: What `tests/conftest.py` imports, but for what pytest itself must be the first to import.
IMPORTED = ("numpy", "gymnasium", "cartwheel")
#: Seconds for a process that was interrupted to end.
PATIENCE_S = 60
#: What pytest returns for wrong options, and if a process has none of the tests that they choose.
USAGE_ERROR, NO_TESTS = 4, 5


def groups():
    """The files of each process: neighbors, which share fixtures; the slowest folders first."""

    def order(file):
        folder = file.relative_to(ROOT / "tests").parts[0]
        return SLOW.index(folder) if folder in SLOW else len(SLOW), file

    files, size = [], 0
    for file in sorted(ROOT.glob("tests/**/test_*.py"), key=order):
        size += file.stat().st_size
        if files and size > SIZE:
            yield files
            files, size = [], file.stat().st_size
        files.append(file.relative_to(ROOT).as_posix())
    yield files


def show(files, output):
    """Prints what pytest printed about a group, without its progress; returns counts, failures."""
    with output:
        output.seek(0)
        lines = [line for line in output if not PROGRESS.fullmatch(line)]
    print(f"==> {files[0]} … {files[-1]}\n", *lines, sep="", flush=True)
    summary = next((line for line in reversed(lines) if SUMMARY.fullmatch(line)), "")
    counts = collections.Counter({what: int(number) for number, what in COUNT.findall(summary)})
    return counts, [line for line in lines if FAILURE.fullmatch(line)]


def ended(pid):
    """The exit code of a process, or ``None`` as long as it runs."""
    found, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if found else None


def run(groups, processes, options):
    """Runs the groups, prints what pytest prints, and returns its status, or that of a failure."""
    # Each process would write its own failures where `--last-failed` looks for those of all.
    without = ("-p", "no:lfplugin", "-p", "no:nfplugin")
    for name in IMPORTED:
        importlib.import_module(name)
    waiting, running = collections.deque(groups), {}
    statuses, total, failures, start = set(), collections.Counter(), [], time.monotonic()
    try:
        while waiting or running:
            while waiting and len(running) < processes:
                files = waiting.popleft()
                output = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - by `show`
                pid = os.fork()
                if pid == 0:
                    running.clear()  # of which this one is not the parent
                    os.chdir(ROOT)
                    with output:
                        for number in (1, 2):
                            os.dup2(output.fileno(), number)
                    sys.exit(pytest.main(["-q", *without, *options, *files]))
                running[pid] = (files, output)
            time.sleep(0.05)
            codes = {pid: ended(pid) for pid in running}
            for pid, code in codes.items():
                if code is not None:
                    statuses.add(code)
                    counts, lines = show(*running.pop(pid))
                    total += counts
                    failures += lines
            stops = {"-x", "--exitfirst"}.intersection(options) or USAGE_ERROR in statuses
            if stops and statuses - {0, NO_TESTS}:
                waiting.clear()
    finally:  # Ctrl-C reaches each process, which then ends by itself and says where it was
        deadline = time.monotonic() + PATIENCE_S
        for pid, (files, output) in running.items():
            while ended(pid) is None:
                if time.monotonic() > deadline:
                    os.kill(pid, signal.SIGKILL)
                time.sleep(0.05)
            show(files, output)
    if failures:  # once more, since a record of a long output may have only its last lines
        print("==> failures\n", *failures, sep="")
    counts = ", ".join(f"{total[what]} {what}" for what in COUNTED if total[what])
    print(f"==> {counts or 'no tests ran'} in {time.monotonic() - start:.0f} s")
    failed = statuses - {0, NO_TESTS}
    return min(failed or statuses, key=abs)


def main():
    """Reads the command line and runs the tests."""
    parser = argparse.ArgumentParser(prog="python -m tests", description=__doc__)
    # More processes than processors: many tests wait for others to end.
    parser.add_argument("--processes", type=int, default=4, help="at a time (4)")
    arguments, options = parser.parse_known_args()
    for word in options:
        if word.split("/")[0] == "tests" or "::" in word:
            parser.error(f"this runs all tests; for some of them: python -m pytest {word}")
    return run(groups(), arguments.processes, options)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
    sys.exit(130)
