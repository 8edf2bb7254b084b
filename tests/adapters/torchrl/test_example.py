"""The training example learns."""

import importlib

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("runs")]


def test_episodes_are_longer_after_a_few_updates():
    example = importlib.import_module("examples.trainers.torchrl_ppo")
    result = example.train(example.Settings(total_steps=20 * 32 * 64))
    assert result.steps == 20 * 32 * 64
    assert result.evaluation > 3 * result.curve[0][1]
    assert result.curve[-1][1] > 3 * result.curve[0][1]
