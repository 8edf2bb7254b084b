"""Compares an id with ``minigrid``'s own environment, and counts the values that differ.

As a program, it plays every id: ``python comparison.py --episodes 1000``.
"""

import argparse
import contextlib
import io
import itertools
import warnings

import cartwheel_minigrid
import gymnasium as gym
import minigrid  # registers its ids
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from minigrid.utils.baby_ai_bot import BabyAIBot

import cartwheel

ROWS = 4
#: The ids of the package, without those of Wave Function Collapse, which have a library's solver.
IDS = [
    env_id
    for env_id, spec in gym.registry.items()
    if env_id.startswith(("MiniGrid-", "BabyAI-")) and "wfc" not in str(spec.entry_point)
]
#: Walking forward is more likely, so that episodes end.
WEIGHTS = np.array([0.15, 0.15, 0.35, 0.1, 0.08, 0.14, 0.03])
MODES = list(AutoresetMode)


class _Players:
    """Chooses an action for each row: random ones, and BabyAI's own bot in every second row."""

    def __init__(self, oracle, seed, has_bots):
        """Takes the original environments."""
        self._envs, self._rng = oracle.envs, np.random.default_rng(seed)
        self._count = oracle.single_action_space.n
        self._rows = range(0, ROWS, 2) if has_bots else ()
        self._bots = {}

    def actions(self, ended):
        """Returns the actions; bots of rows whose episode ended are replaced."""
        weights = WEIGHTS[: self._count]
        actions = self._rng.choice(self._count, ROWS, p=weights / weights.sum())
        for row in self._rows:
            # A bot fails where it knows no way, and in levels that it was not written for.
            with contextlib.suppress(Exception):
                if ended[row] or row not in self._bots:
                    self._bots[row] = BabyAIBot(self._envs[row].unwrapped)
                actions[row] = self._bots[row].replan()
        return actions


def differences(env_id, mode, episodes, seed=0, **keywords):
    """Returns the number of differing elements in this many episodes, and the number of steps."""
    ours = cartwheel.NativeVectorEnv(
        f"cartwheel_minigrid/{env_id}", ROWS, autoreset_mode=mode, executor="inline", **keywords
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ids of old versions
        make = [lambda: gym.make(env_id, disable_env_checker=True, **keywords)] * ROWS
        theirs = SyncVectorEnv(make, autoreset_mode=mode)
    counts = np.zeros(2, int)
    # The original prints each level that it does not want.
    with ours, contextlib.closing(theirs), contextlib.redirect_stdout(io.StringIO()):
        try:
            _play(ours, theirs, mode, episodes, seed, counts)
        except cartwheel.EnvFailedError as error:
            if "has no place" not in str(error):
                raise
            # The original would look for a place forever, so it was not asked for this step.
    return tuple(counts.tolist())


def _play(ours, theirs, mode, episodes, seed, counts):
    """Adds the differing elements and the steps to ``counts``."""
    counts[0] += _unlike(ours.reset(seed=seed)[0], theirs.reset(seed=seed)[0])
    has_bots = theirs.envs[0].spec.id.startswith("BabyAI-")
    players, ended, done = _Players(theirs, seed, has_bots), np.zeros(ROWS, bool), 0
    while done < episodes:
        actions = players.actions(ended)
        mine, other = ours.step(actions), theirs.step(actions)
        counts += (_unlike(mine[0], other[0]), ROWS)
        counts[0] += sum(int((mine[at] != other[at]).sum()) for at in (1, 2, 3))
        ended = other[2] | other[3]
        done += int(ended.sum())
        for row in np.flatnonzero(other[4].get("_final_obs", ())):
            counts[0] += _unlike(mine[4]["final_obs"][row], other[4]["final_obs"][row])
        if mode == AutoresetMode.DISABLED and ended.any():
            mine, other = (
                envs.reset(options={"reset_mask": ended.copy()})[0] for envs in (ours, theirs)
            )
            counts[0] += _unlike(mine, other)


def _unlike(mine, other):
    missions = sum(map(str.__ne__, _texts(mine["mission"]), _texts(other["mission"])))
    return missions + sum(
        int((np.asarray(mine[key]) != np.asarray(other[key])).sum())
        for key in ("image", "direction")
    )


def _texts(mission):
    return [mission] if isinstance(mission, str) else mission


def main():
    """Plays every id and prints what differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=1000, help="of each id (1000)")
    parser.add_argument("--full-length", type=int, default=24, help="of them at full length (24)")
    parser.add_argument("--only", default="", help="a part of the ids")
    arguments = parser.parse_args()
    print(f"minigrid {minigrid.__version__}, {cartwheel_minigrid.__name__}")
    total = np.zeros(2, int)
    ids = [env_id for env_id in IDS if arguments.only in env_id]
    for number, env_id in enumerate(ids, 1):
        own = np.zeros(2, int)
        for mode in MODES:
            short = arguments.episodes // len(MODES)
            own += differences(env_id, mode, short, seed=number, max_steps=64)
            own += differences(env_id, mode, arguments.full_length // len(MODES), seed=number)
        total += own
        print(
            f"{number:3} of {len(ids)}  {env_id:40} {own[1]:9,} steps  {own[0]} differ", flush=True
        )
    print(f"{total[0]} values differ in {total[1]:,} steps of {len(ids)} ids")
    return int(total[0] > 0)


def rotated_modes():
    """Returns a mode for each id, each mode in turn."""
    return list(zip(IDS, itertools.cycle(MODES), strict=False))


if __name__ == "__main__":
    raise SystemExit(main())
