"""Check ``infos``: a key of the infos keeps its type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cartwheel.testing.kit import type_of
from cartwheel.testing.life import moment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cartwheel.testing.kit import Kit


def check_infos(kit: Kit) -> str:
    """A key has one type in all steps, and one at all resets."""
    seen: dict[tuple[str, bool], tuple[str, str]] = {}
    for row in range(min(kit.envs.num_envs, 3)):
        life = kit.singles(ending=True).life(row)
        for number, event in enumerate(life):
            when = f"{moment(life, number)} of row {row}"
            for path, value in _entries(event.info, "info"):
                kind = type_of(value)
                before, then = seen.setdefault((path, event.is_reset), (kind, when))
                if kind != before:
                    kit.fail(
                        f"{path} is {kind} {when} and {before} {then}",
                        "A batch of infos has the dtype and shape of its first row, and other rows "
                        "are rounded or refused: give the key the same type in every step.",
                    )
    kit.note_mixed()
    keys = sorted({path for path, _ in seen})
    return ", ".join(keys) if keys else "there are none"


def _entries(info: dict[str, Any], path: str) -> Iterator[tuple[str, Any]]:
    for key, value in info.items():
        if isinstance(value, dict):
            yield from _entries(value, f"{path}[{key!r}]")
        else:
            yield f"{path}[{key!r}]", value
