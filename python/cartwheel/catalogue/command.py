"""``python -m cartwheel envs``: the native environments and what they are."""

from __future__ import annotations

import difflib
import functools
import shutil
import sys
from typing import TYPE_CHECKING

import gymnasium as gym

from cartwheel._cartwheel import native_envs
from cartwheel.catalogue.pages import overview, page
from cartwheel.native.env_ids import find_env_id
from cartwheel.native.plugins import import_envs, without_module
from cartwheel.native.registration import NAMESPACE, registered_id

if TYPE_CHECKING:
    import argparse

DESCRIPTION = """\
Lists the native environments, or everything about one of them: spaces, keywords, parameters and
options of a reset. Lines are as wide as the terminal; without a terminal they are not wrapped."""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the subcommand ``envs`` to a parser's commands."""
    parser = commands.add_parser(
        "envs", help="list the native environments, or show one", description=DESCRIPTION
    )
    parser.add_argument(
        "env_id",
        nargs="?",
        metavar="ID",
        help="an id, with or without cartwheel/, and with the module to import first, if any: "
        "my_game:my_game/Maze-v0",
    )
    parser.add_argument(
        "--import",
        dest="modules",
        action="append",
        default=[],
        metavar="MODULE",
        help="import a package of environments first; may be repeated",
    )
    parser.set_defaults(run=functools.partial(run, parser))


def run(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> int:
    """Prints the list, or the page of one environment."""
    is_terminal = sys.stdout is not None and sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if is_terminal else None
    try:
        for module in arguments.modules:
            import_envs(module)
        name = without_module(arguments.env_id or "")
    except ModuleNotFoundError as error:
        parser.error(str(error))
    if not name:
        print(overview(width))
        return 0
    env_id = find_env_id(name)
    if env_id is None:
        parser.error(unknown(name.removeprefix(NAMESPACE)))
    try:
        text = page(env_id, width)
    except ImportError as error:
        parser.error(str(error))
    print(text)
    return 0


def unknown(env_id: str) -> str:
    """Returns what is wrong with an id that is not native, and which ids are similar."""
    names = {name.lower(): registered_id(name) for name, *_ in native_envs()}
    near = [names[name] for name in difflib.get_close_matches(env_id.lower(), names, cutoff=0.7)]
    if near:
        hint = f"did you mean {' or '.join(near)}?"
    elif env_id in gym.registry:
        hint = f"it is Gymnasium's, and cartwheel.make_vec({env_id!r}, num_envs) steps it in Python"
    else:
        hint = "`python -m cartwheel envs` lists them"
    return f"there is no native environment {env_id!r}; {hint}"
