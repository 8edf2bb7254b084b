"""Results of races as bar charts."""

from __future__ import annotations

import importlib.util
import math
from typing import TYPE_CHECKING, Any

from cartwheel.bench.contenders import ASYNC, CEILING, NATIVE_CEILING, SYNC

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from cartwheel.bench.race import Measurement

COLORS = {
    SYNC.name: "#c3c7cc",
    ASYNC.name: "#7d848c",
    "cartwheel inline": "#a9d8cd",
    "cartwheel process": "#14606b",
    "cartwheel thread": "#55a6a8",
    "cartwheel native": "#e09f3e",
    "gymnasium native": "#ecd8b4",
    "envpool": "#8f7aa8",
}
INK, FAINT = "#2b2f33", "#5b6168"
CEILINGS = {
    CEILING.name: ("#b5482f", "ceiling: bare loops on all cores"),
    NATIVE_CEILING: ("#7d4b12", "native ceiling: plain loops in Rust on all cores"),
}
"""Drawn as lines across a group: color and label."""
LINEAR_UP_TO = 100
"""The maximum ratio of rates on a linear axis."""
GROUP_WIDTH = 0.84  # of the distance between two groups; the rest is the gap


def can_plot() -> bool:
    """Whether matplotlib, which only charts need, is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def formats() -> list[str]:
    """Returns the possible file extensions of a chart; needs matplotlib."""
    from matplotlib.figure import Figure  # only here: it takes a second to load

    return sorted(Figure().canvas.get_supported_filetypes())


def plot(measurements: Sequence[Measurement], title: str, subtitle: str, path: Path) -> None:
    """Writes the chart to ``path``; the extension chooses the format.

    Bars show environment steps per second, with a line from the worst to the best round; a label
    gives the ratio to Gymnasium's AsyncVectorEnv; dashed lines across a group are its ceilings.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter

    names = [name for name in measurements[0].rates if name not in CEILINGS]
    num_bars = len(names) * len(measurements)
    figure = Figure(figsize=(max(8.0, 1.5 + 0.62 * num_bars), 5.0), layout="constrained")
    axes = figure.add_subplot()
    for index, name in enumerate(names):
        _bars(axes, measurements, name, index, GROUP_WIDTH / len(names))
    for group, measurement in enumerate(measurements):
        for ceiling in CEILINGS.keys() & measurement.rates.keys():
            color, label = CEILINGS[ceiling]
            axes.hlines(
                measurement.rate(ceiling),
                group - GROUP_WIDTH / 2,
                group + GROUP_WIDTH / 2,
                colors=color,
                linestyles="dashed",
                label=label if group == 0 else "_nolegend_",
            )
    axes.set_xticks(range(len(measurements)), [_envs(m.num_envs) for m in measurements])
    axes.set_xlim(-0.5, len(measurements) - 0.5)
    _scale(axes, [rate for m in measurements for rounds in m.rates.values() for rate in rounds])
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.tick_params(which="both", length=0, colors=INK)
    axes.grid(axis="y", color="#e4e6e9", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    axes.set_title(title, loc="left", fontsize=12, fontweight="bold", color=INK, pad=26)
    axes.text(0, 1.035, subtitle, transform=axes.transAxes, fontsize=7.5, color=FAINT)
    figure.savefig(path, dpi=150)


def _scale(axes: Any, rates: Sequence[float]) -> None:
    """Sets the axis for ``rates``: from 0, or logarithmic if they are far apart."""
    highest, lowest = max(rates), min(rates)
    label = "environment steps per second"
    if highest <= LINEAR_UP_TO * lowest:
        axes.set_ylim(0, 1.1 * highest)
    else:
        axes.set_yscale("log")
        axes.set_ylim(10 ** math.floor(math.log10(lowest)), 2 * highest)
        label += ", logarithmic"
    axes.set_ylabel(label, color=FAINT)


def _bars(
    axes: Any, measurements: Sequence[Measurement], name: str, index: int, width: float
) -> None:
    """Draws contender ``name``: the bar number ``index``, ``width`` wide, of every group."""
    for group, measurement in enumerate(measurements):
        place = group + (index + 0.5) * width - GROUP_WIDTH / 2
        rate, rounds = measurement.rate(name), measurement.rates[name]
        axes.bar(
            place,
            rate,
            width=0.9 * width,
            color=COLORS.get(name, COLORS["gymnasium native"]),  # another package's vector env
            label=name if group == 0 else "_nolegend_",
        )
        axes.vlines(place, min(rounds), max(rounds), colors=INK, linewidth=0.8)
        axes.annotate(
            _times(measurement.ratio(name, ASYNC.name)),
            (place, max(rounds)),
            xytext=(0, 3),
            textcoords="offset points",
            ha="center",
            fontsize=8,
            color=INK,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6},  # above the ceiling
        )


def _envs(num_envs: int) -> str:
    return f"{num_envs} environment{'s' if num_envs > 1 else ''}"


def _times(ratio: float) -> str:
    """Returns a ratio as text, with one decimal below 10."""
    return f"{ratio:.0f}×" if ratio >= 10 else f"{ratio:.1f}×"
