"""The ways to run environments that the promises are tested with."""

from dataclasses import dataclass, field
from typing import Any

import cartwheel


@dataclass(frozen=True)
class Executor:
    """Builds a ``VectorEnv`` that runs in one of these ways."""

    name: str
    keywords: dict[str, Any] = field(default_factory=dict)

    def __str__(self):
        return "-".join(map(str, [self.name, *self.keywords.values()]))

    def __call__(self, env_fns, *args, **keywords):
        keywords = {"executor": self.name, **self.keywords, **keywords}
        return cartwheel.VectorEnv(env_fns, *args, **keywords)


INLINE = Executor("inline")
THREAD = Executor("thread", {"num_workers": 2})
PROCESS = Executor("process", {"num_workers": 2})
EXECUTORS = [INLINE, THREAD, PROCESS]
EVERY_EXECUTOR = [
    *EXECUTORS,
    Executor("thread", {"num_workers": 7}),
    Executor("process", {"num_workers": 1}),
    Executor("process", {"num_workers": 7}),
]
