"""The kinds of vector environments with which the promises are tested."""

from dataclasses import dataclass, field
from typing import Any

import pytest

import cartwheel
from tests.support.cases import SHORT


@dataclass(frozen=True)
class Executor:
    """Builds a ``VectorEnv`` with this executor."""

    name: str
    keywords: dict[str, Any] = field(default_factory=dict)

    def __str__(self):
        return "-".join(map(str, [self.name, *self.keywords.values()]))

    def __call__(self, env_fns, *args, **keywords):
        keywords = {"executor": self.name, **self.keywords, **keywords}
        return cartwheel.VectorEnv(env_fns, *args, **keywords)


class Native(Executor):
    """Builds a ``NativeVectorEnv`` from a list that repeats one `tests.support.cases.Case`."""

    def __call__(self, env_fns, **keywords):
        (case,) = set(env_fns)
        keywords = {**self.keywords, **case.keywords, **keywords}
        return cartwheel.NativeVectorEnv(case.env_id, len(env_fns), **keywords)


INLINE = Executor("inline")
THREAD = Executor("thread", {"num_workers": 2})
PROCESS = Executor("process", {"num_workers": 2})
NATIVE = Native("native", {"num_workers": 2})
EXECUTORS = [INLINE, THREAD, PROCESS]
EVERY_EXECUTOR = [
    *EXECUTORS,
    Executor("thread", {"num_workers": 7}),
    Executor("process", {"num_workers": 1}),
    Executor("process", {"num_workers": 7}),
]
EVERY_NATIVE = [
    NATIVE,
    Native("native", {"executor": "inline"}),
    Native("native", {"num_workers": 1}),
    Native("native", {"num_workers": 7}),
]
EVERY_KIND = [*EXECUTORS, NATIVE]
#: Start methods of worker processes, for promises that hardly depend on them: one by default.
FORK_FIRST = [
    "fork",
    *(pytest.param(context, marks=pytest.mark.slow) for context in ("forkserver", "spawn")),
]
#: Start methods that send what workers make, which do it in the same way: one by default.
SENDING = ["forkserver", pytest.param("spawn", marks=pytest.mark.slow)]
#: Each kind with one environment of short episodes; the native kind with all of them.
SHORT_ROWS = [(executor, SHORT[0]) for executor in EXECUTORS] + [(NATIVE, case) for case in SHORT]
