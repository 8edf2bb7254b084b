"""Wrappers of Gymnasium around ours and ours around Gymnasium's work, or say why not."""

import numpy as np
import pytest
from gymnasium.vector import VectorWrapper
from gymnasium.wrappers import vector as theirs

from cartwheel import wrappers as ours
from tests.support import repetitions
from tests.support.comparison import assert_identical
from tests.support.wrapping import (
    MODES,
    Builds,
    D,
    FailingEnv,
    N,
    S,
    Script,
    alone,
    assert_traces,
    build,
    drive,
    kinds_of,
)

SCRIPT = Script(steps=12, resets={(1, 3): 50, (2, 9): 52})
SMALLER = (
    lambda envs: ours.TransformObservation(envs, lambda seen: seen * np.float32(0.5)),
    lambda envs: theirs.TransformObservation(envs, lambda seen: seen * np.float32(0.5)),
)
HALVED = (
    lambda envs: ours.TransformReward(envs, lambda rewards: rewards / 2),
    lambda envs: theirs.TransformReward(envs, lambda rewards: rewards / 2),
)


@pytest.mark.parametrize("mode", MODES)
def test_both_orders_give_the_same_lives(mode):
    """In SAME_STEP Gymnasium's wrappers of observations refuse to be made.

    Before 1.3, its wrappers close what they wrap when they are dropped: so all of them are kept.
    """
    kept = []
    bare = alone("pole", SCRIPT)
    expected = [
        [
            moment._replace(
                observation=moment.observation * np.float32(0.5), reward=moment.reward / 2
            )
            for moment in trace
        ]
        for trace in bare
    ]
    with Builds() as build:
        every, number = kinds_of("pole"), MODES.index(mode)
        for kind in every if repetitions.full else (every[number], "sync"):
            envs = build(kind, "pole", mode)
            inside = SMALLER[0](HALVED[1](envs))
            around = HALVED[1](SMALLER[0](envs))
            kept += [inside, around]
            for wrapped in (inside, around):
                assert wrapped.metadata["autoreset_mode"] is mode
                assert_traces(drive(wrapped, SCRIPT, close=False), expected)
            if mode is not S:
                inside = HALVED[0](SMALLER[1](envs))
                around = SMALLER[1](HALVED[0](envs))
                kept += [inside, around]
                for wrapped in (inside, around):
                    assert_traces(drive(wrapped, SCRIPT, close=False), expected)


@pytest.mark.parametrize("mode", [N, S])
def test_statistics_of_gymnasium_pass_through(mode):
    for kind in kinds_of("pendulum"):
        told = []
        for wrap in (
            lambda envs: theirs.RecordEpisodeStatistics(ours.DtypeObservation(envs, np.float64)),
            lambda envs: ours.DtypeObservation(theirs.RecordEpisodeStatistics(envs), np.float64),
        ):
            envs = wrap(build(kind, "pendulum", mode))
            envs.reset(seed=1)
            results = [envs.step(np.full((3, 1), 0.25, np.float32)) for _ in range(12)]
            for result in results:
                result[-1].get("episode", {}).pop("t", None)
            told.append(results)
            envs.close()
        assert_identical(*told)
        assert any("episode" in result[-1] for result in told[0])


def test_what_gymnasium_cannot_pass_on_is_refused():
    envs = build("native", "pole", D)
    wrapped = ours.ClipReward(theirs.RecordEpisodeStatistics(envs), 0, 1)
    wrapped.reset(seed=1)
    actions = np.zeros(3, np.int64)
    for call, words in (
        (lambda: wrapped.step(actions[:1], [0]), "`step` of some rows needs"),
        (lambda: wrapped.step_async(actions[:1], [0]), "`step_async` of some rows needs"),
        (lambda: wrapped.send(actions), "`send` needs"),
        (wrapped.recv, "`recv` needs"),
        (wrapped.send_reset, "`send_reset` needs"),
        (lambda: wrapped.rollout(4), "`rollout` needs"),
    ):
        with pytest.raises(TypeError, match=f"^{words}.*without wrappers of Gymnasium around it"):
            call()
    other = theirs.RecordEpisodeStatistics(envs)  # kept: before 1.3, dropping it closes `envs`
    with pytest.raises(TypeError, match="SAME_STEP works"):
        ours.AutoresetAdapter(other, N)
    listed = ours.ClipReward(theirs.DictInfoToList(envs), 0, 1)
    with pytest.raises(TypeError, match="DictInfoToList"):
        listed.reset(seed=1)
    adapted = ours.AutoresetAdapter(theirs.DictInfoToList(envs), S)
    with pytest.raises(TypeError, match="DictInfoToList"):
        adapted.reset(seed=1)
    assert not envs.stats().steps.any()
    envs.close()


def test_row_numbers_that_gymnasium_would_ignore_are_refused():
    envs = ours.ClipReward(build("sync", "pole", D), 0, 1)
    envs.reset(seed=1)
    for name in ("env_index", "env_idx"):
        with pytest.raises(ValueError, match=f"{name}.*use 'reset_mask'"):
            envs.reset(options={name: [0]})
    envs.close()


class WithoutFinalInfos(VectorWrapper):
    """Its infos have nothing but final observations."""

    def step(self, actions):
        *results, infos = super().step(actions)
        return *results, {key: infos[key] for key in infos if key in ("final_obs", "_final_obs")}


def test_all_wrappers_see_an_end_of_which_infos_have_the_final_observations_alone():
    leaner, usual = (
        ours.NormalizeObservation(ours.FrameStack(wrap(build("sync", "pole", S)), 2))
        for wrap in (WithoutFinalInfos, VectorWrapper)
    )
    assert_identical(leaner.reset(seed=1), usual.reset(seed=1))
    ends = 0
    for _ in range(15):
        actions = np.zeros(3, np.int64)
        (*results, infos), (*expected, all_infos) = leaner.step(actions), usual.step(actions)
        assert_identical(results, expected)
        assert_identical(infos, {key: all_infos[key] for key in infos})
        ends += len(infos) > 0
    assert ends


class Fussy(FailingEnv):
    """The seed 4 raises, too."""

    def reset(self, *, seed=None, options=None):
        if seed == 4:
            raise ValueError("chosen to fail")
        return super().reset(seed=seed, options=options)


def test_results_that_gymnasium_loses_with_an_exception_count_when_rows_show_where_they_are():
    for kind in ("sync", "inline"):
        envs = ours.NormalizeObservation(build(kind, Fussy, D))
        envs.reset(seed=1)
        with pytest.raises(ValueError, match="chosen to fail"):
            envs.step(np.array([0, 3, 0]))
        assert envs.obs_rms.count == pytest.approx(3, abs=1e-3)
        envs.reset(seed=5, options={"reset_mask": np.array([False, True, False])})
        assert envs.obs_rms.count == pytest.approx(6, abs=1e-3)
        with pytest.raises(ValueError, match="chosen to fail"):
            envs.reset(seed=[5, 4, 5], options={"reset_mask": np.array([True, True, False])})
        envs.reset(seed=6, options={"reset_mask": np.array([False, True, False])})
        assert envs.obs_rms.count == pytest.approx(8, abs=1e-3)
        envs.close()
