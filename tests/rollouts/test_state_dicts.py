"""A collector that loads a state returns the rollouts that the saved one would have returned."""

import pickle
from functools import partial

import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv

import cartwheel
from cartwheel.wrappers import NormalizeObservation, RecordMetrics
from tests.support.comparison import assert_identical
from tests.support.oracle import MODE, N, S
from tests.support.stateful import TouchyWalkEnv, walk

PARTS = (
    *("observations", "actions", "rewards", "terminated", "truncated", "valid", "is_first"),
    *("policy_version", "env_index"),
)


class Policy:
    """Draws its actions, so that the order of its calls matters."""

    def __init__(self):
        self.random = np.random.default_rng(5)

    def __call__(self, observations):
        drawn = self.random.integers(2, size=len(observations))
        return drawn, {"value": observations[:, 0] * 2}


def build(mode, *, kind="native", executor="inline", normalizes=True, **keywords):
    if kind == "native":
        envs = cartwheel.NativeVectorEnv(
            "CartPole-v1", 4, autoreset_mode=mode, max_episode_steps=7, executor=executor
        )
    else:
        envs = cartwheel.VectorEnv([walk] * 4, autoreset_mode=mode, executor=executor)
    envs = RecordMetrics(envs)
    envs = NormalizeObservation(envs) if normalizes else envs  # by batch
    return cartwheel.Collector(envs, Policy(), seed=3, progress=False, **keywords)


def collected(collector, count):
    found = []
    for _ in range(count):
        rollout = collector.collect()
        collector.update()
        parts = {name: getattr(rollout, name).copy() for name in PARTS}
        found.append({**parts, "value": rollout.extras["value"].copy()})
        found[-1]["returns"] = rollout.episodes().returns.copy()
    return found


ORDERS = {
    "lockstep": {"num_steps": 5},
    "groups": {"num_steps": 5, "order": "groups"},
    "until": {"until": "all_done"},
}


@MODE
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", ["native", "Python"])
def test_the_next_rollouts_are_those_of_the_saved_collector(kind, order, mode):
    keywords = {"kind": kind, **ORDERS[order]}
    collector, other = (build(mode, **keywords) for _ in range(2))
    for count in (0, 2):  # before the first reset, and later, where it is the second group's turn
        collected(collector, count)
        state = pickle.loads(pickle.dumps(collector.state_dict()))
        policy = pickle.dumps(collector.policy)
        expected = collected(collector, 3)
        other.load_state_dict(state)
        other.policy = pickle.loads(policy)
        assert_identical(collected(other, 3), expected)
        assert other.stats().rollouts == collector.stats().rollouts
        assert other.stats().version == collector.stats().version
    for each in (collector, other):
        each.close()
        each.envs.close()


def test_length_and_order_may_differ():
    collector = build(S, num_steps=4, normalizes=False)
    other = build(S, num_steps=8, order="groups", normalizes=False)
    collected(collector, 2)
    state = collector.state_dict()
    rows = lambda observations: (observations[:, 0] > 0).astype(int)  # noqa: E731
    collector.policy = other.policy = rows
    expected = [collector.collect() for _ in range(2)]
    other.load_state_dict(state)
    rollout = other.collect()
    for name in ("rewards", "actions", "terminated"):
        joined = np.concatenate([getattr(part, name) for part in expected])
        np.testing.assert_array_equal(getattr(rollout, name), joined)
    for each in (collector, other):
        each.close()
        each.envs.close()


@pytest.mark.parametrize("groups", [1, 2])
def test_a_state_of_more_groups_continues_in_fewer(groups):
    collector = build(N, num_steps=4, order="groups", groups=4, normalizes=False)
    other = build(N, num_steps=4, order="groups", groups=groups, normalizes=False)
    collector.policy = other.policy = lambda observations: (observations[:, 0] > 0).astype(int)
    collector.collect()
    other.load_state_dict(collector.state_dict())
    for _ in range(2):
        expected, rollout = collector.collect(), other.collect()
        for name in PARTS:
            np.testing.assert_array_equal(getattr(rollout, name), getattr(expected, name))
    for each in (collector, other):
        each.close()
        each.envs.close()


