"""An environment whose observations say where it is, and a plain model of what its rows do.

A *place* is the seed of the last reset with one, the number of resets since then, and the number of
steps since the last of these. Everything that an environment does follows from its place and its
action. So the model knows, without an environment, what each row did in every call, whether the
caller was shown it or not: a row has a list of :class:`Moment`.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete
from gymnasium.vector import AutoresetMode

NEXT, SAME, OFF = AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED
MODES = (NEXT, SAME, OFF)
#: Longer than any test.
ENDLESS = 1000


class ChosenError(Exception):
    """Raised by an environment on demand."""


class Place(NamedTuple):
    seed: int
    begun: int
    steps: int


def length_of(place):
    """The steps of an episode that begins at this place, unless an option gives another number."""
    return 2 + (place.seed + place.begun) % 3


def reward_of(place, move):
    """The reward of the step that led to this place."""
    return float(place.steps + 8 * place.begun + move)


def rewards_of(reward):
    """The reward of an environment with two objectives, by that of one with one."""
    return np.array([reward, -2 * reward])


def terminates(place):
    """Whether episodes of this place end by termination; the others are truncated."""
    return (place.seed + place.begun) % 2 == 0


def key_of(place, *, changes):
    """The key of a step's info; with ``changes`` it is another one in each step."""
    return f"steps {place.begun}-{place.steps}" if changes else "steps"


#: The observation of a place, and the space of it.
FORMS = {
    "vector": (lambda place: np.array(place, np.float32), Box(0, 128, (3,), np.float32)),
    "image": (
        lambda place: np.broadcast_to(np.array(place, np.uint8), (4, 6, 3)).copy(),
        Box(0, 255, (4, 6, 3), np.uint8),
    ),
    "nested": (
        lambda place: {"at": np.array(place, np.float32), "steps": np.int64(place.steps)},
        Dict(at=Box(0, 128, (3,), np.float32), steps=Discrete(ENDLESS)),
    ),
}
#: The space of actions, and the move that an action is.
MOVES = {
    "box": (Box(-2, 2, (1,), np.float32), lambda action: float(action[0])),
    "nested": (
        Dict(much=Box(-2, 2, (1,), np.float32), which=Discrete(3)),
        lambda action: float(action["much"][0]) + 4 * int(action["which"]),
    ),
}


class PlainEnv(gym.Env):
    """Goes from place to place. The attribute ``order`` is carried out by the next step.

    Args:
        form: One of :data:`FORMS`.
        moves: One of :data:`MOVES`.
        changes: Whether each step has an info key of its own.
        endless: Whether only a limit ends episodes.
        objectives: Whether rewards are arrays, see :func:`rewards_of`.
    """

    def __init__(
        self, form="vector", moves="box", *, changes=False, endless=False, objectives=False
    ):
        self.reward_space = Box(-np.inf, np.inf, (2,), np.float64) if objectives else None
        self.observe, self.observation_space = FORMS[form]
        self.action_space, self.move_of = MOVES[moves]
        self.changes, self.endless = changes, endless
        self.place, self.length, self.order = Place(0, -1, 0), 0, None
        #: The place after each step, with what the step returned; of all episodes.
        self.log = []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        before = self.place
        self.place = (
            Place(before.seed, before.begun + 1, 0) if seed is None else Place(seed % 97, 0, 0)
        )
        given = (options or {}).get("length", length_of(self.place))
        self.length = ENDLESS if self.endless else given
        return self.observe(self.place), {"begun": self.place.begun}

    def step(self, action):
        order, self.order = self.order, None
        if order is not None:
            order()
        self.place = self.place._replace(steps=self.place.steps + 1)
        reward, over = reward_of(self.place, self.move_of(action)), self.place.steps == self.length
        ends = over and terminates(self.place), over and not terminates(self.place)
        self.log.append((self.place, reward, *ends))
        info = {key_of(self.place, changes=self.changes): self.place.steps}
        shown = reward if self.reward_space is None else rewards_of(reward)
        return self.observe(self.place), shown, *ends, info

    def get_state(self):
        return self.place, self.length

    def set_state(self, state):
        self.place, self.length = Place(*state[0]), state[1]


def fails():
    raise ChosenError("chosen to fail")


@dataclass(eq=False)
class Moment:
    """A step, or a first observation.

    Attributes:
        row: The row.
        what: ``"step"``, ``"reset"``, or ``"restored"``: the row continues from a state.
        place: Where the row is then.
        before: The moment before it in the same episode; ``None`` for the first one.
        origin: The seed that decides the episode, and the number of the episode since then;
            ``None`` if that is unknown.
        reward: Of a step.
        terminated: Of a step.
        truncated: Of a step.
        info: Without masks.
        given: The move that the caller gave a step.
        made: The move that the environment made.
        shown: Whether a batch had the observation.
        told: Whether a batch had the reward.
    """

    row: int
    what: str
    place: Place
    before: Moment | None = None
    origin: tuple[int, int] | None = None
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    info: dict[str, int] = field(default_factory=dict)
    given: float = 0.0
    made: float = 0.0
    shown: bool = False
    told: bool = False

    @property
    def is_over(self):
        return self.terminated or self.truncated

    @property
    def episode(self):
        """The moments of its episode up to it."""
        moments = [self]
        while moments[-1].before is not None:
            moments.append(moments[-1].before)
        return moments[::-1]

    @property
    def is_whole(self):
        """Whether the caller was shown the beginning of its episode, and told every step."""
        first, *steps = self.episode
        return first.shown and all(step.told for step in steps)


