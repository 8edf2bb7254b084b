"""Old kernels and filters of system calls: workers do without, or one sentence says what to do."""

import signal

import pytest

from tests.support.executors import FORK_FIRST, SENDING
from tests.support.platforms import linux_only
from tests.support.processes import wait_until_gone
from tests.support.programs import run_program as run

pytestmark = [
    linux_only("it needs none of these system calls"),
    pytest.mark.usefixtures("program_server"),
]

#: What is missing; the last is a kernel of version 2.6.
CALLS = ["memfd_create", "pidfd_open", "futex", "memfd_create,pidfd_open,futex"]


@pytest.mark.parametrize("number", ["ENOSYS", "EPERM"])
@pytest.mark.parametrize("names", [*CALLS[:-1], pytest.param(CALLS[-1], marks=pytest.mark.slow)])
def test_worker_processes_do_without_a_system_call(names, number):
    facts = run("step_without_system_calls", names, number, "fork")
    assert not any(facts["before"])
    assert all(facts["refused"]), "the filter works"
    assert facts["equal"] == [True] * 21
    name, text = facts["death"]
    assert name == "WorkerDiedError", text


@pytest.mark.parametrize("context", SENDING)
def test_every_start_method_does_without_all_of_them(context):
    facts = run("step_without_system_calls", CALLS[-1], "ENOSYS", context)
    assert facts["equal"] == [True] * 21
    assert facts["death"][0] == "WorkerDiedError"


@pytest.mark.parametrize("context", FORK_FIRST)
def test_workers_without_a_pidfd_end_with_their_parent(context):
    left = run("leave_workers_without_pidfds", context, returncode=-signal.SIGKILL)
    assert len(left["workers"]) == 2
    assert wait_until_gone(left["workers"], timeout_s=60) == set()


@pytest.mark.parametrize("number", ["ENOSYS", pytest.param("EPERM", marks=pytest.mark.slow)])
def test_without_any_shared_memory_one_sentence_says_what_is_missing(mounted, number):
    inside = mounted("mount -t tmpfs -o size=4k,ro tmpfs /dev/shm")
    facts = run("construct_without_shared_memory", number, inside=inside)
    assert (facts["inline"]["error"], facts["thread"]["error"]) == (None, None)
    name, text = facts["process"]["error"]
    assert name == "OSError"
    for part in ("memfd_create", "Linux 3.17", "seccomp", "/dev/shm", "Read-only", "threads"):
        assert part in text, text
    assert facts["process"]["left"] == []
