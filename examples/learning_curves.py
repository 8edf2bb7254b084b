"""The learning curves of PPO and DQN on CartPole, in each autoreset mode, as one picture.

Runs ``examples/ppo.py`` and ``examples/dqn.py`` unchanged, once for each mode and seed, and draws a
line for each run: the mean return of the last 100 episodes, exploration included. The line ends
with a dot if the environment is solved, which means that the evaluation of the best actions reached
475.

Run it from the root of the repository with ``python -m examples.learning_curves``; it needs torch
and matplotlib. With ``--output docs/learning_curves.png`` it draws the picture of
``docs/rollouts.md``.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from matplotlib.figure import Figure

from examples import dqn, ppo

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Colour, width and style of a mode's lines. The lines of the last two modes coincide, since both
#: learn the same with the same seed.
LINES = {
    "next_step": ("#1b9aaa", 1.3, "-"),
    "same_step": ("#e09f3e", 2.6, "-"),
    "disabled": ("#b5482f", 1.1, "--"),
}
INK = "#6e7681"  # readable on a white page and on a black one


def plot(runs: Mapping[str, Sequence[ppo.Result | dqn.Result]], path: Path) -> None:
    """Writes the learning curves, a panel for each algorithm; the background is transparent."""
    figure = Figure(figsize=(8.5, 3.6), layout="constrained")
    panels = figure.subplots(1, len(runs), sharey=True, squeeze=False)[0]
    for axes, (algorithm, results) in zip(panels, runs.items(), strict=True):
        _panel(axes, results)
        axes.set_title(algorithm, loc="left", fontweight="bold", color=INK)
        axes.set_xlabel("environment steps, thousands", color=INK)
    panels[0].set_ylabel("return, last 100 episodes", color=INK)
    panels[-1].legend(loc="lower right", frameon=False, labelcolor=INK)
    figure.savefig(path, dpi=150, transparent=True)


def _panel(axes: Any, results: Sequence[ppo.Result | dqn.Result]) -> None:
    drawn = set()
    for result in results:
        steps, returns = zip(*result.curve, strict=True)
        thousands, (colour, width, style) = [step / 1000 for step in steps], LINES[result.mode]
        label = "_nolegend_" if result.mode in drawn else result.mode
        axes.plot(thousands, returns, style, color=colour, linewidth=width, label=label)
        if result.evaluation >= ppo.SOLVED:
            axes.plot(thousands[-1], returns[-1], "o", color=colour, markersize=3 * width**0.5)
        drawn.add(result.mode)
    axes.axhline(ppo.SOLVED, color=INK, linestyle="dotted", linewidth=1.2, label="solved: 475")
    axes.set_ylim(0, 520)
    axes.set_xlim(left=0)
    axes.tick_params(length=0, colors=INK)
    axes.grid(axis="y", color=INK, alpha=0.25, linewidth=0.8)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(INK)


def main(arguments: Sequence[str] | None = None) -> None:
    """Trains, and saves the picture."""
    parser = argparse.ArgumentParser(description="Learning curves of PPO and DQN on CartPole.")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--output", type=Path, default=Path("learning_curves.png"))
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)  # the networks are too small for two

    runs: dict[str, list[ppo.Result | dqn.Result]] = {"PPO": [], "DQN": []}
    for seed in options.seeds:
        for mode in ppo.MODES:
            print(f"\nseed {seed}, PPO")
            runs["PPO"].append(ppo.train(mode, ppo.Settings(seed=seed)))
            print(f"\nseed {seed}, DQN")
            runs["DQN"].append(dqn.train(mode, dqn.Settings(seed=seed)))
    print(f"\n{'':<5}{'mode':<11}{'env steps':>10}{'seconds':>9}{'evaluation':>12}")
    for algorithm, results in runs.items():
        for result in results:
            print(
                f"{algorithm:<5}{result.mode:<11}{result.steps:>10,}{result.seconds:>9.1f}"
                f"{result.evaluation:>12.1f}"
            )
    plot(runs, options.output)


if __name__ == "__main__":
    main()
