"""Checks ``parameters`` and ``states``: reading and writing back changes nothing."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from cartwheel.testing.report import Unchecked

if TYPE_CHECKING:
    from collections.abc import Callable

    from cartwheel.testing.kit import Kit


def check_parameters(kit: Kit) -> str:
    """Reading a parameter, or setting it to its own value, changes nothing."""
    envs = kit.envs
    names = getattr(envs, "parameters", None)
    if names is None:
        raise Unchecked("environments in Python do not list their parameters")
    if not names:
        raise Unchecked("there are no parameters")
    for name in names:
        reading = (
            f"`get_attr({name!r})` must return the value that the environment uses, and reading "
            "must change nothing."
        )
        read = functools.partial(envs.get_attr, name)
        _assert_no_effect(kit, read, f"get_attr({name!r})", reading)
        writing = (
            f"`set_attr({name!r}, value)` must store exactly what `get_attr` returns: look for "
            "rounding, and for other variables that setting it changes."
        )
        write = functools.partial(_write_back, kit, name)
        _assert_no_effect(kit, write, f"writing the values of get_attr({name!r}) back", writing)
    return ", ".join(names)


def _write_back(kit: Kit, name: str) -> None:
    """Sets a parameter to its own values."""
    try:
        kit.envs.set_attr(name, list(kit.envs.get_attr(name)))
    except ValueError as error:
        kit.notes.append(f"the parameter {name!r} is read-only: {error}")


def _assert_no_effect(kit: Kit, do: Callable[[], object], text: str, remedy: str) -> None:
    """Fails if rows continue differently after a call of ``do`` in the middle of a run."""
    steps = max(1, kit.steps // 4)
    plain = kit.run(kit.envs, steps=2 * steps)
    player = kit.run(kit.envs, steps=steps)
    do()
    player.run(steps)
    places = f"after {text} in step {steps}", "without it"
    kit.assert_same(player, plain.traces, places, remedy, strict_infos=True)


def check_states(kit: Kit) -> str:
    """After ``set_state`` rows continue as they did after ``get_state``."""
    envs: Any = kit.envs
    if not (hasattr(envs, "get_state") and hasattr(envs, "set_state")):
        raise Unchecked("the vector environment has no `get_state` and `set_state`")
    steps = max(1, kit.steps // 4)
    player = kit.run(envs, steps=steps)
    rows = [row for row in player.traces if not player.over[row]]
    if not rows:
        raise Unchecked(f"all rows are over after {steps} steps")
    step_counts = player.step_counts.copy()
    begun = {row: len(player.traces[row]) for row in rows}
    try:
        states = envs.get_state(rows)
    except ValueError as error:
        if "cannot be saved" not in str(error):
            raise
        raise Unchecked("the environment cannot be saved") from error
    player.run(steps)
    before = {row: player.traces[row][at:] for row, at in begun.items()}
    _assert_no_effect(
        kit,
        lambda: envs.get_state(rows),
        "get_state",
        "`save` (in Python `get_state`) must change nothing: write the state, and draw no random "
        "number.",
    )
    player = kit.run(envs, steps=steps // 2)
    # A row that is over may wait for its autoreset, which is not part of its state.
    kept = [place for place, row in enumerate(rows) if not player.over[row]]
    rows, states = [rows[place] for place in kept], [states[place] for place in kept]
    if not rows:
        raise Unchecked("all rows are over where their states should be set")
    envs.set_state(rows, states)
    player.step_counts[rows] = step_counts[rows]
    for row in rows:
        player.traces[row] = []
    player.run(steps)
    kit.assert_same(
        player,
        before,
        ("after `set_state`", "after `get_state`"),
        "`save` (in Python `get_state`) must write every variable that later steps depend on, the "
        "random numbers and the steps of the episode included, and `load` (`set_state`) must read "
        "all of them.",
        rows=rows,
    )
    return f"{len(rows)} rows × {steps} steps"
