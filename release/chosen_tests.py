"""The tests that run in every root, and why these.

A root differs from the machine of `make test` in its C library and, under qemu, in its processor
and kernel calls. The tests are those that such a difference could break; what only Python decides
is left to `make test`.
"""

PARITY = "tests/native/test_parity.py"

#: Files, folders and functions of tests, each with what it is here for.
CHOSEN = {
    f"{PARITY}::test_results_of_one_environment_equal_those_of_gymnasium": "the bits of libm",
    f"{PARITY}::test_keywords_act_as_in_gymnasium": "the bits of blocks of rows",
    f"{PARITY}::test_the_spaces_equal_those_of_gymnasium": "bounds, samples",
    "tests/workers/test_dead_and_hung_workers.py": "pidfd, signals, timeouts",
    "tests/workers/test_workers_that_are_restarted.py": "a worker is killed and started again",
    "tests/returns": "arithmetic in blocks and over threads",
    "tests/wrappers/test_image_plans.py": "images without AVX2",
    "tests/wrappers/test_with_gymnasium.py": "statistics, stacks, normalization",
    "tests/wrappers/test_row_kinds.py": "what each row is",
    "tests/envpool/test_forms.py": "the interface of EnvPool",
    "tests/envpool/test_episodes.py": "rows of EnvPool from end to end",
    "tests/vector/test_views_outlive_everything.py": "mappings that outlive their pool",
    "tests/vector/test_infos_keep_their_structure.py": "infos as bytes in shared memory",
    "tests/vector/test_parity.py": "each executor in each autoreset mode: memfd, sockets, start",
}
#: Additional tests where nothing is emulated, since emulation is about ten times slower.
CHOSEN_NATIVELY = {
    PARITY: "all of it",
    "tests/native/test_threads.py": "futexes, threads and their stacks",
    "tests/vector/test_send_and_receive.py": "rows between processes, in any order",
    "tests/vector/test_observations_are_never_overwritten.py": "leases of shared memory",
    "tests/vector/test_exceptions_keep_their_type.py": "errors that cross processes and unwinding",
    "tests/vector/test_stats.py": "clocks and counters",
    "tests/workers/test_workers_with_rows_in_flight.py": "a worker dies with rows in flight",
    "tests/envpool": "all of it",
}

#: Imports of the chosen tests besides the wheel and its dependencies. pygame and Box2D are left
#: out: they draw, or have no wheels. Tests that need them are skipped and say so.
REQUIREMENTS = ("pytest>=8", "pytest-timeout", "hypothesis>=6.100", "pettingzoo>=1.24")
#: OpenCV and dm-tree have no wheels for musl.
REQUIREMENTS_ON_GLIBC = ("dm-env>=1.6", "opencv-python-headless")


def chosen(*, is_emulated: bool) -> list[str]:
    """The tests for a root, as pytest takes them."""
    if is_emulated:
        return [*CHOSEN]
    whole = tuple(CHOSEN_NATIVELY)
    return [*(test for test in CHOSEN if not test.startswith(whole)), *whole]
