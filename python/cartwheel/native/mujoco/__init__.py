"""The installed MuJoCo: addresses in its library, models, and the simulations of rows.

Nothing here imports MuJoCo before a vector environment of MuJoCo is made, and nothing here steps.
"""
