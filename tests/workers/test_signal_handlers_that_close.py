"""A signal handler may close the vector environment whose call it interrupts."""

import pytest

from tests.support.processes import wait_until_gone
from tests.support.programs import run_program

pytestmark = pytest.mark.usefixtures("program_server")


@pytest.mark.parametrize(
    ("executor", "where"),
    [
        ("inline", "step"),
        ("thread", "step"),
        ("process", "step"),
        ("process", "message"),
        ("process", "restart"),
    ],
)
def test_a_close_does_not_wait_for_the_call_that_it_interrupts(executor, where):
    facts = run_program("close_in_a_signal_handler", executor, where)
    # A worker that is made anew may have no environment yet.
    assert facts["closed"] == [where != "restart", True]
    if where == "restart":
        assert facts["raised"] == "ClosedEnvironmentError"
    assert not wait_until_gone(facts["processes"], timeout_s=30)
