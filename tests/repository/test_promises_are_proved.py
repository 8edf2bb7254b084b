"""The tests and targets that `docs/faults.md` names as proof exist."""

import re
from pathlib import Path

from tools.fault_table import BEGIN, END, HEADER, pairs

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/faults.md").read_text()


def test_every_named_proof_exists():
    named = re.findall(r"`((?:rust|tests|benchmarks)/[^`]+\.(?:rs|py))`", TEXT)
    assert len(named) > 30
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_every_named_target_exists():
    targets = set(re.findall(r"`make ([a-z-]+)`", TEXT))
    makefiles = [ROOT / "Makefile", *ROOT.glob("*/Makefile")]
    made = re.findall(r"^([a-z-]+):", "".join(path.read_text() for path in makefiles), re.MULTILINE)
    assert targets <= set(made)


def test_the_table_has_every_fault_in_every_executor_in_which_it_runs():
    table = TEXT.partition(BEGIN)[2].partition(END)[0]
    lines = [line for line in table.splitlines() if line.startswith("| ")]
    header, *rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    assert tuple(header) == HEADER
    found, fault = [], None
    for row in rows:
        assert len(row) == len(HEADER)
        fault = row[0] or fault
        found.append((fault, row[1]))
    assert found == list(pairs())
