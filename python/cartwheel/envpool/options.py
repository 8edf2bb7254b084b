"""Options that neither ``make`` nor the environment has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cartwheel._cartwheel import env_keywords
from cartwheel.envpool.config import KEYWORDS
from cartwheel.native.keywords import as_env_id
from cartwheel.near_misses import keywords_of

if TYPE_CHECKING:
    from cartwheel.envpool.config import Config
    from cartwheel.envpool.registry import Task


def check_known(task: Task, config: Config, error: Exception) -> None:
    """Names the options that exist, if an environment was not made because of an unknown one.

    Constructors may pass options on, so only the constructor's own error shows that an option is
    unknown.

    Args:
        task: The task.
        config: The configuration.
        error: The error of the constructor.

    Raises:
        TypeError: The error says that an option is unknown.
    """
    text = str(error)
    for name in config.options:
        if text.startswith(f"`{name}` is not a keyword of"):  # of native environments
            own = sorted(env_keywords(as_env_id(task.task_id)))
        elif f"unexpected keyword argument {name!r}" in text and task.find_constructor is not None:
            own = sorted(keywords_of(task.find_constructor()) - {"render_mode"})
        else:
            continue
        raise TypeError(
            f"`{name}` is not an option of {task.task_id}. Options of the environment: "
            f"{', '.join(own) or 'none'}. Options of cartwheel.envpool.make: "
            f"{', '.join(sorted((*KEYWORDS, 'render_mode')))}."
        ) from error