class Told(NamedTuple):
    """The part of a batch that concerns a row.

    Attributes:
        row: The row.
        now: The moment whose observation is there.
        step: The step whose reward and flags are there; ``None`` if there was none.
        rests: Whether the row was left alone.
        failed: Whether its environment failed and was replaced, which truncates the episode.
        last: What the row showed before that.
    """

    row: int
    now: Moment
    step: Moment | None
    rests: bool = False
    failed: bool = False
    last: Moment | None = None

    def final(self, mode):
        """The moment of the final observation in ``SAME_STEP``; ``None`` if there is none."""
        if mode != SAME:
            return None
        if self.failed:
            return self.last
        return self.step if self.step is not None and self.step.is_over else None


@dataclass
class Row:
    """The model's state of a row.

    Attributes:
        now: The last moment.
        length: Of the present episode.
        kept: Seed and length for its next automatic reset.
        life: All moments.
        origin: Of the present episode.
        replaced: Where another environment is that replaces one that failed, until it is reset.
    """

    now: Moment | None = None
    length: int = ENDLESS
    kept: tuple[int | None, int | None] = (None, None)
    life: list[Moment] = field(default_factory=list)
    origin: tuple[int, int] | None = None
    replaced: Place | None = None

    @property
    def is_over(self):
        return self.now.is_over or self.replaced is not None


class Model:
    """The behavior of every row in an autoreset mode.

    Args:
        mode: The mode.
        num_envs: The number of rows.
        changes: As for :class:`PlainEnv`.
        limits: For each row, the steps of its first episode and of those after it, where a limit
            ends them.

    Attributes:
        start: The place to which each reset leads; ``None``: one that depends on seed and number.
    """

    def __init__(self, mode, num_envs, *, changes=False, limits=None):
        self.mode, self.changes, self.limits, self.start = mode, changes, limits, None
        self.rows = [Row() for _ in range(num_envs)]

    def reset(self, row, seed=None, length=None):
        """An explicit or an automatic reset."""
        state = self.rows[row]
        last = state.now.place if state.now else Place(0, -1, 0)
        last, state.replaced = state.replaced or last, None
        place = Place(last.seed, last.begun + 1, 0) if seed is None else Place(seed, 0, 0)
        place = self.start or place
        if seed is not None:
            state.origin = seed, 0
        elif state.origin is not None:
            state.origin = state.origin[0], state.origin[1] + 1
        chosen = None if self.start else length  # a state has the length that it was saved with
        state.length = chosen or length_of(place)
        if self.limits is not None:
            first, later = self.limits[row]
            state.length = later if state.life else first
        state.kept = None, None
        told = Told(row, self._add(Moment(row, "reset", place, info={"begun": place.begun})), None)
        told.now.origin = state.origin
        return told

    def step(self, row, move, *, resets=True):
        """A step, with the automatic reset that the mode makes."""
        state = self.rows[row]
        before = state.now
        if state.is_over and self.mode == NEXT:
            return self.reset(row, *state.kept)
        place = before.place._replace(steps=before.place.steps + 1)
        over, by_limit = place.steps == state.length, self.limits is not None
        now = Moment(row, "step", place, before, before.origin, reward_of(place, move))
        now.terminated = over and terminates(place) and not by_limit
        now.truncated = over and not now.terminated
        now.info = {key_of(place, changes=self.changes): place.steps}
        self._add(now)
        shown = self.reset(row, *state.kept).now if over and resets and self.mode == SAME else now
        return Told(row, shown, now)

    def fail(self, row, place):
        """A step that fails; the environment in its stead is at ``place`` afterwards."""
        state = self.rows[row]
        last, state.origin, state.replaced = state.now, None, place
        if self.mode != SAME:
            return Told(row, last, None, failed=True)
        state.replaced = place._replace(begun=place.begun - 1)  # it was reset already
        return Told(row, self.reset(row, *state.kept).now, None, failed=True, last=last)

    def rest(self, row):
        """A batch of all rows in which this one was left alone."""
        return Told(row, self.rows[row].now, None, rests=True)

    def save(self, row):
        """The state for :meth:`restore`."""
        return self.rows[row].now, self.rows[row].length

    def restore(self, row, saved):
        """The row continues from there."""
        moment, length = saved
        state = self.rows[row]
        state.length, state.origin, state.kept = length, None, (None, None)
        state.replaced = None
        now = Moment(row, "restored", moment.place)
        now.terminated, now.truncated = moment.terminated, moment.truncated
        return Told(row, self._add(now), None)

    def known_origin(self, moment):
        """The origin of an episode, by its first moment; ``None`` if its seed was not shown."""
        life, origin = self.rows[moment.row].life, moment.origin
        if origin is None:
            return None
        earlier = reversed(life[: life.index(moment) + 1])
        seeded = next(one for one in earlier if one.origin == (origin[0], 0) and one.before is None)
        return origin if seeded is moment or seeded.shown else None

    def _add(self, moment):
        state = self.rows[moment.row]
        state.now = moment
        state.life.append(moment)
        return moment

    @property
    def over(self):
        """The rows that are over."""
        return [row for row, state in enumerate(self.rows) if state.is_over]

    @property
    def episodes(self):
        """The last moments of all episodes, in the order of each row's life."""
        ends = []
        for state in self.rows:
            pairs = itertools.zip_longest(state.life, state.life[1:])
            ends += [now for now, after in pairs if after is None or after.before is not now]
        return ends
