"""Outcomes of races as charts: bars, and the four charts of ``bench --scaling``."""

from __future__ import annotations

import importlib.util
import math
from typing import TYPE_CHECKING, Any

from cartwheel.bench.contenders import ASYNC, CEILING, NATIVE_CEILING, SYNC

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from cartwheel.bench.race import Measurement
    from cartwheel.bench.scaling import Scaling

COLOURS = {
    SYNC.name: "#c3c7cc",
    ASYNC.name: "#7d848c",
    "cartwheel inline": "#a9d8cd",
    "cartwheel process": "#14606b",
    "cartwheel thread": "#55a6a8",
    "cartwheel native": "#e09f3e",
    "gymnasium native": "#ecd8b4",
    "envpool": "#8f7aa8",
    "sb3 dummy": "#c9d7ef",
    "sb3 subproc": "#5b83c4",
    "pufferlib serial": "#efc9c9",
    "pufferlib workers": "#c0605c",
    "torchrl parallel": "#9a7b4f",
}
INK, FAINT = "#2b2f33", "#5b6168"
CEILINGS = {
    CEILING.name: ("#b5482f", "ceiling: bare loops on all cores"),
    NATIVE_CEILING: ("#7d4b12", "native ceiling: plain loops in Rust on all cores"),
}
"""Drawn as lines across a group: colour and label."""
LINEAR_UP_TO = 100
"""Times that the fastest may be the slowest before the axis is logarithmic."""
GROUP_WIDTH = 0.84  # of the distance between two groups; the rest is the gap


def can_plot() -> bool:
    """Whether matplotlib, which only charts need, is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def formats() -> list[str]:
    """The endings that the file of a chart may have; needs matplotlib."""
    from matplotlib.figure import Figure  # only here: it takes a second to load

    return sorted(Figure().canvas.get_supported_filetypes())


def plot(measurements: Sequence[Measurement], title: str, subtitle: str, path: Path) -> None:
    """Writes the chart to ``path``; the ending of the name chooses the format.

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
            colour, label = CEILINGS[ceiling]
            axes.hlines(
                measurement.rate(ceiling),
                group - GROUP_WIDTH / 2,
                group + GROUP_WIDTH / 2,
                colors=colour,
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
    """Makes room for ``rates``: from 0, or by powers of ten if they are far apart."""
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
            color=COLOURS.get(name, COLOURS["gymnasium native"]),  # another package's vector env
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
    """A ratio in as many digits as it deserves."""
    return f"{ratio:.0f}×" if ratio >= 10 else f"{ratio:.1f}×"


EXECUTORS = {"process": "cartwheel process", "native": "cartwheel native"}
"""The names of the colours."""


def scaling_chart(scaling: Scaling, title: str, subtitle: str, path: Path) -> None:
    """Writes the picture to ``path``; the ending of the name chooses the format.

    Steps per second by the number of rows, with lines from the worst to the best round; by the
    number of workers, beside as many times the first rate; memory a row; start-up by start method.
    """
    from matplotlib.figure import Figure  # only here: it takes a second to load

    figure = Figure(figsize=(11.0, 9.0), layout="constrained")
    (rows, workers), (memory, starts) = figure.subplots(2, 2)
    _rows(rows, scaling)
    _workers(workers, scaling)
    _memory(memory, scaling)
    _starts(starts, scaling)
    for axes in (rows, workers, memory, starts):
        axes.tick_params(which="both", length=0, colors=INK, labelsize=8)
        axes.grid(color="#e4e6e9", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right", "left"]].set_visible(False)
        if axes.get_legend_handles_labels()[1]:
            axes.legend(  # below: lines may be anywhere above
                loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, frameon=False, fontsize=7
            )
    figure.suptitle(f"{title}\n", x=0.01, ha="left", fontsize=12, fontweight="bold", color=INK)
    figure.text(0.011, 0.955, subtitle, fontsize=7.5, color=FAINT)
    figure.savefig(path, dpi=150)


def _head(axes: Any, text: str, x: str = "", y: str = "") -> None:
    axes.set_title(text, loc="left", fontsize=10, color=INK)
    axes.set_xlabel(x, color=FAINT, fontsize=8)
    axes.set_ylabel(y, color=FAINT, fontsize=8)


def _powers(axis: Any, ticks: list[int]) -> None:
    """Powers of two, with these numbers."""
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    axis.set_ticks(ticks, [f"{tick:,}" for tick in ticks])
    axis.set_ticks([], minor=True)


def _rows(axes: Any, scaling: Scaling) -> None:
    for name in dict.fromkeys(name for race in scaling.rows for name in race.rates):
        races = [race for race in scaling.rows if name in race.rates]
        sizes = [race.num_envs for race in races]
        colour = COLOURS[name]
        axes.plot(sizes, [race.rate(name) for race in races], "o-", color=colour, label=name, ms=4)
        lowest = [min(race.rates[name]) for race in races]
        axes.vlines(sizes, lowest, [max(race.rates[name]) for race in races], colors=colour)
    _powers(axes.xaxis, sorted({race.num_envs for race in scaling.rows}))
    axes.set_yscale("log")
    _head(axes, "Steps per second by rows", "environments", "environment steps per second")


def _workers(axes: Any, scaling: Scaling) -> None:
    for executor, race in scaling.workers.items():
        counts = [int(name) for name in race.rates]
        rates = [race.rate(name) for name in race.rates]
        name = EXECUTORS.get(executor, executor)
        label = f"{name}, {race.num_envs:,} environments"
        axes.plot(counts, rates, "o-", color=COLOURS[name], label=label, ms=4)
        ideal = [rates[0] * count / counts[0] for count in counts]
        axes.plot(counts, ideal, "--", color=COLOURS[name], lw=0.8)
    axes.plot([], [], "--", color=FAINT, lw=0.8, label="as many times as workers")
    counts = sorted({int(name) for race in scaling.workers.values() for name in race.rates})
    _powers(axes.xaxis, counts)
    axes.set_yscale("log")
    title = "Steps per second by workers"
    _head(axes, title, "workers: processes or threads", "environment steps per second")


def _memory(axes: Any, scaling: Scaling) -> None:
    names = list(scaling.row_bytes)
    sizes = [max(scaling.row_bytes[name] / 1e3, 1e-3) for name in names]
    bars = axes.barh(names, sizes, color=[COLOURS[name] for name in names])
    axes.bar_label(bars, [f" {size:,.2f} kB" for size in sizes], fontsize=8, color=INK)
    axes.set_xscale("log")
    axes.margins(x=0.25)
    _head(axes, "Memory a row", "kB, logarithmic")


def _starts(axes: Any, scaling: Scaling) -> None:
    starts = list(reversed(scaling.starts))
    names = [f"{start.start_method}, {start.num_envs} × {start.contender}" for start in starts]
    seconds = [start.footprint.start_s for start in starts]
    bars = axes.barh(names, seconds, color=[COLOURS[start.contender] for start in starts])
    axes.bar_label(bars, [f" {number:.2f} s" for number in seconds], fontsize=8, color=INK)
    axes.set_xscale("log")
    axes.margins(x=0.25)
    _head(axes, "Start-up: constructor and first reset", "seconds, logarithmic")
