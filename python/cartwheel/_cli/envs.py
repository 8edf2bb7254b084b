"""``python -m cartwheel envs``: the list of native environments, and a page for each."""

from __future__ import annotations

import difflib
import shutil
import sys
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Box

from cartwheel._cartwheel import native_envs
from cartwheel.native.ids import find_env_id, python_hint
from cartwheel.native.keywords import UNKNOWN, Described, describe_keywords, describe_reset_options
from cartwheel.native.plugins import import_envs, without_module
from cartwheel.native.registration import NAMESPACE, registered_id
from cartwheel.native.vector_env import NativeVectorEnv

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Sequence

    from gymnasium.spaces import Space

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
    parser.set_defaults(run=run, parser=parser)


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
    """Returns the error for an id that is not native, with similar ids."""
    names = {name.lower(): registered_id(name) for name, *_ in native_envs()}
    namespace = env_id.partition("/")[0]
    related = [name for name in names.values() if name.startswith(f"{namespace}/")]
    in_python = python_hint(env_id)
    near = [names[name] for name in difflib.get_close_matches(env_id.lower(), names, cutoff=0.7)]
    if near:
        hint = f"did you mean {' or '.join(near)}?"
    elif in_python is not None:
        hint = in_python
    elif related:
        hint = f"{namespace} has {', '.join(sorted(related))}"
    elif "/" in env_id and ":" not in env_id:
        hint = f"name the package that has it: `python -m cartwheel envs {namespace}:{env_id}`"
    else:
        hint = "`python -m cartwheel envs` lists them"
    return f"there is no native environment {env_id!r}; {hint}"


_MIN_WIDTH = 10
"""Columns that the last column of a table has at least, however narrow the terminal is."""


def overview(width: int | None) -> str:
    """Returns a table of all native environments.

    Args:
        width: Columns of the terminal; ``None`` for one line for each environment.
    """
    rows = [("id", "limit", "solved", "action", "observation")]
    for env_id, limit, threshold, _keywords in native_envs():
        try:
            envs = NativeVectorEnv(env_id, 1)
        except ImportError as error:  # MuJoCo's, which begins with the id
            spaces = "–", str(error).removeprefix(f"{registered_id(env_id)} ")
        except (ValueError, RuntimeError) as error:  # of a plugin, which needs keywords
            spaces = "–", f"cannot be made without keywords: {error}"
        else:
            spaces = _short(envs.single_action_space), _short(envs.single_observation_space)
            envs.close()
        rows.append((registered_id(env_id), _number(limit), _number(threshold), *spaces))
    notes = [
        "limit: max_episode_steps. solved: reward_threshold, the return of a solved episode.",
        "`python -m cartwheel envs ID` shows everything about one environment.",
    ]
    return "\n".join(
        [*_table(rows, width, gap=1), "", *(line for note in notes for line in _wrap(note, width))]
    )


def page(env_id: str, width: int | None) -> str:
    """Returns everything about one native environment.

    Args:
        env_id: Its id, without ``cartwheel/``.
        width: As for :func:`overview`.

    Raises:
        ImportError: It needs MuJoCo, which is not installed or too old.
    """
    limit, threshold = next(
        (limit, threshold) for name, limit, threshold, _ in native_envs() if name == env_id
    )
    facts = [("max_episode_steps", _number(limit)), ("reward_threshold", _number(threshold))]
    parameters: list[tuple[str, str]] | None = None
    try:
        with NativeVectorEnv(env_id, 1) as envs:
            envs.reset(seed=0)
            parameters = [(name, _value(envs.get_attr(name)[0])) for name in envs.parameters]
            modes = ", ".join(map(repr, envs.metadata["render_modes"])) or "–"
            observation, action = envs.single_observation_space, envs.single_action_space
            spaces = [("observation", _full(observation)), ("action", _full(action))]
            facts = [*spaces, *facts, ("render_mode", modes)]
    except (ValueError, RuntimeError) as error:  # of a plugin, which needs keywords
        facts.append(("spaces", f"cannot be made without keywords: {error}"))
    keywords, options = (
        [(one.name, _default(one), one.text) for one in several]
        for several in (describe_keywords(env_id), describe_reset_options(env_id))
    )
    native_id = registered_id(env_id)
    sections: list[tuple[str, Sequence[Sequence[str]] | None]] = [
        ("", facts),
        (f'keywords: cartwheel.make_vec("{native_id}", num_envs, name=value)', keywords),
        ("parameters: envs.set_attr(name, value); values after reset(seed=0)", parameters),
        ("reset options: envs.reset(options={name: value})", options),
    ]
    lines = [native_id]
    for title, rows in sections:
        if rows is None:
            continue
        lines += ["", *_wrap(title, width)] if title else [""]
        lines += [f"  {line}" for line in _table(rows or [("none",)], width and width - 2)]
    more = "help(cartwheel.NativeVectorEnv) lists the keywords of all native environments."
    return "\n".join([*lines, "", *_wrap(more, width)])


def _table(rows: Sequence[Sequence[str]], width: int | None, gap: int = 2) -> Iterable[str]:
    """Returns lines with aligned columns; the last column is wrapped to ``width``.

    Args:
        rows: The cells of each line.
        width: Columns of the terminal, or ``None``.
        gap: Spaces between two columns.
    """
    widths = [max(map(len, column)) for column in list(zip(*rows, strict=True))[:-1]]
    indent = sum(widths) + gap * len(widths)
    columns = None if width is None else max(_MIN_WIDTH, width - indent)
    for *first, last in rows:
        start = "".join(cell.ljust(size + gap) for cell, size in zip(first, widths, strict=True))
        for number, line in enumerate(_wrap(last, columns)):
            yield ((" " * indent if number else start) + line).rstrip()


def _wrap(text: str, width: int | None) -> list[str]:
    return [text] if width is None else textwrap.wrap(text, width) or [""]


def _full(space: Space[Any]) -> str:
    """Returns a space in one line."""
    return " ".join(str(space).split())


def _short(space: Space[Any]) -> str:
    """Returns a space without the bounds of each element."""
    return f"Box({', '.join(map(str, space.shape))})" if isinstance(space, Box) else str(space)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:g}"


def _default(described: Described) -> str:
    if isinstance(described.default, dict):  # a column is as wide as its widest cell
        return "{…}" if described.default else "{}"
    return "–" if described.default is UNKNOWN else _value(described.default)


def _value(value: Any) -> str:
    """Returns a value as Python code, with six digits."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        parts = ", ".join(map(_value, value))
        return f"[{parts}]" if isinstance(value, list) else f"({parts})"
    return repr(float(f"{value:.6g}") if isinstance(value, float) else value)
