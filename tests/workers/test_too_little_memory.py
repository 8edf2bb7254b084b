"""Too little memory raises an exception that says how much is needed; no signal kills anything."""

import pytest

from tests.support.platforms import linux_only
from tests.support.programs import run_program as run

pytestmark = pytest.mark.usefixtures("program_server")

#: Threads have the same memory as the calling thread.
EXECUTORS = ["inline", pytest.param("thread", marks=pytest.mark.slow), "process"]
#: Batches of processes are in memory of another kind, and the same code counts both.
PROCESS_FIRST = [
    "process",
    *(pytest.param(executor, marks=pytest.mark.slow) for executor in ("inline", "thread")),
]


@pytest.fixture
def group(tmp_path):
    """The files of a control group with one gigabyte left, for cgroup version 1 and 2."""
    (tmp_path / "memory").mkdir()
    for name, content in (("max", 2 << 30), ("current", 1 << 30)):
        (tmp_path / f"memory.{name}").write_text(f"{content}\n")
    for name, content in (("limit", 2 << 30), ("usage", 1 << 30)):
        (tmp_path / f"memory/memory.{name}_in_bytes").write_text(f"{content}\n")
    return tmp_path


@pytest.mark.parametrize("executor", PROCESS_FIRST)
def test_a_full_control_group_is_an_error_that_says_how_much_is_needed(mounted, group, executor):
    inside = mounted(f"mount --bind {group} /sys/fs/cgroup")
    facts = run("construct_in_a_full_group", executor, group, inside=inside)
    name, text = facts["error"]
    assert name == "MemoryError"
    needed = int(text.split(" needs ")[1].split()[0])
    assert 8_000_000 <= needed <= 20_000_000  # two batches of four megabytes, and the infos
    for part in (", 0 are left", "/sys/fs/cgroup/memory", "fewer environments"):
        assert part in text
    assert facts["left"] == []


@pytest.mark.parametrize("executor", PROCESS_FIRST)
def test_batches_are_copied_when_the_control_group_has_no_room_for_more(mounted, group, executor):
    inside = mounted(f"mount --bind {group} /sys/fs/cgroup")
    facts = run("keep_batches_in_a_full_group", executor, group, inside=inside)
    assert facts["slabs"] < 8  # the limits are read once per 16 MiB
    assert len(facts["warnings"]) == 1
    assert "copied" in facts["warnings"][0]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_rollout_larger_than_the_machine_is_refused_and_nothing_else_is(executor):
    facts = run("take_a_rollout_larger_than_the_machine", executor)
    name, text = facts["error"]
    assert name == "MemoryError"
    assert int(text.split(" needs ")[1].split()[0]) >= facts["bytes"]
    assert "/proc/meminfo" in text or "cgroup" in text
    assert facts["left"] == []


@pytest.mark.parametrize("executor", ["inline", "process"])
def test_memory_that_the_system_refuses_raises_an_error_that_says_how_much_is_needed(executor):
    facts = run("construct_with_little_address_space", executor)
    name, text = facts["error"]
    assert name == "MemoryError"
    assert "cartwheel-slabs needs" in text
    assert "Cannot allocate memory" in text
    assert facts["left"] == []


SHM = {
    "1 MiB": "mount -t tmpfs -o size=1m tmpfs /dev/shm",
    "read-only": "mount -t tmpfs -o size=4k,ro tmpfs /dev/shm",
    "missing": "touch {0}/null {0}/urandom && mount --bind /dev/null {0}/null && "
    "mount --bind /dev/urandom {0}/urandom && mount --rbind {0} /dev",
}


@linux_only("its shared memory is in /dev/shm")
@pytest.mark.parametrize(
    ("context", "shm"),
    [
        ("fork", "missing"),
        pytest.param("fork", "read-only", marks=pytest.mark.slow),
        ("forkserver", "1 MiB"),
        pytest.param("spawn", "1 MiB", marks=pytest.mark.slow),
    ],
)
def test_dev_shm_is_not_needed(mounted, tmp_path, context, shm):
    facts = run("step_without_room_in_dev_shm", context, inside=mounted(SHM[shm].format(tmp_path)))
    assert facts["bytes"] == {"1 MiB": 1 << 20, "read-only": 4096, "missing": None}[shm]
