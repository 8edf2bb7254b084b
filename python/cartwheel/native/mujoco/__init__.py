"""MuJoCo as it is installed: the addresses of its library, models, and the rows of a simulation.

Nothing here is imported before a vector environment of MuJoCo is made, and nothing here steps.
"""
