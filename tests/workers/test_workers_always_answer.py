"""Whatever goes wrong in a worker, inside an environment or outside: the caller gets an answer."""

import multiprocessing
import os
import signal
import threading
import time
from functools import partial

import pytest
from gymnasium.spaces import Discrete, Space
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import cartwheel
from cartwheel.workers import launch
from cartwheel.workers.faults import Fault
from cartwheel.workers.group import WorkerGroup
from cartwheel.workers.serving import serve
from cartwheel.workers.serving.worker import Worker
from tests.support.comparison import assert_identical, assert_names_row, text_of
from tests.support.environments import PuppetEnv, TranscriptEnv, transcripts
from tests.support.executors import PROCESS, SENDING, THREAD
from tests.support.processes import left_behind, residue, sockets


class NoMetadataEnv(TranscriptEnv):
    metadata = None  # type: ignore[assignment]


def test_an_environment_without_metadata_works(build):
    envs = build([partial(NoMetadataEnv, 2), partial(NoMetadataEnv, 3)])
    assert envs.metadata == {"autoreset_mode": AutoresetMode.NEXT_STEP}
    oracle = SyncVectorEnv(transcripts(2, 3))
    assert_identical(envs.reset(seed=1), oracle.reset(seed=1))
    for _ in range(5):
        assert_identical(envs.step([1, 2]), oracle.step([1, 2]))
    oracle.close()


class OddEnv(TranscriptEnv):
    """One of its attributes is ``odd``, or raises it."""

    def __init__(self, name, make_odd, log):
        super().__init__(3)
        self.name, self.odd, self.log = name, make_odd(), log

    def __getattribute__(self, name):
        own = object.__getattribute__(self, "__dict__")
        if name != own.get("name"):
            return object.__getattribute__(self, name)
        if isinstance(own["odd"], BaseException):
            raise own["odd"]
        return own["odd"]

    def close(self):
        with self.log.open("a") as log:
            log.write("closed\n")


class Incomparable(Discrete):
    def __eq__(self, other):
        raise ValueError("cannot be compared")

    __hash__ = Discrete.__hash__


#: The attribute, what makes its value, the exception, its row, and how many environments close.
ATTRIBUTES = {
    "metadata that raises": ("metadata", partial(ValueError, "odd"), ValueError, 0, 2),
    "metadata that exits": ("metadata", partial(SystemExit, "odd"), SystemExit, 0, 2),
    "metadata that interrupts": ("metadata", KeyboardInterrupt, KeyboardInterrupt, 0, 2),
    "metadata without memory": ("metadata", MemoryError, MemoryError, 0, 2),
    "metadata that is a number": ("metadata", lambda: 3, TypeError, 0, 2),
    "a render mode that raises": ("render_mode", partial(ValueError, "odd"), ValueError, 0, 2),
    "a space that raises": ("observation_space", partial(ValueError, "odd"), ValueError, 0, 1),
    "a space that exits": ("action_space", partial(SystemExit, "odd"), SystemExit, 0, 1),
    "no observation space": ("observation_space", lambda: None, TypeError, 0, 0),
    "no action space": ("action_space", lambda: None, TypeError, 0, 0),
    "spaces that cannot be compared": ("action_space", partial(Incomparable, 4), ValueError, 1, 2),
}


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_an_environment_that_cannot_be_described_is_an_error_of_its_row(build, name, tmp_path):
    attribute, make_odd, kind, row, closed = ATTRIBUTES[name]
    log = tmp_path / "log"
    log.touch()
    if build.executor == "process" and not issubclass(kind, Exception):
        kind = cartwheel.RemoteEnvError
    keywords = {} if build.executor == "inline" else {"num_workers": 1}
    with pytest.raises(kind) as failure:
        build([partial(OddEnv, attribute, make_odd, log)] * 2, **keywords)
    assert_names_row(failure.value, row)
    assert log.read_text().splitlines() == ["closed"] * closed


class Unsendable(Discrete):
    def __init__(self):
        super().__init__(4)
        self.lock = threading.Lock()


class Refusing(Discrete):
    def __init__(self, error):
        super().__init__(4)
        self.error = error

    def __reduce__(self):
        raise self.error


class AtHome(Space):
    """Has no fixed shape; can be unpickled only in the caller or only in the worker."""

    def __init__(self, where):
        super().__init__()
        self.home, self.where = os.getpid(), where

    def sample(self, mask=None, probability=None):  # noqa: ARG002 - Gymnasium's signature
        return "x"

    def contains(self, x):
        return x == "x"

    def __eq__(self, other):
        return type(self) is type(other)

    __hash__ = Space.__hash__

    def __setstate__(self, state):
        if (state["home"] == os.getpid()) != (state["where"] == "the worker"):
            raise ValueError(f"cannot be loaded outside of {state['where']}")
        self.__dict__.update(state)


def unsendable_metadata(row):
    env = TranscriptEnv(3)
    if row == 1:
        env.metadata = {"lock": threading.Lock()}
    return env


