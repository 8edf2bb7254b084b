"""Collectors, and what happens to them: every rollout follows the plain model, step after step.

The collector calls the environments, so these plays see rollouts alone. Each valid step must be the
one that the model makes at its place, and it must follow the step before it in the same row, in
this rollout or the one before: nothing is lost, and nothing is there twice.
"""

from __future__ import annotations

import copy
import pickle
import weakref
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

import cartwheel
from tests.contract.collector_subjects import NUM_ENVS
from tests.contract.events import Events
from tests.contract.model import (
    NEXT,
    OFF,
    SAME,
    ChosenError,
    Place,
    PlainEnv,
    fails,
    length_of,
    reward_of,
    terminates,
)
from tests.contract.play import SEED, Gate

#: Rollouts that may be complete before one in which something is wrong.
MAX_AHEAD = 12


def move_at(place):
    """The move of the policy."""
    return ((place.seed + 2 * place.begun + 3 * place.steps) % 7 - 3) / 2


@dataclass
class Life:
    """Where the next valid step of a row must be.

    Attributes:
        place: Exactly there; ``None``: at the beginning of an episode.
        length: Of the episode, if it is not that of its place.
        kept: Seed and length of one of its next automatic resets.
        may_begin: Whether one of the next steps may be at the beginning of another episode.
    """

    place: Place | None = None
    length: int | None = None
    kept: tuple[int, int] | None = None
    may_begin: bool = False


