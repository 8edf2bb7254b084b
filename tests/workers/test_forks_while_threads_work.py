"""Forked processes hang on nothing that another thread did, and keep nothing of other pools."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import cloudpickle
import pytest

from tests.support.environments import TranscriptEnv
from tests.support.executors import FORK_FIRST
from tests.support.platforms import linux_only
from tests.support.programs import run_program
from tests.support.repetitions import times

pytestmark = pytest.mark.usefixtures("program_server")

ROOT = Path(__file__).parents[2]
RUST = ROOT / "rust"
#: Files with statics that a first use fills, which is made while `cartwheel` is imported.
FILLED_AT_IMPORT = {
    "cartwheel-python/src/known.rs",
    "cartwheel-python/src/array/dtype.rs",
    "cartwheel-engine/src/platform/linux/process_id.rs",
    "cartwheel-envs/src/simd/block.rs",
    "cartwheel-envs/src/taxi.rs",
}
#: From the first use of native code in a thread to the fork; with ``--full``, in smaller steps.
PAUSES_S = [0.0, 1e-4, *(pytest.param(s, marks=pytest.mark.slow) for s in (2e-5, 5e-5, 2e-4))]
#: Others: of a feature for tests, and of the tests of authors.
OF_TESTS = {"cartwheel-engine/src/failpoint.rs", "cartwheel/src/table/guard.rs"}
#: Static locks that threads take without the interpreter. The thread that forks holds them.
HELD_AT_FORKS = {
    "cartwheel-mujoco/src/guard.rs": "INSTALLED",
    "cartwheel-mujoco/src/registry.rs": "REGISTRY",
    "cartwheel-python/src/ffi/registry.rs": "POOLS",
}
#: One that threads take with the interpreter and release before they give it up. So no thread has
#: it while another one forks; without a GIL, Python stops the threads before a fork.
TAKEN_ATTACHED = {"cartwheel-engine/src/plugin/registry.rs": "TABLES"}


def test_a_child_may_drop_a_pool_whose_threads_it_does_not_have():
    assert run_program("drop_a_pool_in_a_child")["exitcodes"] == [0] * 5


def test_no_static_is_filled_after_the_import():
    lazy = re.compile(r"static \w+: [^=;]*\b(PyOnceLock|OnceLock|LazyLock|Once)\b|pyo3::intern")
    found = {
        str(file.relative_to(RUST))
        for file in RUST.glob("*/src/**/*.rs")
        if lazy.search(file.read_text(encoding="utf-8"))
    }
    assert found == FILLED_AT_IMPORT | OF_TESTS


@linux_only("it reads /proc")
@pytest.mark.skipif(shutil.which("nm") is None, reason="it lists symbols")
def test_no_static_of_pyo3_is_filled_after_the_import():
    facts = run_program("list_statics_of_pyo3")
    assert facts["empty"] == []
    assert facts["filled"] > 0


def test_each_static_lock_is_held_at_forks_or_never_without_the_interpreter():
    lock = re.compile(r"^static (\w+): (?:Mutex|RwLock)<", re.MULTILINE)
    found = {}
    for file in RUST.glob("*/src/**/*.rs"):
        for name in lock.findall(file.read_text(encoding="utf-8")):
            found[str(file.relative_to(RUST))] = name
    assert found == HELD_AT_FORKS | TAKEN_ATTACHED


@linux_only("it reads /proc")
@pytest.mark.skipif(shutil.which("nm") is None, reason="it lists symbols")
def test_the_thread_that_forks_holds_the_locks_that_others_take_without_the_interpreter():
    """And no thread has one afterwards, in neither process."""
    ended = subprocess.run(
        [sys.executable, "-m", "tests.programs.locks_at_forks"],
        check=True,
        capture_output=True,
        cwd=ROOT,
        timeout=200,
    )
    facts = json.loads(ended.stdout)
    assert facts == {
        "held": sorted(HELD_AT_FORKS.values()),
        "free_in_parent": True,
        "free_in_child": True,
    }


@pytest.mark.parametrize("pause_s", PAUSES_S)
def test_a_worker_forked_during_a_first_use_serves(pause_s):
    for _ in range(times(1, with_full=2)):
        run_program("fork_during_a_first_use", pause_s)


@linux_only("it lists /proc")
def test_a_worker_keeps_nothing_of_other_vector_environments():
    facts = run_program("list_what_a_worker_has_open")
    assert facts["among_others"] == facts["alone"]


@linux_only("it lists /proc")
def test_a_worker_keeps_nothing_of_one_that_another_thread_starts():
    """Otherwise it would hide the end of that worker from the program, and of the program."""
    facts = run_program("fork_while_another_thread_starts_a_worker")
    assert facts["meanwhile"] == facts["alone"]


class RaisesItsOwnClass(TranscriptEnv):
    """Raises an exception whose class is pickled by its contents."""

    def __init__(self):
        super().__init__(length=3)

    def step(self, _):
        class OwnError(Exception):
            pass

        raise OwnError("of a class that has no name elsewhere")


def test_a_worker_forked_while_a_class_is_pickled_pickles_classes(build_processes):
    with cloudpickle.cloudpickle._DYNAMIC_CLASS_TRACKER_LOCK:  # as in another thread
        envs = build_processes([RaisesItsOwnClass] * 2, context="fork", timeout=30)
    envs.reset()
    with pytest.raises(Exception, match="of a class that has no name elsewhere"):
        envs.step([0, 0])


def test_a_worker_closes_no_file_that_has_the_number_of_a_pipe_of_another():
    assert run_program("construct_while_pipes_are_closed") == {"faults": []}


def test_a_child_may_construct_whatever_another_thread_constructs():
    assert run_program("fork_while_the_limit_is_raised") == {"exitcodes": [0]}


def test_the_end_of_a_child_ends_no_worker_that_another_thread_starts():
    assert run_program("end_a_child_while_a_worker_starts") == {"exitcodes": [0]}


def test_a_child_has_the_variables_of_the_program():
    """Also if another thread starts a worker at the fork, or the program changes them meanwhile."""
    facts = run_program("fork_while_a_program_starts")
    assert facts == {"exitcodes": [0, 0], "after": ["None", "b'4'", "None"]}


@pytest.mark.parametrize("context", FORK_FIRST)
def test_threads_may_construct_at_the_same_time(context):
    """No thread sees the environment change, and workers get the variables that they need."""
    facts = run_program("construct_in_threads", context)
    assert facts == {"errors": [], "environments": 1}
