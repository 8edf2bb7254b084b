"""Other packages take part where they are installed, and a step of theirs steps every row once."""

import functools
import importlib
import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete, Tuple

from benchmarks.harness.rivals import python_rivals, why_not
from benchmarks.scaling.__main__ import main, parser
from cartwheel.bench.runner import VectorRunner, fastest_of
from tests.support.told_steps import TellsSteps, run_alone

PACKAGES = {"sb3": "stable_baselines3", "pufferlib": "pufferlib", "torchrl": "torchrl"}


class Spaces(gym.Env):
    """An environment that is never stepped."""

    def __init__(self, observation=None, action=None):
        self.observation_space = observation or Box(-1, 1, (3,))
        self.action_space = action or Discrete(2)


@pytest.mark.parametrize("rival", PACKAGES)
def test_a_package_that_is_missing_or_broken_is_named(monkeypatch, tmp_path, rival):
    package = PACKAGES[rival]
    monkeypatch.setitem(sys.modules, package, None)
    assert why_not(rival, Spaces(), None).startswith(f"{package} is not installed")
    (tmp_path / f"{package}.py").write_text("raise ImportError('libtorch.so: cannot open')\n")
    monkeypatch.delitem(sys.modules, package)
    monkeypatch.syspath_prepend(tmp_path)
    reason = why_not(rival, Spaces(), None)
    assert reason == f"{package} cannot be imported: libtorch.so: cannot open"


@pytest.mark.parametrize("rival", PACKAGES)
@pytest.mark.parametrize(
    ("spaces", "message"),
    [
        ({"observation": Tuple([Discrete(2)])}, "observation space is Tuple(Discrete(2))"),
        ({"action": Discrete(3, start=1)}, "action space is Discrete(3, start=1)"),
    ],
)
def test_spaces_that_packages_understand_differently_are_not_raced(rival, spaces, message):
    assert message in why_not(rival, Spaces(**spaces), None)


def test_envpool_needs_a_native_environment():
    assert "native environment" in why_not("envpool", Spaces(), None)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rivals", "sb3"], "--rivals sb3: stable_baselines3 is not installed"),
        (
            ["--env", "Blackjack-v1", "--rivals", "torchrl"],
            "--rivals torchrl: torchrl is raced with spaces of one array: the observation space",
        ),
    ],
)
def test_a_package_that_was_asked_for_and_cannot_is_an_error(monkeypatch, capsys, options, message):
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    with pytest.raises(SystemExit, match="2"):
        main(parser(), parser().parse_args(options))
    assert message in capsys.readouterr().err


class Steady(VectorRunner):
    """Always has the same rate."""

    def __init__(self, rate):
        self.rate = rate

    def run(self, _seconds):
        return self.rate


def test_the_fastest_way_is_the_one_with_the_highest_rate():
    assert fastest_of({1: Steady(5.0), 2: Steady(9.0), 4: Steady(7.0)}) == 2


def test_no_packages_are_no_contenders():
    assert list(python_rivals([])) == []


@pytest.mark.torch
@pytest.mark.parametrize("name", ["sb3 dummy", "sb3 subproc"])
def test_a_step_of_stable_baselines3_steps_every_row_once(name):
    importlib.import_module("stable_baselines3")
    [contender] = [each for each in python_rivals(["sb3"]) if each.name == name]
    runner = contender.build([functools.partial(TellsSteps, 1000)] * 3)
    assert runner.run(0) > 0
    actions = np.array([1, 0, 1])
    observations, *_ = runner.envs.step(actions)
    assert observations.tolist() == [[2, 1], [2, 0], [2, 1]]
    runner.close()


@pytest.mark.torch
def test_a_step_of_torchrl_steps_every_row_once_and_resets_those_that_are_over():
    """Runs in its own program, because TorchRL does not close the files of its memory."""
    program = """
import functools, torch
from benchmarks.harness.rivals import python_rivals
from tests.support.told_steps import TellsSteps, run_alone

threads = torch.get_num_threads()
[contender] = python_rivals(["torchrl"])
runner = contender.build([functools.partial(TellsSteps, 3)] * 2)
assert torch.get_num_threads() == threads
assert runner.run(0) > 0
actions = torch.as_tensor([1, 0])
told = [runner.envs.step(actions)["next", "observation"].tolist() for _ in range(3)]
assert told == [[[2, 1], [2, 0]], [[3, 1], [3, 0]], [[1, 1], [1, 0]]], told
runner.close()
"""
    run_alone(program)