class CollectorPlay:
    """A collector in one mode, next to the model.

    Args:
        subject: The way to collect.
        mode: The autoreset mode.
        executor: The executor.
        changes: Whether the keys of infos change.
        limits: For each row, the steps of its first episode and of those after it.
        **keywords: Of the vector environment.
    """

    def __init__(self, subject, mode, executor=None, *, changes=False, limits=None, **keywords):
        self.subject, self.mode, self.limits = subject, mode, limits
        executor = executor or subject.executor
        if executor != "inline":
            keywords["num_workers"] = 2

        def make():
            return PlainEnv(changes=changes, endless=limits is not None)

        keywords |= {"executor": executor, "autoreset_mode": subject.inside or mode}
        self._make_envs = partial(cartwheel.VectorEnv, [make] * NUM_ENVS, **keywords)
        #: Calls of the policy before one that raises; negative: none does.
        self.calls_until_failure = -1
        self.begin()
        columns = NUM_ENVS - subject.keywords.get("standby", 0)
        self.lives = [Life() for _ in range(columns)]
        #: Where rows are in rollouts that were complete before a reset, and how many may be.
        self.complete, self.may_be_complete = [], 0
        self.gate = Gate()

    def begin(self):
        """Makes environments and a collector."""
        inner = self._make_envs()
        self.envs = inner if self.subject.wrap is None else self.subject.wrap(inner, self.mode)
        self.inner = weakref.ref(inner)
        act = self._recurrent if "recurrent" in self.subject.keywords else self._policy
        self.collector = cartwheel.Collector(
            self.envs, act, seed=SEED, progress=False, **self.subject.keywords
        )

    def end(self):
        self.gate.open()
        if self.collector is not None:
            self.collector.close()
            self.envs.close()

    def _policy(self, observations):
        self.calls_until_failure -= 1
        if self.calls_until_failure == -1:
            raise ChosenError("chosen to fail")
        moves = [move_at(Place(*map(int, row))) for row in observations]
        return np.array(moves, np.float32)[:, None], {"seen": observations.copy()}

    def _recurrent(self, observations, env_index, first):
        assert first.tolist() == [row[2] == 0 for row in observations]
        assert observations[first, 2].max(initial=0) == 0
        assert len(env_index) == len(observations)
        return self._policy(observations)

    # Calls

    def collect(self, count=1):
        for _ in range(count):
            self._check(self.collector.collect())

    def evaluate(self):
        """Another caller plays episodes with the same policy."""
        cartwheel.evaluate(self.envs, self._policy, progress=False)

    def collect_until(self, error):
        """Collects until this is raised, after rollouts that were complete before."""
        for _ in range(MAX_AHEAD):
            try:
                self.gate.expect_interrupt()
                rollout = self.collector.collect()
            except error:
                return
            self._check(rollout)
        pytest.fail(f"no {error}")

    def order(self, row, order):
        """An environment carries out an order in its next step."""
        self.collector.pause()
        self.envs.set_attr("order", [order if one == row else None for one in range(NUM_ENVS)])

    def begins_anew(self):
        """The next rollout begins with a reset of all rows, after those that are complete."""
        if "background" in self.subject.keywords:
            self.complete = self.lives
            self.may_be_complete = self.subject.keywords.get("queue", 1)
        self.lives = [Life() for _ in self.lives]

    def may_begin_anew(self):
        """Each row may begin another episode once."""
        for life in self.lives:
            life.may_begin = True

    def move(self):
        """Others, which were never used, continue from the state of these, unless it is refused."""
        names = ("run_ahead", "columns", "standby", "background")
        refused = next((name for name in names if name in self.subject.keywords), None)
        if refused is not None:
            with pytest.raises(ValueError, match=f"between two rollouts, which {refused}="):
                self.collector.state_dict()
            return
        try:
            state = pickle.dumps(self.collector.state_dict())
        except RuntimeError as error:
            if "while order='auto' measures" not in str(error):
                raise
            return
        self.collector.close()
        self.envs.close()
        self.begin()
        self.collector.load_state_dict(pickle.loads(state))

    # The two next to each other

    def _check(self, rollout):
        valid, after = rollout.valid, rollout.next_observations()
        if self.may_be_complete and not rollout.is_first[0].all():
            left, self.may_be_complete = self.may_be_complete - 1, 0
            self.lives, lives = self.complete, self.lives
            self._check(rollout)
            self.complete, self.lives, self.may_be_complete = self.lives, lives, left
            return
        self.may_be_complete = 0
        may_begin = any(life.may_begin for life in self.lives)
        if self.subject.episodes:
            self.begins_anew()
        if may_begin and self.subject.episodes:
            self.may_begin_anew()
        seen = rollout.extras["seen"][valid]
        np.testing.assert_array_equal(seen, rollout.observations[:-1][valid])
        for column in range(rollout.num_envs):
            is_ahead = "columns" in self.subject.keywords
            life = self.lives[rollout.env_index[column] if is_ahead else column]
            for step in np.flatnonzero(valid[:, column]).tolist():
                self._check_step(rollout, step, column, life, after)
            ends = (rollout.terminated | rollout.truncated)[:, column] & valid[:, column]
            if self.subject.episodes and not may_begin:
                assert ends.sum() == self.subject.episodes

    def _check_step(self, rollout, step, column, life, after):
        at = step, column
        place = Place(*map(int, rollout.observations[at]))
        begins = place.steps == 0
        if life.may_begin and begins and life.place not in (None, place):
            life.place, life.may_begin = None, False
        if life.place is None:
            assert begins, place
            life.length = None
        elif life.kept is not None and place == Place(life.kept[0], 0, 0):
            assert life.place.steps == 0
            life.length, life.kept = life.kept[1], None
        elif "standby" in self.subject.keywords and life.place.steps == 0:
            assert (place.begun, place.steps) == (0, 0)
        else:
            assert place == life.place
        move = move_at(place)
        assert rollout.actions[at] == move
        assert rollout.is_first[at] == begins
        now = place._replace(steps=place.steps + 1)
        assert tuple(after[at]) == now
        assert rollout.rewards[at] == reward_of(now, move)
        over = bool(rollout.terminated[at] or rollout.truncated[at])
        if self.limits is None:
            assert over == (now.steps == (life.length or length_of(now)))
            assert rollout.terminated[at] == (over and terminates(now))
        else:
            first, later = self.limits[rollout.env_index[column]]
            is_late = self.subject.episodes or now.begun
            assert over == rollout.truncated[at]
            if "standby" in self.subject.keywords:  # which environment plays is not known
                assert now.steps <= later
                assert over or now.steps < later
            else:
                assert over == (now.steps == (later if is_late else first))
        life.place = now
        if over:
            life.place, life.length = Place(now.seed, now.begun + 1, 0), None


EVENTS = Events()
event = EVENTS.add


@event()
def plain_rollouts(play):
    play.collect(5)


