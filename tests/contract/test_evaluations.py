"""An evaluation plays what the plain model says, whatever happened before it or in another one."""

import pickle
import signal
import weakref
from typing import get_args

import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv

import cartwheel
from cartwheel import wrappers
from cartwheel._internal.literals import EvaluateOrder
from cartwheel.wrappers.base import VectorWrapper
from tests.contract.collecting import move_at
from tests.contract.events import Events
from tests.contract.model import (
    MODES,
    NEXT,
    OFF,
    ChosenError,
    Place,
    PlainEnv,
    fails,
    length_of,
    reward_of,
    terminates,
)
from tests.contract.play import NUM_ENVS, SEED, Gate, cases, run

EPISODES = 3


def bare(envs, _mode):
    return envs


def with_statistics(envs, _mode):
    return wrappers.RecordEpisodeStatistics(VectorWrapper(envs))


#: What is evaluated: the order, and what makes the vector environment around the rows in a mode.
SUBJECTS = {
    "lockstep": ("lockstep", bare),
    "free": ("free", bare),
    "lockstep in statistics": ("lockstep", with_statistics),
    "free in statistics": ("free", with_statistics),
    "lockstep in an adapter": ("lockstep", wrappers.AutoresetAdapter),
}
EVENTS = Events()
event = EVENTS.add


class EvaluationPlay:
    """Evaluations of a subject in one mode, next to the model."""

    def __init__(self, subject, mode, executor=None, *, changes=False, limits=None, **keywords):
        self.order, wrap = SUBJECTS[subject]
        self.mode, self.limits = mode, limits
        executor = executor or ("thread" if self.order == "free" else "inline")
        if executor != "inline":
            keywords["num_workers"] = 2

        def make():
            return PlainEnv(changes=changes, endless=limits is not None)

        self.inside = OFF if wrap is wrappers.AutoresetAdapter else mode
        inner = cartwheel.VectorEnv(
            [make] * NUM_ENVS, executor=executor, autoreset_mode=self.inside, **keywords
        )
        self.inner, self.envs = weakref.ref(inner), wrap(inner, mode)
        self.gate = Gate()

    def end(self):
        self.gate.open()
        if self.envs is not None:
            self.envs.close()

    def run(self):
        return cartwheel.evaluate(
            self.envs,
            policy,
            episodes_per_env=EPISODES,
            seed=SEED,
            order=self.order,
            progress=False,
        )

    def raises(self, row, order, error):
        """An environment carries out an order in its first step."""
        self.envs.set_attr("order", [order if one == row else None for one in range(NUM_ENVS)])
        with pytest.raises(error):
            self.run()

    def check(self, rows=range(NUM_ENVS)):
        """An evaluation of these rows is that of the model; returns it."""
        known = self.knows()
        found = self.run()
        for row in rows:
            expected = [self.episode(row, number) for number in range(EPISODES)]
            columns = (found.lengths, found.returns, found.terminated, found.truncated)
            shown = list(zip(*(column[row].tolist() for column in columns), strict=True))
            assert shown == expected
        assert self.knows() == known, "the statistics of the training changed"
        return found

    def episode(self, row, number):
        """Length, return and flags of an episode."""
        place, total = Place(SEED + row, number, 0), 0.0
        length = length_of(place) if self.limits is None else 5
        for _ in range(length):
            now = place._replace(steps=place.steps + 1)
            total += reward_of(now, move_at(place))
            place = now
        terminated = terminates(place) and self.limits is None
        return length, total, terminated, not terminated

    def knows(self):
        """The training statistics of wrappers."""
        if not isinstance(self.envs, wrappers.RecordEpisodeStatistics):
            return None
        counts = self.envs.episode_count, self.envs.failed_count
        return counts, list(self.envs.return_queue), list(self.envs.length_queue)


def policy(observations):
    moves = [move_at(Place(*map(int, row))) for row in observations]
    return np.array(moves, np.float32)[:, None]


def still(rows=NUM_ENVS):
    return np.zeros((rows, 1), np.float32)


@event()
def nothing(play):
    assert pickle.loads(pickle.dumps(play.check())).returns.shape == (NUM_ENVS, EPISODES)
    play.check()


@event(executor="thread", timeout=1.0, modes=(NEXT,))
def time_out(play):
    play.raises(1, play.gate.wait, TimeoutError)
    play.gate.open()
    play.check()


@event(executor="thread")
def ctrl_c(play):
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

    def interrupt():
        signal.raise_signal(signal.SIGINT)

    play.raises(1, interrupt, KeyboardInterrupt)
    play.check()


@event()
def error_in_step(play):
    for row in range(NUM_ENVS):
        play.raises(row, fails, ChosenError)
        play.check()


@event(executor="process")
def error_in_a_worker_process(play):
    play.raises(1, fails, ChosenError)
    play.check()


@event()
def masked_reset_and_steps_of_rows(play):
    play.envs.reset(seed=1)
    play.envs.step(still())
    play.envs.reset(options={"reset_mask": np.array([True, False, False])})
    if play.envs.steps_rows:
        play.envs.step(still(1), np.array([2]))
    play.check()


@event()
def next_reset(play):
    """Discarded by the reset with which the evaluation begins."""
    play.envs.reset(seed=1)
    if play.inside != OFF:
        play.envs.next_reset(seed=[40], options={"length": 2}, env_index=[1])
    play.check()


@event()
def set_state(play):
    play.envs.reset(seed=1)
    states = play.envs.get_state([0])
    play.envs.step(still())
    play.envs.set_state([2], states)
    play.check()


@event(staggered=True)
def staggered_resets(play):
    """The evaluation does not stagger rows, and later resets do."""
    play.check()
    play.envs.reset(seed=SEED)
    firsts = [first for first, _ in play.limits]
    for _ in range(min(firsts)):
        truncations = play.envs.step(still())[3]
    assert truncations.tolist() == [first == min(firsts) for first in firsts]


@event(changes=True)
def changed_info_keys(play):
    play.check()


@event(on_error="restart")
def restarted_environment(play):
    """The episode is dropped, and the row plays another one."""
    play.envs.reset(seed=1)
    play.envs.set_attr("order", [None, fails, None])
    found = play.check([0, 2])
    assert found.failures.tolist() == [0, 1, 0]
    assert found.lengths.min() >= 2


@event()
def dropped_reference(play):
    """Nothing is collected as garbage meanwhile."""
    play.raises(1, fails, ChosenError)
    play.check()
    play.envs = None
    assert play.inner() is None, "something refers to the environments"


def modes_of(subject, event):
    _, wrapper = SUBJECTS[subject]
    _, modes, _ = EVENTS[event]
    without = {OFF} if wrapper is wrappers.AutoresetAdapter else set()
    return [mode for mode in modes if mode not in without]


@pytest.mark.parametrize("case", list(cases(SUBJECTS, EVENTS, modes_of)))
def test_every_evaluation_is_what_the_plain_model_says(case):
    subject, name, mode = case
    run(EVENTS[name], EvaluationPlay, subject, mode)


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
def test_vector_environments_of_gymnasium_are_evaluated_alike(mode):
    play = EvaluationPlay("lockstep", mode)
    play.end()
    play.envs = SyncVectorEnv([PlainEnv] * NUM_ENVS, autoreset_mode=mode)
    play.check()
    play.raises(1, fails, ChosenError)
    play.check()


def test_every_order_is_in_the_table():
    assert {order for order, _ in SUBJECTS.values()} == set(get_args(EvaluateOrder))