def test_an_unused_seed_is_used_after_a_load():
    collector, other = build(N, num_steps=4), build(N, num_steps=4)
    state = collector.state_dict()
    other.collect()
    other.load_state_dict(state)
    other.policy = Policy()
    assert_identical(collected(other, 2), collected(collector, 2))
    for each in (collector, other):
        each.close()
        each.envs.close()


def test_other_callers_mean_a_reset_after_a_load_too():
    collector, other = build(N, num_steps=4), build(N, num_steps=4)
    collector.collect()
    collector.envs.step(np.zeros(4, int))
    other.load_state_dict(collector.state_dict())
    assert other.collect().is_first[0].all()
    for each in (collector, other):
        each.close()
        each.envs.close()


@pytest.mark.parametrize("order", ["lockstep", "free"])
def test_a_state_that_a_row_refuses_leaves_the_rollout_as_it_is(order):
    coming = []

    def policy(observations):
        if coming and (error := coming.pop()):
            raise error
        return np.zeros(len(observations), int)

    collectors = []
    for executor in ("inline", "thread"):
        envs = cartwheel.VectorEnv([partial(walk, TouchyWalkEnv)] * 3, executor=executor)
        collectors.append(cartwheel.Collector(envs, policy, num_steps=3, seed=1, order=order))
        collectors[-1].collect()
    other, collector = collectors
    state = collector.state_dict()
    coming += [OSError("no policy"), None]
    with pytest.raises(OSError, match="no policy"):
        collector.collect()
    collector.pause()
    collector.envs.set_attr("touchy", [False, True, False])
    with pytest.raises(ValueError, match="this state is refused"):
        collector.load_state_dict(state)
    for _ in range(2):
        expected, rollout = other.collect(), collector.collect()
        np.testing.assert_array_equal(rollout.observations, expected.observations)
        np.testing.assert_array_equal(rollout.valid, expected.valid)
    for each in collectors:
        each.close()
        each.envs.close()


@pytest.mark.parametrize(
    ("keywords", "error", "words"),
    [
        ({"order": "free", "run_ahead": 1}, ValueError, "`state_dict` needs .* run_ahead=1 does"),
        ({"order": "free", "columns": 2}, ValueError, "columns=2 does not"),
        ({"background": True}, ValueError, "background=True does not"),
        ({"order": "auto"}, RuntimeError, "while order='auto' measures"),
    ],
)
def test_collectors_without_an_end_of_a_rollout_are_refused(keywords, error, words):
    collector = build(N, num_steps=4, executor="thread", **keywords)
    with pytest.raises(error, match=words):
        collector.state_dict()
    collector.close()
    collector.envs.close()


def test_what_does_not_fit_changes_nothing():
    collector = build(N, num_steps=4)
    collector.collect()
    state = collector.state_dict()
    collector.collect()
    before = collector.state_dict()
    for name, value, words in [
        ("policy_version", -1, r"policy_version"),
        ("kind", "vector_env", "of kind 'vector_env', not of 'collector'"),
        ("carry", {}, r"carry.* must have the keys"),
        ("envs", collector.envs.state_dict(envs=False), "`collector.envs.load_state_dict`"),
        ("envs", {}, "not from `state_dict`"),
    ]:
        with pytest.raises(ValueError, match=words):
            collector.load_state_dict({**state, name: value})
        assert_identical(collector.state_dict(), before)
    failing = build(N, num_steps=4)
    failing.collect()

    def fails(_):
        raise OSError("no policy")

    failing.policy = fails
    with pytest.raises(OSError, match="no policy"):
        failing.collect()
    failing.load_state_dict(state)  # the rollout that the policy interrupted is dropped
    failing.policy, collector.policy = Policy(), Policy()
    collector.load_state_dict(state)
    assert_identical(collected(failing, 2), collected(collector, 2))
    sync = SyncVectorEnv([walk] * 2)
    plain = cartwheel.Collector(sync, Policy(), num_steps=4, progress=False)
    with pytest.raises(TypeError, match="needs vector environments and wrappers of cartwheel"):
        plain.state_dict()
    for each in (collector, failing, plain):
        each.close()
        each.envs.close()
