"""The ways to collect that every event of the contract meets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from cartwheel import wrappers
from tests.contract.model import MODES, NEXT, OFF, SAME

NUM_ENVS = 4


@dataclass(frozen=True)
class CollectorSubject:
    """A way to collect.

    Attributes:
        name: Of the test.
        keywords: Of the collector.
        modes: The autoreset modes that it can have.
        episodes: Episodes of each row in a rollout that begins with a reset; 0: none does.
        executor: Of the environments, if an event needs no other one.
        wrap: Wraps a vector environment; it is given the mode, too.
        inside: The mode of the environments, if it is another one.
        is_like_another: Whether it is another one here with or without wrappers.
    """

    name: str
    keywords: dict[str, Any] = field(default_factory=lambda: {"num_steps": 5})
    modes: tuple[Any, ...] = MODES
    episodes: int = 0
    executor: str = "inline"
    wrap: Any = None
    inside: Any = None
    is_like_another: bool = False

    def __str__(self):
        return self.name


def copied(envs, _mode):
    """Rewards are changed, for all that the collector knows."""
    return wrappers.TransformReward(
        wrappers.RecordEpisodeStatistics(envs), lambda rewards: rewards.copy()
    )


SUBJECTS = [
    CollectorSubject("lockstep"),
    CollectorSubject("lockstep in wrappers", wrap=copied, is_like_another=True),
    CollectorSubject("until in wrappers", {"until": "all_done"}, episodes=1, wrap=copied),
    CollectorSubject("an adapter", modes=(NEXT, SAME), wrap=wrappers.AutoresetAdapter, inside=OFF),
    CollectorSubject(
        "free in wrappers",
        {"num_steps": 5, "order": "free", "run_ahead": 1},
        executor="thread",
        wrap=copied,
    ),
    CollectorSubject("until", {"until": "all_done"}, episodes=1, is_like_another=True),
    CollectorSubject("num_episodes", {"num_episodes": 2 * NUM_ENVS}, episodes=2),
    CollectorSubject("recurrent", {"num_steps": 5, "recurrent": True}),
    CollectorSubject("groups", {"num_steps": 5, "order": "groups", "groups": 2}),
    CollectorSubject(
        "free",
        {"num_steps": 5, "order": "free", "min_rows": 2, "max_rows": 3, "deadline": None},
        executor="thread",
    ),
    CollectorSubject("auto", {"num_steps": 5, "order": "auto"}, executor="thread"),
    CollectorSubject(
        "run_ahead",
        {"num_steps": 3, "order": "free", "run_ahead": 2},
        executor="thread",
        is_like_another=True,
    ),
    CollectorSubject(
        "columns",
        {"num_steps": 3, "order": "free", "run_ahead": 2, "columns": 2},
        executor="thread",
    ),
    CollectorSubject(
        "standby", {"num_steps": 5, "order": "free", "standby": 1}, modes=(OFF,), executor="thread"
    ),
    CollectorSubject("background", {"num_steps": 5, "background": True}, executor="thread"),
    CollectorSubject(
        "queue",
        {"num_steps": 3, "order": "free", "background": True, "queue": 2, "run_ahead": 1},
        executor="thread",
    ),
]
