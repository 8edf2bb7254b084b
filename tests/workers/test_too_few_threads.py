"""Too few threads: a pool is refused and leaves none, an estimator goes on with those there are."""

import pytest

from tests.support.programs import run_program as run

pytestmark = pytest.mark.usefixtures("program_server")


@pytest.mark.parametrize(
    ("kind", "error"), [("native", "BlockingIOError"), ("thread", "RuntimeError")]
)
def test_a_pool_whose_last_thread_cannot_be_started_leaves_nothing_behind(kind, error):
    facts = run("construct_with_too_few_threads", kind)
    raised, text = facts["error"]
    assert raised == error
    assert "thread" in text
    assert facts["left"] == []


def test_estimators_go_on_with_the_threads_that_there_are():
    assert run("estimate_without_threads") == {"estimators": ["gae", "n_step_returns"]}


@pytest.mark.parametrize("executor", ["inline", "thread", "process", "native"])
def test_nothing_polls_while_what_it_waits_for_has_no_processor(executor):
    if not run("step_in_real_time", executor)["allowed"]:
        pytest.skip("this user may not have a real-time priority")
