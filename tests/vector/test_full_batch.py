"""With ``full_batch=True`` a reset with row numbers returns the batch of all rows."""

import numpy as np
import pytest
from gymnasium.error import Error
from gymnasium.wrappers import vector as wrappers

from tests.support.cases import SHORT
from tests.support.comparison import assert_identical
from tests.support.environments import transcripts
from tests.support.oracle import MODE, D, N, S

POLES = [SHORT[0]] * 5


def twins(build, mode, **keywords):
    """Two alike, after the same reset and some steps; only the first returns full batches."""
    both = [
        build(POLES, autoreset_mode=mode, full_batch=full, **keywords) for full in (True, False)
    ]
    for envs in both:
        envs.reset(seed=1)
        for _ in range(4):
            envs.step([0, 1, 0, 1, 1])
    return both


def mask_of(rows):
    mask = np.zeros(5, np.bool_)
    mask[rows] = True
    return {"reset_mask": mask}


@MODE
def test_row_numbers_give_what_a_mask_gives(build_any, mode):
    """Single rows, all rows, any order, any form of the numbers; then both go on alike."""
    envs, twin = twins(build_any, mode, on_done="freeze")
    for rows in ([3], [4, 0, 2], (1,), np.array([2, 1], np.int32), [4, 3, 2, 1, 0]):
        for name in ("env_index", "env_idx"):
            result = envs.reset(options={name: rows})
            assert_identical(result, twin.reset(options=mask_of(list(rows))))
            assert "env_index" not in result[1]
            assert_identical(envs.step([1, 1, 0, 1, 0]), twin.step([1, 1, 0, 1, 0]))


def test_seeds_are_given_by_row_number_or_in_the_order_of_the_rows(build_any):
    envs, twin = twins(build_any, N)
    rows, by_row = [3, 0], [70, None, None, 73, None]
    expected = twin.reset(seed=by_row, options=mask_of(rows))
    for seed in ([73, 70], (73, 70), np.array([73, 70]), by_row, [70, 1, 2, 73, 4], 70):
        assert_identical(envs.reset(seed=seed, options={"env_index": rows}), expected)
    # As many rows as environments: the seeds are in the order of the rows.
    expected = twin.reset(seed=[50, 51, 52, 53, 54], options=mask_of([0, 1, 2, 3, 4]))
    rows = [4, 3, 2, 1, 0]
    result = envs.reset(seed=[54, 53, 52, 51, 50], options={"env_index": rows})
    assert_identical(result, expected)


def test_it_also_holds_for_resets_that_are_waited_for(build_any):
    envs, twin = twins(build_any, D, on_done="freeze")
    envs.reset_async(seed=[9], options={"env_idx": [2]})
    twin.reset_async(seed=[None, None, 9, None, None], options=mask_of([2]))
    assert_identical(envs.reset_wait(), twin.reset_wait())


def test_resets_that_are_sent_return_their_rows(build_any):
    envs, twin = twins(build_any, N)
    for each in (envs, twin):
        each.send_reset(seed=4, options={"env_index": [3, 1]})
    result = envs.recv()
    assert_identical(result, twin.recv())
    assert result[4]["env_index"].tolist() == [3, 1]


def test_other_options_reach_the_environments(build):
    envs = build(transcripts(9, 9, 9), full_batch=True)
    envs.reset()
    envs.step([1, 1, 1])
    given = {"env_index": [1], "level": 3}
    observations, infos = envs.reset(options=given)
    assert observations.tolist() == [[1], [0], [1]]
    assert infos["opt"].tolist() == [None, "{'level': 3}", None]
    assert given == {"env_index": [1], "level": 3}


def test_a_rollout_may_begin_with_such_a_reset(build_any):
    envs, twin = twins(build_any, N)
    arrays, others = envs.rollout(3), twin.rollout(3)
    envs.reset(seed=[8], options={"env_index": [1]})
    twin.reset(seed=[0, 8, 0, 0, 0], options=mask_of([1]))
    assert_identical(arrays.observations[0], others.observations[0])


