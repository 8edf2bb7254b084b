"""Every adapter of a trainer keeps its contract in every event."""

import importlib
import signal
import weakref

import numpy as np
import pytest

from tests.contract.events import Events
from tests.contract.model import OFF, SAME, ChosenError, Model, Place, PlainEnv, fails
from tests.contract.play import NUM_ENVS, SEED, Gate, run
from tests.contract.trainers import TRAINERS
from tests.support.one_thread import one_thread

pytestmark = pytest.mark.torch
ALL = list(range(NUM_ENVS))
EVENTS = Events()
event = EVENTS.add


@pytest.fixture(scope="module", autouse=True)
def _imported():
    """Import the trainers once, so that no test is blamed for their threads."""
    one_thread()
    for name in ("stable_baselines3", "skrl", "tianshou", "torchrl"):
        importlib.import_module(name)


class TrainerPlay:
    """An adapter next to the model.

    Args:
        name: One of ``TRAINERS``.
        executor: The executor.
        changes: Whether the keys of infos change.
        limits: As for the model.
        **keywords: Of the vector environment.
    """

    def __init__(self, name, executor="inline", *, changes=False, limits=None, **keywords):
        if executor != "inline":
            keywords["num_workers"] = 2

        def make():
            return PlainEnv(changes=changes, endless=limits is not None)

        self.trainer = TRAINERS[name]([make] * NUM_ENVS, executor=executor, **keywords)
        self.inner = weakref.ref(self.trainer.envs)
        self.mode, self.has_rows = self.trainer.mode, self.trainer.has_rows
        self.model = Model(self.mode, NUM_ENVS, changes=changes, limits=limits)
        self.gate = Gate()
        self._count = 0

    def end(self):
        self.gate.open()
        if self.trainer is not None:
            self.trainer.close()

    # Calls

    def reset(self, seed=None):
        """A reset of all rows; some trainers do not show what a reset with seeds shows."""
        shown = self.trainer.reset(seed)
        for row in ALL:
            self.model.reset(row, None if seed is None else seed + row)
        if shown is not None:
            self._assert_shown(shown, ALL)

    def begin(self):
        self.reset(SEED)
        self.reset()

    def reset_rows(self, rows):
        """A reset of some rows, by the trainer or, if it makes none, by another caller."""
        if self.has_rows:
            shown = self.trainer.reset_rows(rows)
        else:
            mask = np.isin(ALL, rows)
            shown = self.trainer.envs.reset(options={"reset_mask": mask})[0][mask]
        for row in rows:
            self.model.reset(row)
        self._assert_shown(shown, rows)

    def steps(self, count):
        for _ in range(count):
            self.step()

    def step(self, rows=None):
        self.ready(rows)
        moves = self.moves(rows or ALL)
        found = self.trainer.step(np.array(moves, np.float32)[:, None], rows)
        told = [self.model.step(row, move) for row, move in zip(rows or ALL, moves, strict=True)]
        self._compare(found, told)

    def ready(self, rows=None):
        over = [row for row in self.model.over if rows is None or row in rows]
        if over and self.mode == OFF:
            self.reset_rows(over)

    def moves(self, rows):
        self._count += 1
        return [((self._count + 2 * row) % 7 - 3) / 2 for row in rows]

    def order(self, row, order):
        """An environment carries out an order in its next step, which all rows can make."""
        self.ready()
        self.trainer.envs.set_attr("order", [order if one == row else None for one in ALL])

    def step_that_raises(self, error, failed=None):
        """A step whose results are lost; the others went on, or go on until they are dropped."""
        moves = self.moves(ALL)
        with pytest.raises(error):  # noqa: PT012 - Ctrl-C may come before the step
            self.gate.expect_interrupt()
            self.trainer.step(np.array(moves, np.float32)[:, None])
        self.gate.open()
        for row, move in zip(ALL, moves, strict=True):
            if row != failed:
                self.model.step(row, move)

    def step_that_restarts(self, row):
        self.order(row, fails)
        moves = self.moves(ALL)
        found = self.trainer.step(np.array(moves, np.float32)[:, None])
        place = Place(*self.trainer.envs.get_attr("place")[row])
        told = [
            self.model.fail(one, place) if one == row else self.model.step(one, move)
            for one, move in zip(ALL, moves, strict=True)
        ]
        self._compare(found, told)

    # The two next to each other

    def _assert_shown(self, shown, rows):
        assert shown.tolist() == [list(self.model.rows[row].now.place) for row in rows]

    def _compare(self, found, told):
        for place, one in enumerate(told):
            step = one.step
            after = one.last or one.now if one.failed else step
            assert found.shown[place].tolist() == list(one.now.place)
            assert found.after[place].tolist() == list(after.place)
            assert found.rewards[place] == (0 if one.failed else step.reward)
            flags = (False, True) if one.failed else (step.terminated, step.truncated)
            assert (found.terminated[place], found.truncated[place]) == flags


