"""A vector environment for Tianshou 2: ``pip install 'cartwheel[tianshou]'``."""

from cartwheel.extras import load

load("tianshou", "tianshou", "cartwheel.tianshou")

from cartwheel.tianshou.vector_env import CartwheelVectorEnv  # noqa: E402 - it imports what was loaded

__all__ = ["CartwheelVectorEnv"]
