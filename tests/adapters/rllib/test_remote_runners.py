"""Training with remote runners: a program of its own, because Ray leaves threads behind."""

import pytest

from tests.support.programs import run_program

pytestmark = [pytest.mark.ray, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def facts():
    return run_program("train_with_rllib", timeout_s=500)


@pytest.mark.parametrize(
    ("case", "classes"),
    [
        ("one", (["SyncVectorEnv"], ["VectorEnv"])),
        ("two", (["SyncVectorMultiAgentEnv"], ["AsyncVectorMultiAgentEnv"])),
    ],
)
def test_training_gives_the_returns_and_weights_of_rllibs_own_vectorization(facts, case, classes):
    theirs, ours = facts[case]
    assert (theirs.pop("class"), ours.pop("class")) == classes
    assert ours == theirs
    assert all(figures["num_episodes"] > 0 for figures in ours["figures"])


def test_an_id_that_only_the_driver_knows_reaches_remote_runners_and_their_workers(facts):
    assert all(figures["episode_len_max"] <= 20 for figures in facts["only_here"]["figures"])