@event()
def plain_steps(play):
    play.begin()
    play.steps(12)


@event(executor="process")
def in_worker_processes(play):
    play.begin()
    play.steps(4)
    play.order(1, fails)
    play.step_that_raises(ChosenError, 1)
    play.reset()
    play.steps(4)


@event(executor="thread", timeout=2.0)
def time_out(play):
    play.begin()
    play.steps(2)
    play.order(0, play.gate.wait)
    play.step_that_raises(TimeoutError)
    play.reset()
    play.steps(6)


@event(executor="thread")
def ctrl_c(play):
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    play.begin()
    play.steps(3)
    play.order(1, play.gate.interrupt)
    play.step_that_raises(KeyboardInterrupt)
    play.reset()
    play.steps(6)


@event()
def error_in_step(play):
    play.begin()
    for count in range(4):
        play.steps(count)
        play.order(count % 3, fails)
        play.step_that_raises(ChosenError, count % 3)
        play.reset()
    play.steps(6)


@event()
def masked_reset(play):
    play.begin()
    play.steps(1)
    play.reset_rows([1])
    play.steps(2)
    play.reset_rows([0, 2])
    play.steps(6)


@event()
def env_index(play):
    play.begin()
    for rows in ([2], [0, 1], [1], [0, 2], [0, 1, 2]) * 2 if play.has_rows else ():
        play.step(rows)
    play.steps(5)


@event()
def next_reset(play):
    """Of the vector environment; where a trainer makes the resets there is none."""
    play.begin()
    if play.mode == SAME:
        play.trainer.envs.next_reset(seed=[40], options={"length": 2}, env_index=[1])
        play.model.rows[1].kept = 40, 2
    play.steps(8)


@event()
def set_state(play):
    play.begin()
    play.steps(1)
    states, known = play.trainer.envs.get_state([0]), play.model.save(0)
    play.steps(3)
    play.trainer.envs.set_state([2], states)
    play.model.restore(2, known)
    play.steps(6)


@event(staggered=True)
def staggered_resets(play):
    play.reset(SEED)
    play.steps(12)


@event(changes=True)
def changed_info_keys(play):
    play.begin()
    play.steps(10)


@event(on_error="restart")
def restarted_environments(play):
    play.begin()
    for row in range(3):
        play.steps(row + 1)
        play.step_that_restarts(row)
    play.steps(6)


@event()
def dropped_reference(play):
    """Nothing is collected as garbage meanwhile."""
    play.begin()
    play.steps(2)
    play.order(2, fails)
    play.step_that_raises(ChosenError, 2)
    play.reset()
    play.steps(2)
    play.trainer = None
    assert play.inner() is None, "something refers to the environments"


@event()
def pickled(play):
    """Refused, and nothing changes."""
    play.begin()
    play.steps(2)
    with pytest.raises(TypeError, match="cannot be pickled"):
        play.trainer.pickle()
    play.steps(5)


def pairs():
    """Adapters and events; one parameter, so that no pair is left out."""
    for trainer in TRAINERS:
        for name in EVENTS:
            yield pytest.param((trainer, name), id=f"{trainer}, {name}")


@pytest.mark.parametrize("pair", list(pairs()))
def test_every_step_is_what_the_plain_model_says(pair):
    trainer, name = pair
    run(EVENTS[name], TrainerPlay, trainer)
