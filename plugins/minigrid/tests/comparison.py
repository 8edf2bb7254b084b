"""Compares an id with ``minigrid``'s own environment, and counts the values that differ.

As a program, it plays every id in every mode, and goes on where it was stopped: each id and mode is
a line of a journal.
"""

import argparse
import contextlib
import hashlib
import io
import itertools
import json
import multiprocessing
import pathlib
import time
import typing
import warnings

import cartwheel_minigrid
import gymnasium as gym
import minigrid  # registers its ids
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from minigrid import wrappers
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
#: Longer episodes are cut, but for some of them.
LONG, CUT = 300, 64
#: The package's wrappers by their names in the keyword ``observation``.
WRAPPERS = {
    "image": wrappers.ImgObsWrapper,
    "flat": wrappers.FlatObsWrapper,
    "full": wrappers.FullyObsWrapper,
    "one_hot": wrappers.OneHotPartialObsWrapper,
    "rgb": wrappers.RGBImgObsWrapper,
    "rgb_partial": wrappers.RGBImgPartialObsWrapper,
    "symbolic": wrappers.SymbolicObsWrapper,
}
#: Wrappers alone and upon each other, in the order in which they wrap: all that the keyword takes.
CHAINS = [
    *([name] for name in WRAPPERS),
    *([name, "image"] for name in ("full", "one_hot", "rgb", "rgb_partial", "symbolic")),
    *([name, "flat"] for name in ("full", "one_hot", "rgb", "rgb_partial")),
]


class Count(typing.NamedTuple):
    """Numbers of a comparison."""

    differing: int
    values: int
    steps: int
    #: Rows for which no level was found; the original would look for one forever.
    stuck: int

    def __add__(self, other):
        """Returns the sum of each number."""
        return Count(*map(sum, zip(self, other, strict=True)))


class _Bot(BabyAIBot):
    """BabyAI's bot, which fails where it would look for a way forever."""

    def replan(self, action_taken=None):
        """Returns the next action."""
        self._searches = 0
        return super().replan(action_taken)

    def _shortest_path(self, *arguments, **keywords):
        self._searches += 1
        if self._searches > 40:
            raise RuntimeError("the bot turns in a circle")
        return super()._shortest_path(*arguments, **keywords)


class _Players:
    """Chooses an action for each row: random ones, and BabyAI's own bot in every second row."""

    def __init__(self, oracle, mode, seed, has_bots):
        """Takes the original environments."""
        self._envs, self._rng = oracle.envs, np.random.default_rng(seed)
        self._count = oracle.single_action_space.n
        self._rows = range(0, ROWS, 2) if has_bots else ()
        self._bots = {}
        # Until a row is reset, a bot would see the old episode.
        self._resets_later = mode == AutoresetMode.NEXT_STEP

    def start(self):
        """Forgets the bots: every row was reset."""
        self._bots.clear()

    def actions(self, ended):
        """Returns the actions; ``ended`` are the rows whose episode the last step ended."""
        weights = WEIGHTS[: self._count]
        actions = self._rng.choice(self._count, ROWS, p=weights / weights.sum())
        for row in self._rows:
            if ended[row]:
                self._bots.pop(row, None)
                if self._resets_later:
                    continue
            try:
                if row not in self._bots:
                    self._bots[row] = _Bot(self._envs[row].unwrapped)
                if self._bots[row]:
                    actions[row] = self._bots[row].replan()
            except (
                Exception
            ):  # it knows no way, or the level is none of those that it was written for
                self._bots[row] = None  # for the rest of the episode
        return actions


