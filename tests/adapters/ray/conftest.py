"""A cluster of Ray for the tests of this folder."""

import pytest

from tests.support.ray_sessions import started


@pytest.fixture(scope="session")
def ray():
    """Ray, with a cluster that is not shut down: tests of other files may use it, too."""
    return started()


@pytest.fixture
def workers(ray):  # noqa: ARG001 - the cluster
    """Makes rollout workers, half a processor each, which are closed after the test."""
    from cartwheel.ray import RolloutWorkers

    made = []

    def make(*args, **keywords):
        made.append(RolloutWorkers(*args, **{"num_cpus": 0.5, **keywords}))
        return made[-1]

    yield make
    for each in made:
        each.close()
