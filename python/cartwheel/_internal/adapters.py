"""Checks that the adapters for trainers share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cartwheel._internal.suggestions import listed, shown, suggest

if TYPE_CHECKING:
    from gymnasium.vector import AutoresetMode


def check_mode(
    mode: AutoresetMode, wanted: AutoresetMode, why: str, *, makes_all: bool = False
) -> None:
    """Checks the autoreset mode of environments that a trainer steps.

    Args:
        mode: Their mode.
        wanted: The only mode that the trainer understands.
        why: What the trainer does, in a sentence that begins with its name.
        makes_all: Whether the adapter takes no environments that others made.

    Raises:
        ValueError: It is another mode.
    """
    if mode is not wanted:
        name = wanted.name.lower()
        others = f" for environments that are made here; make others with autoreset_mode={name!r}"
        advice = f"Leave it out{'' if makes_all else others}."
        raise ValueError(
            f"{why}: autoreset_mode must be {name!r}, got {mode.name.lower()!r}. {advice}"
        )


def check_whole_batches(trainer: str, batch_size: Any, num_envs: int) -> None:
    """Checks that batches have all rows.

    Args:
        trainer: The name of the trainer, which steps all rows at once.
        batch_size: The number of rows of a batch; ``None`` for all.
        num_envs: The number of all rows.

    Raises:
        ValueError: Batches have another number of rows.
    """
    if batch_size is not None and batch_size != num_envs:
        raise ValueError(
            f"{trainer} steps all rows at once, got batch_size={shown(batch_size)} of "
            f"num_envs={num_envs}: leave `batch_size` out."
        )


def check_names(
    adapter: str, keywords: dict[str, Any], known: frozenset[str], own: dict[str, str]
) -> None:
    """Checks that no keyword is a misspelled keyword of the adapter itself.

    Args:
        adapter: The name of its class.
        keywords: Those that are not its own.
        known: The keywords of the vector environment.
        own: Its own keywords, by their names and by those that other libraries have for them.

    Raises:
        TypeError: A keyword that the vector environment does not have resembles one of its own.
    """
    for name in keywords.keys() - known:
        meant = suggest(name, own)
        if meant is not None:
            raise TypeError(f"`{name}` is not a keyword of {adapter}: did you mean `{own[meant]}`?")


def check_one_agent(adapter: str, envs: Any, instead: str) -> None:
    """Checks that a user does not give environments of several agents, in any form.

    Args:
        adapter: The name of the adapter's class.
        envs: What the user gives.
        instead: What to do with environments of several agents.

    Raises:
        TypeError: They have several agents.
    """
    if hasattr(envs, "possible_agents") or hasattr(envs, "rows_per_env"):
        raise TypeError(f"{adapter} steps environments of one agent, got {shown(envs)}: {instead}.")


def check_is_no_form(adapter: str, envs: Any) -> None:
    """Checks that a user gives a ``ParallelVectorEnv`` itself, not its rows or groups.

    Raises:
        TypeError: It is another form.
    """
    if hasattr(getattr(envs, "envs", None), "possible_agents"):
        raise TypeError(
            f"{adapter} takes a ParallelVectorEnv itself, got {shown(envs)}: pass its `envs`."
        )


def check_given(adapter: str, envs: Any, keywords: dict[str, Any]) -> None:
    """Checks a vector environment of cartwheel that a user gives to an adapter.

    Args:
        adapter: The name of the adapter's class.
        envs: The vector environment, possibly in wrappers.
        keywords: Keywords that belong to functions that make environments.

    Raises:
        TypeError: There are such keywords, or a wrapper returns other arrays than NumPy's.
        gymnasium.error.ClosedEnvironmentError: It is closed.
    """
    if getattr(envs, "_converts_arrays", False):
        raise TypeError(
            f"{adapter} needs the arrays themselves, got {shown(envs)}: pass what it wraps."
        )
    if keywords:
        raise TypeError(
            f"{listed(keywords)} cannot be given with a vector environment, {envs}: pass keywords "
            "where it is made."
        )
    envs.unwrapped._pool.check(adapter, idle=False)
