"""Measures vector environments side by side: ``contenders → race → table, plot, claim``.

A number is a ratio between contenders of one race. A race builds all of them first, warms them up
and times them in alternating rounds, so that whatever else the machine does hits all of them. The
ceiling takes part like any other: bare loops over as many environments, one loop on each core, all
at once, nothing shared.
"""
