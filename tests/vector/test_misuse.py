"""Errors that a new user meets say what was wrong, with its value, and what to do instead.

``misuse.txt`` is the table. A heading names the kinds of vector environment that a section is for,
of three cart-poles each. Every row is a call and, indented, the type and the whole text of its
error, with its notes. Statements before the last one, separated by ``; ``, prepare the call.
"""

import contextlib
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


def is_slow(kind, kinds, number):
    """By default a row of the table is tried with one of its executors, which rotate."""
    executors = [other for other in kinds if other in EXECUTORS]
    return kind in EXECUTORS and kind != executors[number % len(executors)]


def rows():
    """The rows of the table, together with those that the same prepares.

    That is the kind of vector environment, whether it is reset, and the statements before the last.
    """
    found = {}
    for title, kinds, rows in sections():
        for kind in kinds:
            for number, (code, error) in enumerate(rows):
                *before, _ = code.split("; ")
                preparation = kind, "before a reset" not in title, tuple(before)
                key = preparation, is_slow(kind, kinds, number)
                found.setdefault(key, {})[code] = error.rstrip()
    for ((kind, is_reset, before), slow), errors in found.items():
        title = "-".join([kind, *["new"] * (not is_reset), *before])
        yield pytest.param(
            kind, is_reset, before, errors, id=title, marks=[pytest.mark.slow] * slow
        )


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
    pytest.fail(f"no error: {code}")


@contextlib.contextmanager
def prepared(kind, is_reset, before):
    """The names of calls, after what prepares them: one that is refused leaves all as it was."""
    envs = None if kind == "none" else KINDS[kind]([POLE] * 3)
    scope = names(envs)
    try:
        if envs is not None and is_reset:
            envs.reset(seed=1)
        for statement in before:
            exec(statement, scope)
        yield scope
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a call that is pending
            for made in (envs, scope.get("other")):
                if made is not None:
                    made.close()


@pytest.mark.parametrize(("kind", "is_reset", "before", "errors"), list(rows()))
def test_the_errors_are_those_of_the_table(kind, is_reset, before, errors):
    expected = errors | {
        # Gymnasium's `TimeLimit` refuses it.
        code: error.replace("ValueError", "AssertionError")
        for code, error in errors.items()
        if ASSERTS and "max_episode_steps=0" in code
    }
    found = {}
    with prepared(kind, is_reset, before) as scope:
        for code in errors:
            found[code] = misused(scope, code)
            if kind != "none" and is_reset and not before:
                scope["envs"].reset(seed=1)  # some errors are those of environments, which failed
    assert found == expected


def test_the_table_has_no_line_that_is_not_tested():
    """Every line is a heading, a call or its error."""
    lines = [line for line in TABLE.read_text().split("\n## ", 1)[1].splitlines() if line]
    tested = 0
    for _, _, rows in sections():
        tested += 1 + sum(1 + error.count("\n") for _, error in rows)
    assert tested == len(lines)
