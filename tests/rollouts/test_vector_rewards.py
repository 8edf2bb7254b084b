"""Rollouts have the rewards of several objectives, as if there were one rollout for each."""

import pickle
from functools import partial

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import cartwheel
from cartwheel.wrappers import FrameStack, TransformReward
from tests.support.comparison import assert_identical
from tests.support.objectives import NoisyEnv, OneObjective

K, ROWS, STEPS = 3, 4, 12
MODES = {mode.name.lower(): mode for mode in AutoresetMode}
WEIGHTS = np.array([0.5, -2.0, 3.0])


class FiniteEnv(NoisyEnv):
    rare = (-0.0, 4.0, 1e9)


def envs_of(env_fn, mode):
    return cartwheel.VectorEnv([env_fn] * ROWS, executor="inline", autoreset_mode=mode)


def made(mode):
    return envs_of(partial(FiniteEnv, K), mode)


def alone(objective, mode):
    return envs_of(lambda: OneObjective(FiniteEnv(K), objective), mode)


def collecting(envs, order="lockstep"):
    def policy(observations):
        return (observations.reshape(len(observations), -1)[:, 0] > 0).astype(np.int64)

    return cartwheel.Collector(envs, policy, STEPS, seed=7, order=order, progress=False)


def with_values(rollout):
    rollout.set_values(rollout.value_inputs()[:, 0])
    return rollout


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
@pytest.mark.parametrize("order", ["lockstep", "free"])
def test_each_objective_is_collected_as_if_it_were_alone(mode, order):
    together = collecting(made(mode), order)
    one_by_one = [collecting(alone(objective, mode), order) for objective in range(K)]
    for _ in range(3):
        rollout = with_values(together.collect())
        assert rollout.rewards.shape == (STEPS, ROWS, K)
        for objective, collector in enumerate(one_by_one):
            single = with_values(collector.collect())
            weighed = rollout.scalarize(np.eye(K)[objective])
            assert_identical(weighed.rewards, single.rewards + 0.0)  # -0.0 times 1 plus 0
            assert_identical(rollout.rewards[..., objective], single.rewards)
            assert_identical(rollout.carry.returns[:, objective], single.carry.returns)
            assert_identical(rollout.episodes().returns[:, objective], single.episodes().returns)
            assert_identical(
                rollout.transitions(n_step=2, gamma=0.9).rewards[:, objective],
                single.transitions(n_step=2, gamma=0.9).rewards,
            )
            assert_identical(rollout.flatten().rewards[:, objective], single.flatten().rewards)
            assert_identical(weighed.gae(0.9, 0.8), single.gae(0.9, 0.8))
            for reward_at in ("t", "t+1"):
                pair = [each.workspace_transitions(reward_at) for each in (rollout, single)]
                for name in ("env/reward", "env/cumulated_reward"):
                    assert_identical(pair[0][name][..., objective], pair[1][name])
            assert_identical(
                rollout.tail(5).carry.returns[:, objective], single.tail(5).carry.returns
            )
    for collector in (together, *one_by_one):
        collector.envs.close()


def test_a_scalarized_rollout_is_that_of_weighed_rewards():
    mode = AutoresetMode.SAME_STEP
    together = collecting(made(mode))
    weighed = collecting(TransformReward(made(mode), lambda rewards: (rewards * WEIGHTS).sum(-1)))
    for _ in range(2):
        expected, rollout = with_values(weighed.collect()), with_values(together.collect())
        by_row = rollout.scalarize(np.tile(WEIGHTS, (ROWS, 1)))
        for got in (rollout.scalarize(WEIGHTS), by_row):
            assert_identical(got.rewards, expected.rewards)
            assert_identical(got.gae(0.9, 0.8), expected.gae(0.9, 0.8))
            assert_identical(got.discounted_returns(0.9), expected.discounted_returns(0.9))
    for collector in (together, weighed):
        collector.envs.close()


def test_estimators_name_the_way_to_numbers():
    collector = collecting(made(AutoresetMode.NEXT_STEP))
    rollout = with_values(collector.collect())
    with pytest.raises(ValueError, match=r"3 objectives, .*`rollout\.scalarize\(weights\)`"):
        rollout.gae(0.99, 0.95)
    with pytest.raises(ValueError, match=r"shape \(3,\), or \(4, 3\) for .* got \(2,\)"):
        rollout.scalarize([1, 2])
    with pytest.raises(ValueError, match="of this rollout are numbers"):
        rollout.scalarize(WEIGHTS).scalarize(WEIGHTS)
    collector.envs.close()


def test_a_collector_with_objectives_continues_from_its_state():
    mode = AutoresetMode.SAME_STEP
    first, other = (collecting(FrameStack(made_with_state(mode), 2)) for _ in range(2))
    first.collect()
    other.load_state_dict(pickle.loads(pickle.dumps(first.state_dict())))
    expected, rollout = first.collect(), other.collect()
    for name in ("observations", "rewards", "actions", "terminated"):
        assert_identical(getattr(rollout, name), getattr(expected, name))
    assert_identical(rollout.carry.returns, expected.carry.returns)
    for collector in (first, other):
        collector.envs.close()


def made_with_state(mode):
    return cartwheel.VectorEnv(
        [partial(FiniteEnv, K)] * ROWS, executor="inline", autoreset_mode=mode, states="pickle"
    )
