"""Options that neither ``make`` nor the environment has."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from cartwheel.envpool.config import KEYWORDS
from cartwheel.native.env_ids import as_env_id
from cartwheel.native.keywords import names_of_keywords
from cartwheel.near_misses import keywords_of, near_miss

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cartwheel.envpool.config import Config
    from cartwheel.envpool.registry import Task


@contextlib.contextmanager
def naming_unknown(task: Task, config: Config) -> Iterator[None]:
    """Makes the error of a constructor for an unknown option name the options that exist.

    Constructors may pass options on, so only the constructor's own error shows that an option is
    unknown.

    Args:
        task: The task.
        config: The configuration.

    Raises:
        TypeError: The constructor does not have an option.
    """
    try:
        yield
    except (TypeError, ValueError) as error:
        known = _known(task, str(error), config.options)
        if known is None:
            raise
        name, own = known
        meant = near_miss(name, (*own, *KEYWORDS, "render_mode"))
        hint = "" if meant is None else f"Did you mean `{meant}`? "
        raise TypeError(
            f"`{name}` is not an option of {task.task_id}. {hint}Options of the environment: "
            f"{', '.join(sorted(own)) or 'none'}. Options of cartwheel.envpool.make: "
            f"{', '.join(sorted((*KEYWORDS, 'render_mode')))}."
        ) from error


def _known(task: Task, error: str, options: Iterable[str]) -> tuple[str, Iterable[str]] | None:
    """Returns the option that an error refuses, and the environment's options."""
    for name in options:
        if error.startswith(f"`{name}` is not a keyword of"):  # of native environments
            return name, names_of_keywords(as_env_id(task.task_id)) or ()
        if f"unexpected keyword argument {name!r}" in error and task.find_constructor is not None:
            return name, keywords_of(task.find_constructor()) - {"render_mode"}
    return None
