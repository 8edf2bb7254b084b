"""A vector environment for Tianshou 2: ``pip install 'cartwheel[tianshou]'``."""

try:
    import tianshou  # noqa: F401 - says early, and in one sentence, what is missing
except ImportError as error:
    raise ImportError(
        f"cartwheel.tianshou needs Tianshou ({error}): pip install 'cartwheel[tianshou]'",
        name=error.name,
        path=error.path,
    ) from error

from cartwheel.tianshou.vector_env import CartwheelVectorEnv

__all__ = ["CartwheelVectorEnv"]
