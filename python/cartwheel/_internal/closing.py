"""Objects that a ``with`` statement closes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Self


class ClosesAfterWith:
    """The two methods of a ``with`` statement, at whose end the object is closed."""

    close: Any

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
