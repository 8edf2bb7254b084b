"""The example learns."""

import importlib

import pytest

pytestmark = pytest.mark.torch


def load():
    return importlib.import_module("examples.trainers.sb3_ppo")


def test_ppo_balances_the_pole_for_longer_after_a_few_updates():
    example = load()
    assert example.train(example.Settings(total_steps=10_000)).mean_return > 60


def test_environments_of_python_and_native_ones_learn_the_same():
    example = load()
    native, python = (
        example.train(example.Settings(python=python, num_envs=4, total_steps=1_500))
        for python in (False, True)
    )
    assert native.mean_return == python.mean_return
    for own, other in zip(
        native.model.policy.parameters(), python.model.policy.parameters(), strict=True
    ):
        assert own.equal(other)
