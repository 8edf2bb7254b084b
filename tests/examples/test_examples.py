"""The training examples run in every mode and order. `make test-torch` runs this file."""

import importlib
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import cartwheel

pytestmark = pytest.mark.torch
MODES = ["next_step", "same_step", "disabled"]


def load(name):
    """Imports an example by its name."""
    torch = importlib.import_module("torch")
    torch.set_num_threads(1)  # like the script: more threads are slower
    return importlib.import_module(f"examples.{name}")


@pytest.mark.parametrize("mode", MODES)
def test_episodes_are_longer_after_a_few_updates_of_ppo(mode):
    ppo = load("ppo")
    result = ppo.train(mode, ppo.Settings(total_steps=30_000))
    first, last = result.curve[0][1], result.curve[-1][1]
    assert last > 3 * first
    assert result.steps >= 30_000 or result.evaluation >= ppo.SOLVED


@pytest.mark.parametrize("mode", MODES)
def test_episodes_are_longer_after_a_few_updates_of_dqn(mode):
    dqn = load("dqn")
    result = dqn.train(mode, dqn.Settings(total_steps=10_000))
    first, last = result.curve[0][1], result.curve[-1][1]
    assert last > 2 * first
    assert result.steps >= 10_000 or result.evaluation >= dqn.SOLVED


@pytest.mark.parametrize("name", ["ppo", "dqn"])
def test_modes_without_reset_steps_learn_the_same_with_the_same_seed(name):
    example = load(name)
    settings = example.Settings(total_steps=3_000)
    same_step, disabled = (example.train(mode, settings) for mode in ("same_step", "disabled"))
    assert same_step.curve == disabled.curve
    assert same_step.evaluation == disabled.evaluation


@pytest.mark.parametrize("order", ["groups", "free", "auto"])
def test_episodes_are_longer_after_a_few_updates_of_ppo_in_every_order(order):
    ppo = load("ppo")
    result = ppo.train("same_step", ppo.Settings(total_steps=30_000, order=order))
    assert result.curve[-1][1] > 3 * result.curve[0][1]


def test_agents_that_share_a_policy_improve_in_a_few_updates():
    several = load("multi_agent_ppo")
    settings = several.Settings(num_envs=16, total_steps=24_000, executor="process")
    curve = [value for _, value in several.train(settings)]
    assert np.mean(curve[-5:]) > np.mean(curve[:5])


def test_a_masked_policy_loses_less_after_a_few_updates_than_one_without_masks():
    masked = load("masked_ppo")
    _, with_masks = masked.train(masked.Settings(total_steps=45_000))
    _, without = masked.train(masked.Settings(total_steps=45_000, masks=False))
    assert with_masks > without


@pytest.mark.parametrize("order", ["groups", "free"])
def test_dqn_learns_in_every_order_with_as_many_updates_for_a_step(order, monkeypatch):
    dqn = load("dqn")
    batches = []
    settings = dqn.Settings(total_steps=10_000, order=order, learning_starts=1)
    monkeypatch.setattr(
        dqn.Replay,
        "sample",
        lambda self, size, real=dqn.Replay.sample: batches.append(size) or real(self, size),
    )
    result = dqn.train("same_step", settings)
    assert result.curve[-1][1] > 2 * result.curve[0][1]
    assert len(batches) == result.steps * settings.updates / (
        settings.num_envs * settings.num_steps
    )


@pytest.mark.parametrize("name", ["ppo", "dqn"])
def test_groups_learn_the_same_with_the_same_seed(name):
    example = load(name)
    settings = example.Settings(total_steps=3_000, order="groups")
    first, second = (example.train("next_step", settings) for _ in range(2))
    assert first.curve == second.curve
    assert first.evaluation == second.evaluation


@pytest.mark.parametrize("mode", MODES)
def test_episodes_are_longer_after_a_few_updates_of_appo(mode):
    appo = load("appo")
    settings = appo.Settings(total_steps=40_000)
    result = appo.train(mode, settings)
    assert result.curve[-1][1] > 2 * result.curve[0][1]
    assert 0 < result.staleness <= result.max_staleness
    assert result.max_staleness <= settings.run_ahead + settings.queue + 1


def test_appo_in_turn_learns_from_no_action_of_an_older_policy():
    appo = load("appo")
    settings = appo.Settings(total_steps=3_000, in_turn=True)
    same_step, disabled = (appo.train(mode, settings) for mode in ("same_step", "disabled"))
    assert same_step.max_staleness == 0
    assert same_step.curve == disabled.curve


def test_what_the_policy_raises_next_to_the_learner_of_appo_ends_the_training(monkeypatch):
    appo = load("appo")
    monkeypatch.setattr(appo.Actor, "__call__", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        appo.train("same_step", appo.Settings(total_steps=4_000))
    assert "cartwheel-collector" not in {thread.name for thread in threading.enumerate()}


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
    assert len(seen) > replay.capacity  # the ring buffer has wrapped around
    # After 5,000 draws each of the 100 is there: the chance that one is missing is about 10^-20.
    assert {repr(row) for row in held} == {repr(row) for row in seen[-replay.capacity :]}


def test_returns_rise_after_a_few_updates_of_ppo_on_half_cheetah(tmp_path):
    """In a program of its own, because matplotlib keeps the files of its fonts open."""
    script = Path(__file__).parents[2] / "examples" / "ppo_half_cheetah.py"
    words = ["--num-envs", "8", "--total-steps", "60000", "--plot", "curve.png"]
    ended = subprocess.run(
        [sys.executable, str(script), *words], cwd=tmp_path, stdout=subprocess.PIPE, check=True
    )
    returns = [float(line.split()[-1]) for line in ended.stdout.decode().splitlines()]
    assert returns[-1] > returns[0] + 100
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_episodes_are_longer_after_a_few_updates_of_sebulba():
    sebulba, learner = load("trainers.sebulba"), load("trainers.vtrace_learner")
    result = sebulba.train(2, "cpu", learner.Settings(total_steps=40_000))
    assert result.curve[-1] > 2 * result.curve[1]
    assert 0 < result.staleness < 2  # actors are one rollout ahead


def test_what_an_actor_of_sebulba_raises_ends_the_training(monkeypatch):
    sebulba, learner = load("trainers.sebulba"), load("trainers.vtrace_learner")
    monkeypatch.setattr(sebulba.Agent, "__call__", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        sebulba.train(2, "cpu", learner.Settings(total_steps=4_000))


def test_an_arm_of_ones_own_learns_and_its_recordings_are_played_again(tmp_path, capsys):
    minari = importlib.import_module("minari")
    arms = load("reach_arm")
    arms.main(["--total-steps", "120000", "--no-video", "--output", str(tmp_path)])
    lines = capsys.readouterr().out.splitlines()
    returns = [float(line.split()[4]) for line in lines if line.endswith("at the target")]
    assert returns[-1] > returns[0] + 10
    assert sum("values are equal when played again" in line for line in lines) == 2
    dataset = minari.MinariDataset(tmp_path / "minari-v0" / "data")
    assert dataset.total_episodes == 9
    assert dataset[0].observations.shape == (101, 12)
    assert dataset[0].infos["success"].dtype == np.bool_
