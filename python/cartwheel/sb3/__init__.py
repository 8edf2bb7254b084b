"""Vector environments for Stable-Baselines3: ``pip install 'cartwheel[sb3]'``."""

try:
    from cartwheel.sb3.vec_env import CartwheelVecEnv
except ModuleNotFoundError as error:
    raise ImportError(
        f"cartwheel.sb3 needs Stable-Baselines3: pip install 'cartwheel[sb3]' ({error})",
        name=error.name,
    ) from error

__all__ = ["CartwheelVecEnv"]
