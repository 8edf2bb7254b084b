"""The same policy works in the collector and the evaluation, with extras and with state."""

from functools import partial

import numpy as np
import pytest
from gymnasium.spaces import Dict, Discrete, MultiDiscrete, Tuple
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import cartwheel
from cartwheel.policy import actions_and_extras
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
