"""The same policy works in the collector and the evaluation, with extras and with state."""

from functools import partial

import numpy as np
import pytest
from gymnasium.spaces import Dict, Discrete, MultiDiscrete, Tuple
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import cartwheel
from cartwheel._internal.policy import actions_and_extras
from tests.support.environments import TranscriptEnv, transcripts
from tests.support.executors import INLINE, PROCESS

MODES = ["next_step", "same_step", "disabled"]
SPACES = {
    "array": Discrete(100),
    "tuple": Tuple([Discrete(100), Discrete(100)]),
    "dict": Dict(a=Discrete(100), b=Discrete(100)),
    "tuple that ends with a dict": Tuple([Discrete(100), Dict(a=Discrete(100))]),
    "tuple of a tuple and a dict": Tuple(
        [Tuple([Discrete(100), Dict(a=Discrete(100))]), Dict(a=Discrete(100))]
    ),
}


def total(action):
    if isinstance(action, dict):
        action = tuple(action.values())
    return sum(map(total, action)) if isinstance(action, tuple) else int(action)


class SpacedEnv(TranscriptEnv):
    """Episodes of two steps; the reward is the sum of everything in the action."""

    def __init__(self, action_space):
        super().__init__(2)
        self.action_space = action_space

    def step(self, action):
        return super().step(total(action))


def filled(space, value, rows):
    """A batch of actions."""
    if isinstance(space, Dict):
        return {key: filled(part, value, rows) for key, part in space.spaces.items()}
    if isinstance(space, Tuple):
        return tuple(filled(part, value, rows) for part in space.spaces)
    return np.full(rows, value)


def size(space):
    if isinstance(space, Dict):
        space = tuple(space.spaces.values())
    return sum(map(size, space)) if isinstance(space, Tuple | tuple) else 1


@pytest.mark.parametrize("build", [INLINE, SyncVectorEnv], ids=["ours", "gymnasium's"])
@pytest.mark.parametrize("extras", [None, {}, {"log_prob": 0.5}, {"a": 0.5}], ids=str)
@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
def test_collector_and_evaluation_read_the_same_actions_and_extras(build, space, extras):
    def policy(observations):
        rows = len(observations)
        actions = filled(space, 3, rows)
        if extras is None:
            return actions
        return actions, {name: np.full(rows, value) for name, value in extras.items()}

    envs = build([partial(SpacedEnv, space)] * 3)
    rollout = cartwheel.Collector(envs, policy, until="all_done").collect()
    evaluation = cartwheel.evaluate(envs, policy)
    assert rollout.rewards.tolist() == [[3.0 * size(space)] * 3] * 2
    assert evaluation.returns.tolist() == [[6.0 * size(space)]] * 3
    assert sorted(rollout.extras) == sorted(extras or {})
    envs.close()


def test_a_pair_with_the_structure_of_the_action_space_is_actions():
    space = Tuple([MultiDiscrete([5, 5]), Dict(a=Discrete(5))])
    actions = (np.zeros((3, 2)), {"a": np.zeros(3)})
    for extras in ({}, {"a": np.ones(3)}, {"b": np.ones(3)}):
        assert actions_and_extras((actions, extras), space) == (actions, extras)
    assert actions_and_extras(actions, space) == (actions, {})
    # A dict with other keys can only be extras.
    assert actions_and_extras((actions[0], {"b": 1}), space) == (actions[0], {"b": 1})


class Clocks:
    """A recurrent policy whose state is one clock per row, compared with the observations."""

    def __init__(self, num_envs):
        self.state, self.seen = np.full(num_envs, -7), 0

    def __call__(self, observations, env_index, first):
        assert env_index.dtype.kind == "i"
        assert first.dtype == np.bool_
        self.state[env_index] = np.where(first, 0, self.state[env_index] + 1)
        shown = observations[:, 0]
        # Idle rows and rows that repeat the last observation of an episode are not checked.
        checked = first | (shown == self.state[env_index])
        self.seen += int(checked.sum())
        assert (shown[first] == 0).all()
        clocks = self.state[env_index].copy()
        env_index[:], first[:] = 0, False  # the policy may overwrite both
        return np.ones(len(shown), np.int64), {"clock": clocks}


@pytest.mark.parametrize("build", [INLINE, PROCESS], ids=str)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("way", [{"num_steps": 9}, {"num_episodes": 7}])
def test_one_recurrent_policy_works_in_collector_and_evaluation(build, mode, way):
    envs = build(transcripts(2, 5, 1), autoreset_mode=mode)
    policy = Clocks(3)
    collector = cartwheel.Collector(envs, policy, recurrent=True, seed=1, **way)
    for _ in range(3):
        rollout = collector.collect()
        valid = rollout.valid
        clocks = rollout.extras["clock"][valid]
        assert clocks.tolist() == rollout.observations[:-1, :, 0][valid].tolist()
    seen = policy.seen
    evaluation = cartwheel.evaluate(envs, policy, episodes_per_env=3, recurrent=True)
    assert evaluation.lengths.tolist() == [[2] * 3, [5] * 3, [1] * 3]
    assert policy.seen - seen == evaluation.lengths.sum()
    envs.close()


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_recurrent_policy_that_fails_is_called_again_with_the_same_arguments(mode):
    envs = INLINE(transcripts(2, 3), autoreset_mode=mode)
    asked = []

    def policy(observations, env_index, first):
        asked.append((observations.tolist(), env_index.tolist(), first.tolist()))
        if len(asked) in (1, 4):
            raise ZeroDivisionError
        return np.ones(2, np.int64)

    collector = cartwheel.Collector(envs, policy, 6, recurrent=True)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            collector.collect()
    collector.collect()
    assert asked[0] == asked[1]
    assert asked[3] == asked[4]
    assert len(asked) == 6 + 2
    envs.close()


