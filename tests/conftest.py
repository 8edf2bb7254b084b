"""Builders for every executor. After every test a fixture checks that nothing is left behind.

No garbage is collected during a test, and none may have to be collected after it.
"""

import contextlib
import gc
import importlib
import multiprocessing
import os
import resource
import signal
import sys
import warnings
from multiprocessing import forkserver, resource_tracker
from pathlib import Path

import pytest

# Workers import the environments as `tests.support.environments`, like the tests.
sys.path.insert(0, str(Path(__file__).parents[1]))

with warnings.catch_warnings():
    # Box2D's extension module crashes if its own deprecation warnings are turned into errors.
    warnings.simplefilter("ignore")
    with contextlib.suppress(ImportError):
        importlib.import_module("Box2D")

import cartwheel
import tests.support.taxi  # noqa: F401 - registers `Taxi-v4` where Gymnasium does not
from tests.support import repetitions
from tests.support.coverings import covering, workers_take_turns
from tests.support.environments import scalar_puppets, transcripts
from tests.support.executors import (
    EVERY_EXECUTOR,
    EVERY_KIND,
    EVERY_NATIVE,
    EXECUTORS,
    NATIVE,
    PROCESS,
    THREAD,
)
from tests.support.gates import Gates
from tests.support.huge_pages import use_huge_pages
from tests.support.processes import left_behind, residue
from tests.support.programs import served
from tests.support.ray_sessions import actors_left

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell ignores SIGINT in background jobs, and child processes would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Some workers crash on purpose. Writing a core dump for each takes seconds, and none is read.
resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))

FAILED = pytest.StashKey[bool]()


def pytest_addoption(parser):
    parser.addoption(
        "--full",
        action="store_true",
        help="every combination of parameters, slow tests, and more repetitions of random trials; "
        "without it, every value once",
    )
    parser.addoption(
        "--slow",
        action="store_true",
        help="only what a run without options leaves out as slow or for other workers, "
        "every value once",
    )


def pytest_configure(config):
    repetitions.full = config.getoption("full")
    repetitions.may_be_slow = repetitions.full or config.getoption("slow") or _is_by_name(config)
    if not repetitions.full:
        # More processes than processors test at once: a wait that spins takes time from the others.
        os.environ["CARTWHEEL_SPIN"] = "0"
        # As do threads of OpenBLAS, for 60 ms of a processor in each program that imports NumPy.
        os.environ["OPENBLAS_THREAD_TIMEOUT"] = "4"  # spins for 2**4 cycles instead of 2**26


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Collects no garbage while it collects tests, of which none is garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def _is_by_name(config):
    """Whether a single test is asked for."""
    return any("::" in argument for argument in config.args)


@pytest.hookimpl(trylast=True)  # after tests were chosen by `-m` and `-k`
def pytest_collection_modifyitems(config, items):
    """Leaves out combinations and slow tests, unless ``--full`` or a single test is asked for.

    Raises:
        pytest.UsageError: A name contains the address of an object, which each process of ``-n 2``
            has at another place.
    """
    if unsteady := next((item.nodeid for item in items if " at 0x" in item.nodeid), None):
        raise pytest.UsageError(f"{unsteady}: give its parameters `ids`")
    if repetitions.full or _is_by_name(config):
        return
    slow = {item for item in items if item.get_closest_marker("slow")}
    now, later = workers_take_turns([item for item in items if item not in slow])
    left = {*slow, *later} if config.getoption("slow") else set(now)
    chosen = covering([item for item in items if item in left])
    left_out = set(items).difference(chosen)
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = chosen


@pytest.fixture
def closes():
    """Returns what it is given, and closes it after the test.

    It refers to each object until then: ``close`` itself must free everything.
    """
    with contextlib.ExitStack() as stack:
        yield lambda made: stack.enter_context(contextlib.closing(made))


def _builder(executor, closes):
    def build(env_fns, *args, **keywords):
        return closes(executor(env_fns, *args, **keywords))

    build.executor = executor.name
    return build


@pytest.fixture(params=EXECUTORS, ids=str)
def build(request, closes):
    """Builds a ``VectorEnv``: inline, with threads, with processes. It is closed after the test."""
    return _builder(request.param, closes)


@pytest.fixture(params=EVERY_EXECUTOR, ids=str)
def build_everywhere(request, closes):
    """Like ``build``, also with a single worker and with more workers than environments."""
    return _builder(request.param, closes)


