"""The examples that learn run, in every autoreset mode; `make test-torch` runs this file."""

import importlib

import numpy as np
import pytest

import cartwheel

pytestmark = pytest.mark.torch
MODES = ["next_step", "same_step", "disabled"]


def load(name):
    """The example of this name as a module."""
    torch = importlib.import_module("torch")
    torch.set_num_threads(1)  # as the script does: more threads would only wait for each other
    return importlib.import_module(f"examples.{name}")


@pytest.mark.parametrize("mode", MODES)
def test_a_few_updates_of_ppo_already_make_longer_episodes(mode):
    ppo = load("ppo")
    result = ppo.train(mode, ppo.Settings(total_steps=30_000))
    first, last = result.curve[0][1], result.curve[-1][1]
    assert last > 3 * first
    assert result.steps >= 30_000 or result.evaluation >= ppo.SOLVED


@pytest.mark.parametrize("mode", MODES)
def test_a_few_updates_of_dqn_already_make_longer_episodes(mode):
    dqn = load("dqn")
    result = dqn.train(mode, dqn.Settings(total_steps=10_000))
    first, last = result.curve[0][1], result.curve[-1][1]
    assert last > 2 * first
    assert result.steps >= 10_000 or result.evaluation >= dqn.SOLVED


@pytest.mark.parametrize("name", ["ppo", "dqn"])
def test_one_seed_learns_the_same_where_no_step_only_resets(name):
    example = load(name)
    settings = example.Settings(total_steps=3_000)
    same_step, disabled = (example.train(mode, settings) for mode in ("same_step", "disabled"))
    assert same_step.curve == disabled.curve
    assert same_step.evaluation == disabled.evaluation


@pytest.mark.parametrize("mode", MODES)
def test_the_replay_buffer_of_dqn_holds_the_latest_transitions(mode):
    dqn = load("dqn")
    replay = dqn.Replay(capacity=100)
    envs = cartwheel.make_vec(dqn.ENV_ID, 4, autoreset_mode=mode)
    collector = cartwheel.Collector(
        envs, lambda observations: np.ones(len(observations), np.int64), num_steps=16, seed=1
    )
    seen = []
    for _ in range(5):
        transitions = collector.collect().transitions(n_step=2, gamma=0.5)
        replay.add(transitions)
        seen += zip(
            transitions.observations.tolist(),
            transitions.actions.tolist(),
            transitions.rewards.tolist(),
            transitions.next_observations.tolist(),
            transitions.discounts.tolist(),
            strict=True,
        )
    envs.close()
    held = zip(*(column.tolist() for column in replay.sample(5_000)), strict=True)
    assert len(seen) > replay.capacity  # so that it went round
    # Drawn so often, each of the hundred is there: one is missing once in 10^20 times.
    assert {repr(row) for row in held} == {repr(row) for row in seen[-replay.capacity :]}
