"""Native environments and Gymnasium's, with the same keywords."""

import pytest

from tests.support.cases import Case
from tests.support.oracle import N, with_oracle


@pytest.fixture
def build_pair(build_native):
    """Builds native rows and Gymnasium's with the same keywords; resets both with the same seed."""

    def build_pair(env_id, num_envs, mode=N, *, seed=1, num_workers=2, executor="auto", **keywords):
        workers = {"num_workers": num_workers, "executor": executor}
        return with_oracle(
            build_native, Case(env_id, keywords), num_envs, mode, seed=seed, **workers
        )

    return build_pair
