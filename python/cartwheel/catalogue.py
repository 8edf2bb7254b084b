"""``python -m cartwheel envs``: the native environments and what they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cartwheel._cartwheel import native_envs
from cartwheel.native.keywords import NAMESPACE
from cartwheel.native.vector_env import NativeVectorEnv

if TYPE_CHECKING:
    import argparse

_COLUMNS = "{:36}{:>7}{:>11}  {:47}{}"


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the subcommand ``envs`` to a parser's commands."""
    text = "list the native environments"
    parser = commands.add_parser("envs", help=text, description=text)
    parser.set_defaults(run=run)


def run(_: argparse.Namespace) -> int:
    """Prints a table: id, step limit, reward threshold, spaces."""
    print(_COLUMNS.format("id", "limit", "threshold", "observation", "action"))
    for env_id, limit, threshold, _keywords in native_envs():
        envs = NativeVectorEnv(env_id, 1)
        observation, action = envs.single_observation_space, envs.single_action_space
        envs.close()
        shown = [_short(str(observation)), _short(str(action))]
        limits = ["–" if value is None else f"{value:g}" for value in (limit, threshold)]
        print(_COLUMNS.format(NAMESPACE + env_id, *limits, *shown))
    return 0


def _short(space: str) -> str:
    """A space without the bounds of each element."""
    if not space.startswith("Box("):
        return space
    shape = space[space.rindex("(", 4) :]
    return f"Box({shape}"
