"""Calls a wrapped vector environment and the model alike, and compares every batch."""

from __future__ import annotations

import functools
import inspect
import os
import pickle
import signal
import threading
import warnings
import weakref

import numpy as np
import pytest
from gymnasium.error import AlreadyPendingCallError, ResetNeeded

import cartwheel
from cartwheel.wrappers.base import VectorWrapper
from tests.contract.model import OFF, SAME, ChosenError, Model, Place, PlainEnv, fails
from tests.support.repetitions import in_turn, times
from tests.support.wrapping import row_of

#: The seed of the first reset; row ``i`` gets ``SEED + i``.
SEED = 7
NUM_ENVS = 3
PATIENCE_S = 30
#: In the place of a move: the row was sent a reset.
AGAIN = None


class Gate:
    """Where environments in threads wait; they tell when they have come."""

    def __init__(self):
        self._come, self._open, self._expected = (threading.Event() for _ in range(3))

    def wait(self):
        self._come.set()
        assert self._open.wait(PATIENCE_S)

    def interrupt(self):
        """Interrupts the program once it expects that, then waits."""
        assert self._expected.wait(PATIENCE_S)
        os.kill(os.getpid(), signal.SIGINT)
        self.wait()

    def expect_interrupt(self):
        self._expected.set()

    def await_arrival(self):
        assert self._come.wait(PATIENCE_S)

    def open(self):
        self._open.set()


class Breaking(VectorWrapper):
    """Changes nothing, and loses the next batch if it is told to."""

    _changes_steps = False
    loses = False

    def transform(self, _batch):
        if self.loses:
            self.loses = False
            raise ChosenError("chosen to fail in a wrapper")


