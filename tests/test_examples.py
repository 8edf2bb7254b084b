"""The examples that learn run, in every autoreset mode."""

import importlib.util
import sys
from pathlib import Path

import pytest

MODES = ["next_step", "same_step", "disabled"]


def load(name):
    """The example of this name as a module."""
    path = Path(__file__).parents[1] / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their annotations up there
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("mode", MODES)
def test_a_few_updates_of_ppo_already_make_longer_episodes(mode):
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)  # as the script does: more would only wait for each other
    ppo = load("ppo")
    result = ppo.train(mode, ppo.Settings(total_steps=30_000))
    first, last = result.curve[0][1], result.curve[-1][1]
    assert last > 3 * first
    assert result.steps >= 30_000 or result.evaluation >= ppo.SOLVED
