"""Benchmarks of vector environments: ``contenders → race → table, plot``.

A result is a ratio between contenders of one race. A race builds all of them first, warms them up
and times them in alternating rounds, so that other load of the machine affects all of them alike.
The ceiling is a contender, too: bare loops over as many environments, one loop on each core, all at
once, with nothing shared.
"""
