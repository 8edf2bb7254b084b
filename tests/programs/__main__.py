"""Runs a program of the tests: ``python -m tests.programs NAME ARGUMENT…``.

``--serve DESCRIPTOR`` runs those that are asked for at the other end of a socket.
"""

import importlib.util
import sys

from tests.programs import (  # noqa: F401 - most of them register programs
    closing_handlers,
    collecting,
    cycles,
    endings,
    ends_of_threads,
    forbidden,
    forking,
    forks_of_threads,
    garbage,
    recording,
    scarcity,
    server,
    sharing,
)
from tests.programs.registry import PROGRAMS

if importlib.util.find_spec("ray"):  # they import pytest, which takes a third of all imports
    from tests.programs import ray_nodes, rllib  # noqa: F401

if __name__ == "__main__":
    words = sys.argv[1:]
    if words[0] == "--serve":
        words = server.serve(int(words[1]))
    PROGRAMS[words[0]](*words[1:])
