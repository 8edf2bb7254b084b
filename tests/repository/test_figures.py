"""Every figure of a page is one of docs/figures.json, which `make figures` measures."""

import json
import re
import shutil

import pytest

from benchmarks.figures import __main__ as command
from benchmarks.figures.pages import (
    MARKED,
    PEERS,
    PEERS_TABLE,
    ROOT,
    SOURCE,
    TABLE,
    Figure,
    fill,
    load,
    pages,
    peer_of,
    save,
)

#: Pages whose measured numbers are all marked, and the units of such numbers.
FIRST = [ROOT / "README.md", ROOT / "docs/index.md", ROOT / "docs/comparison.md"]
MEASURED = re.compile(r"(?<![\d.,])(\d[\d.,]*)(<!--\w+-->)? (?:×|ms|s|MiB|steps)(?=\W)")


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_the_figures_of_a_page_are_those_of_the_file(page):
    text = page.read_text(encoding="utf-8")
    assert fill(text, *load()) == text, "python -m benchmarks.figures --fill"


def test_a_figure_that_the_file_has_not_is_an_error():
    with pytest.raises(KeyError, match="no_such_figure"):
        fill("9.6<!--no_such_figure--> ×", *load())


def test_another_value_in_the_file_changes_the_page():
    machine, figures = load()
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    figures["process_async_32"] = Figure(123.0, 120.0, 130.0, "×", "work", 32, "other")
    assert "**123<!--process_async_32--> ×**" in fill(text, machine, figures)


@pytest.mark.parametrize("page", FIRST, ids=lambda page: page.name)
def test_a_first_page_has_no_measured_number_without_a_mark(page):
    found = MEASURED.findall(page.read_text(encoding="utf-8"))
    assert [number for number, mark in found if not mark and number != "1"] == []
    assert found


def test_the_tables_of_speed_have_every_ratio():
    figures = load()[1]
    page = (ROOT / "docs/speed.md").read_text(encoding="utf-8")
    ratios = [name for name, each in figures.items() if each.unit == "×"]
    peers = [name for name in ratios if peer_of(name)]
    assert PEERS_TABLE.search(page)[0].count("\n| ") == len(peers)
    assert TABLE.search(page)[0].count("\n| ") == len(ratios) - len(peers)


def test_the_command_of_each_peer_is_a_target():
    makefile = (ROOT / "benchmarks/Makefile").read_text(encoding="utf-8")
    for peer in PEERS:
        assert re.search(rf"^bench-{peer}:.*## ", makefile, re.MULTILINE), peer


def test_the_first_page_uses_the_figures_of_a_lifetime():
    named = {found["name"] for found in MARKED.finditer(FIRST[0].read_text(encoding="utf-8"))}
    what = ("make", "step", "memory", "close")
    assert {f"{name}_{each}_512" for name in ("cartwheel", "async") for each in what} <= named


def test_a_median_lies_between_the_worst_and_the_best_round():
    for name, each in load()[1].items():
        if each.low is not None:
            assert each.low <= each.value <= each.high, name


def test_saving_what_was_loaded_changes_nothing(tmp_path):
    copy = tmp_path / "figures.json"
    save(*load(), copy)
    assert copy.read_bytes() == SOURCE.read_bytes()
    assert json.loads(copy.read_text(encoding="utf-8"))["machine"]["cores"]


def test_figures_that_are_measured_alone_leave_the_others_as_they_are():
    others = {name: one for name, one in load()[1].items() if not name.startswith("mjbatch")}
    new = {"mjbatch_arm_64": Figure(1.5, 1.4, 1.6, "×", "arm", 64, "mjbatch", "2026-01-01")}
    old = {**others, "mjbatch_gone_64": new["mjbatch_arm_64"]}
    assert command.merged(old, new, "mjbatch") == {**others, **new}


@pytest.mark.parametrize("part", ["here", "mjbatch", "lerobot"])
def test_a_part_that_is_measured_again_changes_no_order(part):
    figures = load()[1]
    found = {name: each for name, each in figures.items() if command.part_of(name) == part}
    assert list(command.merged(figures, found, part)) == list(figures)


def test_a_busy_machine_is_refused_before_anything_is_measured(monkeypatch, tmp_path):
    monkeypatch.setattr(command.os, "getloadavg", lambda: (0.51, 0, 0))
    monkeypatch.setattr(command, "measure_into", pytest.fail)
    with pytest.raises(SystemExit, match=r"its load is 0\.51, and figures need at most 0\.5"):
        command.main(["--json", str(tmp_path / "figures.json")])


def test_an_idle_machine_is_measured_into_the_file_that_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(command.os, "getloadavg", lambda: (0.5, 0, 0))
    copied = []
    monkeypatch.setattr(
        command, "measure_into", lambda file, *_: copied.append(shutil.copy(SOURCE, file))
    )
    command.main(["--only", "agents", "--json", str(tmp_path / "figures.json")])
    assert copied == [tmp_path / "figures.json"]


def test_peers_are_measured_one_by_one(monkeypatch, tmp_path):
    monkeypatch.setattr(command.os, "getloadavg", lambda: (0.5, 0, 0))
    measured = []
    monkeypatch.setattr(command, "measure_into", lambda *options: measured.append(options[-1]))
    command.main(["--only", "peers", "rlox", "--json", str(tmp_path / "figures.json")])
    assert measured == list(PEERS)
