"""The four examples of `examples/reach` do what their first lines say."""

import importlib

import numpy as np
import pytest


def load(name):
    return importlib.import_module(f"examples.reach.{name}")


@pytest.mark.slow
def test_training_finds_a_policy_that_reaches_more_targets(capsys):
    training = load("training")
    assert training.main(generations=20) > 2 * training.main(generations=1)
    assert "generation 20" in capsys.readouterr().out


@pytest.mark.slow
def test_an_infinite_horizon_is_trained_without_terminations():
    once, at_end = load("infinite_horizon").main(generations=20)
    assert 0 < at_end < once


def test_success_at_the_end_tells_a_hasty_policy_from_a_careful_one():
    evaluations = load("evaluation").main(episodes_per_env=2)
    hasty, careful = evaluations["hasty"], evaluations["careful"]
    assert (hasty.lengths == 50).all()
    assert hasty.success_once.all()
    assert careful.success_at_end.all()
    assert not hasty.success_at_end.all()


def test_collected_episodes_all_succeeded_and_can_be_replayed(tmp_path):
    pytest.importorskip("av")
    dataset = load("collection").main(tmp_path, steps=60)
    assert dataset.episodes
    assert all(metadata["success"] for metadata in dataset.episodes)
    env = load("reach").Reach()
    replayed = 0
    for number, metadata in enumerate(dataset.episodes):
        if metadata["episode_seed"] is None:
            continue  # an autoreset, which continues the row's random numbers
        episode = dataset.episode(number)
        shown = [env.reset(seed=metadata["episode_seed"])[0]]
        shown += [env.step(action)[0] for action in episode["actions"]]
        np.testing.assert_array_equal(episode["obs"], shown)
        replayed += 1
    assert replayed
