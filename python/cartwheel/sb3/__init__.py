"""Vector environments for Stable-Baselines3: ``pip install 'cartwheel[sb3]'``."""

from cartwheel.extras import load

load("stable_baselines3", "sb3", "cartwheel.sb3")

from cartwheel.sb3.vec_env import CartwheelVecEnv  # noqa: E402 - it imports what was loaded

__all__ = ["CartwheelVecEnv"]