def differences(env_id, mode, episodes, seed=0, observation=None, **keywords):
    """Compares this many episodes, a third of them after each kind of reset.

    ``observation`` is a list of wrappers, of the original and as a keyword. ``keywords`` are those
    of both environments, and ``observation_tile_size`` and ``maxStrLen`` those of the wrappers.
    """
    natives = cartwheel.NativeVectorEnv(
        f"cartwheel_minigrid/{env_id}",
        ROWS,
        autoreset_mode=mode,
        executor="inline",
        **keywords,
        **({"observation": observation} if observation else {}),
    )
    tile_size = keywords.pop("observation_tile_size", 8)
    letters = keywords.pop("maxStrLen", 96)

    def make():
        env = gym.make(env_id, disable_env_checker=True, **keywords)
        for name in observation or ():
            own = {"rgb": {"tile_size": tile_size}, "flat": {"maxStrLen": letters}}
            env = WRAPPERS[name](env, **own.get(name.removesuffix("_partial"), {}))
        return env

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ids of old versions
        originals = SyncVectorEnv([make] * ROWS, autoreset_mode=mode)
    _check_spaces(natives, originals)
    count = Count(0, 0, 0, 0)
    # The original prints each level that it does not want.
    with natives, contextlib.closing(originals), contextlib.redirect_stdout(io.StringIO()):
        has_bots = env_id.startswith("BabyAI-")
        players = _Players(originals, mode, seed, has_bots)
        for part in range(3):
            wanted = episodes * (part + 1) // 3 - episodes * part // 3
            # Random numbers that were used up in a search are not those of the original.
            some = [seed + row if row % 2 or count.stuck else None for row in range(ROWS)]
            seeds = [seed, seed + 500 if count.stuck else None, some][part]
            count += _play(natives, originals, players, mode, wanted, seeds)
    return count


def _play(natives, originals, players, mode, episodes, seeds):
    """Compares a reset with these seeds and this many episodes."""
    count, done = np.zeros(3, int), 0

    def compare(mine, other):
        count[:2] += unlike(mine, other)

    try:
        ended = np.zeros(ROWS, bool)
        players.start()
        compare(natives.reset(seed=seeds), originals.reset(seed=seeds))
        while done < episodes:
            actions = players.actions(ended)
            mine, other = natives.step(actions), originals.step(actions)
            compare(mine, other)
            count[2] += ROWS
            ended = other[2] | other[3]
            done += int(ended.sum())
            if mode == AutoresetMode.DISABLED and ended.any():
                options = [{"reset_mask": ended.copy()} for _ in range(2)]
                compare(natives.reset(options=options[0]), originals.reset(options=options[1]))
    except cartwheel.EnvFailedError as error:
        if "has no place" not in str(error) and "no level" not in str(error):
            raise
        # The original would look for a place forever, so it was not asked for this step.
        return Count(*count.tolist(), 1)
    return Count(*count.tolist(), 0)


def _check_spaces(natives, originals):
    """Compares all spaces but those of missions, which the package has a class of its own for."""
    for name in ("single_observation_space", "observation_space", "action_space"):
        mine, other = getattr(natives, name), getattr(originals, name)
        if isinstance(other, gym.spaces.Dict):
            assert mine.keys() == other.keys()
            mine, other = (
                {key: space for key, space in spaces.items() if key != "mission"}
                for spaces in (mine, other)
            )
        assert mine == other, name


def unlike(mine, other):
    """Returns the number of differing values of two results of a call, and the number of values."""
    if mine is None or other is None:
        return int(mine is not other), 1
    if isinstance(other, dict):
        names = mine.keys() | other.keys()
        found = [unlike(mine.get(name), other.get(name)) for name in names]
    elif isinstance(other, tuple | list) or np.asarray(other).dtype.kind == "O":
        if len(mine) != len(other):
            return 1, 1
        found = [unlike(*pair) for pair in zip(mine, other, strict=True)]
    elif isinstance(other, np.ndarray | np.generic):
        mine = np.asarray(mine)
        if mine.dtype != other.dtype or mine.shape != other.shape:
            return other.size, other.size
        return int((mine != other).sum()), other.size
    else:
        return int(mine != other), 1
    return tuple(map(sum, zip((0, 0), *found, strict=True)))


