"""The example `examples/slow_resets.py` does what its first lines say."""

import gymnasium as gym
import numpy as np
import pytest

import cartwheel
from examples import slow_resets


@pytest.mark.slow
def test_it_prints_the_speed_of_each_way(capsys):
    speeds = slow_resets.main(["--steps", "50"])
    assert list(speeds) == list(slow_resets.WAYS)
    lines = capsys.readouterr().out.rstrip("\n").split("\n")
    assert len(lines) == len(speeds)
    for line, (way, speed) in zip(lines, speeds.items(), strict=True):
        last = line.rpartition("\r")[2]
        assert last.startswith(way)
        assert f"{speed:,.0f} steps a second" in last


@pytest.fixture
def _no_waiting(monkeypatch):
    monkeypatch.setattr(slow_resets.time, "sleep", lambda _: None)


@pytest.mark.usefixtures("_no_waiting")
def test_every_order_collects_what_gymnasium_shows():
    steps, rows = 90, 3
    oracle = gym.vector.SyncVectorEnv([slow_resets.Level] * rows)
    seen, _ = oracle.reset(seed=1)
    observations, rewards, over = [seen], [], []
    for _ in range(steps):
        seen, reward, terminations, truncations, _ = oracle.step(slow_resets.policy(seen))
        observations.append(seen)
        rewards.append(reward)
        over.append(terminations | truncations)
    assert np.any(over)
    for order in ("lockstep", "groups", "free"):
        envs = cartwheel.VectorEnv([slow_resets.Level] * rows, executor="thread")
        collector = cartwheel.Collector(
            envs, slow_resets.policy, num_steps=steps, seed=1, order=order, groups=3
        )
        rollout = collector.collect()
        envs.close()
        assert np.array_equal(rollout.observations, observations)
        assert np.array_equal(rollout.rewards, rewards)
        assert np.array_equal(rollout.terminated, over)
