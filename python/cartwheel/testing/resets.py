"""Checks ``masked_reset``, ``frozen_rows`` and ``time_limit``: how episodes begin and end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector import AutoresetMode

from cartwheel.testing.difference import first_difference
from cartwheel.testing.error import Unchecked
from cartwheel.testing.life import row_of

if TYPE_CHECKING:
    from cartwheel.testing.kit import Kit

_MASKED = (
    "A reset of some rows must leave all others alone: their state, their random numbers and their "
    "observations. Keep no state that environments share."
)
_FROZEN = (
    'With `on_done="freeze"` a row that is over shows its last observation and flags again, with '
    "reward 0, until it is reset."
)


def check_masked_reset(kit: Kit) -> str:
    """A reset of some rows begins their episodes, and the other rows do not notice."""
    with kit.several() as envs:
        steps = max(1, kit.steps // 2)
        whole = kit.run(envs, steps=2 * steps)
        player = kit.run(envs, steps=steps)
        before = player.observations
        mask = np.arange(envs.num_envs) % 2 == 0
        others = [row for row in player.lives if not mask[row]]
        player.reset(mask, seed=kit.seed)
        for row in others:
            _assert_shown(kit, envs, before, player.observations, row, steps)
        player.run(steps)
        places = "after a reset of other rows", "without it"
        kit.assert_same(player, whole.lives, places, _MASKED, rows=others)
        places = "after a reset of these rows", "after a reset of all"
        again = [row for row in player.lives if mask[row]]
        kit.assert_same(player, whole.lives, places, _MASKED, rows=again)
        return f"{len(again)} of {len(player.lives)} rows reset after {steps} steps"


def _assert_shown(kit: Kit, envs: Any, before: Any, now: Any, row: int, step: int) -> None:
    shown = [row_of(envs.single_observation_space, batch, row) for batch in (now, before)]
    found = first_difference(*shown)
    if found is not None:
        path, one, two = found
        kit.fail(
            f"observation{path} of row {row} is {one} in the batch of a reset of other rows, and "
            f"was {two} in step {step} before",
            _MASKED,
        )


def check_frozen_rows(kit: Kit) -> str:
    """Rows that are over repeat themselves, and a reset thaws them."""
    given = kit.given
    freezes = getattr(given, "on_done", None) == "freeze" and kit.mode is AutoresetMode.DISABLED
    if freezes and kit.envs is given:
        frozen = _freeze(kit, given)
    else:
        keywords = {"mode": AutoresetMode.DISABLED, "on_done": "freeze"}
        with kit.made(7, limit=kit.short, **keywords) as envs:
            frozen = _freeze(kit, envs)
    if not frozen:
        raise Unchecked(f"no episode ended in {kit.steps} steps: pass more `steps`")
    return f"{frozen} rows that were over were stepped again"


def _freeze(kit: Kit, envs: Any) -> int:
    """Plays until rows are over, steps them again and resets them; returns their number."""
    player = kit.player(envs, restarts=False)
    player.reset(seed=kit.seed)
    frozen: dict[int, tuple[Any, ...]] = {}
    for step in range(1, kit.steps + 1):
        result = player.step()
        for row in player.lives:
            observation = row_of(envs.single_observation_space, result[0], row)
            shown = (observation, *(each[row] for each in result[1:4]))
            if row in frozen:
                _assert_frozen(kit, frozen[row], shown, row, step)
            elif player.over[row]:
                frozen[row] = (observation, np.float64(0), result[2][row], result[3][row])
    if frozen:
        mask = player.over.copy()
        player.reset(mask, seed=kit.seed)
        fresh = kit.player(envs, restarts=False)
        fresh.reset(seed=kit.seed)
        places = "when a frozen row is reset", "at a reset of all rows"
        kit.assert_same(player, fresh.lives, places, _FROZEN, rows=frozen)
    return len(frozen)


def _assert_frozen(
    kit: Kit, expected: tuple[Any, ...], shown: tuple[Any, ...], row: int, step: int
) -> None:
    names = ("observation", "reward", "terminated", "truncated")
    for name, one, two in zip(names, shown, expected, strict=True):
        found = first_difference(one, two)
        if found is not None:
            path, now, before = found
            kit.fail(
                f"{name}{path} of row {row}, which is over and frozen, is {now} in step {step} and "
                f"must be {before}",
                _FROZEN,
            )


def check_time_limit(kit: Kit) -> str:
    """No episode is longer than the declared limit, and one that reaches it is truncated."""
    declared = kit.twins.single_limit()
    checked = []
    for limit, made in ((declared, None), (3, 3)):
        if limit is None or limit > 16 * kit.steps:
            continue
        with kit.made(3, limit=made) as envs:
            player = kit.run(envs, steps=max(limit + 1, kit.steps))
        reached = sum(_assert_limited(kit, limit, row, life) for row, life in player.lives.items())
        checked.append(f"{limit} (reached {reached} times)")
    if declared is None:
        kit.notes.append("the environment declares no `max_episode_steps`")
    return f"limits of {' and '.join(checked)} steps"


def _assert_limited(kit: Kit, limit: int, row: int, life: list[Any]) -> int:
    """Fails if an episode is too long; returns how many reached the limit."""
    length = reached = 0
    for event in life:
        length = 0 if event.is_reset else length + 1
        if length == limit and not event.is_reset:
            reached += 1
            if not event.is_end:
                kit.fail(
                    f"row {row} goes on after {limit} steps of an episode, and "
                    f"`max_episode_steps` is {limit}",
                    "Truncate the episode there: register the environment with "
                    "`max_episode_steps` and make it by its id, or wrap it in "
                    "`gymnasium.wrappers.TimeLimit`.",
                )
    return reached
