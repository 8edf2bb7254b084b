"""Policies: their forms and their results.

:class:`~cartwheel.Collector` and :func:`~cartwheel.evaluate` follow the same rules, so a policy
that works in one works in the other.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from gymnasium.spaces import Dict, Tuple

from cartwheel._internal.arguments import as_bool

if TYPE_CHECKING:
    from gymnasium.spaces import Space
    from numpy.typing import NDArray


class Predictor(Protocol):
    """A model with a method ``predict``, such as the models of Stable-Baselines3."""

    def predict(self, observations: Any, /) -> Any:
        """Returns actions, or a pair of actions and ``None``."""


#: Accepted by :class:`~cartwheel.Collector` and :func:`~cartwheel.evaluate`.
Policy: TypeAlias = Callable[..., Any] | Predictor


def as_function(policy: Policy, *, recurrent: bool) -> Callable[..., Any]:
    """Returns the function that is called for actions: the method ``predict``, or the policy.

    Args:
        policy: A callable, or an object with a method ``predict``. An object that is both, such as
            the policies of Stable-Baselines3, is called by ``predict``.
        recurrent: The function is called with row numbers and with the beginnings of episodes, too.
            Then the policy itself must be callable: ``predict`` expects states there.

    Raises:
        TypeError: It is neither, or ``recurrent`` is not a ``bool``.
    """
    recurrent = as_bool("recurrent", recurrent)
    predict: Any = None if isinstance(policy, type) else getattr(policy, "predict", None)
    if recurrent and not callable(policy):
        raise TypeError(
            "with recurrent=True, `policy` must be a function of observations, env_index and "
            f"first, got {type(policy)}. It keeps a state for each row, sets it to zero where "
            "`first` is true, and may call `predict` with it."
        )
    if callable(predict) and not recurrent:
        function: Callable[..., Any] = predict
        return function
    if not callable(policy):
        raise TypeError(
            "`policy` must be a function of the observations or have a method `predict`, got "
            f"{type(policy)}."
        )
    return policy


#: The parameter by which a policy takes masks of actions, and their name among the extras.
MASKS = "action_masks"


def mask_parameter(function: Callable[..., Any]) -> inspect.Parameter | None:
    """Returns the parameter of a policy that takes masks of actions, if it has one.

    A module of PyTorch is called with the parameters of its ``forward``.
    """
    for called in (function, getattr(function, "forward", None)):
        try:
            found = inspect.signature(called).parameters.get(MASKS) if callable(called) else None
        except (TypeError, ValueError):  # functions of C have no signature
            continue
        if found is not None and found.kind in (found.POSITIONAL_OR_KEYWORD, found.KEYWORD_ONLY):
            return found
    return None


def masked_envs(envs: Any) -> Any:
    """Returns what may show masks of actions: in wrappers of Gymnasium the environments inside."""
    return envs if hasattr(envs, MASKS) else envs.unwrapped


def mask_keywords(envs: Any, parameter: inspect.Parameter | None, rows: Any) -> dict[str, Any]:
    """Returns the keyword with the masks of actions of rows, for a policy with this parameter.

    Returns:
        Nothing for a policy without the parameter. Nothing, too, if the environments show no masks
        and the parameter has a default.

    Raises:
        TypeError: The environments are not cartwheel's, and the parameter has no default.
        ValueError: The environments show no masks, and the parameter has no default.
    """
    if parameter is None:
        return {}
    envs = masked_envs(envs)
    if not getattr(envs, "has_action_masks", False) and parameter.default is not parameter.empty:
        return {}
    if not hasattr(envs, MASKS):
        raise TypeError(
            f"the policy has the parameter `{MASKS}` without a default, and {envs} has no masks of "
            "actions: environments of cartwheel have them."
        )
    masks: NDArray[Any] = envs.action_masks(rows)
    return {MASKS: masks}


def with_masks(answer: Any, masks: dict[str, Any]) -> Any:
    """Adds masks to the result of a policy of discrete actions, as an extra."""
    if not masks:
        return answer
    actions, extras = answer if isinstance(answer, tuple) and len(answer) == 2 else (answer, None)
    if not isinstance(extras, dict | None):
        return answer  # refused later
    return actions, {**masks, **(extras or {})}


def actions_and_extras(answer: Any, space: Space[Any]) -> tuple[Any, dict[str, Any]]:
    """Divides the result of a policy into actions and extras.

    A pair whose second entry is a dictionary is actions and extras, in every action space, unless
    the pair is nested just as the space is: then it is actions. A pair whose second entry is
    ``None`` is the result of ``predict`` of a model without a recurrent state: actions. Any other
    tuple is actions in a ``Tuple`` space, and refused in other spaces.

    Returns:
        The actions, and the extras by name. Neither is checked.

    Raises:
        TypeError: The result is another tuple, such as actions and a recurrent state.
    """
    if not isinstance(answer, tuple):
        return answer, {}
    second = answer[1] if len(answer) == 2 else answer
    if second is None:
        return answer[0], {}
    if isinstance(second, dict) and not (isinstance(space, Tuple) and _is_nested_as(space, answer)):
        return answer[0], second
    if isinstance(space, Tuple):
        return answer, {}
    kinds = ", ".join(type(part).__name__ for part in answer)
    raise TypeError(
        f"the policy returned a tuple ({kinds}), which is not a batch of actions in {space}. "
        "Return actions, (actions, None), or actions and a dict of extras such as "
        '(actions, {"log_prob": …}). Recurrent states are not passed on: with recurrent=True the '
        "policy keeps them itself, one for each row."
    )


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
