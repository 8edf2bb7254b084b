"""Measures figures of the pages on this machine, and writes them: `make figures`.

Figures against other packages, which need environments of their own, are `make figures-peers`.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from benchmarks.figures.pages import (
    AGENTS,
    HERE,
    PEERS,
    ROOT,
    SOURCE,
    fill,
    load,
    pages,
    peer_of,
    save,
)
from cartwheel.bench.command import positive

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.figures.pages import Figure

Figures: TypeAlias = "dict[str, Figure]"
MAX_LOAD = 0.5
"""Of the last minute: a machine that does anything else measures that, too."""


def main(arguments: list[str]) -> None:
    """Measures, writes the figures, fills the pages and draws the chart."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.figures", description=__doc__)
    parser.add_argument("--fill", action="store_true", help="only fill the pages, from the file")
    parser.add_argument("--unquiet", action="store_true", help="measure in spite of other load")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write there, and fill nothing")
    parser.add_argument("--seconds", type=positive(float), default=2.0, help="for each contender")
    parser.add_argument(
        "--only",
        nargs="+",
        choices=[HERE, AGENTS, "peers", *PEERS],
        default=[HERE, AGENTS],
        help="measure these (here agents), and keep the other figures",
    )
    parser.add_argument("--rounds", type=positive(int), default=5, help="slices of these seconds")
    options = parser.parse_args(arguments)
    if not options.fill:
        load_1min = os.getloadavg()[0]
        if load_1min > MAX_LOAD and not options.unquiet:
            sys.exit(
                f"this machine is not idle: its load is {load_1min:.2f}, and figures need at most "
                f"{MAX_LOAD}. Wait until nothing else runs, or try with --unquiet --json FILE"
            )
        parts = [part for name in options.only for part in (PEERS if name == "peers" else [name])]
        for part in dict.fromkeys(parts):  # written one by one: what is measured is not lost
            measure_into(options.json or SOURCE, options.seconds, options.rounds, part)
    if options.json is None:
        source = load()
        for page in pages():
            page.write_text(fill(page.read_text(encoding="utf-8"), *source), encoding="utf-8")
        subprocess.run([sys.executable, str(ROOT / "docs/pictures/draw.py")], check=True)


def measure_into(source: Path, seconds: float, rounds: int, part: str) -> None:
    """Measures a part, and writes the file with it and all others."""
    # Only here: to fill pages needs neither environments nor EnvPool.
    from benchmarks.figures.measures import measure
    from cartwheel.bench.envpool import load_package
    from cartwheel.bench.machine import machine

    facts, others = load(source if source.exists() else SOURCE)
    if part == HERE:
        facts = {
            "date": dt.datetime.now(dt.timezone.utc).date().isoformat(),
            **machine(),
            "envpool": load_package("envpool").__version__,
        }
    figures = measure(
        [part], seconds=seconds, rounds=rounds, progress=lambda line: print(line, flush=True)
    )
    save(facts, merged(others, figures, part), source)
    print(f"==> {source}")


def merged(others: Mapping[str, Figure], found: Mapping[str, Figure], part: str) -> Figures:
    """All figures, with those of the part replaced: ratios, then peers, then lifetimes."""
    kept = {name: each for name, each in others.items() if part_of(name) != part}
    both = {**found, **kept} if part == HERE else {**kept, **found}

    def place(name: str) -> int:
        if both[name].unit != "×":
            return len(PEERS) + 1
        peer = peer_of(name)
        return 0 if peer is None else 1 + PEERS.index(peer)

    return {name: both[name] for name in sorted(both, key=place)}


def part_of(name: str) -> str:
    """The part that a figure is measured with."""
    return peer_of(name) or (AGENTS if name.startswith(f"{AGENTS}_") else HERE)


if __name__ == "__main__":
    main(sys.argv[1:])