def with_space(make_space, row, from_row=1):
    return PuppetEnv(make_space(), "x") if row >= from_row else PuppetEnv(Discrete(5), 1)


UNSENDABLE = {
    "holds a lock": (Unsendable, TypeError),
    "raises": (partial(Refusing, ValueError("odd")), ValueError),
    "exits": (partial(Refusing, SystemExit("odd")), cartwheel.RemoteEnvError),
}


@pytest.mark.parametrize("name", UNSENDABLE)
def test_a_space_that_cannot_be_sent_is_an_error_of_its_row(build_processes, name):
    make_space, kind = UNSENDABLE[name]
    with pytest.raises(kind) as failure:
        build_processes([partial(with_space, make_space, row) for row in range(3)])
    assert_names_row(failure.value, 1)


def test_metadata_that_cannot_be_sent_is_an_error_of_its_row(build_processes):
    with pytest.raises(TypeError, match="pickle") as failure:
        build_processes([partial(unsendable_metadata, row + 1) for row in range(2)])
    assert_names_row(failure.value, 0)


def test_a_space_that_the_caller_cannot_load_names_the_rows(build_processes):
    with pytest.raises(ValueError, match="outside of the worker") as failure:
        build_processes([partial(with_space, partial(AtHome, "the worker"), 0, 0)] * 4)
    assert "rows 0 to 1" in text_of(failure.value)


def test_a_space_that_the_worker_cannot_load_names_the_rows(build_processes):
    with pytest.raises(ValueError, match=r"(?s)outside of the caller.*rows 0 to 1"):
        build_processes([partial(with_space, partial(AtHome, "the caller"), 0, 0)] * 4)


class Homebound:
    """Can be loaded in the process alone that made it."""

    def __init__(self):
        self.home = os.getpid()

    def __setstate__(self, state):
        if state["home"] != os.getpid():
            raise ValueError("far from home")


class HomeboundEnv(TranscriptEnv):
    """Steps have such an info if the action says so."""

    def __init__(self):
        super().__init__(9)

    def step(self, action):
        return (*super().step(action)[:4], {"value": Homebound()} if action else {})

    def value(self):
        return Homebound()


def test_a_value_that_the_caller_cannot_load_names_the_rows(build_processes):
    envs = build_processes([HomeboundEnv] * 4)
    envs.reset()
    with pytest.raises(ValueError, match="far from home") as failure:
        envs.step([0, 0, 1, 0])
    assert "a value of row 2" in text_of(failure.value)
    with pytest.raises(ValueError, match="far from home") as failure:
        envs.call("value")
    assert "worker 0 (rows 0 to 1)" in text_of(failure.value)
    assert envs.step([0] * 4)[0].tolist() == [[2]] * 4


@pytest.fixture(params=[THREAD, PROCESS], ids=str)
def broken(request):
    """Creates environments in broken workers; processes are forked, to inherit the patch."""

    def make(env_fns=None, **keywords):
        if request.param is PROCESS:
            keywords["context"] = "fork"
        return request.param(env_fns or transcripts(3, 3, 3, 3), **keywords)

    make.executor = request.param.name
    return make


def raising(error):
    def fail(*_, **__):
        raise error

    return fail


@pytest.mark.parametrize("error", [RuntimeError("broken"), SystemExit(3), KeyboardInterrupt()])
def test_a_worker_that_cannot_serve_says_so(broken, monkeypatch, error):
    monkeypatch.setattr(serve, "serve", raising(error))
    kind = type(error)
    if broken.executor == "process" and not isinstance(error, Exception):
        kind = cartwheel.RemoteEnvError
    with pytest.raises(kind, match=r"worker 0 \(rows 0 to 1"):
        broken()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_worker_that_cannot_report_its_failure_is_reported_as_dead(broken, monkeypatch):
    monkeypatch.setattr(serve, "serve", raising(RuntimeError("broken")))
    monkeypatch.setattr(Fault, "from_exception", raising(MemoryError("no memory to say it")))
    with pytest.raises(cartwheel.WorkerDiedError, match=r"worker 0 \(rows 0 to 1") as failure:
        broken()
    assert failure.value.env_index == [0, 1]
    del failure  # the exception has this frame, which would have the exception


class BusyEnv(TranscriptEnv):
    """Its steps raise, or return infos that are larger than shared memory has place for."""

    def __init__(self):
        super().__init__(3)

    def step(self, action):
        if action:
            raise ValueError("odd")
        return (*super().step(action)[:4], {"text": "x" * 3_000_000})


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("packs", ["pack_faults", "pack_answer", "pack_rest"])
def test_a_message_that_cannot_be_packed_is_not_waited_for(broken, monkeypatch, packs):
    """The message with the reason cannot be packed either, as without memory."""
    monkeypatch.setattr(Worker, packs, raising(MemoryError("no memory to say it")))
    envs = broken([BusyEnv] * 4)
    envs.reset()
    if packs == "pack_rest":
        assert envs.step([0] * 4)[4]["infos_lost"].all()
    else:
        fails = partial(envs.step, [1] * 4)
        with pytest.raises(cartwheel.RemoteEnvError, match="rows 0 to 1, or an answer"):
            fails() if packs == "pack_faults" else envs.call("spec")
    envs.reset()
    envs.close()


