"""Rollouts through wrappers that copy steps take and refuse what those of the environments do."""

import numpy as np
import pytest

import cartwheel
from cartwheel._cartwheel import RolloutSlab
from cartwheel.wrappers import (
    AtariPreprocessing,
    AutoresetAdapter,
    ClipAction,
    DelayAction,
    RecordEpisodeStatistics,
    RecordMetrics,
    RescaleAction,
    SmoothAction,
    StickyAction,
    TransformObservation,
)
from tests.support.comparison import assert_identical
from tests.support.wrapping import MODES, D, build

MASK = np.array([True, False, True])


def same(envs):
    return TransformObservation(envs, np.copy)


def in_mode(mode):
    """A wrapper that copies steps, and the mode of the environments under it."""
    return [(same, mode)] + ([] if mode is D else [(lambda envs: AutoresetAdapter(envs, mode), D)])


RESETS = {
    "all": lambda envs: envs.reset(seed=9),
    "by a mask": lambda envs: envs.reset(seed=[5, 6, 7], options={"reset_mask": MASK}),
    "later": lambda envs: (envs.reset_async(seed=9), envs.reset_wait()),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("reset", RESETS.values(), ids=RESETS)
@pytest.mark.parametrize("before", [0, 2])
def test_a_reset_shows_in_a_rollout_what_it_shows_without_wrappers(mode, reset, before):
    def recorded(envs):
        envs.reset(seed=1)
        arrays = envs.rollout(4)
        for step in range(4):
            if step == before:
                reset(envs)
            envs.step([0, 1, 0])
        observations = np.array(arrays.observations)
        envs.close()
        return observations

    expected = recorded(build("native", "pole", mode, 3))
    for wrap, inner in in_mode(mode):
        assert_identical(recorded(wrap(build("native", "pole", inner, 3))), expected)


@pytest.mark.parametrize(
    ("wrap", "copies"),
    [
        (ClipAction, False),
        (lambda envs: RescaleAction(envs, -1, 1), False),
        (lambda envs: SmoothAction(envs, 0.5), False),
        (lambda envs: DelayAction(envs, 1), False),
        (lambda envs: StickyAction(envs, 0.5), False),
        (RecordEpisodeStatistics, False),
        (RecordMetrics, False),
        (lambda envs: ClipAction(RecordEpisodeStatistics(envs)), False),
        (lambda envs: ClipAction(same(envs)), True),
        (lambda envs: same(ClipAction(envs)), True),
    ],
)
def test_steps_are_copied_only_if_a_wrapper_changes_them(wrap, copies):
    envs = wrap(cartwheel.NativeVectorEnv("Pendulum-v1", 2))
    envs.reset(seed=1)
    arrays = envs.rollout(1)
    for array in (arrays.observations, arrays.rewards):
        assert isinstance(array.base, RolloutSlab) != copies
    envs.close()


PARTS = {
    "step": lambda envs: envs.step([0], [1]),
    "step_async": lambda envs: envs.step_async([0], [1]),
    "send": lambda envs: envs.send([0], [1]),
    "reset": lambda envs: envs.reset(options={"env_index": [0]}),
    "send_reset": lambda envs: envs.send_reset(options={"env_index": [0]}),
    "set_state": lambda envs: envs.set_state([0], envs.get_state([1])),
}


@pytest.mark.parametrize("mode", MODES)
def test_parts_of_a_batch_are_refused_as_without_wrappers(mode):
    bare = build("native", "pole", mode, 3)
    wrapped = [wrap(build("native", "pole", inner, 3)) for wrap, inner in in_mode(mode)]
    for envs in (bare, *wrapped):
        envs.reset(seed=1)
        envs.rollout(4)
    for steps in (0, 2):
        for name, part in PARTS.items():
            if steps and name not in ("step", "step_async", "send"):
                continue  # resets are allowed after the first step
            with pytest.raises(RuntimeError, match=f"recorded \\({steps} of 4 steps\\)") as refused:
                part(bare)
            for envs in wrapped:
                if isinstance(envs, AutoresetAdapter) and name in ("send", "send_reset"):
                    continue  # it has none
                with pytest.raises(RuntimeError) as found:
                    part(envs)
                assert str(found.value) == str(refused.value)
        shown = [envs.step([0, 1, 0])[0] for envs in (bare, *wrapped) for _ in range(2)]
        for one, other in zip(shown[:2] * len(wrapped), shown[2:], strict=True):
            assert_identical(one, other)
    for envs in (bare, *wrapped):
        envs.close()


def test_skipped_frames_refuse_parts_and_begin_with_a_reset():
    envs = AtariPreprocessing(build("inline", "images", D, 3), frame_skip=2, screen_size=8)
    envs.reset(seed=1)
    arrays = envs.rollout(2)
    observations, _ = envs.reset(seed=9)
    assert_identical(arrays.observations[0], observations)
    parts = [PARTS[name] for name in ("step", "step_async", "reset")]
    for part in (*parts, lambda envs: envs.set_state([0], [b""])):
        with pytest.raises(RuntimeError, match=r"recorded \(0 of 2 steps\)"):
            part(envs)
    envs.close()
