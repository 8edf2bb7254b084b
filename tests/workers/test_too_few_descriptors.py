"""Each worker needs a fixed number of descriptors; an exception says if there are too few."""

import errno

import pytest

from tests.support.executors import FORK_FIRST
from tests.support.programs import run_program as run
from tests.support.repetitions import times

pytestmark = pytest.mark.usefixtures("program_server")


@pytest.mark.parametrize(
    ("context", "limits"),
    [
        ("fork", times([8, 24, 47], with_full=range(8, 48, 3))),
        pytest.param("forkserver", [16, 32, 39, 48], marks=pytest.mark.slow),
    ],
)
def test_with_any_limit_it_works_or_says_what_to_do(context, limits):
    facts = run("construct_with_few_descriptors", context, *limits)
    refused = [outcome for outcome in facts["outcomes"] if outcome != "works"]
    works = facts["outcomes"][len(refused) :]
    assert limits[len(refused)] > 32, "four workers need more"
    assert works, "four workers need no more than the highest limit"
    assert set(works) == {"works"}, "what works with one limit works with every higher one"
    for limit, (number, text) in zip(limits, refused, strict=False):
        assert number == errno.EMFILE
        for part in ("4 worker processes", f"of {limit}:", "ulimit -n", "num_workers"):
            assert part in text
    assert facts["left"] == []


@pytest.mark.parametrize("context", FORK_FIRST)
def test_a_soft_limit_that_is_too_low_is_raised_as_far_as_needed(context):
    (soft, hard), (raised, hard_afterwards) = run("construct_with_a_low_soft_limit", context)[
        "limits"
    ]
    assert soft < raised < 40 + 12 * 6 + 16, "what is open, and what twelve workers need"
    assert hard_afterwards == hard


@pytest.mark.slow
@pytest.mark.parametrize("context", FORK_FIRST)
def test_a_worker_needs_as_many_descriptors_for_many_environments_as_for_one(context):
    one, many = run("count_descriptors", context)["counts"]
    assert one == many <= 10, "five, and those of the shared memory"
