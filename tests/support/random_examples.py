"""Hypothesis with the profile of these tests, which import it from here.

The files that need none do not import it: it takes as long as a hundred of their tests.
"""

from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

__all__ = ["Phase", "example", "given", "settings", "st"]

settings.register_profile(
    "cartwheel",
    deadline=None,  # a worker process may have to be started first
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.load_profile("cartwheel")