@pytest.mark.parametrize(
    ("seed", "rows", "error", "text"),
    [
        (None, [5], ValueError, "`env_index` names row 5; there are rows 0 to 4"),
        (None, [1, 1], ValueError, "`env_index` names row 1 twice"),
        (None, [], ValueError, "`env_index` is empty"),
        (None, [0.5], TypeError, "one-dimensional array of integers"),
        ([1, 2], [0, 1, 2], ValueError, "one entry for each of the 3 rows that are reset, got 2"),
        ([-1], [4], Error, "greater or equal to zero"),
    ],
)
def test_bad_resets_are_refused_before_anything_is_reset(build_any, seed, rows, error, text):
    envs, twin = twins(build_any, N)
    with pytest.raises(error, match=text):
        envs.reset(seed=seed, options={"env_index": rows})
    assert_identical(envs.step([0] * 5), twin.step([0] * 5))


def test_smaller_batches_are_refused(build_any):
    text = "`full_batch=True` needs batches of all rows, got batch_size=2 of num_envs=5"
    with pytest.raises(ValueError, match=text):
        build_any(POLES, full_batch=True, batch_size=2)
    with pytest.raises(TypeError, match="`full_batch` must be True or False, got 1"):
        build_any(POLES, full_batch=1)


# Gymnasium's wrappers


@pytest.mark.parametrize("mode", [N, D])
def test_observation_wrappers_of_gymnasium_are_right_with_row_numbers(build_any, mode):
    envs, twin = twins(build_any, mode, on_done="freeze")
    wrapped = wrappers.TransformObservation(envs, lambda observations: observations * 2)
    flat = wrappers.DtypeObservation(wrapped, np.float64)
    for options in ({"env_index": [3, 1]}, {"env_idx": [0]}):
        observations, infos = flat.reset(options=dict(options))
        expected, others = twin.reset(options=mask_of(*options.values()))
        assert observations.shape == (5, 4)
        assert_identical(observations, (expected * 2).astype(np.float64))
        assert_identical(infos, others)
        step, other = flat.step([1] * 5), twin.step([1] * 5)
        assert_identical(step[0], (other[0] * 2).astype(np.float64))


@pytest.mark.parametrize("mode", [N, S, D])
def test_statistics_of_gymnasium_forget_all_rows_with_row_numbers(build_any, mode):
    wrapped = wrappers.RecordEpisodeStatistics(
        build_any(POLES, autoreset_mode=mode, full_batch=True)
    )
    wrapped.reset(seed=1)
    for _ in range(3):
        wrapped.step([0, 1, 0, 1, 0])
    assert wrapped.episode_lengths.tolist() == [3] * 5
    wrapped.reset(options=mask_of([2]))
    assert wrapped.episode_lengths.tolist() == [3, 3, 0, 3, 3]
    wrapped.reset(options={"env_index": [2]})
    assert wrapped.episode_lengths.tolist() == [0] * 5


def test_methods_of_cartwheel_are_reached_past_wrappers_of_gymnasium(build_any):
    envs = build_any(POLES, full_batch=True)
    wrapped = wrappers.RecordEpisodeStatistics(wrappers.ClipReward(envs, 0, 1))
    names = ("send", "recv", "rollout", "stats", "call", "batch_size", "full_batch")
    assert [name for name in names if hasattr(wrapped, name)] == []
    assert wrapped.unwrapped is envs
    wrapped.reset(seed=1)
    arrays = wrapped.unwrapped.rollout(1)
    wrapped.unwrapped.send([0, 1, 0, 1, 0])
    assert_identical(wrapped.unwrapped.recv()[0], arrays.observations[1])
    assert wrapped.unwrapped.stats().steps.tolist() == [1] * 5
    assert wrapped.unwrapped.call("gravity") == (9.8,) * 5