class Model:
    """Has the interface of Stable-Baselines3's models."""

    def __init__(self, action=1, state=None):
        self.action, self.state = action, state

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        assert (state, episode_start, deterministic) == (None, None, False)
        return np.full(len(observation), self.action), self.state


class CallableModel(Model):
    """Has the interface of Stable-Baselines3's policies, where a call is the network's."""

    def __call__(self, _):
        raise AssertionError


CHOOSING_1 = {
    "a model": Model(),
    "a policy object": CallableModel(),
    "predict": Model().predict,
    "a lambda around predict": lambda seen: Model().predict(seen, deterministic=False),
    "a function": lambda seen: np.ones(len(seen), int),
    "a list": lambda seen: [1] * len(seen),
}


def both(envs, policy, **keywords):
    """The rewards that the collector and the evaluation give a policy."""
    collector = cartwheel.Collector(envs, policy, until="all_done", **keywords)
    collected = collector.collect()
    evaluation = cartwheel.evaluate(envs, policy, **keywords)
    return collected.rewards.sum(axis=0).tolist(), evaluation.returns[:, 0].tolist()


@pytest.mark.parametrize("policy", CHOOSING_1.values(), ids=CHOOSING_1)
@pytest.mark.parametrize("build", [INLINE, SyncVectorEnv], ids=["ours", "gymnasium's"])
def test_functions_and_models_play_alike(build, policy):
    envs = build([partial(SpacedEnv, Discrete(5))] * 3)
    assert both(envs, policy) == ([2.0] * 3, [2.0] * 3)
    envs.close()


@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
def test_none_after_actions_is_left_out_in_every_action_space(space):
    envs = INLINE([partial(SpacedEnv, space)] * 3)
    rewards = [2.0 * 3 * size(space)] * 3
    assert both(envs, lambda seen: (filled(space, 3, len(seen)), None)) == (rewards, rewards)
    envs.close()


def returns(answer):
    return lambda _: answer


REFUSED = {
    "a recurrent state": (
        Model(state=(np.zeros(3), np.zeros(3))),
        r"a tuple \(ndarray, tuple\), .* Recurrent states are not passed on: with recurrent=True",
    ),
    "an array as state": (returns((np.ones(3, int), np.zeros((3, 8)))), r"\(ndarray, ndarray\)"),
    "extras without names": (returns((np.ones(3, int), 0.5, 2.5)), r"\(ndarray, float, float\)"),
    "a tuple of actions": (returns((1, 1, 1)), r"\(int, int, int\), which is not a batch"),
    "nothing": (returns(()), r"a tuple \(\)"),
}


@pytest.mark.parametrize(("policy", "message"), REFUSED.values(), ids=REFUSED)
def test_other_tuples_are_refused_before_anything_is_stepped(policy, message):
    envs = INLINE([partial(SpacedEnv, Discrete(5))] * 3)
    collector = cartwheel.Collector(envs, policy, 4)
    for play in (partial(cartwheel.evaluate, envs, policy), collector.collect):
        with pytest.raises(TypeError, match=message):
            play()
        assert envs.stats().steps.tolist() == [0, 0, 0]
    envs.close()


@pytest.mark.parametrize("wrong", [None, 3, {}, np.zeros(2)], ids=str)
def test_what_is_no_policy_is_refused_at_once(wrong):
    envs = INLINE([partial(SpacedEnv, Discrete(5))] * 3)
    message = "`policy` must be a function of the observations or have a method `predict`, got <cl"
    with pytest.raises(TypeError, match=message):
        cartwheel.Collector(envs, wrong, 4)
    with pytest.raises(TypeError, match=message):
        cartwheel.evaluate(envs, wrong)
    collector = cartwheel.Collector(envs, Model(), 4)
    with pytest.raises(TypeError, match=message):
        collector.policy = wrong
    assert collector.collect().rewards.sum() == 9.0  # one of the four steps only resets
    envs.close()


def test_a_recurrent_policy_must_be_callable():
    envs = INLINE([partial(SpacedEnv, Discrete(5))] * 3)
    message = "must be a function of observations, env_index and first"
    with pytest.raises(TypeError, match=message):
        cartwheel.Collector(envs, Model(), 3, recurrent=True)
    with pytest.raises(TypeError, match=message):
        cartwheel.evaluate(envs, Model(), recurrent=True)
    envs.close()


def test_a_recurrent_object_with_predict_is_called_itself():
    class Recurrent(Model):
        def __call__(self, observations, env_index, first):
            assert len(env_index) == len(first) == len(observations)
            return self.predict(observations)

    envs = INLINE([partial(SpacedEnv, Discrete(5))] * 3)
    assert both(envs, Recurrent(), recurrent=True) == ([2.0] * 3, [2.0] * 3)
    envs.close()
