"""The example `examples/ppo_minigrid.py` learns. `make test-torch` runs this file."""

import importlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.torch


@pytest.fixture(name="example", scope="module")
def _example():
    torch = importlib.import_module("torch")
    torch.set_num_threads(1)  # like the script: more threads are slower
    return importlib.import_module("examples.ppo_minigrid")


def test_every_number_that_an_agent_sees_has_a_feature_of_its_own(example):
    rng = np.random.default_rng(1)
    image = rng.integers(0, (example.OBJECTS, example.COLORS, example.STATES), (5, 2, 7, 7, 3))
    direction = rng.integers(0, 4, (5, 2))
    features = example.one_hot({"image": image.astype(np.uint8), "direction": direction}).numpy()
    assert features.shape == (5, 2, example.FEATURES)
    assert set(np.unique(features)) == {0.0, 1.0}
    split = [example.OBJECTS, example.OBJECTS + example.COLORS]
    cells = features[..., :-4].reshape(5, 2, 7, 7, -1)
    for channel, ones in enumerate(np.split(cells, split, -1)):
        assert (ones.sum(-1) == 1).all()
        np.testing.assert_array_equal(ones.argmax(-1), image[..., channel])
    np.testing.assert_array_equal(features[..., -4:].argmax(-1), direction)
    assert (features[..., -4:].sum(-1) == 1).all()


def test_a_small_level_is_solved_and_its_curve_drawn(tmp_path):
    """In a program of its own, because matplotlib keeps the files of its fonts open."""
    script = Path(__file__).parents[2] / "examples" / "ppo_minigrid.py"
    words = ["--level", "MiniGrid-DoorKey-5x5-v0", "--total-steps", "400000"]
    command = [sys.executable, str(script), *words, "--plot", "curve.png"]
    ended = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, check=True)  # if solved
    seed, steps, _, _, evaluation = ended.stdout.decode().splitlines()[-1].split()
    assert (seed, float(evaluation.rstrip("%")) >= 95) == ("1", True)
    assert int(steps.replace(",", "")) < 400_000
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