class Play:
    """A subject in one mode, next to the model.

    Args:
        subject: A line of the table.
        mode: The autoreset mode.
        folder: For files.
        executor: The executor.
        changes: Whether the keys of infos change.
        limits: As for the model.
        breaks: Whether a wrapper inside may lose batches.
        **keywords: Of the vector environment.
    """

    def __init__(
        self,
        subject,
        mode,
        folder,
        executor="inline",
        *,
        changes=False,
        limits=None,
        breaks=False,
        **keywords,
    ):
        self.subject, self.mode, self.executor = subject, mode, executor
        self.model = Model(mode, NUM_ENVS, changes=changes, limits=limits)
        self.plain = subject.plain(subject, mode)
        self.plain.folder, self.plain.model = folder, self.model
        if executor != "inline":
            keywords["num_workers"] = times(1, with_full=2) if executor == "process" else 2

        def make():
            endless = limits is not None
            form = (subject.form, subject.moves)
            objectives = subject.objectives
            return PlainEnv(*form, changes=changes, endless=endless, objectives=objectives)

        def make_envs():
            inner = cartwheel.VectorEnv(
                [make] * NUM_ENVS,
                executor=executor,
                autoreset_mode=subject.inside or mode,
                **keywords,
            )
            known = {"mode": mode, "folder": folder}
            given = {name: known[name] for name in known if name in _arguments(subject.wrap)}
            if not breaks:
                return weakref.ref(inner), subject.wrap(inner, **given)
            self.breaking = Breaking(inner)
            return weakref.ref(inner), subject.wrap(self.breaking, **given)

        self._make_envs = make_envs
        self.inner, self.envs = make_envs()
        if subject.has_one_start:
            self.model.start = self.envs.get_attr("place")[0]
        self.gate = Gate()
        #: Rows and moves of a step that is pending, or of rows in flight.
        self.pending = None
        self._count = 0

    def close(self):
        """Ends the play; everything is checked."""
        if self.envs is not None:
            self.plain.check(self.envs)
            self.envs.close()
            self.plain.check_closed(self.model)

    def end(self):
        """Ends it after a failure, too."""
        self.gate.open()
        if self.envs is not None:
            self.envs.close()

    # Calls

    def reset(self):
        """A reset of all rows, with seeds."""
        result = self.envs.reset(seed=SEED)
        self._shown(result, [self.model.reset(row, SEED + row) for row in self.all])

    def reset_rows(self, rows, seeds=None, by="mask"):
        """A reset of some rows, by a mask or by their numbers."""
        self._drop(rows)
        if by == "mask":
            options = {"reset_mask": np.isin(np.arange(NUM_ENVS), rows)}
            given = seeds and [dict(zip(rows, seeds, strict=True)).get(row) for row in self.all]
        else:
            options, given = {"env_index": np.array(rows)}, seeds
        result = self.envs.reset(seed=given, options=options)
        seeds = dict(zip(rows, seeds or [None] * len(rows), strict=True))
        begun = {row: self.model.reset(row, seed) for row, seed in seeds.items()}
        if by == "mask":
            self._shown(result, [begun.get(row) or self.model.rest(row) for row in self.all])
        else:
            assert result[1]["env_index"].tolist() == list(rows)
            self._shown(result, list(begun.values()))

    def step(self, rows=None):
        """A step of all rows, or of some."""
        rows = self._ready(rows)
        moves = self._moves(rows or self.all)
        actions = self.plain.actions(moves)
        result = (
            self.envs.step(actions) if rows is None else self.envs.step(actions, np.array(rows))
        )
        self._stepped(result, rows or self.all, moves)

    def prepare(self, row):
        """Resets what is over, so that the next step steps the environment of this row."""
        if row in self.model.over:
            self.step([row])
        self._ready(None)

    def steps(self, count):
        for _ in range(count):
            self.step()

    def begin(self, rows=None):
        """``step_async``."""
        rows = self._ready(rows)
        moves = self._moves(rows or self.all)
        actions = self.plain.actions(moves)
        if rows is None:
            self.envs.step_async(actions)
        else:
            self.envs.step_async(actions, np.array(rows))
        self.pending = rows or self.all, moves

    def wait(self):
        """``step_wait``."""
        self._stepped(self.envs.step_wait(), *self._taken())

    def send(self, rows):
        """``send``; where that is refused, a step."""
        if not self.subject.sends:
            with pytest.raises(TypeError, match="has no `send`"):
                self.envs.send(self.plain.actions(self._moves(self.all)))
            self.step(rows)
            return
        over = [row for row in rows if self.mode == OFF and row in self.model.over]
        going = [row for row in rows if row not in over]
        if over:
            self.envs.send_reset(options={"env_index": np.array(over)})
        moves = self._moves(going)
        if going:
            self.envs.send(self.plain.actions(moves), np.array(going))
        earlier = self.pending or ([], [])
        moves = [*earlier[1], *[AGAIN] * len(over), *moves]
        self.pending = [*earlier[0], *over, *going], moves

    def recv(self, count):
        """``recv`` of so many rows, in the order of the sends; several where a slab ends."""
        while count and self.pending is not None:
            result = self.envs.recv(min_rows=count, max_rows=count)
            rows, moves = self._taken(len(result[1]))
            assert result[4]["env_index"].tolist() == rows
            self._stepped(result, rows, moves)
            count -= len(rows)

    def next_reset(self, row, seed, length):
        """Seed and options for the next automatic reset of a row."""
        give = {"seed": [seed], "options": {"length": length}, "env_index": [row]}
        if self.mode == OFF or self.subject.inside == OFF:
            with pytest.raises(RuntimeError, match="next_reset"):
                self.envs.next_reset(**give)
        else:
            self.envs.next_reset(**give)
            self.model.rows[row].kept = seed, length

    def save(self, row):
        """The state of a row, for :meth:`restore`."""
        return self.envs.get_state([row]), self.model.save(row)

    def restore(self, row, saved):
        states, known = saved
        result = self.envs.set_state([row], states)
        self._shown(result, [self.model.restore(row, known)])

    def move(self, *, shows_all=True):
        """Another vector environment goes on with the state of this one.

        Args:
            shows_all: Whether the last results of all rows were shown.
        """
        state = pickle.loads(pickle.dumps(self.envs.state_dict()))
        if self.subject.is_cut_by_states:
            observations = self.envs.load_state_dict(state)
        else:
            self.envs.close()
            self.inner, self.envs = self._make_envs()
            observations = self.envs.load_state_dict(state)
        if shows_all:
            self._shown((observations, {}), [self.model.rest(row) for row in self.all])
        if self.subject.is_cut_by_states:
            self.reset_rows(self.all, [20 + row for row in self.all])

    # What goes wrong

    def order(self, row, order):
        """An environment carries out an order in its next step."""
        self.envs.set_attr("order", [order if one == row else None for one in self.all])

    def step_that_raises(self, row):
        """A step in which one row raises; the results of the others are lost."""
        self.prepare(row)
        self.order(row, fails)
        moves = self._moves(self.all)
        with pytest.raises(ChosenError):
            self.envs.step(self.plain.actions(moves))
        self._lose(self.all, moves, row)

    def step_that_is_lost(self, rows=None):
        """A step whose results a wrapper inside loses."""
        rows = self._ready(rows)
        moves = self._moves(rows or self.all)
        self.breaking.loses = True
        with pytest.raises(ChosenError):
            self.envs.step(self.plain.actions(moves), *([] if rows is None else [np.array(rows)]))
        self._lose(rows or self.all, moves, None)

    def reset_that_is_lost(self, rows, seeds):
        """A reset of some rows whose results a wrapper inside loses."""
        options = {"reset_mask": np.isin(np.arange(NUM_ENVS), rows)}
        given = dict(zip(rows, seeds, strict=True))
        self.breaking.loses = True
        with pytest.raises(ChosenError):
            self.envs.reset(seed=[given.get(row) for row in self.all], options=options)
        for row in rows:
            self.model.reset(row, given[row])

    def step_that_restarts(self, row):
        """A step in which one row raises, and its environment is replaced."""
        self.prepare(row)
        self.order(row, fails)
        moves = self._moves(self.all)
        result = self.envs.step(self.plain.actions(moves))
        place = Place(*self.envs.get_attr("place")[row])
        told = [
            self.model.fail(one, place) if one == row else self._step(one, move)
            for one, move in zip(self.all, moves, strict=True)
        ]
        self._told(result, told)

    def recv_that_raises(self, row, count):
        """The receipt of so many rows, one of which raises; the results of the others are lost."""
        with pytest.raises(ChosenError):
            self.envs.recv(min_rows=count, max_rows=count)
        self._lose(*self._taken(count), row)

    def times_out(self):
        """A wait that ends by time-out while an environment waits at the gate."""
        self.gate.await_arrival()
        with pytest.raises(TimeoutError):
            self.envs.step_wait(0.01)

    def recv_times_out(self):
        """A receipt that ends by time-out, likewise."""
        self.gate.await_arrival()
        with pytest.raises(TimeoutError):
            self.envs.recv(0.01, min_rows=1)

    def interrupted(self):
        """A wait that ends by Ctrl-C, which an environment at the gate has sent."""
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - it may come before the wait
            self.gate.expect_interrupt()
            self.envs.step_wait()
        if not self.inner()._pool.has_abandoned():  # no call of the environments knows of it
            self.times_out()

    def step_that_needs_a_reset(self):
        """A row has raised: the step is refused, and nothing changes."""
        with pytest.raises(ResetNeeded):
            self.envs.step(self.plain.actions(self._moves(self.all)))

    def refuses_a_step(self):
        """The call is still pending."""
        with pytest.raises(AlreadyPendingCallError):
            self.envs.step(self.plain.actions(self._moves(self.all)))

    def drop(self):
        """Drops the last reference, and expects that nothing is left."""
        self.envs = None
        assert self.inner() is None, "something refers to the environments"

    # The two next to each other

    @property
    def all(self):
        return list(range(NUM_ENVS))

    def _ready(self, rows):
        """Resets what has to be reset before a step of rows."""
        over = [row for row in self.model.over if rows is None or row in rows]
        if over and self.mode == OFF:
            self.reset_rows(over)
        return rows

    def _moves(self, rows):
        """A move for each row; no two steps of a row have the same ones."""
        self._count += 1
        return [((self._count + 2 * row) % 7 - 3) / 2 for row in rows]

    def _taken(self, count=None):
        rows, moves = self.pending
        count = len(rows) if count is None else count
        self.pending = (rows[count:], moves[count:]) if count < len(rows) else None
        return rows[:count], moves[:count]

    def _step(self, row, move, **keywords):
        if move is AGAIN:
            return self.model.reset(row)
        now = self.model.rows[row].now
        if row in self.model.over:  # it resets
            return self.model.step(row, move, **keywords)
        made = self.plain.move_after(now, move)
        told = self.model.step(row, made, **keywords)
        told.step.given, told.step.made = move, made
        return told

    def _drop(self, again):
        """A reset of the rows ``again`` drops the results of what is pending."""
        if self.pending is None:
            return
        for row, move in zip(*self._taken(), strict=True):
            if self.subject.inside != OFF:
                self._step(row, move)
            elif row not in self.model.over:
                # An adapter makes resets after the step: not those of rows that are reset anyway.
                self._step(row, move, resets=row not in again)

    def _lose(self, rows, moves, failed):
        """Rows went on without being seen; one raised."""
        for row, move in zip(rows, moves, strict=True):
            if row != failed:
                self._step(row, move)

    def _stepped(self, result, rows, moves):
        self._told(result, [self._step(row, move) for row, move in zip(rows, moves, strict=True)])

    def _told(self, result, told):
        """Compares a step."""
        observations, rewards, terminations, truncations, infos = result
        self._shown((observations, infos), told, is_step=True)
        for place, one in enumerate(told):
            step = one.step
            reward = 0.0 if step is None else self.plain.reward(step)
            if not np.array_equal(rewards[place], reward):
                assert rewards[place] == pytest.approx(reward, abs=0, rel=self.plain.tolerance), one
            flags = (False, one.failed) if step is None else (step.terminated, step.truncated)
            assert (terminations[place], truncations[place]) == flags, one
        self._tell(told)
        self.plain.check_infos(infos, told)

    def _shown(self, result, told, *, is_step=False):
        """Compares observations and infos of a batch."""
        observations, infos = result
        self.plain.see(told)
        space = self.envs.single_observation_space
        for place, one in enumerate(told):
            self._compare(row_of(space, observations, place), one.now)
            final = one.final(self.mode)
            has_final = bool(infos.get("_final_obs", np.zeros(len(told), bool))[place])
            assert has_final == (final is not None)
            if has_final:
                self._compare_one(infos["final_obs"][place], final)
            if has_final and not one.failed:
                self._compare_info(infos["final_info"], place, final)
            is_new = not one.rests and (not one.failed or final is not None)
            if is_new and one.now.what != "restored":
                self._compare_info(infos, place, one.now)
        if not is_step:
            self._tell(told)

    def _compare(self, batch, moment):
        one = (
            {key: values[0] for key, values in batch.items()}
            if isinstance(batch, dict)
            else batch[0]
        )
        self._compare_one(one, moment)

    def _compare_one(self, found, moment):
        wanted = self.plain.observation(moment)
        if isinstance(wanted, dict):
            assert found.keys() == wanted.keys()
        pairs = (
            [(found[key], wanted[key]) for key in wanted]
            if isinstance(wanted, dict)
            else [(found, wanted)]
        )
        for one, other in pairs:
            one, other = np.asarray(one), np.asarray(other)
            assert (one.shape, one.dtype) == (other.shape, other.dtype), moment
            if one.tobytes() != other.tobytes():  # most are equal, and this is quicker
                np.testing.assert_allclose(
                    one, other, rtol=0, atol=self.plain.tolerance, err_msg=repr(moment.place)
                )

    def _compare_info(self, infos, place, moment):
        for key, value in moment.info.items():
            assert infos[f"_{key}"][place], (key, moment)
            assert infos[key][place] == value, (key, moment)

    def _tell(self, told):
        for one in told:
            one.now.shown = True
            if one.step is not None:
                one.step.told = True
                one.step.shown |= one.now is one.step or self.mode == SAME


