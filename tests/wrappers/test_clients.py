"""`evaluate` and `Collector` give through wrappers what they give with the work done by hand."""

import numpy as np
import pytest
from gymnasium.vector import VectorWrapper as GymnasiumWrapper

import cartwheel
from cartwheel.wrappers import (
    AutoresetAdapter,
    ClipReward,
    DtypeObservation,
    FlattenAction,
    RescaleObservation,
    TransformObservation,
    TransformReward,
)
from cartwheel.wrappers.base import VectorWrapper
from tests.support.comparison import assert_identical
from tests.support.wrapping import MODES, D, N, S, build

FIELDS = ["actions", "rewards", "terminated", "truncated", "valid", "is_first", "final_index"]


class Watching(VectorWrapper):
    """Changes nothing, and sees every batch."""

    _changes_steps = False

    def __init__(self, envs):
        super().__init__(envs)
        self.batches = 0

    def transform(self, batch):
        del batch
        self.batches += 1


def doubled(observations):
    return observations * np.float32(2)


def lean(observations):
    return (observations[:, 2] > 0.01).astype(np.int64)


def unlike(kind, mode, **keywords):
    """Environments with doubled observations and other rewards, and the same without wrappers."""
    wrapped = TransformObservation(build(kind, "pole", mode, 5, **keywords), doubled)
    wrapped = FlattenAction(TransformReward(wrapped, lambda rewards: rewards * 3))
    return wrapped, build(kind, "pole", mode, 5, **keywords)


@pytest.mark.parametrize("kind", ["native", "inline", "sync"])
@pytest.mark.parametrize("mode", MODES)
def test_an_evaluation_equals_one_with_the_transformation_in_the_policy(kind, mode):
    wrapped, bare = unlike(kind, mode)
    found = cartwheel.evaluate(
        wrapped, lambda seen: lean(seen)[:, None], episodes_per_env=3, seed=4, progress=False
    )
    by_hand = cartwheel.evaluate(
        bare, lambda seen: lean(doubled(seen)), episodes_per_env=3, seed=4, progress=False
    )
    assert_identical(found.returns, by_hand.returns * 3)
    for name in ("lengths", "terminated", "truncated", "failures"):
        assert_identical(getattr(found, name), getattr(by_hand, name), name)
    wrapped.close()
    bare.close()


@pytest.mark.parametrize("mode", MODES)
def test_rows_that_have_finished_are_not_stepped_under_wrappers(mode):
    shown = []

    def policy(observations):
        shown.append(len(observations))
        return lean(observations)

    envs = DtypeObservation(ClipReward(build("native", "pole", mode, 5), 0, 2), np.float64)
    found = cartwheel.evaluate(envs, policy, episodes_per_env=2, seed=4, progress=False)
    assert sum(shown) == found.lengths.sum() == envs.stats().steps.sum()
    envs.close()


@pytest.mark.parametrize("mode", [N, S])
def test_an_evaluation_through_an_adapter_equals_one_without(mode):
    adapted = AutoresetAdapter(build("native", "pole", D, 5), mode)
    bare = build("native", "pole", mode, 5)
    found, expected = (
        cartwheel.evaluate(envs, lean, episodes_per_env=3, seed=4, progress=False)
        for envs in (adapted, bare)
    )
    assert_identical(found.returns, expected.returns)
    assert_identical(found.lengths, expected.lengths)
    adapted.close()
    bare.close()


def rollouts(envs, policy, way):
    collector = cartwheel.Collector(envs, policy, seed=2, **way)
    return [collector.collect() for _ in range(2)]


WAYS = pytest.mark.parametrize("way", [{"num_steps": 30}, {"num_episodes": 8}], ids=str)


@WAYS
@pytest.mark.parametrize("kind", ["native", "sync"])
@pytest.mark.parametrize("mode", MODES)
def test_rollouts_equal_those_with_the_transformation_by_hand(kind, mode, way):
    freezes = [{"on_done": "freeze"}] if (kind, mode) == ("native", D) else []
    for keywords in [{}, *freezes]:
        wrapped, bare = unlike(kind, mode, **keywords)
        found = rollouts(wrapped, lambda seen: lean(seen)[:, None], way)
        by_hand = rollouts(bare, lambda seen: lean(doubled(seen)), way)
        for rollout, expected in zip(found, by_hand, strict=True):
            assert_identical(rollout.observations, doubled(expected.observations))
            assert_identical(rollout.final_observations, doubled(expected.final_observations))
            assert_identical(rollout.rewards, expected.rewards * 3)
            assert_identical(rollout.actions[..., 0], expected.actions)
            for name in FIELDS[2:]:
                assert_identical(getattr(rollout, name), getattr(expected, name), name)
        wrapped.close()
        bare.close()


