"""A training that is killed goes on to the same weights. `make test-torch` runs this file."""

import importlib

import pytest

pytestmark = pytest.mark.torch


def test_a_training_that_was_killed_has_the_weights_of_one_that_was_not(tmp_path):
    resume_ppo = importlib.import_module("examples.resume_ppo")
    whole, killed = resume_ppo.compare(tmp_path, 4, (2,))
    assert whole.startswith("weights ")
    assert killed == whole
