"""The examples on actors of Ray learn."""

import importlib

import pytest

pytestmark = pytest.mark.ray


def load(name):
    importlib.import_module("torch").set_num_threads(1)  # like the script
    return importlib.import_module(f"examples.{name}")


@pytest.mark.usefixtures("ray")
def test_episodes_are_longer_after_a_few_updates_of_ppo():
    example, ppo = load("trainers.ray_ppo"), load("ppo")
    result = example.train(2, ppo.Settings(total_steps=30_000), 0.5)
    assert result.curve[-1] > 3 * result.curve[1]
    assert result.steps >= 30_000
    assert result.collecting < result.seconds


@pytest.mark.usefixtures("ray")
def test_episodes_are_longer_after_a_few_updates_by_vtrace():
    example, learner = load("trainers.ray_impala"), load("trainers.vtrace_learner")
    result = example.train(2, learner.Settings(total_steps=40_000), 0.5)
    assert result.curve[-1] > 2 * result.curve[1]
    assert 0.5 <= result.staleness <= 4
