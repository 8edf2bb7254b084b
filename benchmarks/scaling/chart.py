"""The charts of the scaling study: rows, workers, memory and start-up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cartwheel.bench.plot import COLORS, FAINT, INK

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.scaling.study import Scaling

LINE_COLORS = {
    **COLORS,
    "sb3 dummy": "#c9d7ef",
    "sb3 subproc": "#5b83c4",
    "pufferlib serial": "#efc9c9",
    "pufferlib workers": "#c0605c",
    "torchrl parallel": "#9a7b4f",
}
EXECUTORS = {"process": "cartwheel process", "native": "cartwheel native"}
"""The names of the colors."""


def scaling_chart(scaling: Scaling, title: str, subtitle: str, path: Path) -> None:
    """Writes the picture to ``path``; the ending of the name chooses the format.

    Steps per second by rows, with lines from the worst to the best round; by workers, with a dashed
    line for linear speed-up; memory a row; start-up by start method.
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
        color = LINE_COLORS[name]
        axes.plot(sizes, [race.rate(name) for race in races], "o-", color=color, label=name, ms=4)
        lowest = [min(race.rates[name]) for race in races]
        axes.vlines(sizes, lowest, [max(race.rates[name]) for race in races], colors=color)
    _powers(axes.xaxis, sorted({race.num_envs for race in scaling.rows}))
    axes.set_yscale("log")
    _head(axes, "Steps per second by rows", "environments", "environment steps per second")


def _workers(axes: Any, scaling: Scaling) -> None:
    for executor, race in scaling.workers.items():
        counts = [int(name) for name in race.rates]
        rates = [race.rate(name) for name in race.rates]
        name = EXECUTORS.get(executor, executor)
        label = f"{name}, {race.num_envs:,} environments"
        axes.plot(counts, rates, "o-", color=LINE_COLORS[name], label=label, ms=4)
        ideal = [rates[0] * count / counts[0] for count in counts]
        axes.plot(counts, ideal, "--", color=LINE_COLORS[name], lw=0.8)
    axes.plot([], [], "--", color=FAINT, lw=0.8, label="as many times as workers")
    counts = sorted({int(name) for race in scaling.workers.values() for name in race.rates})
    _powers(axes.xaxis, counts)
    axes.set_yscale("log")
    title = "Steps per second by workers"
    _head(axes, title, "workers: processes or threads", "environment steps per second")


def _memory(axes: Any, scaling: Scaling) -> None:
    names = list(scaling.row_bytes)
    sizes = [max(scaling.row_bytes[name] / 1e3, 1e-3) for name in names]
    bars = axes.barh(names, sizes, color=[LINE_COLORS[name] for name in names])
    axes.bar_label(bars, [f" {size:,.2f} kB" for size in sizes], fontsize=8, color=INK)
    axes.set_xscale("log")
    axes.margins(x=0.25)
    _head(axes, "Memory a row", "kB, logarithmic")


def _starts(axes: Any, scaling: Scaling) -> None:
    starts = list(reversed(scaling.starts))
    names = [f"{start.start_method}, {start.num_envs} × {start.contender}" for start in starts]
    seconds = [start.footprint.start_s for start in starts]
    bars = axes.barh(names, seconds, color=[LINE_COLORS[start.contender] for start in starts])
    axes.bar_label(bars, [f" {number:.2f} s" for number in seconds], fontsize=8, color=INK)
    axes.set_xscale("log")
    axes.margins(x=0.25)
    _head(axes, "Start-up: constructor and first reset", "seconds, logarithmic")
