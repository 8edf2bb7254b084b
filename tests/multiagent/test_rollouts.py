"""Rollouts of rows of agents: steps of absent agents are not transitions."""

import numpy as np
import pytest

import cartwheel
from tests.multiagent.environments import Walkers
from tests.multiagent.oracle import Alone


def halves(observations):
    return observations[:, :1] / 2


def half_of(columns):
    """The action of one agent; any for an absent one, which is ignored."""
    observation = columns["observation"]
    return np.zeros(1) if observation is None else halves(observation[None])[0]


@pytest.mark.parametrize("executor", ["inline", "process"])
@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_transitions_are_those_of_the_agents_that_acted(mode, executor):
    with cartwheel.ParallelVectorEnv([Walkers] * 2, autoreset_mode=mode, executor=executor) as envs:
        collector = cartwheel.Collector(envs.as_rows(), halves, 15, seed=0, progress=False)
        rollouts = [collector.collect(), collector.collect()]
        alone = [Alone(Walkers(), envs.autoreset_mode) for _ in range(2)]
        shown = [row.reset(seed) for seed, row in enumerate(alone)]
        for rollout in rollouts:
            for step in range(15):
                for row, env in enumerate(alone):
                    actions = {name: half_of(of) for name, of in shown[row].items()}
                    shown[row] = env.step(actions)
                    for place, of in enumerate(shown[row].values()):
                        at = step, 3 * row + place
                        assert rollout.valid[at] == of["acted"], at
                        assert rollout.rewards[at] == of["reward"], at
                        assert rollout.terminated[at] == of["terminated"], at
    assert not rollouts[1].valid.all()
    assert rollouts[1].valid.any()


class Halting(Walkers):
    """Walker 1 is cut short where the others are terminated."""

    def step(self, actions):
        observations, rewards, over, truncations, infos = super().step(actions)
        if over.get("walker_1"):
            over["walker_1"], truncations["walker_1"] = False, True
        return observations, rewards, over, truncations, infos


def value(observations):
    """A value for each observation."""
    return np.sin(observations @ [1.0, 2.0, 3.0])


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_advantages_and_returns_are_those_of_the_episodes_of_each_agent(mode):
    gamma, lam = 0.9, 0.8
    with cartwheel.ParallelVectorEnv([Halting] * 2, autoreset_mode=mode, executor="inline") as envs:
        rollout = cartwheel.Collector(envs.as_rows(), halves, 20, seed=0, progress=False).collect()
        rollout.set_values(value(rollout.value_inputs()))
        advantages, targets = rollout.gae(gamma, lam)
        sums = rollout.discounted_returns(gamma, bootstrap="never")
        alone = [Alone(Halting(), envs.autoreset_mode) for _ in range(2)]
        compared = 0
        for row, env in enumerate(alone):
            shown, trajectory = env.reset(row), {name: [] for name in envs.possible_agents}
            for step in range(20):
                before = shown
                shown = env.step({name: half_of(of) for name, of in shown.items()})
                last = shown.final or shown
                for name, of in shown.items():
                    if of["acted"]:
                        seen = before[name]["observation"], last[name]["observation"]
                        flags = of["terminated"], of["truncated"]
                        trajectory[name].append((step, *seen, of["reward"], *flags))
            for place, steps in enumerate(trajectory.values()):
                advantage = total = 0.0
                for step, seen, after, reward, terminated, truncated in reversed(steps):
                    if terminated or truncated:
                        advantage = total = 0.0
                    elif step == 19:  # the rollout ends before the episode
                        total = value(after.astype(float))
                    own = value(seen.astype(float))
                    ahead = 0.0 if terminated else value(after.astype(float))
                    advantage = reward + gamma * ahead - own + gamma * lam * advantage
                    total = reward + gamma * total
                    at = step, 3 * row + place
                    assert advantages[at] == pytest.approx(advantage, abs=1e-6), at
                    assert targets[at] == pytest.approx(advantage + own, abs=1e-6), at
                    assert sums[at] == pytest.approx(total, abs=1e-6), at
                    compared += 1
    assert compared == rollout.valid.sum() > 60
    assert rollout.truncated.any()
    assert not rollout.valid.all()


def test_last_observations_of_agents_are_kept_for_values():
    with cartwheel.ParallelVectorEnv(
        [Walkers], autoreset_mode="same_step", executor="inline", max_episode_steps=3
    ) as envs:
        collector = cartwheel.Collector(envs.as_rows(), halves, 3, seed=[0], progress=False)
        rollout = collector.collect()
    assert rollout.final_index.tolist() == [[1, 0], [2, 1], [2, 2]]
    assert rollout.final_observations.tolist() == [[0, 2, 0], [1, 3, 0.5], [2, 3, 1]]
    assert rollout.truncated[2].tolist() == [False, False, True]


def test_what_cannot_be_collected_is_refused_with_a_way():
    with cartwheel.ParallelVectorEnv(
        [Walkers], autoreset_mode="disabled", executor="inline"
    ) as envs:
        with pytest.raises(TypeError, match="pass its `as_rows"):
            cartwheel.Collector(envs, halves, 3)
        with pytest.raises(ValueError, match="autoreset_mode='same_step'"):
            cartwheel.Collector(envs.as_rows(), halves, 3)
        with pytest.raises(TypeError, match="pass its `as_rows"):
            cartwheel.wrappers.RecordEpisodeStatistics(envs)
    with cartwheel.ParallelVectorEnv([Walkers], executor="inline") as envs:
        with pytest.raises(ValueError, match="count episodes of rows"):
            cartwheel.Collector(envs.as_rows(), halves, num_episodes=3)
        with pytest.raises(ValueError, match="keep states by"):
            cartwheel.Collector(envs.as_rows(), halves, 3, recurrent=True)
        with pytest.raises(TypeError, match="order='free'"):
            cartwheel.Collector(envs.as_rows(), halves, 3, order="free")
