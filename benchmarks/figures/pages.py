"""The figures of the pages: one file has them, and every page repeats it.

A comment behind a number names its figure, ``13<!--process_async_8-->``. Two tables of
``docs/speed.md``, each between two comments, have all ratios: those against other packages in
environments of their own, and the others. ``docs/figures.json`` is the one source of all, and of
the chart of the first page.
"""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "docs/figures.json"
MARKED = re.compile(r"(?P<text>\d[\d.,]*)<!--(?P<name>[a-z]\w*)-->")
TABLE = re.compile(r"(?<=<!-- figures: all ratios -->\n).*?(?=<!-- figures: end -->)", re.DOTALL)
PEERS_TABLE = re.compile(r"(?<=<!-- figures: peers -->\n).*?(?=<!-- figures: end -->)", re.DOTALL)
HERE, AGENTS = "here", "agents"
"""The figures of this environment, and those of environments of several agents."""
PEERS = ("mjbatch", "rlox", "operant", "envpool", "torchrl", "pufferlib", "lerobot")
"""By the first part of their names, figures that ``make bench-mjbatch`` and so on measure."""


@dataclasses.dataclass(frozen=True)
class Figure:
    """One measured number.

    Attributes:
        value: The median of the rounds.
        low: That of the worst round; ``None`` where it was not recorded.
        high: That of the best round; ``None`` where it was not recorded.
        unit: ``"×"`` for a ratio, ``"s"``, ``"ms"`` or ``"MiB"``.
        work: What is stepped, and how.
        num_envs: How many environments.
        against: The other contender of a ratio; otherwise empty.
        measured: The date, the processor and the load of a figure that is measured apart from the
            others; empty for those that the machine of the file is about.
    """

    value: float
    low: float | None
    high: float | None
    unit: str
    work: str
    num_envs: int
    against: str
    measured: str = ""

    @property
    def text(self) -> str:
        """The value as pages have it."""
        return self.format(self.value)

    @property
    def spread(self) -> str:
        """The worst and the best round."""
        if self.low is None or self.high is None:
            return "–"
        return f"{self.format(self.low)}–{self.format(self.high)}"

    def format(self, number: float) -> str:
        """A number of this figure, with as many places as it deserves."""
        if self.unit == "s" or (self.unit == "×" and self.value < 1):
            return f"{number:.2f}" if self.value >= 0.01 else f"{number:.3f}"
        return f"{number:,.1f}" if self.value < 10 else f"{number:,.0f}"


def load(source: Path = SOURCE) -> tuple[dict[str, Any], dict[str, Figure]]:
    """The machine, and the figures by name."""
    content = json.loads(source.read_text(encoding="utf-8"))
    figures = {name: Figure(**fields) for name, fields in content["figures"].items()}
    return content["machine"], figures


def save(machine: Mapping[str, Any], figures: Mapping[str, Figure], source: Path = SOURCE) -> None:
    """Writes the file, a line for each figure."""
    lines = [
        f"    {json.dumps(name)}: {json.dumps(written(each), ensure_ascii=False)}"
        for name, each in figures.items()
    ]
    facts = json.dumps(machine, ensure_ascii=False)
    body = ",\n".join(lines)
    source.write_text(
        f'{{\n  "machine": {facts},\n  "figures": {{\n{body}\n  }}\n}}\n', encoding="utf-8"
    )


def written(figure: Figure) -> dict[str, Any]:
    """The fields of a figure that the file has."""
    fields = dataclasses.asdict(figure)
    if not figure.measured:
        del fields["measured"]
    return fields


def peer_of(name: str) -> str | None:
    """The one of ``PEERS`` that a figure is about; ``None`` for the others."""
    peer = name.partition("_")[0]
    return peer if peer in PEERS else None


def table(machine: Mapping[str, Any], figures: Iterable[Figure]) -> str:
    """Ratios, a line for each, and the machine, in Markdown."""
    lines = ["| work | environments | ratio | rounds | against |", "|---|--:|--:|--:|---|"]
    lines += [
        f"| {each.work} | {each.num_envs:,} | {each.text} | {each.spread} | {each.against} |"
        for each in figures
        if each.unit == "×"
    ]
    facts = ", ".join(f"{key} {value}" for key, value in machine.items())
    return "\n".join([*lines, "", f"Measured with: {facts}.", ""])


def peers_table(figures: Mapping[str, Figure]) -> str:
    """Ratios against other packages, a line for each, and when they were measured."""
    lines = [
        "| package | work | environments | ratio | rounds | command |",
        "|---|---|--:|--:|--:|---|",
    ]
    dates: dict[str, str] = {}
    for peer in PEERS:
        for name, each in figures.items():
            if peer_of(name) == peer:
                numbers = f"{each.num_envs:,} | {each.text} | {each.spread}"
                lines.append(f"| {each.against} | {each.work} | {numbers} | `make bench-{peer}` |")
                dates[peer] = each.measured
    said = "; ".join(f"{peer} {measured}" for peer, measured in dates.items())
    return "\n".join([*lines, "", f"Measured: {said}.", ""])


def fill(text: str, machine: Mapping[str, Any], figures: Mapping[str, Figure]) -> str:
    """The text of a page with every marked number, and the tables, as they are in the figures.

    Raises:
        KeyError: If the page names a figure that there is not.
    """

    def number(found: re.Match[str]) -> str:
        return f"{figures[found['name']].text}<!--{found['name']}-->"

    others = [each for name, each in figures.items() if peer_of(name) is None]
    text = TABLE.sub(lambda _: table(machine, others), MARKED.sub(number, text))
    return PEERS_TABLE.sub(lambda _: peers_table(figures), text)


def pages() -> list[Path]:
    """Every page that may have figures."""
    first = [ROOT / "README.md", ROOT / "release/description.md"]
    return [*first, *sorted((ROOT / "docs").glob("*.md"))]
