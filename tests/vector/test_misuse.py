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


def rows():
    """The rows of the table, each with what prepares its last statement.

    That is the kind of vector environment, whether it is reset, and statements. Rows with the same
    are next to each other, and share it as one object.
    """
    preparations, found = {}, []
    for title, kinds, rows in sections():
        for kind in kinds:
            for number, (code, error) in enumerate(rows):
                *before, _ = code.split("; ")
                key = kind, "before a reset" not in title, tuple(before)
                prepared = preparations.setdefault(key, key)
                found.append((prepared, code, error.rstrip(), marks(kind, kinds, number)))
    for prepared, code, error, marked in sorted(found, key=lambda row: row[0]):
        kind = prepared[0]
        yield pytest.param(kind, prepared, code, error, id=f"{kind}-{code}", marks=marked)


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


def misused(scope, code):
    """The report of the error that the last statement raises."""
    try:
        exec(code.split("; ")[-1], scope)
    except Exception as error:
        return report(error)  # `pytest.raises` would keep the traceback, and with it `envs`
    pytest.fail("no error")


@pytest.fixture(scope="module")
def scope(request):
    """The names of a call, after what prepares it: a call that is refused leaves all as it was."""
    kind, is_reset, before = request.param
    envs = None if kind == "none" else KINDS[kind]([POLE] * 3)
    if envs is not None and is_reset:
        envs.reset(seed=1)
    scope = names(envs)
    for statement in before:
        exec(statement, scope)
    yield scope
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a call that is pending
        for made in (scope["envs"], scope.get("other")):
            if made is not None:
                made.close()


@pytest.mark.parametrize(("kind", "scope", "code", "error"), list(rows()), indirect=["scope"])
def test_the_error_is_that_of_the_table(scope, kind, code, error):
    if ASSERTS and "max_episode_steps=0" in code:  # Gymnasium's `TimeLimit` refuses it
        error = error.replace("ValueError", "AssertionError")
    assert misused(scope, code) == error, kind


def test_the_table_has_no_line_that_is_not_tested():
    """Every line is a heading, a call or its error."""
    lines = [line for line in TABLE.read_text().split("\n## ", 1)[1].splitlines() if line]
    tested = 0
    for _, _, rows in sections():
        tested += 1 + sum(1 + error.count("\n") for _, error in rows)
    assert tested == len(lines)
