"""The outcome of races as a chart: a group of bars for each number of environments."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from cartwheel.bench.contenders import ASYNC, CEILING, SYNC

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from cartwheel.bench.measure import Measurement

COLOURS = {
    SYNC.name: "#c3c7cc",
    ASYNC.name: "#8a9099",
    "cartwheel inline": "#9fd3c7",
    "cartwheel thread": "#4fa3a5",
    "cartwheel process": "#14606b",
}
GROUP_WIDTH = 0.84


def can_plot() -> bool:
    """Whether matplotlib, which only charts need, is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def plot(measurements: Sequence[Measurement], title: str, subtitle: str, path: Path) -> None:
    """Writes the chart to ``path``; the ending of the name chooses the format.

    Bars show environment steps per second, with a mark from the worst to the best round; a label
    gives the ratio to Gymnasium's AsyncVectorEnv; the dashed line is the ceiling.
    """
    from matplotlib.figure import Figure  # only here: it takes a second to load
    from matplotlib.ticker import FuncFormatter

    names = [name for name in measurements[0].rates if name != CEILING]
    width = GROUP_WIDTH / len(names)
    figure = Figure(figsize=(max(7.0, 2.0 + 0.75 * len(names) * len(measurements)), 5.2))
    axes = figure.add_subplot()
    for index, name in enumerate(names):
        offset = (index + 0.5) * width - GROUP_WIDTH / 2
        places = [group + offset for group in range(len(measurements))]
        rates = [measurement.rate(name) for measurement in measurements]
        lows = [rate - min(m.rates[name]) for rate, m in zip(rates, measurements, strict=True)]
        highs = [max(m.rates[name]) - rate for rate, m in zip(rates, measurements, strict=True)]
        axes.bar(
            places,
            rates,
            width=0.92 * width,
            color=COLOURS.get(name),
            label=name,
            yerr=[lows, highs],
            error_kw={"elinewidth": 0.8, "ecolor": "#33383d"},
        )
        if name != ASYNC.name:
            for place, rate, high, measurement in zip(
                places, rates, highs, measurements, strict=True
            ):
                axes.annotate(
                    _times(measurement.ratio(name, ASYNC.name)),
                    (place, rate + high),
                    xytext=(0, 3),
                    textcoords="offset points",
                    ha="center",
                    fontsize=8,
                )
    for group, measurement in enumerate(measurements):
        axes.hlines(
            measurement.rate(CEILING),
            group - GROUP_WIDTH / 2,
            group + GROUP_WIDTH / 2,
            colors="#b5482f",
            linestyles="dashed",
            label="ceiling: bare loops on all cores" if group == 0 else None,
        )
    axes.set_xticks(range(len(measurements)), [str(m.num_envs) for m in measurements])
    axes.set_xlabel("number of environments")
    axes.set_ylabel("environment steps per second")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.set_ylim(0, 1.12 * max(max(max(r) for r in m.rates.values()) for m in measurements))
    axes.grid(axis="y", color="#e4e6e9", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=9)
    figure.suptitle(title, x=0.02, ha="left", fontweight="bold")
    axes.set_title(subtitle, loc="left", fontsize=7.5, color="#5b6168")
    figure.savefig(path, dpi=150, bbox_inches="tight")


def _times(ratio: float) -> str:
    """A ratio in as many digits as it deserves."""
    return f"{ratio:.0f}×" if ratio >= 10 else f"{ratio:.1f}×"
