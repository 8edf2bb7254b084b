"""skrl's agents with the true next observations. Needs ``pip install 'cartwheel[skrl]'``.

skrl's ``wrap_env(envs)`` takes the vector environments of cartwheel as they are. ``docs/trainers``
explains which autoreset mode is right, and why.
"""

try:
    import skrl  # noqa: F401 - says early, and in one sentence, what is missing
    import torch  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"cartwheel.skrl needs skrl and torch ({error}): pip install 'cartwheel[skrl]'",
        name=error.name,
        path=error.path,
    ) from error

from cartwheel.skrl.true_next_observations import TrueNextObservations

__all__ = ["TrueNextObservations"]
