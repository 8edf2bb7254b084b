"""The expected results of each wrapper, in plain Python.

Each class says it for one kind of wrapper, from the moments of the model alone.
"""

from __future__ import annotations

import json
from collections import defaultdict
from types import SimpleNamespace

import h5py
import numpy as np
from gymnasium.spaces import flatten

from tests.contract.model import FORMS, NEXT, rewards_of


class Plain:
    """Shows everything as it is.

    Args:
        subject: The line of the table.
        mode: The autoreset mode.
    """

    #: How far numbers may differ.
    tolerance = 0.0

    def __init__(self, subject, mode):
        self.mode = mode
        self.observe_place, _ = FORMS[subject.form]
        #: For files; and the model.
        self.folder = self.model = None

    def actions(self, moves):
        """The actions that the caller gives for these moves, a batch."""
        return np.array(moves, np.float32)[:, None]

    def move(self, move):
        """The move that the environment makes then."""
        return move

    def move_after(self, now, move):
        """The same for a row whose last moment is ``now``."""
        del now
        return self.move(move)

    def see(self, batch):
        """A batch is shown; called before the others, with a list of ``Told``."""

    def observation(self, moment):
        return self.observe_place(moment.place)

    def reward(self, moment):
        return moment.reward

    def check_infos(self, infos, batch):
        """Checks infos of a step, in addition to those of the environments."""

    def check(self, envs):
        """Checks what the wrapper knows at the end; ``envs`` are closed afterwards."""

    def check_closed(self, model):
        """Checks what is left after the end."""


def new(batch):
    """The moments whose observations a batch shows for the first time: of steps, and others."""
    both = [one for told in batch for one in (told.step, told.now) if one and not one.shown]
    moments = list(dict.fromkeys(both))
    steps = [one for one in moments if one.what == "step"]
    return steps, [one for one in moments if one not in steps]


# Functions of single values


def mapped(function):
    """A function of observations."""

    class Mapped(Plain):
        def observation(self, moment):
            return function(super().observation(moment))

    return Mapped


class Objectives(Plain):
    """Rewards of two objectives."""

    def reward(self, moment):
        return rewards_of(moment.reward)


def rewarded(function):
    """A function of rewards."""

    class Rewarded(Plain):
        def reward(self, moment):
            return float(function(moment.reward))

    return Rewarded


def acting(given, made=lambda move: move):
    """The caller gives ``given(move)``, and the environment makes the move ``made(move)``."""

    class Acting(Plain):
        def actions(self, moves):
            return super().actions([given(move) for move in moves])

        def move(self, move):
            return made(move)

    return Acting


class FlatActions(Plain):
    """Parts of nested actions, one after the other."""

    def actions(self, moves):
        return np.array([[np.clip(move, -2, 2), 1] for move in moves], np.float32)

    def move(self, move):
        return float(np.clip(move, -2, 2)) + 4


class SmoothMoves(Plain):
    """Half of the move, and half of the one that was made before in the episode."""

    def move_after(self, now, move):
        return move if now.before is None else (now.made + move) / 2


def delayed(delay, fill):
    """The move that was given some steps ago in the episode."""

    class Delayed(Plain):
        def move_after(self, now, move):
            given = [*(one.given for one in now.episode[1:]), move]
            return given[-1 - delay] if len(given) > delay else fill

    return Delayed


class StickyMoves(Plain):
    """The move before, with a probability; a row has random numbers of its own, of SplitMix64."""

    def __init__(self, *args):
        super().__init__(*args)
        #: The state of each row, and the first moment with the seed that it began with.
        self.states, self.seeded = {}, {}
        self.key = int(np.random.SeedSequence(STICKY_SEED).generate_state(1, np.uint64)[0])

    def move_after(self, now, move):
        if now.before is None:
            return move
        return now.made if self.drawn(now) < STICKY else move

    def drawn(self, now):
        """The next number of the row."""
        row = now.row
        if row not in self.states:
            self.states[row] = mixed(self.key + (row + 1) * GOLDEN)
        firsts = [one for one in self.model.rows[row].life if one.before is None and one.shown]
        seeded = [one for one in firsts if one.origin is not None and one.origin[1] == 0]
        if seeded and seeded[-1] is not self.seeded.get(row):
            self.seeded[row] = seeded[-1]
            self.states[row] = mixed(self.key + mixed(seeded[-1].origin[0] + GOLDEN))
        self.states[row] = (self.states[row] + GOLDEN) % 2**64
        return (mixed(self.states[row]) >> 11) / 2**53