class MuteEnv(TranscriptEnv):
    """Makes its worker unable to send, then raises an error that the worker has to send."""

    def __init__(self):
        super().__init__(3)

    def step(self, action):  # noqa: ARG002 - Gymnasium's signature
        nowhere = os.open(os.devnull, os.O_RDONLY)
        for socket in sockets():
            os.dup2(nowhere, socket)
        raise ValueError("this is never received")


def test_a_worker_process_that_can_no_longer_send_is_reported_as_dead(build_processes):
    envs = build_processes([*transcripts(3, 3), MuteEnv, MuteEnv])
    envs.reset()
    with pytest.raises(cartwheel.WorkerDiedError, match="worker 1"):
        envs.step([0] * 4)


def gated(gates, row):
    gates.stand_at(row + 1)
    return TranscriptEnv(3)


def test_the_timeout_applies_to_the_construction(build_workers, gates):
    gates.open(1, 2)
    before, late = time.monotonic(), None
    while late != [2, 3]:  # a busy machine may not have made the others in time
        with pytest.raises(cartwheel.WorkerTimeoutError, match=r"\[.*2, 3\]") as failure:
            build_workers([partial(gated, gates, row) for row in range(4)], timeout=1.5)
        late = failure.value.env_index
    assert time.monotonic() - before < 30
    gates.open(3, 4)


def test_a_worker_that_ends_before_the_pool_watches_it_is_named(build_processes, monkeypatch):
    set_up = launch.set_up

    def set_up_and_end(group, *args):
        made = set_up(group, *args)
        group.processes[1].kill()
        group.processes[1].join()
        return made

    monkeypatch.setattr(launch, "set_up", set_up_and_end)
    with pytest.raises(cartwheel.WorkerDiedError, match=r"worker 1 .*died during construct"):
        build_processes(transcripts(3, 3), num_workers=2)


def test_a_construction_within_the_timeout_affects_no_later_call(build_workers, gates):
    gates.open(1, 2, 3, 4)
    envs = build_workers([partial(gated, gates, row) for row in range(4)], timeout=30)
    envs.reset()


class LargeEnv(TranscriptEnv):
    """Its function is larger than a socket holds."""

    def __init__(self, _, made):
        super().__init__(3)
        made.touch()


@pytest.fixture
def stopped(monkeypatch):
    """The ids of the processes that were started, which are stopped before they read."""
    start, pids = multiprocessing.process.BaseProcess.start, []

    def start_and_stop(process):
        start(process)
        os.kill(process.pid, signal.SIGSTOP)
        pids.append(process.pid)

    monkeypatch.setattr(multiprocessing.process.BaseProcess, "start", start_and_stop)
    return pids


@pytest.mark.parametrize("context", SENDING)
def test_the_timeout_applies_to_functions_that_are_not_read(
    build_processes, stopped, context, tmp_path
):
    env_fns = [partial(LargeEnv, bytes(3_000_000), tmp_path / str(row)) for row in range(2)]
    with pytest.raises(cartwheel.WorkerTimeoutError) as failure:
        build_processes(env_fns, context=context, timeout=1.5)
    assert failure.value.env_index == [0, 1]
    assert len(stopped) == 2


@pytest.mark.parametrize("context", SENDING)
def test_a_worker_that_does_not_read_delays_no_other(
    build_processes, stopped, context, monkeypatch, tmp_path
):
    paths, started = [tmp_path / str(row) for row in range(2)], threading.Event()
    describe = WorkerGroup.describe

    def note_and_describe(group, deadline):
        started.set()
        return describe(group, deadline)

    def wake():
        started.wait()
        os.kill(stopped[1], signal.SIGCONT)
        while not paths[1].exists():
            time.sleep(0.01)
        os.kill(stopped[0], signal.SIGCONT)

    monkeypatch.setattr(WorkerGroup, "describe", note_and_describe)
    waking = threading.Thread(target=wake, daemon=True)
    waking.start()
    envs = build_processes(
        [partial(LargeEnv, bytes(3_000_000), path) for path in paths], context=context
    )
    waking.join()
    assert envs.reset()[0].tolist() == [[0], [0]]


def hangs_again(path):
    """Creates an environment the first time, and hangs afterwards."""
    try:
        path.touch(exist_ok=False)
    except FileExistsError:
        time.sleep(3600)
    return TranscriptEnv(3)


def test_the_timeout_applies_to_a_worker_that_is_restarted(build_processes, tmp_path):
    before = residue()
    envs = build_processes(
        [*transcripts(3, 3), partial(hangs_again, tmp_path / "made")],
        on_worker_death="restart",
        timeout=2,
        num_workers=3,
    )
    envs.reset()
    envs.processes[2].kill()
    with pytest.raises(multiprocessing.TimeoutError, match=r"\[2\]"):
        envs.step([0] * 3)
    envs.close()
    assert not left_behind(before)
