"""A program may fork while it holds batches: neither process sees what the other writes."""

import pytest

from cartwheel._cartwheel import PLATFORM
from tests.support.platforms import linux_only
from tests.support.programs import run_program

pytestmark = pytest.mark.usefixtures("program_server")

EXECUTORS = ["inline", "thread", "process"]


def run(name, executor):
    return run_program(name, executor)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_childs_batches_never_change_while_its_parent_steps(executor):
    facts = run("parent_steps_on", executor)
    assert facts["good"] == 100
    if executor == "process":
        assert facts["more"] <= 4, "the batches that were held, and the one that was being filled"


@pytest.mark.parametrize("executor", EXECUTORS)
def test_what_a_child_writes_is_private(executor):
    facts = run("child_writes", executor)
    assert facts["written"]
    assert all(facts["unharmed"])
    assert all(facts["results"])


@pytest.mark.parametrize(
    "executor",
    [*EXECUTORS[:2], pytest.param("process", marks=linux_only("they stay shared with children"))],
)
def test_batches_that_outlive_their_vector_environment_are_private(executor):
    facts = run("fork_after_close", executor)
    assert all([*facts["before"], *facts["after"], facts["child"], *facts["parent"]])


def test_a_child_of_a_child_starts_with_what_its_parent_wrote():
    facts = run("fork_twice", "process")
    assert facts == {"child": [True] * 4, "parent": True}


def test_rollouts_are_private_too_and_take_no_more_memory():
    facts = run("fork_with_a_rollout", "process")
    assert all(facts["child"])
    assert all(map(all, facts["again"]))
    if PLATFORM == "linux":  # elsewhere mappings have no names
        assert facts["mapped"] == [1, 1, 1], "the memory of the first rollout is not kept"


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_rollout_is_recorded_to_its_end_and_the_child_keeps_its_beginning(executor):
    assert run("fork_while_a_rollout_is_recorded", executor) == {
        "child": [True] * 4,
        "parent": [True] * 7,
    }


def test_a_fork_in_the_middle_of_a_step_disturbs_nothing():
    assert run("fork_while_a_step_is_pending", "process") == {"steps": 29}


def test_forks_while_nothing_is_held_cost_no_memory():
    slabs = run("fork_often", "process")["slabs"]
    assert slabs == [slabs[0]] * len(slabs)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_every_call_in_a_child_says_what_is_wrong(executor):
    facts = run("use_in_a_child", executor)
    raised = facts["raised"]
    assert raised.pop("close") == "None"
    assert raised.pop("after close") in ("ForkedProcessError", "ClosedEnvironmentError")
    assert set(raised.values()) == {"ForkedProcessError"}, raised
    assert facts["works"]
