"""The programs that tests run. A program reports facts as one line of JSON."""

import json
from collections.abc import Callable

PROGRAMS: dict[str, Callable[..., None]] = {}


def program(function):
    """Registers a function as a program under its name; its arguments are command-line words."""
    assert function.__name__ not in PROGRAMS
    PROGRAMS[function.__name__] = function
    return function


def tell(**facts):
    """Prints the facts as a line of JSON for the test that runs the program."""
    print(json.dumps(facts), flush=True)
