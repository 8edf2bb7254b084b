"""A program may create and close vector environments all day: nothing of them is left."""

import pytest

from tests.support.programs import run_program

#: Far less than 200 batches of 80 kB: each cycle leases three, and must not leave even one. With
#: threads, the allocator itself keeps a few megabytes.
MOST_KIB = 8 * 1024
#: Each cycle maps four areas of memory, and each thread has a stack.
MOST_MAPPINGS = 16


@pytest.mark.slow
@pytest.mark.parametrize(
    ("executor", "context", "cycles"),
    [
        ("inline", "", 200),
        ("thread", "", 200),
        ("native", "", 200),
        ("process", "fork", 200),
        ("process", "forkserver", 4),
        ("process", "spawn", 2),
    ],
)
def test_many_vector_environments_leave_the_program_as_it_was(executor, context, cycles):
    facts = run_program("make_and_close", executor, context, cycles)
    before, after = facts["before"], facts["after"]
    for same in ("residue", "threads"):
        assert after[same] == before[same]
    assert after["mappings"] - before["mappings"] <= MOST_MAPPINGS
    assert after["KiB"] - before["KiB"] <= MOST_KIB
