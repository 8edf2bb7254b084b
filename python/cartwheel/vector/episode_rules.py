"""Rules of episodes and steps: limits, ignored terminations, repeated actions, staggered resets."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import TYPE_CHECKING, Any

from cartwheel._internal.arguments import as_bool, as_integer
from cartwheel.errors import named_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: The maximum number of steps of an episode, and of repetitions of an action.
_MAX_COUNT = 2**32 - 1


@dataclasses.dataclass(frozen=True)
class Rules:
    """Rules about the ends of episodes, repeated actions and staggered resets.

    Attributes:
        max_episode_steps: As for :class:`~cartwheel.VectorEnv`, like all attributes.
        ignore_terminations: Whether an episode is over only when it is truncated.
        action_repeat: How many times each step repeats its action.
        staggered_reset: Whether a full reset begins rows at different places in their episodes.
    """

    max_episode_steps: int | None = None
    ignore_terminations: bool = False
    action_repeat: int = 1
    staggered_reset: bool = False

    @classmethod
    def from_keywords(
        cls,
        max_episode_steps: Any,
        ignore_terminations: Any,
        action_repeat: Any,
        staggered_reset: Any,
    ) -> Rules:
        """Checks the keywords of a vector environment.

        Raises:
            TypeError: ``ignore_terminations`` or ``staggered_reset`` is not a ``bool``.
            ValueError: A number is not an integer or out of range, or ``staggered_reset`` has no
                ``max_episode_steps``.
        """
        limit = max_episode_steps
        if limit is not None:
            limit = as_integer("max_episode_steps", limit, 1, _MAX_COUNT)
        rules = cls(
            limit,
            as_bool("ignore_terminations", ignore_terminations),
            as_integer("action_repeat", action_repeat, 1, _MAX_COUNT),
            as_bool("staggered_reset", staggered_reset),
        )
        if rules.staggered_reset and limit is None:
            raise ValueError(
                "`staggered_reset=True` draws numbers of steps below `max_episode_steps`, which is "
                "None: pass `max_episode_steps`. (Limits of the environments themselves do not "
                "count; `make_vec` gives its own to environments in Python: pass it "
                "`vector_kwargs={'max_episode_steps': n}`.)"
            )
        return rules

    def check_limits(self, limits: Sequence[bool]) -> None:
        """Checks that something other than ignored terminations ends each episode.

        Args:
            limits: For each environment, whether it truncates its episodes itself.

        Raises:
            ValueError: An environment has no limit; the error names the keyword to pass.
        """
        if not self.ignore_terminations or self.max_episode_steps is not None or all(limits):
            return
        rows = [row for row, is_limited in enumerate(limits) if not is_limited]
        named = (
            "no environment has one"
            if len(rows) == len(limits)
            else f"{named_rows(rows)} have none"
        )
        raise ValueError(
            "`ignore_terminations=True` needs a step limit, because episodes would never be over, "
            f"and {named}: pass `max_episode_steps`."
        )

    def as_dict(self) -> dict[str, Any]:
        """Returns the rules as native code takes them."""
        return dataclasses.asdict(self)


@contextlib.contextmanager
def whole_episodes(envs: Any) -> Iterator[None]:
    """Lets resets of all rows begin whole episodes, also with ``staggered_reset``.

    Callers that count episodes use it: the first episode after a staggered reset is cut short.
    """
    inner = envs.unwrapped
    rules = getattr(inner, "_rules", None)
    if rules is None or not rules.staggered_reset:
        yield
        return
    try:
        inner._begins_whole = True
        yield
    finally:
        inner._begins_whole = False
