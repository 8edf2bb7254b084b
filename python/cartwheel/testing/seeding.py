"""Checks ``same_seed`` and ``other_seeds``: the seed decides everything, and decides something."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cartwheel.testing.actions import STREAMS
from cartwheel.testing.error import Unchecked
from cartwheel.testing.kit import WATCHED
from cartwheel.testing.life import compare

if TYPE_CHECKING:
    from cartwheel.testing.kit import Kit

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
    kit.assert_same(again, first.lives, places, _REMEDY, strict_infos=True)
    text = f"2 runs of {len(first.lives)} rows × {kit.steps} steps"
    num_envs = min(kit.envs.num_envs, WATCHED)
    try:
        with kit.made(num_envs, mode=kit.mode) as envs:
            new = kit.run(envs)
    except Unchecked:
        return text
    rows = sorted(first.lives.keys() & new.lives.keys() - {num_envs - 1})
    rows = [0] if num_envs == 1 else rows
    places = "in a new vector environment", "in the given one"
    kit.assert_same(new, first.lives, places, _REMEDY, rows=rows)
    return f"{text}, and 1 of a new object"


def check_other_seeds(kit: Kit) -> str:
    """Other seeds give other transcripts, if anything in the environment is random.

    An environment is random if a second episode, without a new seed, differs from the first
    although its actions are the same. An environment that does not do so may be deterministic.
    """
    with kit.several() as envs:
        seeds = [kit.seed + number * _APART for number in range(_SEEDS)]
        steps = max(8, kit.steps // 4)
        lives = [kit.run(envs, seed=seed, steps=steps).lives[0] for seed in seeds]
        if any(compare(life, lives[0]) is not None for life in lives):
            return f"{_SEEDS} seeds × {steps} steps"
        player = kit.player(envs)
        player.reset(seed=kit.seed)
        player.run(steps)
        begun = len(player.lives[0])
        player.reset()
        player.turns[:] = 0
        player.run(steps)
        life = player.lives[0]
    infos = {key for event in life for key in event.info}
    if compare(life[:begun], life[begun:], infos) is None:
        raise Unchecked("deterministic: episodes with the same actions are alike")
    kit.fail(
        f"{_SEEDS} seeds from {seeds[0]} to {seeds[-1]} give row 0 the same {steps} steps, but "
        "after `reset()` without a seed the same actions lead elsewhere",
        "The seed must choose the random numbers: pass it on (Python: "
        "`super().reset(seed=seed)`), and use no generator of a fixed seed. If nothing is random "
        "and episodes differ by design, pass `skip=['other_seeds']`.",
    )
