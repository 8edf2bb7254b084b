"""A program ends with its own exit code, whatever its threads do at that moment."""

import pytest

from tests.support.processes import run_program

EXIT_CODE = 2


@pytest.mark.parametrize("moment", ["finalizing", "finalized"])
@pytest.mark.parametrize("executor", ["inline", "thread", "process"])
def test_a_thread_that_comes_back_from_an_environment_is_not_heard_of(executor, moment):
    run_program("end_during_a_call", executor, moment, returncode=EXIT_CODE)


@pytest.mark.parametrize("moment", ["finalizing", "finalized"])
def test_daemon_threads_may_be_anywhere(moment):
    for _ in range(5):
        run_program("end_during_loops", moment, returncode=EXIT_CODE)
