"""The driver of the tests of wrappers gives the traces of single environments, without wrappers."""

import numpy as np
import pytest

from cartwheel.wrappers.base import VectorWrapper
from tests.support.wrapping import (
    FAILING,
    SCRIPT,
    Builds,
    S,
    alone,
    assert_traces,
    build,
    drive,
    settings_of,
)


def test_lives_are_those_of_single_environments():
    check("taxi", SCRIPT, lambda envs: envs)


def test_lives_with_failures_in_a_wrapper_are_those_of_single_environments():
    expected = check("failing", FAILING, VectorWrapper)
    assert sum(moment.what == "failed" for trace in expected for moment in trace) == 3


def check(environment, script, wrap):
    expected = alone(environment, script)
    with Builds() as build:
        for kind, mode, way, keywords in settings_of(environment):
            envs = wrap(build(kind, environment, mode, **keywords))
            assert_traces(drive(envs, script, way, close=False), expected)
    return expected


class Overwriting(VectorWrapper):
    """Breaks every promise of wrappers."""

    def transform(self, batch):
        batch.observations *= np.float32(2)
        if batch.rewards is not None:
            batch.observations[:] = self.last
        self.last = batch.observations


def test_a_wrapper_that_writes_into_results_is_found():
    with pytest.raises(AssertionError):
        drive(Overwriting(build("inline", "pole", S)), SCRIPT)
