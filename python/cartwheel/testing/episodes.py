"""Checks of episodes: their beginnings, their ends and their seeds.

The checks are ``masked_reset``, ``frozen_rows``, ``time_limit``, ``same_seed`` and ``other_seeds``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector import AutoresetMode

from cartwheel.testing.compare import first_difference
from cartwheel.testing.kit import MAX_TRACED
from cartwheel.testing.report import Unchecked
from cartwheel.testing.traces import STREAMS, compare, row_of

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
    """A reset of some rows begins their episodes and leaves the other rows as they are."""
    with kit.several() as envs:
        steps = max(1, kit.steps // 2)
        whole = kit.run(envs, steps=2 * steps)
        player = kit.run(envs, steps=steps)
        before = player.observations
        mask = np.arange(envs.num_envs) % 2 == 0
        others = [row for row in player.traces if not mask[row]]
        player.reset(mask, seed=kit.seed)
        for row in others:
            _assert_shown(kit, envs, before, player.observations, row, steps)
        player.run(steps)
        places = "after a reset of other rows", "without it"
        kit.assert_same(player, whole.traces, places, _MASKED, rows=others)
        places = "after a reset of these rows", "after a reset of all"
        again = [row for row in player.traces if mask[row]]
        kit.assert_same(player, whole.traces, places, _MASKED, rows=again)
        return f"{len(again)} of {len(player.traces)} rows reset after {steps} steps"


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
    """Rows that are over repeat their last result until they are reset."""
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
        for row in player.traces:
            observation = row_of(envs.single_observation_space, result[0], row)
            shown = (observation, *(each[row] for each in result[1:4]))
            if row in frozen:
                _assert_frozen(kit, frozen[row], shown, row, step)
            elif player.over[row]:
                no_reward = np.zeros_like(result[1])[row]
                frozen[row] = (observation, no_reward, result[2][row], result[3][row])
    if frozen:
        mask = player.over.copy()
        player.reset(mask, seed=kit.seed)
        fresh = kit.player(envs, restarts=False)
        fresh.reset(seed=kit.seed)
        places = "when a frozen row is reset", "at a reset of all rows"
        kit.assert_same(player, fresh.traces, places, _FROZEN, rows=frozen)
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
    declared = kit.variants.single_limit()
    checked = []
    for limit, made in ((declared, None), (3, 3)):
        if limit is None or limit > 16 * kit.steps:
            continue
        with kit.made(3, limit=made) as envs:
            player = kit.run(envs, steps=max(limit + 1, kit.steps))
        reached = sum(
            _assert_limited(kit, limit, row, trace) for row, trace in player.traces.items()
        )
        checked.append(f"{limit} (reached {reached} times)")
    if declared is None:
        kit.notes.append("the environment declares no `max_episode_steps`")
    return f"limits of {' and '.join(checked)} steps"


def _assert_limited(kit: Kit, limit: int, row: int, trace: list[Any]) -> int:
    """Fails if an episode is too long; returns how many reached the limit."""
    length = reached = 0
    for event in trace:
        length = 0 if event.is_reset else length + 1
        if length == limit and not event.is_reset:
            reached += 1
            if not event.is_end:
                kit.fail(
                    f"row {row} continues after {limit} steps of an episode, and "
                    f"`max_episode_steps` is {limit}",
                    "Truncate the episode there: register the environment with "
                    "`max_episode_steps` and make it by its id, or wrap it in "
                    "`gymnasium.wrappers.TimeLimit`.",
                )
    return reached


_REMEDY = (
    "The same seed and actions must give the same bits. Draw every random number from the "
    "generator that the seed sets (Python: `self.np_random`, after `super().reset(seed=seed)`), "
    "and let `reset` set every variable of the episode."
)
#: How many seeds are compared, and how far apart they are: rows get the same actions.
_SEEDS, _APART = 16, 125 * STREAMS


def check_same_seed(kit: Kit) -> str:
    """The same seed gives the same transcript, again and in a new vector environment."""
    first, again = kit.run(kit.envs), kit.run(kit.envs)
    places = "in the second run of one object", "in the first"
    kit.assert_same(again, first.traces, places, _REMEDY, strict_infos=True)
    text = f"2 runs of {len(first.traces)} rows × {kit.steps} steps"
    num_envs = min(kit.envs.num_envs, MAX_TRACED)
    try:
        with kit.made(num_envs, mode=kit.mode) as envs:
            new = kit.run(envs)
    except Unchecked:
        return text
    rows = sorted(first.traces.keys() & new.traces.keys() - {num_envs - 1})
    rows = [0] if num_envs == 1 else rows
    places = "in a new vector environment", "in the given one"
    kit.assert_same(new, first.traces, places, _REMEDY, rows=rows)
    return f"{text}, and 1 of a new object"


def check_other_seeds(kit: Kit) -> str:
    """Other seeds give other transcripts, if anything in the environment is random.

    An environment is random if a second episode, without a new seed, differs from the first
    although its actions are the same. An environment that does not do so may be deterministic.
    """
    with kit.several() as envs:
        seeds = [kit.seed + number * _APART for number in range(_SEEDS)]
        steps = max(8, kit.steps // 4)
        traces = [kit.run(envs, seed=seed, steps=steps).traces[0] for seed in seeds]
        if any(compare(trace, traces[0]) is not None for trace in traces):
            return f"{_SEEDS} seeds × {steps} steps"
        player = kit.player(envs)
        player.reset(seed=kit.seed)
        player.run(steps)
        begun = len(player.traces[0])
        player.reset()
        player.step_counts[:] = 0
        player.run(steps)
        trace = player.traces[0]
    infos = {key for event in trace for key in event.info}
    if compare(trace[:begun], trace[begun:], infos) is None:
        raise Unchecked("deterministic: episodes with the same actions are alike")
    kit.fail(
        f"{_SEEDS} seeds from {seeds[0]} to {seeds[-1]} give row 0 the same {steps} steps, but "
        "after `reset()` without a seed the same actions lead elsewhere",
        "The seed must choose the random numbers: pass it on (Python: "
        "`super().reset(seed=seed)`), and use no generator of a fixed seed. If nothing is random "
        "and episodes differ by design, pass `skip=['other_seeds']`.",
    )
