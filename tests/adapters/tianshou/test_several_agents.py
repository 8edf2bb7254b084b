"""Tianshou's collectors and multi-agent algorithms get the same from `CartwheelVectorEnv`."""

import numpy as np
import pytest

from tests.multiagent.environments import Duel
from tests.support.one_thread import one_thread

pytestmark = pytest.mark.torch


def tictactoe():
    import pettingzoo
    from tianshou.env.pettingzoo_env import PettingZooEnv

    return PettingZooEnv(pettingzoo.make("aec", "classic/tictactoe-v3"))


def duel():
    from tianshou.env.pettingzoo_env import PettingZooEnv

    return PettingZooEnv(Duel())


def collected(envs, make):
    """The transitions that policies of two agents collect, one of which explores."""
    torch = one_thread()
    from tianshou.algorithm import (
        DQN,
        MARLRandomDiscreteMaskedOffPolicyAlgorithm,
        MultiAgentOffPolicyAlgorithm,
    )
    from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
    from tianshou.algorithm.optim import AdamOptimizerFactory
    from tianshou.data import Collector, VectorReplayBuffer
    from tianshou.utils.net.common import Net

    np.random.seed(3)  # noqa: NPY002 - Tianshou draws from it
    torch.manual_seed(3)
    one = make()
    shape = one.observation_space["observation"].shape
    policy = DiscreteQLearningPolicy(
        model=Net(state_shape=shape, action_shape=int(one.action_space.n), hidden_sizes=[8]),
        action_space=one.action_space,
        eps_training=0.5,
    )
    learner = DQN(policy=policy, optim=AdamOptimizerFactory(lr=1e-2), target_update_freq=9)
    other = MARLRandomDiscreteMaskedOffPolicyAlgorithm(action_space=one.action_space)
    agents = MultiAgentOffPolicyAlgorithm(algorithms=[other, learner], env=one)
    envs.seed(5)
    buffer = VectorReplayBuffer(300, len(envs))
    collector = Collector(agents, envs, buffer, exploration_noise=True)
    collector.reset()
    losses = []
    with torch.no_grad():
        first = collector.collect(n_step=60)
    for _ in range(3):
        policy.train()
        batch, indices = buffer.sample(32)
        agents._preprocess_batch(batch, buffer, indices)
        collector.collect(n_step=30)
        losses.append(float(np.asarray(batch.rew).sum()))
    envs.close()
    return buffer, losses, first.returns


@pytest.mark.parametrize("executor", ["inline", "process"])
@pytest.mark.parametrize("make", [tictactoe, duel])
def test_multi_agent_collectors_get_the_same_transitions(make, executor):
    from tianshou.env import DummyVectorEnv

    from cartwheel.tianshou import CartwheelVectorEnv

    theirs, their_sums, their_returns = collected(DummyVectorEnv([make] * 3), make)
    envs = CartwheelVectorEnv([make] * 3, executor=executor)
    ours, our_sums, our_returns = collected(envs, make)
    assert len(ours) == len(theirs) > 140
    for part in ("act", "rew", "terminated", "truncated"):
        np.testing.assert_array_equal(getattr(ours, part), getattr(theirs, part))
    for part in ("obs", "obs_next"):
        for key in ("agent_id", "obs", "mask"):
            found, expected = getattr(ours, part)[key], getattr(theirs, part)[key]
            np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(our_returns, their_returns)
    assert our_sums == their_sums
    assert ours.rew.shape[1] == 2
    assert len(set(ours.obs.agent_id[: len(ours)].tolist()) - {0, None, ""}) >= 2


def test_rows_show_whose_turn_it_is():
    from cartwheel.tianshou import CartwheelVectorEnv

    envs = CartwheelVectorEnv([duel] * 2, executor="inline")
    observations, _ = envs.reset()
    assert [one["agent_id"] for one in observations] == ["first", "first"]
    assert observations[0]["mask"].tolist() == [True, True]
    observations, rewards, *_ = envs.step([1], id=[1])
    assert observations[0]["agent_id"] == "second"
    assert observations[0]["obs"].tolist() == [5]
    assert rewards.tolist() == [[0, 0]]
    assert envs.get_env_attr("agent_idx") == [{"first": 0, "second": 1}] * 2
    envs.close()