#: Of ``StickyAction`` in the table.
STICKY, STICKY_SEED = 0.5, 3
GOLDEN = 0x9E3779B97F4A7C15


def mixed(number):
    """As in SplitMix64."""
    number %= 2**64
    number = (number ^ (number >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    number = (number ^ (number >> 27)) * 0x94D049BB133111EB % 2**64
    return number ^ (number >> 31)


def flattened(observation):
    """As Gymnasium flattens the nested form."""
    return flatten(FORMS["nested"][1], observation)


def gray(image):
    """As Gymnasium makes images gray."""
    return np.sum(image * np.array([0.2125, 0.7154, 0.0721]), axis=-1).astype(np.uint8)


# Wrappers with state


def stacked(k, *, sees_resets=False):
    """The last ``k`` observations that follow each other; the first is repeated.

    With ``sees_resets`` it is inside the wrapper that makes resets, whose results it has even if
    the caller has not.
    """

    class Stacked(Plain):
        def observation(self, moment):
            frames, earlier = [moment], moment.before
            while len(frames) < k:
                follows = earlier is not None and (
                    earlier.shown or (sees_resets and earlier.what == "reset")
                )
                frames.append(earlier if follows else frames[-1])
                earlier = earlier.before if follows else None
            return np.stack([super(Stacked, self).observation(one) for one in reversed(frames)])

    return Stacked


class Moments:
    """Mean, variance and count, which begin as Gymnasium's."""

    def __init__(self, shape):
        self.values = []
        self.shape = shape

    def add(self, values):
        self.values += values

    @property
    def count(self):
        return 1e-4 + len(self.values)

    @property
    def mean(self):
        return np.sum(self.values, axis=0) / self.count if self.values else np.zeros(self.shape)

    @property
    def var(self):
        if not self.values:
            return np.ones(self.shape)
        # The beginning counts as 1e-4 observations of mean 0 and variance 1.
        squares = np.sum((np.array(self.values) - self.mean) ** 2, axis=0)
        return (squares + 1e-4 * (1 + self.mean**2)) / self.count

    def assert_equal(self, found):
        np.testing.assert_allclose(found.count, self.count, rtol=1e-12)
        np.testing.assert_allclose(found.mean, self.mean, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(found.var, self.var, rtol=1e-9, atol=1e-9)


class NormalObservations(Plain):
    """Each new observation counts once; what was shown is shown again as it was."""

    tolerance = 1e-5

    def __init__(self, *args):
        super().__init__(*args)
        self.moments, self.kept = Moments((3,)), {}

    def see(self, batch):
        steps, others = new(batch)
        for part in [[*steps, *others]] if self.mode == NEXT else [steps, others]:
            values = {
                moment: np.float64(super(NormalObservations, self).observation(moment))
                for moment in part
            }
            self.moments.add(list(values.values()))
            for moment, value in values.items():
                normal = (value - self.moments.mean) / np.sqrt(self.moments.var + 1e-8)
                self.kept[moment] = normal.astype(np.float32)

    def observation(self, moment):
        return self.kept[moment]

    def check(self, envs):
        self.moments.assert_equal(envs.obs_rms)


class NormalRewards(Plain):
    """Rewards divided by the deviation of discounted returns of whole episodes."""

    tolerance = 1e-9
    gamma = 0.99

    def __init__(self, *args):
        super().__init__(*args)
        self.moments = Moments(())

    def see(self, batch):
        steps = [told.step for told in batch if told.step is not None]
        self.moments.add([self.sum(step) for step in steps if _is_whole_with(step)])

    def sum(self, step):
        earlier = step.before
        rest = self.sum(earlier) if earlier.what == "step" else 0.0
        return self.gamma * rest + step.reward

    def reward(self, moment):
        return moment.reward / np.sqrt(self.moments.var + 1e-8)

    def check(self, envs):
        self.moments.assert_equal(envs.return_rms)


def _is_whole_with(step):
    return step.before.is_whole


def outcome(end):
    """Length and return of an episode, by its last moment."""
    steps = [moment for moment in end.episode if moment.what == "step"]
    return len(steps), sum(step.reward for step in steps)


class Statistics(Plain):
    """Each episode once, in the step that ends it, if every step was told."""

    def __init__(self, *args):
        super().__init__(*args)
        self.ends, self.failed = [], 0

    def check_infos(self, infos, batch):
        ends = [
            told.step if told.step is not None and told.step.is_over else None for told in batch
        ]
        whole = [end is not None and end.is_whole for end in ends]
        self.ends += [end for end, is_whole in zip(ends, whole, strict=True) if is_whole]
        self.failed += sum(end is not None for end in ends) - sum(whole)
        self.failed += sum(told.failed for told in batch)
        mask = infos.get("_episode", np.zeros(len(batch), bool))
        assert mask.tolist() == whole
        for place, end in enumerate(ends):
            if whole[place]:
                told = infos["episode"]
                assert (told["l"][place], told["r"][place]) == outcome(end)

    def check(self, envs):
        lengths, returns = zip(*map(outcome, self.ends), strict=True)
        assert list(envs.length_queue) == list(lengths)
        assert list(envs.return_queue) == list(returns)
        assert (envs.episode_count, envs.failed_count) == (len(self.ends), self.failed)


class StatisticsOfObjectives(Objectives, Statistics):
    """The same, with one return for each objective."""

    def check_infos(self, infos, batch):
        if "episode" in infos:
            infos = {**infos, "episode": {**infos["episode"], "r": _first(infos["episode"]["r"])}}
        super().check_infos(infos, batch)

    def check(self, envs):
        counts = {name: getattr(envs, name) for name in ("episode_count", "failed_count")}
        returns = _first(np.array(envs.return_queue)).tolist()
        queues = {"length_queue": envs.length_queue, "return_queue": returns}
        super().check(SimpleNamespace(**counts, **queues))


def _first(returns):
    """The returns of the first objective, after a check of the second."""
    assert np.array_equal(returns, rewards_of(returns[:, 0]).T)
    return returns[:, 0]


class Metrics(Statistics):
    """The same, with running values in every step, and with origins."""

    def check_infos(self, infos, batch):
        shown, rest = infos["episode"], {**infos, "episode": {}}
        rest["episode"] = {"l": shown["episode_len"], "r": shown["return"]}
        super().check_infos(rest, batch)
        for place, told in enumerate(batch):
            now = told.step or told.now
            if now.is_whole and not told.rests and not told.failed:
                assert (shown["episode_len"][place], shown["return"][place]) == outcome(now)

    def check(self, envs):
        columns = {name: column.tolist() for name, column in envs.finished().items()}
        names = ("env_index", "episode_len", "return", "terminated", "truncated", "seed")
        found = list(zip(*(columns[name] for name in names), strict=True))
        expected = []
        for end in self.ends:
            seed = end.origin[0] if end.origin is not None and end.origin[1] == 0 else -1
            expected.append((end.row, *outcome(end), end.terminated, end.truncated, seed))
        assert found == expected


class Recorded(Plain):
    """A file has each episode, up to its end or to the first step that was not told."""

    def check_closed(self, model):
        expected = defaultdict(list)
        for end in model.episodes:
            moments = end.episode
            while not all(one.shown and one.told for one in moments[1:]):
                moments.pop()
            if len(moments) < 2 or not moments[0].shown:
                continue
            last, origin = moments[-1], model.known_origin(moments[0])
            expected[end.row].append(
                {
                    "obs": [list(map(float, one.place)) for one in moments],
                    "actions": [[one.given] for one in moments[1:]],
                    "rewards": [one.reward for one in moments[1:]],
                    "flags": (last.terminated, last.truncated),
                    "origin": (None, None) if origin is None else origin,
                }
            )
        found = defaultdict(list)
        (path,) = self.folder.glob("*.json")
        with h5py.File(path.with_suffix(".h5")) as file:
            for about in json.loads(path.read_text())["episodes"]:
                group = file[f"traj_{about['episode_id']}"]
                seed = about["row_seed"]
                found[about["env_index"]].append(
                    {
                        "obs": group["obs"][:].tolist(),
                        "actions": group["actions"][:].tolist(),
                        "rewards": group["rewards"][:].tolist(),
                        "flags": (bool(group["terminated"][-1]), bool(group["truncated"][-1])),
                        "origin": (None, None) if seed is None else (seed, about["episode_in_row"]),
                    }
                )
        assert dict(found) == dict(expected)