@WAYS
@pytest.mark.parametrize("mode", MODES)
def test_wrappers_that_change_nothing_leave_the_rollout_without_copies(mode, way):
    """With 300 environments, what steps return are views of the rollout."""
    seen = []

    def policy(observations):
        seen.append(observations)
        return lean(observations)

    envs = Watching(Watching(build("native", "pole", mode, 300)))
    bare = build("native", "pole", mode, 300)
    assert envs.fills_rollouts
    way = {"num_steps": 30} if "num_steps" in way else {"num_episodes": 300}
    (found, _), (expected, _) = rollouts(envs, policy, way), rollouts(bare, lean, way)
    for name in (*FIELDS, "observations", "final_observations"):
        assert_identical(getattr(found, name), getattr(expected, name), name)
    if "num_steps" in way and mode is not D:  # there, masked resets replace what is shown
        assert all(np.shares_memory(batch, found.observations) for batch in seen[:30])
    assert envs.batches >= len(seen)
    envs.close()
    bare.close()


@WAYS
@pytest.mark.parametrize("mode", [N, S])
def test_rollouts_through_an_adapter_equal_those_without(mode, way):
    adapted = AutoresetAdapter(build("native", "pole", D, 5), mode)
    bare = build("native", "pole", mode, 5)
    pairs = zip(rollouts(adapted, lean, way), rollouts(bare, lean, way), strict=True)
    for found, expected in pairs:
        for name in (*FIELDS, "observations", "final_observations"):
            assert_identical(getattr(found, name), getattr(expected, name), name)
    adapted.close()
    bare.close()


def test_only_wrappers_that_change_nothing_fill_rollouts():
    envs = build("native", "pole", D)
    sync = build("sync", "pole", D)
    assert Watching(envs).fills_rollouts
    assert FlattenAction(envs).fills_rollouts
    assert Watching(FlattenAction(envs)).fills_rollouts
    for changed in (
        Watching(ClipReward(envs, 0, 1)),
        ClipReward(Watching(envs), 0, 1),
        AutoresetAdapter(envs, S),
        Watching(AutoresetAdapter(envs, S)),
        Watching(sync),
        Watching(GymnasiumWrapper(envs)),
    ):
        assert not changed.fills_rollouts
    envs.close()
    sync.close()


def test_refused_actions_lose_nothing_under_wrappers_that_change_nothing():
    calls = iter(range(1000))

    def wrong_now_and_then(observations):
        actions = lean(observations)
        if next(calls) % 3 == 2:
            actions[-1] = 7
        return actions

    envs, twin = Watching(build("native", "pole", S)), build("native", "pole", S)
    collector = cartwheel.Collector(envs, wrong_now_and_then, num_steps=20, seed=1)
    for _ in range(9):
        with pytest.raises(ValueError, match="action 7 of row 2"):
            collector.collect()
    rollout = collector.collect()
    expected = cartwheel.Collector(twin, lean, num_steps=20, seed=1).collect()
    for name in (*FIELDS, "observations", "final_observations"):
        assert_identical(getattr(rollout, name), getattr(expected, name), name)
    envs.close()
    twin.close()


@pytest.mark.parametrize("mode", MODES)
def test_collected_failures_are_those_without_wrappers(mode):
    keywords = {"on_error": "restart", "max_restarts": None}
    actions = np.random.default_rng(1).integers(0, 3, (2, 60, 3))
    actions[:, ::9, 1] = 3
    found = []
    for wrap in (lambda envs: envs, lambda envs: RescaleObservation(envs, -np.inf, np.inf)):
        numbers = iter(actions.reshape(-1, 3))
        envs = wrap(build("inline", "failing", mode, **keywords))
        found.append(rollouts(envs, lambda _, n=numbers: next(n), {"num_steps": 25}))
        envs.close()
    for rollout, expected in zip(*found, strict=True):
        assert not expected.valid.all()
        for name in (*FIELDS, "observations", "final_observations"):
            assert_identical(getattr(rollout, name), getattr(expected, name), name)
