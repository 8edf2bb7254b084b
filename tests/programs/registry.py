"""The programs that tests run, and what they tell: one line of JSON."""

import json
from collections.abc import Callable

PROGRAMS: dict[str, Callable[..., None]] = {}


def program(function):
    """Registers a function as a program of its name; its arguments are words of a command line."""
    assert function.__name__ not in PROGRAMS
    PROGRAMS[function.__name__] = function
    return function


def tell(**facts):
    """Prints a line for the test that runs the program."""
    print(json.dumps(facts), flush=True)
