"""With `final_obs="dense"` wrappers show what they show without it, in every step."""

import numpy as np
import pytest

from cartwheel import wrappers
from tests.support.comparison import assert_identical
from tests.support.wrapping import S, build


def of_some_rows(seen):
    """A function that does not expect a batch without rows."""
    assert len(seen) > 0
    return seen * 2


WRAPPERS = {
    "FrameStack": lambda envs: wrappers.FrameStack(envs, 3),
    "FrameStack twice": lambda envs: wrappers.FrameStack(wrappers.FrameStack(envs, 2), 3),
    "NormalizeObservation": wrappers.NormalizeObservation,
    "FrameStack, normalized": lambda envs: wrappers.NormalizeObservation(
        wrappers.FrameStack(envs, 2)
    ),
    "normalized, FrameStack": lambda envs: wrappers.FrameStack(
        wrappers.NormalizeObservation(envs), 2
    ),
    "ReshapeObservation": lambda envs: wrappers.ReshapeObservation(envs, (2, 2)),
    "DtypeObservation": lambda envs: wrappers.DtypeObservation(envs, np.float64),
    "TransformObservation": lambda envs: wrappers.TransformObservation(envs, of_some_rows),
    "FlattenObservation": wrappers.FlattenObservation,
    "RecordMetrics": lambda envs: wrappers.RecordMetrics(wrappers.FrameStack(envs, 2)),
}


@pytest.mark.parametrize("name", WRAPPERS)
@pytest.mark.parametrize("kind", ["native", "inline"])
def test_dense_final_observations_are_those_of_objects_and_the_observations(kind, name):
    objects, dense = (
        WRAPPERS[name](build(kind, "pole", S, final_obs=final_obs))
        for final_obs in ("object", "dense")
    )
    assert_identical(objects.reset(seed=1), dense.reset(seed=1))
    ends = 0
    for step in range(30):
        actions = np.array([0, 1, step % 2])
        *results, infos = objects.step(actions)
        *dense_results, dense_infos = dense.step(actions)
        assert_identical(dense_results, results)
        expected = results[0].copy()
        over = infos.get("_final_obs", np.zeros(3, np.bool_))
        for row in over.nonzero()[0]:
            expected[row] = infos["final_obs"][row]
        assert_identical(dense_infos["final_obs"], expected)
        assert_identical(dense_infos["_final_obs"], over)
        assert not np.shares_memory(dense_infos["final_obs"], dense_results[0])
        ends += over.sum()
    assert 3 < ends < 90
    objects.close()
    dense.close()