def is_long(env_id):
    """Whether episodes of this id may have more than ``LONG`` steps."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        env = gym.make(env_id, disable_env_checker=True)
        for seed in range(8):
            env.reset(seed=seed)
            if env.unwrapped.max_steps > LONG:
                return True
    return False


def _compare(job):
    """Compares an id in a mode, and returns a line of the journal."""
    env_id, mode, observation, episodes, full_length, seed, _ = job
    start = time.perf_counter()
    mode = AutoresetMode[mode]
    if observation:
        count = differences(
            env_id, mode, episodes, seed=seed, observation=observation, max_steps=12, maxStrLen=340
        )
    elif is_long(env_id):
        count = differences(env_id, mode, episodes - full_length, seed=seed, max_steps=CUT)
        count += differences(env_id, mode, full_length, seed=seed + 1000)
    else:
        count = differences(env_id, mode, episodes, seed=seed)
    return {"job": job, "seconds": round(time.perf_counter() - start, 1), **count._asdict()}


def _hash_of_rules():
    """Returns a hash of the sources of levels and random numbers: other ones have other results.

    What steps the levels is not in it: `make test-examples` compares some episodes in each build.
    """
    root = pathlib.Path(__file__).parents[3]
    found = hashlib.sha256()
    for folder in ("plugins/minigrid/src", "rust/cartwheel-core/src/rng"):
        sources = sorted((root / folder).rglob("*.rs"))
        assert sources, folder
        for source in sources:
            found.update(f"{source.relative_to(root)}\0".encode() + source.read_bytes())
    return found.hexdigest()[:16]


def _jobs(arguments):
    """Returns the ids in the first mode, then in the next one: an early end has seen every id."""
    share, rules = len(MODES), _hash_of_rules()
    for (place, mode), (number, env_id) in itertools.product(
        enumerate(MODES), enumerate(IDS, start=1)
    ):
        if arguments.only not in env_id:
            continue
        for chain in CHAINS if arguments.wrappers else [None]:
            parts = (
                [3, 0]
                if chain
                else [
                    wanted * (place + 1) // share - wanted * place // share
                    for wanted in (arguments.episodes, arguments.full_length)
                ]
            )
            yield [env_id, mode.name, chain, *parts, number, rules]


def main():
    """Plays every id and prints what differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=1000, help="of each id (1000)")
    parser.add_argument(
        "--full-length",
        type=int,
        default=24,
        help=f"of them that are not cut after {CUT} steps if they may have more than {LONG} (24)",
    )
    parser.add_argument(
        "--wrappers",
        action="store_true",
        help="compare observations with wrapped originals instead, 3 episodes of each",
    )
    parser.add_argument("--only", default="", help="a part of the ids")
    parser.add_argument("--processes", type=int, default=2, help="at once (2)")
    parser.add_argument(
        "--journal", type=pathlib.Path, help="a file of results, which are not repeated"
    )
    arguments = parser.parse_args()
    print(f"minigrid {minigrid.__version__}, {cartwheel_minigrid.__name__}")
    jobs = list(_jobs(arguments))
    results = []
    if arguments.journal and arguments.journal.exists():
        lines = map(json.loads, arguments.journal.read_text().splitlines())
        results = [line for line in lines if line["job"] in jobs]
        print(f"{len(results)} of {len(jobs)} ids and modes are in {arguments.journal} already")
    finished = [line["job"] for line in results]
    waiting = [job for job in jobs if job not in finished]
    with multiprocessing.get_context("spawn").Pool(
        arguments.processes, maxtasksperchild=100
    ) as pool:
        for line in pool.imap_unordered(_compare, waiting):
            results.append(line)
            if arguments.journal:
                with arguments.journal.open("a") as journal:
                    print(json.dumps(line), file=journal)
            env_id, mode, chain, *_ = line["job"]
            name = " ".join([env_id, *(chain or ())])
            print(
                f"{len(results):4} of {len(jobs)}  {name:55} {mode:10} {line['seconds']:7.1f} s "
                f"{line['steps']:9,} steps  {line['differing']} differ",
                flush=True,
            )
    total = sum(
        (Count(*(line[name] for name in Count._fields)) for line in results), Count(0, 0, 0, 0)
    )
    print(
        f"{total.differing} differing of {total.values:,} values, in {total.steps:,} steps of "
        f"{len({job[0] for job in jobs})} ids; {total.stuck} searches for a level were given up"
    )
    return int(total.differing > 0)


def in_turn(*choices):
    """Returns each id with the next of each of the choices."""
    return list(zip(IDS, *map(itertools.cycle, choices), strict=False))


if __name__ == "__main__":
    raise SystemExit(main())
