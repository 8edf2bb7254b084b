"""The charts: one for each task, with a bar for each trainer and vector environment."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from benchmarks.time_to_solve.tables import median
from benchmarks.time_to_solve.tasks import TASKS, TRAINERS, VECTORS

if TYPE_CHECKING:
    from pathlib import Path

INK = "#6e7681"  # readable on a white page and on a black one
ENVIRONMENTS, LEARNER, OWN = "#e09f3e", "#9aa5b1", "#1b9aaa"


def draw(results: list[dict[str, Any]], folder: Path) -> list[Path]:
    """Writes a chart for each task that has results.

    A bar is the median of the seeds, and each seed a dot, hollow if it has not solved the task.
    """
    paths = []
    for name in TASKS:
        of = [result for result in results if result["task"] == name]
        if not of:
            continue
        bars = len({(result["trainer"], result["vector"]) for result in of})
        figure = Figure(figsize=(5.2, 1.1 + 0.2 * bars), layout="constrained")
        axes = figure.subplots()
        _panel(axes, name, of)
        handles, labels = axes.get_legend_handles_labels()
        figure.legend(
            handles, labels, loc="outside lower center", ncols=3, frameon=False, labelcolor=INK
        )
        path = folder / f"time-to-solve-{name.lower()}.png"
        figure.savefig(path, dpi=150, transparent=True)
        paths.append(path)
    return paths


def _panel(axes: Any, name: str, results: list[dict[str, Any]]) -> None:
    place, ticks = 0.0, []
    drawn: set[str] = set()
    for trainer, vector in itertools.product(TRAINERS, VECTORS):
        of = [r for r in results if r["trainer"] == trainer and r["vector"] == vector]
        if vector == VECTORS[0]:
            place += 0.7
        if not of:
            continue
        middle = median(of)
        seconds, environments = middle["seconds"], middle["environment_seconds"]
        own = vector == "cartwheel"
        label = "environments, cartwheel" if own else "environments"
        axes.barh(
            place, environments, color=OWN if own else ENVIRONMENTS, label=_once(label, drawn)
        )
        axes.barh(
            place,
            seconds - environments,
            left=environments,
            color=LEARNER,
            label=_once("learner", drawn),
        )
        for result in of:
            face = INK if result["solved"] else "none"
            axes.plot(result["seconds"], place, "o", color=INK, markersize=4, markerfacecolor=face)
        ticks.append((place, f"{trainer}, {vector}"))
        place += 1
    axes.set_yticks([at for at, _ in ticks], [text for _, text in ticks])
    axes.invert_yaxis()
    task = TASKS[name]
    axes.set_title(
        f"{name}: seconds to a return of {task.threshold:g}",
        loc="left",
        fontweight="bold",
        color=INK,
        fontsize=10,
    )
    axes.tick_params(length=0, colors=INK, labelsize=8)
    axes.grid(axis="x", color=INK, alpha=0.25, linewidth=0.8)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(INK)


def _once(label: str, drawn: set[str]) -> str:
    """The label, or none if it is in the legend already."""
    if label in drawn:
        return "_nolegend_"
    drawn.add(label)
    return label
