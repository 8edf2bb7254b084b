"""Errors that a new user meets say what was wrong, with its value, and what to do instead.

``misuse.txt`` is the table. A heading names the kinds of vector environment that a section is for,
of three cart-poles each. Every row is a call and, indented, the type and the whole text of its
error, with its notes. Statements before the last one, separated by ``; ``, prepare the call.
"""

import re
import textwrap
import warnings
from functools import partial
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv

import cartwheel
from tests.multiagent.environments import rock_paper_scissors
from tests.support.cases import POLE
from tests.support.executors import INLINE, NATIVE, PROCESS, THREAD
from tests.support.gymnasium_versions import ASSERTS

TABLE = Path(__file__).with_name("misuse.txt")
KINDS = {kind.name: kind for kind in (INLINE, THREAD, PROCESS, NATIVE)}


def zeros(observations):
    """A policy."""
    return np.zeros(len(observations), np.int64)


def players(**keywords):
    """Three games of two agents."""
    return cartwheel.ParallelVectorEnv([rock_paper_scissors] * 3, executor="inline", **keywords)


def sections():
    """For each section its title, its kinds of vector environment, and its rows."""
    for section in re.split(r"^## ", TABLE.read_text(), flags=re.MULTILINE)[1:]:
        heading, body = section.split("\n", 1)
        title, _, kinds = heading.partition(": ")
        rows = re.findall(r"^(\S.*)\n((?:    .*\n?)+)", body, flags=re.MULTILINE)
        yield title, kinds.split(), [(code, textwrap.dedent(error)) for code, error in rows]


EXECUTORS = ("inline", "thread", "process")


def marks(kind, kinds, number):
    """By default a row of the table is tried with one of its executors, which rotate."""
    executors = [other for other in kinds if other in EXECUTORS]
    chosen = kind not in EXECUTORS or kind == executors[number % len(executors)]
    return () if chosen else pytest.mark.slow


ROWS = [
    pytest.param(
        kind, title, code, error.rstrip(), id=f"{kind}-{code}", marks=marks(kind, kinds, number)
    )
    for title, kinds, rows in sections()
    for kind in kinds
    for number, (code, error) in enumerate(rows)
]


def names(envs):
    """The names that the calls of the table use."""
    return {
        "np": np,
        "gym": gym,
        "cartwheel": cartwheel,
        "SyncVectorEnv": SyncVectorEnv,
        "pole": POLE,
        "mask": np.array([True, False, False]),
        "envs": envs,
        "batches_of_two": lambda: cartwheel.NativeVectorEnv("CartPole-v1", 3, batch_size=2),
        "players": players,
        "policy": zeros,
        "partial": partial,
    }


def report(error):
    """Type and text of an error, and notes about it other than tracebacks of workers."""
    notes = [note for note in getattr(error, "__notes__", []) if "Traceback" not in note]
    text = "\n".join([f"{type(error).__name__}: {error}", *(f"note: {note}" for note in notes)])
    text = re.sub(r"\. Did you mean '\w+'\?", "", text)  # Python's own words, from 3.14 on
    return re.sub(r" \(worker process \d+\)", "", text)


def misused(envs, code):
    """The report of the error that the last statement raises."""
    *before, last = code.split("; ")
    scope = names(envs)
    for statement in before:
        exec(statement, scope)
    try:
        exec(last, scope)
    except Exception as error:
        return report(error)  # `pytest.raises` would keep the traceback, and with it `envs`
    finally:
        if "other" in scope:
            scope["other"].close()
    pytest.fail("no error")


@pytest.fixture(scope="module")
def shared():
    """One vector environment of each kind: a call that is refused leaves it as it was."""
    made = {name: kind([POLE] * 3) for name, kind in KINDS.items()}
    yield made
    for envs in made.values():
        envs.close()


@pytest.fixture
def envs(shared, kind, title, code):
    """The shared one, reset; a new one for rows whose first statements change it."""
    if kind == "none":
        yield None
        return
    unstarted = "before a reset" in title
    fresh = unstarted or "; " in code
    envs = KINDS[kind]([POLE] * 3) if fresh else shared[kind]
    if not unstarted:
        envs.reset(seed=1)
    yield envs
    if fresh:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a call that is pending
            envs.close()


@pytest.mark.parametrize(("kind", "title", "code", "error"), ROWS)
def test_the_error_is_that_of_the_table(envs, code, error):
    if ASSERTS and "max_episode_steps=0" in code:  # Gymnasium's `TimeLimit` refuses it
        error = error.replace("ValueError", "AssertionError")
    assert misused(envs, code) == error


def test_the_table_has_no_line_that_is_not_tested():
    """Every line is a heading, a call or its error."""
    lines = [line for line in TABLE.read_text().split("\n## ", 1)[1].splitlines() if line]
    tested = 0
    for _, _, rows in sections():
        tested += 1 + sum(1 + error.count("\n") for _, error in rows)
    assert tested == len(lines)
