"""Events of the subjects: each function plays some steps, an event, and further steps."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from tests.contract.model import MODES, OFF, SAME, fails


class Events(dict[str, Any]):
    """Functions that play an event, each by its name, with its modes and keywords for the play."""

    def add(self, *, modes=MODES, **keywords):
        """A decorator of such a function."""

        def add(function):
            self[function.__name__] = (function, modes, keywords)
            return function

        return add


EVENTS = Events()
event = EVENTS.add


@event()
def plain_steps(play):
    play.reset()
    play.steps(12)


@event(executor="thread")
def time_out(play):
    """A step is given up, and a masked reset drops its results."""
    play.reset()
    play.steps(2)
    play.prepare(0)
    play.order(0, play.gate.wait)
    play.begin()
    play.times_out()
    play.refuses_a_step()
    play.gate.open()
    play.reset_rows([0])
    play.steps(9)


@event(executor="thread")
def time_out_and_another_wait(play):
    play.reset()
    play.steps(2)
    play.prepare(2)
    play.order(2, play.gate.wait)
    play.begin()
    play.times_out()
    play.gate.open()
    play.wait()
    play.steps(9)


@event(executor="thread")
def time_out_in_recv(play):
    """Nothing is lost."""
    play.reset()
    play.steps(2)
    play.prepare(0)
    if play.subject.sends:
        play.order(0, play.gate.wait)
        play.send([0, 1, 2])
        play.recv_times_out()
        play.gate.open()
        play.recv(3)
    play.steps(9)


@event(executor="thread")
def reset_of_rows_in_flight(play):
    """It drops the results of all."""
    play.reset()
    play.steps(2)
    play.prepare(0)
    if play.subject.sends:
        play.order(0, play.gate.wait)
        play.send([0, 2])
        play.recv_times_out()
        play.gate.open()
        play.reset_rows([0, 1])
    play.steps(9)


@event(executor="thread")
def ctrl_c(play):
    play.reset()
    play.steps(3)
    play.prepare(1)
    play.order(1, play.gate.interrupt)
    play.begin()
    play.interrupted()
    play.gate.open()
    play.reset_rows([1, 2], [30, 31])
    play.steps(9)


@event(executor="thread")
def ctrl_c_and_another_wait(play):
    play.reset()
    play.steps(3)
    play.prepare(1)
    play.order(1, play.gate.interrupt)
    play.begin()
    play.interrupted()
    play.gate.open()
    play.wait()
    play.steps(9)


@event()
def error_in_step(play):
    """In each step of an episode once; others may end theirs in it."""
    play.reset()
    for count in range(4):
        play.steps(count)
        play.step_that_raises(count % 3)
        play.step_that_needs_a_reset()
        play.reset_rows([count % 3])
    play.steps(9)


@event()
def error_in_recv(play):
    """Rows that were received before are idle and lose nothing."""
    play.reset()
    play.send([2, 0, 1])
    play.recv(3)
    for _ in range(3):
        if play.subject.sends:
            play.prepare(1)
            play.order(1, fails)
            play.send([2, 1, 0])
            play.recv(1)
            play.recv_that_raises(1, 2)
        else:
            play.step_that_raises(1)
        play.reset_rows([1])
        play.steps(2)
    play.steps(7)


@event(breaks=True)
def results_that_a_wrapper_loses(play):
    """Several in a row: a batch that is lost says nothing of those that were lost before it."""
    play.reset()
    for count in range(0 if play.subject.inside == OFF else 2):  # resets of an adapter show some
        play.steps(count)
        play.step_that_is_lost()
        play.step_that_is_lost([2, 1])
        play.reset_rows([0])
        play.reset_that_is_lost([0, 1], [20, None])
        play.step_that_is_lost()
        play.steps(2)
        play.reset_that_is_lost([2], [30])
        play.reset_that_is_lost([1], [None])
        play.reset_rows([0])
    play.steps(9)


@event()
def masked_reset(play):
    play.reset()
    play.steps(1)
    play.reset_rows([1])
    play.steps(2)
    play.reset_rows([0, 2], [20, 21])
    play.steps(9)


@event()
def reset_by_numbers(play):
    play.reset()
    play.steps(1)
    play.reset_rows([2, 0], [20, 21], by="numbers")
    play.steps(2)
    play.reset_rows([1], by="numbers")
    play.steps(9)


@event(executor="thread")
def reset_by_numbers_after_lost_steps(play):
    """The other rows are not shown before their next steps."""
    play.reset()
    for count in range(4):
        play.steps(count)
        play.step_that_raises(count % 3)
        play.reset_rows([count % 3], by="numbers")
        play.steps(3)
    play.steps(9)


@event()
def lost_next_reset(play):
    """The episode that the kept seed begins is shown late, or never."""
    play.reset()
    for again in ([1], [0, 1, 2]):
        play.next_reset(0, 40, 4)
        while play.model.rows[0].kept != (None, None):
            play.step_that_raises(1)
            play.reset_rows(again, by="mask" if len(again) == 1 else "numbers")
            if play.mode == OFF or play.subject.inside == OFF:
                break
    play.steps(15)


@event()
def env_index(play):
    """Some rows are stepped, in any order."""
    play.reset()
    for rows in ([2], [0, 1], [1, 0], [2, 1], [1], [2, 0, 1], [0], [1, 2], [2, 1, 0]) * 2:
        play.step(rows)
    play.steps(5)


@event()
def sent_rows(play):
    play.reset()
    for _ in range(4):
        play.send([1, 2])
        play.send([0])
        play.recv(2)
        play.send([2])
        play.recv(2)
    play.steps(5)


@event()
def next_reset(play):
    play.reset()
    play.next_reset(1, 40, 2)
    play.steps(2)
    play.next_reset(0, 41, 4)
    play.next_reset(2, 42, 3)
    play.reset_rows([2])  # discards what was kept
    play.steps(9)


@event()
def set_state(play):
    play.reset()
    play.steps(1)
    saved = play.save(0)
    play.steps(4)
    play.restore(0, saved)
    play.restore(2, saved)
    play.steps(7)
    play.restore(1, saved)
    play.steps(4)


@event()
def state_dict(play):
    """At any place of an episode, with resets that are pending and details of the next ones."""
    play.reset()
    for count in (1, 3, 2, 4):
        play.steps(count)
        play.next_reset(1, 40 + count, 3)
        play.move()
    play.steps(9)


@event()
def state_dict_after_lost_results(play):
    play.reset()
    for count in range(3):
        play.steps(count)
        play.step_that_raises(count)
        play.reset_rows([count], by="numbers")
        play.move(shows_all=False)
        play.steps(3)


@event()
def state_of_a_row_that_is_over(play):
    play.reset()
    while 1 not in play.model.over and play.mode != SAME and play._count < 9:
        play.step()
    saved = play.save(1)
    play.steps(3)
    play._ready(None)
    play.restore(2, saved)
    play.steps(7)


@event(staggered=True)
def staggered(play):
    play.reset()
    play.steps(14)


@event(changes=True)
def changed_info_keys(play):
    play.reset()
    play.steps(5)
    play.reset_rows([1])
    play.steps(7)


@event(on_error="restart")
def restarted_environments(play):
    play.reset()
    for row in range(3):
        play.steps(row + 1)
        saved = play.save(row)
        play.next_reset(row, 40, row + 2)
        play.step_that_restarts(row)
        if row == 1:
            play.restore(row, saved)
    play.steps(9)


@event(executor="process")
def in_worker_processes(play):
    """A bit of everything."""
    play.reset()
    play.steps(2)
    play.step_that_raises(1)
    play.reset_rows([1], [30])
    play.step([2, 0])
    saved = play.save(2)
    play.steps(2)
    play.next_reset(0, 41, 4)
    play.send([1, 2])
    play.recv(2)
    play.restore(1, saved)
    play.steps(6)


@event()
def dropped_reference(play):
    """Nothing is collected as garbage meanwhile."""
    play.reset()
    play.steps(4)
    play.step_that_raises(2)
    play.reset_rows([2])
    play.steps(2)
    play.drop()


@event()
def pickled(play):
    """Refused, and nothing changes."""
    play.reset()
    play.steps(3)
    for call in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be pickled or copied"):
            call(play.envs)
    play.steps(6)