@event(executor="thread", timeout=1.0, modes=(NEXT,))
def time_out(play):
    play.collect(2)
    play.order(1, play.gate.wait)
    play.collect_until(TimeoutError)
    play.gate.open()
    play.may_begin_anew()  # rows that were sent are received later
    play.collect(3)


@event(executor="thread")
def ctrl_c(play):
    """In the background the thread goes on."""
    play.collect(2)
    play.order(1, play.gate.interrupt)
    play.collect_until(KeyboardInterrupt)
    play.gate.open()
    play.may_begin_anew()
    play.collect(3)


@event()
def error_in_step(play):
    for count in range(3):
        play.collect(count)
        play.order(count, fails)
        play.collect_until(ChosenError)
        play.begins_anew()
    play.collect(2)


@event(executor="process")
def error_in_a_worker_process(play):
    play.collect(2)
    play.order(1, fails)
    play.collect_until(ChosenError)
    play.begins_anew()
    play.collect(2)


@event()
def error_in_the_policy(play):
    """It is asked again, and the same rollout goes on, also after a pause."""
    play.collect(2)
    for calls in (0, 2, 5):
        play.calls_until_failure = calls
        play.collect_until(ChosenError)
        play.collector.pause()
        play.collect(2)


@event()
def steps_within_a_rollout(play):
    """Another caller steps a row while a rollout is unfinished."""
    play.collect(2)
    for calls in (0, 3):
        play.calls_until_failure = calls
        play.collect_until(ChosenError)
        play.collector.pause()
        play.envs.reset(options={"env_index": np.array([2])})
        play.envs.step(np.zeros((1, 1), np.float32), np.array([2]))
        play.begins_anew()
        play.collect(2)


@event()
def state_dict(play):
    """Before the first rollout, and between two others."""
    for count in (0, 1, 2):
        play.collect(count)
        play.move()
    play.collect(3)


@event()
def masked_reset(play):
    play.collect(2)
    play.collector.pause()
    play.envs.reset(options={"reset_mask": np.arange(NUM_ENVS) == 1})
    play.begins_anew()
    play.collect(2)


@event()
def env_index(play):
    """Another caller steps a row."""
    play.collect(2)
    play.collector.pause()
    play.envs.reset()
    play.envs.step(np.zeros((1, 1), np.float32), np.array([2]))
    play.begins_anew()
    play.collect(2)


@event(modes=(NEXT, SAME))
def next_reset(play):
    """Kept until the row's next automatic reset."""
    play.collect(1)
    play.collector.pause()
    if play.subject.inside == OFF:
        return
    play.envs.next_reset(seed=[40], options={"length": 2}, env_index=[1])
    play.lives[1].kept = 40, 2
    for _ in range(50):  # in free order, other rows may take more than their share of the steps
        play.collect(1)
        if play.lives[1].kept is None or play.subject.episodes:
            break
    else:
        pytest.fail("the row was not reset")
    play.collect(1)


@event()
def set_state(play):
    play.collect(1)
    play.collector.pause()
    state = play.envs.get_state([1])
    play.collect(1)
    play.collector.pause()
    play.envs.set_state([2], state)
    play.begins_anew()
    play.collect(2)


@event()
def evaluation(play):
    play.collect(2)
    play.collector.pause()
    play.evaluate()
    play.begins_anew()
    play.collect(2)


@event(staggered=True)
def staggered(play):
    play.collect(4)


@event(changes=True)
def changed_info_keys(play):
    play.collect(4)


@event(on_error="restart")
def restarted_environment(play):
    """Its failed step is not valid, and the other rows go on."""
    play.collect(2)
    play.order(1, fails)
    play.may_begin_anew()
    play.collect(3)


@event()
def dropped_reference(play):
    """Nothing is collected as garbage meanwhile."""
    play.collect(2)
    play.order(2, fails)
    play.collect_until(ChosenError)
    play.begins_anew()
    play.collect(2)
    play.collector = play.envs = None
    assert play.inner() is None, "something refers to the environments"


@event()
def pickled(play):
    """Refused, and nothing changes."""
    play.collect(2)
    for call in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be pickled or copied"):
            call(play.collector)
    play.collect(2)
