"""The results as a table of the terminal, and as that of ``docs/speed.md``."""

from __future__ import annotations

import itertools
from typing import Any

from benchmarks.time_to_solve.tasks import TASKS, TRAINERS, VECTORS

#: The columns of the page, and their titles.
COLUMNS = {
    "cartwheel": "cartwheel",
    "sync": "`SyncVectorEnv`",
    "envpool": "EnvPool",
    "async": "`AsyncVectorEnv`",
    "subproc": "SB3's `SubprocVecEnv`",
}


def median(results: list[dict[str, Any]]) -> dict[str, Any]:
    """The result with the median of the seconds, the lower one of two; unsolved ones are last."""
    ordered = sorted(results, key=lambda result: (not result["solved"], result["seconds"]))
    return ordered[(len(ordered) - 1) // 2]


def learner(result: dict[str, Any]) -> float:
    """The learner's share of the seconds."""
    return float(1 - result["environment_seconds"] / result["seconds"])


def table(results: list[dict[str, Any]]) -> str:
    """A line for each task, trainer and vector environment."""
    lines = [f"{'':<13}{'':<11}{'':<11}{'solved':>8}{'seconds':>9}{'steps':>11}{'learner':>9}"]
    for key in itertools.product(TASKS, TRAINERS, VECTORS):
        of = _of(results, *key)
        if not of:
            continue
        middle = median(of)
        solved = f"{sum(result['solved'] for result in of)} of {len(of)}"
        more = "" if middle["solved"] else ">"
        lines.append(
            f"{key[0]:<13}{key[1]:<11}{key[2]:<11}{solved:>8}{more:>1}{middle['seconds']:>8.1f}"
            f"{middle['steps']:>11,.0f}{learner(middle):>9.0%}"
        )
    return "\n".join(lines)


def filled(text: str, results: list[dict[str, Any]]) -> str:
    """The text of ``docs/speed.md`` with a new table, whose other rows stay as they are.

    Raises:
        ValueError: It has no such table.
    """
    head, separator, rest = text.partition("| task | trainer | environments |")
    if not separator:
        raise ValueError("the page has no table of tasks, trainers and numbers of environments")
    lines = rest.splitlines(keepends=True)
    end = next((i for i, line in enumerate(lines[1:], 1) if line[0] != "|"), len(lines))
    rows = [line.rstrip("\n") for line in lines[2:end]]
    return f"{head}{_page_table(results, rows)}\n{''.join(lines[end:])}"


def _page_table(results: list[dict[str, Any]], old: list[str]) -> str:
    """A row for each task and trainer, the fastest vector environment bold.

    A cell says how many seeds have solved the task where that is not every one of three. Tasks and
    trainers without results have their old row.
    """
    lines = [
        f"| task | trainer | environments | {' | '.join(COLUMNS.values())} |",
        f"|---|---|--:|{'--:|' * len(COLUMNS)}",
    ]
    for name, trainer in itertools.product(TASKS, TRAINERS):
        found = {vector: _of(results, name, trainer, vector) for vector in COLUMNS}
        middles = {vector: median(of) for vector, of in found.items() if of}
        task = TASKS[name]
        title = {
            "cleanrl": f"CleanRL's `{task.cleanrl[0]}.py`",
            "sb3": "Stable-Baselines3",
            "examples": f"`examples/{task.example[0]}.py`",
        }[trainer]
        start = f"| {name} | {title} | {task.rows[trainer]} |"
        if not middles:
            lines += [row for row in old if row.startswith(start)]
            continue
        solved = [vector for vector in middles if middles[vector]["solved"]]
        best = min(solved, key=lambda vector: middles[vector]["seconds"], default=None)
        cells = []
        for vector, of in found.items():
            if not of:
                cells.append("")
                continue
            seconds = f"{middles[vector]['seconds']:.1f}"
            seconds = f"**{seconds}**" if vector == best else seconds
            count = sum(result["solved"] for result in of)
            seeds = "" if count == len(of) == 3 else f", {count} of {len(of)}"
            more = "" if middles[vector]["solved"] else "> "
            cells.append(f"{more}{seconds} ({100 * learner(middles[vector]):.0f} %{seeds})")
        lines.append(f"{start} {' | '.join(cells)} |")
    return "\n".join(lines)


def _of(results: list[dict[str, Any]], *key: str) -> list[dict[str, Any]]:
    return [r for r in results if (r["task"], r["trainer"], r["vector"]) == key]