@pytest.fixture(params=EVERY_KIND, ids=str)
def build_any(request, closes):
    """Like ``build``, and also native: all rows are copies of one of `tests.support.cases`."""
    return _builder(request.param, closes)


@pytest.fixture(params=[*EVERY_EXECUTOR, *EVERY_NATIVE], ids=str)
def build_anywhere(request, closes):
    """Like ``build_any``, also with a single worker and with more workers than environments."""
    return _builder(request.param, closes)


@pytest.fixture(scope="module", params=EXECUTORS, ids=str)
def puppets(request):
    """Two ``PuppetEnv`` with scalar observations, shared by the tests of a module."""
    envs = request.param(scalar_puppets(2))
    yield envs
    envs.close()


@pytest.fixture
def build_native(closes):
    """Like ``build_any``, but only native."""
    return _builder(NATIVE, closes)


@pytest.fixture(params=[THREAD, PROCESS], ids=str)
def build_workers(request, closes):
    """Like ``build``, without the inline executor."""
    return _builder(request.param, closes)


@pytest.fixture
def build_processes(closes):
    """Like ``build``, but only with processes."""
    return _builder(PROCESS, closes)


@pytest.fixture
def spinning(monkeypatch):
    """Waits spin before they sleep, as they do by default and with ``--full``."""
    monkeypatch.delenv("CARTWHEEL_SPIN", raising=False)


@pytest.fixture
def gates(tmp_path):
    """Gates for environments to wait at.

    Name this fixture last: pytest must open the gates before it closes the environments.
    """
    gates = Gates(tmp_path)
    yield gates
    gates.open(*range(10))  # so that every call that still waits can end


@pytest.fixture(scope="session", autouse=True)
def _warmed_up():
    """Start what is started once per program, so that no test is blamed for it."""
    use_huge_pages()
    # A worker that the server forks need not import them again, which takes half a second. From
    # Python 3.14 on, the first worker process starts the server.
    multiprocessing.set_forkserver_preload(
        ["cartwheel.workers.serving.awaited_env", "tests.support.sessions"]
    )
    envs = cartwheel.VectorEnv(transcripts(3), executor="process")
    envs.reset()
    envs.close()
    forkserver.ensure_running()
    resource_tracker.ensure_running()
    multiprocessing.get_context("spawn").RawArray("q", 1)  # its heap keeps the first file
    # The first seed of `None`: with glibc before 2.25, the crate getrandom keeps /dev/urandom open.
    envs = cartwheel.NativeVectorEnv("CartPole-v1", 1)
    envs.reset()
    envs.close()


@pytest.fixture(scope="module", autouse=True)
def _collections_are_short():
    """Collections visit what a module's tests made; all that was there before takes 0.3 s."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def program_server():
    """Forks the programs of tests that name it; with ``--full`` each program starts by itself."""
    with contextlib.nullcontext() if repetitions.full else served():
        yield


@pytest.fixture(autouse=True)
def _start_method_is_kept():
    """No test changes the default start method for others; to import TorchRL does."""
    before = multiprocessing.get_start_method(allow_none=True)
    yield
    multiprocessing.set_start_method(before, force=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    report = yield
    item.stash[FAILED] = item.stash.get(FAILED, default=False) or report.failed
    return report


@pytest.fixture(autouse=True)
def _nothing_is_left_behind(request):
    """No test may leave a process, a thread or a descriptor behind."""
    if request.node.get_closest_marker("ray"):
        yield  # Ray keeps processes, threads and descriptors as long as this program lives
        left = actors_left()
        assert not left, f"left behind: rollout workers {sorted(left)}"
        return
    before = residue()
    gc.disable()  # what only a collection frees keeps workers of a program for as long as that
    try:
        yield
        if request.node.stash.get(FAILED, default=False):
            return  # the traceback keeps references to what the test used
        is_ours = not any(map(request.node.get_closest_marker, ("torch", "jax", "trainers")))
        # PyTorch, JAX and the trainers start threads when they are used, which stay, as do files of
        # Gymnasium's own shared memory. TorchRL's own environments are in cycles, with memory that
        # they share.
        theirs = () if is_ours else ("native thread", "/dev/shm/pym-")
        left = kept = left_behind(before, (*theirs, "/dev/shm/torch_"))
        if kept or not is_ours:
            gc.collect()
            left = left_behind(before, theirs)
        assert not left, f"left behind: {sorted(left)}"
        assert not kept, f"left behind until a garbage collection: {sorted(kept)}"
    finally:
        gc.enable()
