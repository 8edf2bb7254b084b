"""skrl's agents with the true next observations. Needs ``pip install 'cartwheel[skrl]'``.

skrl's ``wrap_env(envs)`` takes the vector environments of cartwheel as they are. ``docs/trainers``
explains which autoreset mode is right, and why.
"""

from cartwheel.extras import load

load("skrl", "skrl", "cartwheel.skrl")
load("torch", "skrl", "cartwheel.skrl")

from cartwheel.skrl.true_next_observations import (  # noqa: E402 - it imports what was loaded
    TrueNextObservations,
)

__all__ = ["TrueNextObservations"]
