"""Runs a program of the tests: ``python -m tests.programs NAME ARGUMENT…``."""

import sys

from tests.programs import (  # noqa: F401 - they register programs
    closing_handlers,
    collecting,
    cycles,
    endings,
    ends_of_threads,
    forbidden,
    forking,
    forks_of_threads,
    ray_nodes,
    recording,
    rllib,
    scarcity,
    sharing,
)
from tests.programs.registry import PROGRAMS

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](*sys.argv[2:])