def cases(subjects, events, modes_of, marks_of=lambda _: (), is_like_another=lambda _: False):
    """Subjects, events and modes as one parameter, so that no pair of the first two is left out.

    By default each pair runs in one mode, which its place in the table chooses, and subjects that
    are like another one meet a third of the events.
    """
    for row, subject in enumerate(subjects):
        for column, event in enumerate(events):
            is_met = (row + 2 * column) % 3 == 0 or not is_like_another(subject)
            turn = row + column if is_met else None
            for mode, marks in in_turn(modes_of(subject, event), turn):
                named = f"{subject}, {event}, {mode.name}"
                yield pytest.param(
                    (subject, event, mode), id=named, marks=(*marks, *marks_of(subject))
                )


def run(event, make, *arguments, num_envs=NUM_ENVS, last=lambda _: None):
    """Makes a play with the keywords of an event, which happens to it, then ``last``.

    It is ended whatever happened, without the warnings of its end.
    """
    happens, _, keywords = event
    if keywords.get("staggered"):
        keywords = _staggered(num_envs)
    play = make(*arguments, **keywords)
    try:
        happens(play)
        last(play)
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            play.end()


def _staggered(num_envs):
    """Keywords of a vector environment whose rows begin at different elapsed steps, and limits."""
    rules = {"staggered_reset": True, "max_episode_steps": 5}
    return {**rules, "limits": [(first, 5) for first in _first_limits(num_envs)]}


@functools.cache
def _first_limits(num_envs):
    """The steps of the first episodes of the rows."""
    make = functools.partial(PlainEnv, endless=True)
    envs = cartwheel.VectorEnv(
        [make] * num_envs, executor="inline", staggered_reset=True, max_episode_steps=5
    )
    envs.reset(seed=SEED)
    truncations = np.array([envs.step(np.zeros((num_envs, 1)))[3] for _ in range(5)])
    envs.close()
    return (truncations.argmax(axis=0) + 1).tolist()


def _arguments(function):
    try:
        return inspect.signature(function).parameters
    except ValueError:
        return {}
