"""Resets of a pool that load states, in place of the environments' own resets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cartwheel._cartwheel import Pool


def sample(pool: Pool, link: Any, seeds: list[int | None]) -> list[bytes]:
    """Resets rows with seeds, and returns their states, for :func:`use_cache`.

    The rows have to be reset afterwards.

    Args:
        pool: An idle pool.
        link: Its link.
        seeds: A seed for each row; ``None`` for rows that are left alone.
    """
    states: list[bytes] = link.sampled(_answers(pool, link, link.pack_sample(seeds)))
    return states


def use_cache(
    pool: Pool, link: Any, states: list[bytes], key: int, draws: list[tuple[int, int]]
) -> None:
    """From now on every reset loads a state.

    Args:
        pool: An idle pool.
        link: Its link.
        states: From :func:`sample`.
        key: Part of every draw that a seed decides.
        draws: For each row the key of its draws, and the number of draws so far.

    Raises:
        ValueError: A state was changed, or is of another environment; nothing has changed then.
    """
    _answers(pool, link, link.pack_cache(states, key, draws))


def draws(pool: Pool, link: Any) -> list[tuple[int, int]]:
    """Returns for each row the key of its draws, and the number of draws so far."""
    return list(_answers(pool, link, link.pack_draws()))


def _answers(pool: Pool, link: Any, messages: list[Any]) -> tuple[Any, ...]:
    return pool.call(messages, None, "CachedReset", link.timeout)
