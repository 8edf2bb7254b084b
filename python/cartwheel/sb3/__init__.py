"""Vector environments for Stable-Baselines3: ``pip install 'cartwheel[sb3]'``.

:class:`CartwheelVecEnv` has a row for each environment, :class:`CartwheelAgentsVecEnv` one for each
agent of environments of several agents.
"""

from typing import TYPE_CHECKING

from cartwheel._internal.versions import load

load("stable_baselines3", "sb3", "cartwheel.sb3", "2.7")

# ruff: noqa: E402 - they import what was loaded

# Packages before files of them: threads that import both at once would wait for each other.
if not TYPE_CHECKING:  # type checkers would see a circle
    import cartwheel.wrappers  # noqa: F401 - for the order

from cartwheel.sb3.agents import CartwheelAgentsVecEnv
from cartwheel.sb3.vec_env import CartwheelVecEnv

__all__ = ["CartwheelAgentsVecEnv", "CartwheelVecEnv"]
