"""Wrappers around environments that were stepped before show the next episodes as they are."""

from functools import partial

import numpy as np
import pytest

from cartwheel.wrappers import (
    AutoresetAdapter,
    ClipReward,
    FrameStack,
    NormalizeObservation,
    RecordMetrics,
)
from tests.support.environments import TranscriptEnv
from tests.support.wrapping import MODES, D, N, S, build

LENGTH = 3


def made(mode, steps, inner=lambda envs: envs):
    """Environments with so many steps since their reset; they wait where they are over."""
    rests = {"on_done": "freeze"} if mode is D else {}
    envs = inner(build("inline", partial(TranscriptEnv, LENGTH), mode, 2, **rests))
    envs.reset(seed=1)
    for _ in range(steps):
        envs.step([1, 1])
    return envs


def go_on(envs, count=9):
    """The results of some steps; rows that rest are reset by a mask."""
    results = []
    for _ in range(count):
        results.append(envs.step([1, 1]))
        if envs.metadata["autoreset_mode"] is D and (results[-1][2] | results[-1][3]).any():
            envs.reset(options={"reset_mask": np.ones(2, np.bool_)})
    return results


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("inner", [lambda envs: envs, lambda envs: ClipReward(envs, -1, 1)])
def test_episodes_that_are_over_are_not_counted_again(mode, inner):
    envs = RecordMetrics(made(mode, LENGTH, inner))
    reported = [infos["_episode"].any() for *_, infos in go_on(envs)]
    assert not any(reported[: LENGTH - (mode is S)])
    assert set(envs.finished()["episode_len"].tolist()) == {LENGTH}
    envs.close()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("steps", [0, 1, LENGTH - 1, LENGTH])
def test_stacks_begin_with_the_first_observation_that_is_seen(mode, steps):
    envs = FrameStack(ClipReward(made(mode, steps), -1, 1), 3)
    stack = []
    for observations, _, _, _, infos in go_on(envs, 1):
        final = infos.get("final_obs", [None])[0]
        stack = [final if final is not None else observations[0], observations[0]]
    is_over = steps == LENGTH
    now = {N: 0, S: 1, D: LENGTH}[mode] if is_over else steps + 1
    assert stack[0].ravel().tolist() == [now] * 3
    shown = 0 if mode is S and steps == LENGTH - 1 else now
    assert stack[1].ravel().tolist() == [shown] * 3
    envs.close()


def test_normalized_observations_of_rows_that_rest_are_those_that_they_show():
    envs = NormalizeObservation(made(D, LENGTH), epsilon=1e-4)
    shown = envs.step([1, 1])[0]
    moments = envs.obs_rms
    assert round(moments.count) == 2
    expected = (LENGTH - moments.mean) / np.sqrt(moments.var + 1e-4)
    np.testing.assert_allclose(shown, [expected] * 2, rtol=1e-6)
    np.testing.assert_array_equal(envs.step([1, 1])[0], shown)
    envs.close()


@pytest.mark.parametrize("mode", [N, S])
def test_an_adapter_resets_rows_that_are_over(mode):
    adapter = AutoresetAdapter(made(D, LENGTH), mode)
    envs = RecordMetrics(adapter)
    observations, rewards, terminations, *_ = envs.step([1, 1])
    assert observations.tolist() == [[0], [0]]
    assert rewards.tolist() == [0, 0]
    assert not terminations.any()
    for _ in range(LENGTH):
        terminations = envs.step([1, 1])[2]
    assert terminations.all()
    assert envs.finished()["episode_len"].tolist() == [LENGTH] * 2
    envs.close()


@pytest.mark.parametrize("mode", MODES)
def test_after_a_reset_nothing_is_left_of_the_steps_before(mode):
    late = RecordMetrics(FrameStack(made(mode, LENGTH), 2))
    early = made(mode, 0, lambda envs: RecordMetrics(FrameStack(envs, 2)))
    results = []
    for envs in (late, early):
        envs.reset(seed=3)
        results.append([(*step[:4], step[4]["episode"]["return"]) for step in go_on(envs, 4)])
        assert not envs._source.losses.flag.is_set
        envs.close()
    for one, other in zip(*results, strict=True):
        for ours, theirs in zip(one, other, strict=True):
            np.testing.assert_array_equal(ours, theirs)
