"""What a policy may answer: actions, or actions and a dictionary of extras.

:class:`~cartwheel.Collector` and :func:`~cartwheel.evaluate` read answers by this one rule, so that
a policy which serves the one serves the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gymnasium.spaces import Dict, Tuple

if TYPE_CHECKING:
    from gymnasium.spaces import Space


def actions_and_extras(answer: Any, space: Space[Any]) -> tuple[Any, dict[str, Any]]:
    """Takes an answer apart.

    A pair whose second is a dictionary is actions and extras, in every action space, unless it is
    nested just as the space is: then it is actions.

    Args:
        answer: What the policy returned.
        space: The action space of one environment.

    Returns:
        The actions, and the extras by name; none if there are none. Neither is looked at.
    """
    is_pair = isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[1], dict)
    if not is_pair or (isinstance(space, Tuple) and _is_nested_as(space, answer)):
        return answer, {}
    actions, extras = answer
    return actions, extras


def _is_nested_as(space: Space[Any], batch: Any) -> bool:
    """Whether a batch has a dictionary or a tuple where ``space`` has one, and nowhere else."""
    if isinstance(space, Dict):
        return (
            isinstance(batch, dict)
            and batch.keys() == space.spaces.keys()
            and all(_is_nested_as(part, batch[key]) for key, part in space.spaces.items())
        )
    if isinstance(space, Tuple):
        return (
            isinstance(batch, tuple)
            and len(batch) == len(space.spaces)
            and all(map(_is_nested_as, space.spaces, batch))
        )
    return not isinstance(batch, dict | tuple)
