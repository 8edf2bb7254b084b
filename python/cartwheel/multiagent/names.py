"""Names that agents cannot have."""

from __future__ import annotations

#: Names of entries of infos, which agents cannot have.
RESERVED = frozenset(
    f"{mark}{name}"
    for mark in ("", "_")
    for name in (
        *("present", "acted", "episode_over", "final_obs", "final_info", "env_index", "state"),
        *("final_state", "env_error", "worker_restarted", "restarted", "infos_lost"),
        "final_frame",
    )
)


def check_names(agents: tuple[object, ...]) -> None:
    """Checks the names of agents.

    Raises:
        ValueError: An agent is named twice, or has the name of an entry of infos.
    """
    if len(set(agents)) < len(agents):
        raise ValueError(f"an agent is named twice: {list(agents)}")
    taken = [name for name in agents if name in RESERVED]
    if taken:
        raise ValueError(
            f"agents cannot be named {taken}, because infos have entries of these names: rename "
            f"them in `possible_agents`, which has {list(agents)}."
        )
