"""A program ends with its own exit code, whatever its threads do at that moment."""

import pytest

from tests.support.programs import run_program
from tests.support.repetitions import times

pytestmark = pytest.mark.usefixtures("program_server")

EXIT_CODE = 2


@pytest.mark.parametrize("moment", ["finalizing", "finalized"])
@pytest.mark.parametrize("executor", ["inline", "thread", "process"])
def test_a_thread_that_comes_back_from_an_environment_is_not_heard_of(executor, moment):
    run_program("end_during_a_call", executor, moment, returncode=EXIT_CODE)


@pytest.mark.parametrize("moment", ["finalizing", "finalized"])
def test_daemon_threads_may_be_anywhere(moment):
    for _ in range(times(1, with_full=5)):
        run_program("end_during_loops", moment, returncode=EXIT_CODE)
