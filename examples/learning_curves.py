"""The learning curves of the training examples on CartPole, as one picture.

Runs ``examples/ppo.py`` and ``examples/dqn.py`` unchanged, once for each autoreset mode and seed,
and draws a line for each run: the mean return of the last 100 episodes, exploration included. The
line ends with a dot if the environment is solved, which means that the evaluation of the best
actions reached 475.

With ``--orders`` it compares orders of the collector instead, in the mode ``same_step``, and runs
``examples/appo.py`` too: PPO, APPO and DQN in lockstep, where collecting and learning take turns,
and in the order ``"free"``, with APPO's collector in the background and half of the rows in DQN's
rollouts. PPO and DQN have fewer steps then, so that all takes some minutes.

Run it from the root of the repository with ``python -m examples.learning_curves``; it needs torch
and matplotlib. With ``--output docs/learning_curves.png`` it draws the picture of
``docs/rollouts.md``, and with ``--orders --output docs/collecting_curves.png`` that of
``docs/collecting.md``.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from matplotlib.figure import Figure

from examples import appo, dqn, ppo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cartwheel._internal.literals import CollectOrder

Result: TypeAlias = "ppo.Result | appo.Result | dqn.Result"
#: Algorithm, mode or order, and result of each run.
Runs: TypeAlias = list[tuple[str, str, Result]]

#: Color, width and style of the lines of a mode or an order. The lines of ``same_step`` and
#: ``disabled`` coincide, since both learn the same with the same seed.
LINES = {
    "next_step": ("#1b9aaa", 1.3, "-"),
    "same_step": ("#e09f3e", 2.6, "-"),
    "disabled": ("#b5482f", 1.1, "--"),
    "lockstep": ("#1b9aaa", 1.3, "-"),
    "free": ("#e09f3e", 1.3, "-"),
}
#: The most steps of a run of PPO and of DQN, in the comparison of orders.
PPO_STEPS, DQN_STEPS = 100_000, 25_000
INK = "#6e7681"  # readable on a white page and on a black one


def in_modes(seeds: Sequence[int]) -> Runs:
    """Trains in each autoreset mode."""
    runs: Runs = []
    for seed in seeds:
        for mode in ppo.MODES:
            print(f"\nseed {seed}, PPO")
            runs.append(("PPO", mode, ppo.train(mode, ppo.Settings(seed=seed))))
            print(f"\nseed {seed}, DQN")
            runs.append(("DQN", mode, dqn.train(mode, dqn.Settings(seed=seed))))
    return runs


def in_orders(seeds: Sequence[int]) -> Runs:
    """Trains in lockstep and in the order ``"free"``."""
    runs: Runs = []
    orders: tuple[CollectOrder, ...] = ("lockstep", "free")
    for seed in seeds:
        for order in orders:
            print(f"\nseed {seed}, PPO, {order}")
            settings = ppo.Settings(seed=seed, order=order, total_steps=PPO_STEPS)
            runs.append(("PPO", order, ppo.train("same_step", settings)))
            print(f"\nseed {seed}, APPO, {order}")
            appo_settings = appo.Settings(seed=seed, in_turn=order == "lockstep")
            runs.append(("APPO", order, appo.train("same_step", appo_settings)))
            print(f"\nseed {seed}, DQN, {order}")
            replay = dqn.Settings(seed=seed, order=order, total_steps=DQN_STEPS)
            runs.append(("DQN", order, dqn.train("same_step", replay)))
    return runs


def plot(runs: Runs, path: Path) -> None:
    """Writes the learning curves, a panel for each algorithm; the background is transparent."""
    algorithms = list(dict.fromkeys(algorithm for algorithm, _, _ in runs))
    figure = Figure(figsize=(8.5, 3.6), layout="constrained")
    panels = figure.subplots(1, len(algorithms), sharey=True, squeeze=False)[0]
    for axes, algorithm in zip(panels, algorithms, strict=True):
        _panel(axes, [(name, result) for of, name, result in runs if of == algorithm])
        axes.set_title(algorithm, loc="left", fontweight="bold", color=INK)
        axes.set_xlabel("environment steps, thousands", color=INK)
    panels[0].set_ylabel("return, last 100 episodes", color=INK)
    panels[-1].legend(loc="best", frameon=False, labelcolor=INK)
    figure.savefig(path, dpi=150, transparent=True)


def _panel(axes: Any, results: Sequence[tuple[str, Result]]) -> None:
    drawn = set()
    for name, result in results:
        steps, returns = zip(*result.curve, strict=True)
        thousands, (color, width, style) = [step / 1000 for step in steps], LINES[name]
        label = "_nolegend_" if name in drawn else name
        axes.plot(thousands, returns, style, color=color, linewidth=width, label=label)
        if result.evaluation >= ppo.SOLVED:
            axes.plot(thousands[-1], returns[-1], "o", color=color, markersize=3 * width**0.5)
        drawn.add(name)
    axes.axhline(ppo.SOLVED, color=INK, linestyle="dotted", linewidth=1.2, label="solved: 475")
    axes.set_ylim(0, 520)
    axes.set_xlim(left=0)
    axes.tick_params(length=0, colors=INK)
    axes.grid(axis="y", color=INK, alpha=0.25, linewidth=0.8)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(INK)


def main(arguments: Sequence[str] | None = None) -> None:
    """Trains, and saves the picture."""
    parser = argparse.ArgumentParser(description="Learning curves of PPO, APPO, DQN on CartPole.")
    parser.add_argument("--orders", action="store_true", help="compare orders, not modes")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--output", type=Path, default=Path("learning_curves.png"))
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)  # the networks are too small for two

    runs = in_orders(options.seeds) if options.orders else in_modes(options.seeds)
    print(f"\n{'':<5}{'':<11}{'env steps':>10}{'seconds':>9}{'last 100':>10}{'evaluation':>12}")
    for algorithm, name, result in sorted(runs, key=lambda run: run[:2]):
        print(
            f"{algorithm:<5}{name:<11}{result.steps:>10,}{result.seconds:>9.1f}"
            f"{result.curve[-1][1]:>10.1f}{result.evaluation:>12.1f}"
        )
    plot(runs, options.output)


if __name__ == "__main__":
    main()
