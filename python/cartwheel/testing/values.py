"""Checks ``spaces`` and ``infos``: the values that steps return.

Observations lie in their spaces, rewards are finite, flags are bool, and a key of the infos keeps
its type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple
from gymnasium.vector import AutoresetMode

from cartwheel._internal import nested
from cartwheel._internal.rewards import reward_shape_of, reward_space_of
from cartwheel.testing.kit import type_of
from cartwheel.testing.report import Unchecked
from cartwheel.testing.traces import final_at, moment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gymnasium.spaces import Space

    from cartwheel.testing.kit import Kit
    from cartwheel.testing.player import Batch

_REMEDY = (
    "Return what `observation_space` promises, with its dtype and shape, or declare a wider space."
)


def check_spaces(kit: Kit) -> str:
    """Observations of resets, steps and ends of episodes have the values of their spaces."""
    _check_single(kit)
    inspector = _Inspector(kit, kit.envs)
    player = kit.player(kit.envs, inspect=inspector)
    player.reset(seed=kit.seed)
    player.run(kit.steps)
    text = f"{kit.envs.num_envs} rows × {kit.steps} steps"
    try:
        with kit.made(3, mode=AutoresetMode.SAME_STEP, limit=kit.short) as envs:
            inspector = _Inspector(kit, envs)
            player = kit.player(envs, inspect=inspector)
            player.reset(seed=kit.seed)
            player.run(kit.steps)
    except Unchecked:
        return text
    return f"{text}, {inspector.finals} final observations"


def _check_single(kit: Kit) -> None:
    """Plays one Python environment without a vector environment, which would convert values."""
    env = kit.variants.make_single()
    if env is None:
        return
    where = "in `reset`"
    try:
        observation, info = _parts(kit, "reset", env.reset(seed=kit.seed), where)
        for step in range(1, kit.steps + 1):
            _check_value(kit, env.observation_space, observation, where)
            if not isinstance(info, dict):
                kit.fail(f"the info {where} is {info!r}", "Return a dictionary.")
            env.action_space.seed(step)
            where = f"in step {step}"
            result = _parts(kit, "step", env.step(env.action_space.sample()), where)
            observation, reward, terminated, truncated, info = result
            is_number = isinstance(reward, int | float | np.number | np.ndarray)
            if not is_number and reward_space_of(env) is None:
                kit.fail(f"the reward {where} is {reward!r}", "Return a float.")
            for name, flag in (("terminated", terminated), ("truncated", truncated)):
                if not isinstance(flag, bool | np.bool_):
                    kit.fail(f"{name} {where} is {flag!r}", "Return a bool: `bool(condition)`.")
            if terminated or truncated:
                _check_value(kit, env.observation_space, observation, where)
                where = f"at the reset after step {step}"
                observation, info = _parts(kit, "reset", env.reset(), where)
    finally:
        env.close()


#: What the methods of an environment return.
_RESULTS = {
    "reset": ("observation", "info"),
    "step": ("observation", "reward", "terminated", "truncated", "info"),
}


def _parts(kit: Kit, method: str, result: Any, where: str) -> Any:
    """Fails if a method did not return a tuple of its results."""
    names = _RESULTS[method]
    is_sequence = isinstance(result, tuple | list)
    if is_sequence and len(result) == len(names):
        return result
    found = f"{len(result)} values" if is_sequence else repr(result)
    remedy = f"Return ({', '.join(names)})."
    if method == "step" and is_sequence and len(result) == 4:
        remedy += " An environment for Gym 0.25 or older has one flag, `done`, instead of two."
    return kit.fail(f"`{method}` returned {found} {where}", remedy)


def _check_value(
    kit: Kit, space: Space[Any], value: Any, where: str, *, bounded: bool = True
) -> None:
    """Fails if the observation of a single environment does not fit its space exactly.

    Without ``bounded``, the space is that of another row, which may have other bounds.
    """
    for path, leaf, found in leaves(space, value, "observation"):
        if found is MISSING:
            kit.fail(f"{path} {where} is missing", _REMEDY)
        if isinstance(leaf, Box | MultiDiscrete | MultiBinary):
            if not isinstance(found, np.ndarray | np.generic):
                kind = type(found).__name__
                kit.fail(f"{path} {where} is {found!r} ({kind}), not an array", _REMEDY)
            found = np.asarray(found)
            if (found.dtype, found.shape) != (leaf.dtype, leaf.shape):
                kit.fail(
                    f"{path} {where} is {found.dtype} of shape {found.shape}, but its space is "
                    f"{leaf.dtype} of shape {leaf.shape}",
                    _REMEDY,
                )
            if bounded:
                _check_bounds(kit, path, found[None], leaf, where)
        elif not leaf.contains(found):
            kit.fail(f"{path} {where} is {found!r}, outside of {leaf}", _REMEDY)


#: Stands for a part of an observation that is not there.
MISSING = object()


def leaves(space: Space[Any], value: Any, path: str) -> list[tuple[str, Any, Any]]:
    """The key path, the space and the value of every part of an observation."""
    if isinstance(space, Dict):
        known = value if isinstance(value, dict) else {}
        parts: list[tuple[Any, Space[Any], Any]] = [
            (key, part, known.get(key, MISSING)) for key, part in space.spaces.items()
        ]
    elif isinstance(space, Tuple):
        given = value if isinstance(value, tuple | list) else ()
        padded = (*given, *[MISSING] * (len(space.spaces) - len(given)))
        parts = [(at, part, padded[at]) for at, part in enumerate(space.spaces)]
    else:
        return [(path, space, value)]
    return [leaf for key, part, at in parts for leaf in leaves(part, at, f"{path}[{key!r}]")]


def _check_bounds(kit: Kit, path: str, batch: Any, leaf: Any, where: str) -> None:
    """Fails if values of a batch ``[rows, *shape]`` are outside of the space of one row."""
    low: Any
    high: Any
    if isinstance(leaf, Box):
        low, high = leaf.low, leaf.high
    elif isinstance(leaf, MultiDiscrete):
        low, high = leaf.start, leaf.start + leaf.nvec - 1
    elif isinstance(leaf, Discrete):
        low, high = leaf.start, leaf.start + leaf.n - 1
    else:
        low, high = 0, 1
    with np.errstate(invalid="ignore"):
        outside = ~((batch >= low) & (batch <= high))  # NaN is outside, too
    if outside.any():
        row, *index = (int(place) for place in np.argwhere(outside)[0])
        bounds = [np.broadcast_to(bound, batch.shape[1:])[tuple(index)] for bound in (low, high)]
        element = f"[{', '.join(map(str, index))}]" if index else ""
        of_row = "" if len(batch) == 1 else f" of row {row}"
        kit.fail(
            f"{path}{element}{of_row} {where} is {batch[(row, *index)]}, outside of "
            f"[{bounds[0]}, {bounds[1]}]",
            _REMEDY,
        )


class _Inspector:
    """Checks every batch of a player, all rows of it.

    Attributes:
        finals: The final observations that were checked.
    """

    def __init__(self, kit: Kit, envs: Any) -> None:
        self._kit = kit
        self._envs = envs
        self.finals = 0

    def __call__(self, call: int, result: Batch) -> None:
        observations, rewards, terminations, truncations, infos = result
        where = "at the reset with the seed" if call == 0 else f"in call {call} after the reset"
        self._check_observations(observations, where)
        rows = (self._envs.num_envs,)
        shapes = {"rewards": (*rows, *reward_shape_of(self._envs)), "terminations": rows}
        shapes["truncations"] = rows
        for (name, shape), array in zip(shapes.items(), result[1:4], strict=True):
            kind = "f" if name == "rewards" else "b"
            if (array.dtype.kind, array.shape) != (kind, shape):
                self._kit.fail(
                    f"{name} {where} are {array.dtype} of shape {array.shape}",
                    f"Return {'floats' if kind == 'f' else 'bool'} of shape {shape}.",
                )
        wrong, *_ = np.nonzero(~np.isfinite(rewards))
        if wrong.size:
            self._kit.fail(
                f"the reward of row {wrong[0]} {where} is {rewards[wrong[0]]}",
                "Rewards must be finite: look for a division by zero or a logarithm of zero.",
            )
        finals: Any = infos.get("final_obs")
        for row in () if finals is None else np.flatnonzero(terminations | truncations).tolist():
            space = self._envs.single_observation_space
            _check_value(
                self._kit,
                space,
                final_at(finals, row),
                f"of row {row} {where}, in `final_obs`,",
                bounded=self._have_same_bounds(),
            )
            self.finals += 1

    def _have_same_bounds(self) -> bool:
        """Whether the bounds of the single space are those of each row."""
        return bool(getattr(self._envs, "observation_mode", "same") == "same")

    def _check_observations(self, observations: Any, where: str) -> None:
        space = self._envs.single_observation_space
        for path, leaf, batch in leaves(space, observations, "observation"):
            if batch is MISSING:
                self._kit.fail(f"{path} {where} is missing", _REMEDY)
            if not isinstance(leaf, nested.ARRAY_SPACES):
                for row in range(self._envs.num_envs):
                    if not leaf.contains(batch[row]):
                        self._kit.fail(
                            f"{path} of row {row} {where} is {batch[row]!r}, outside of {leaf}",
                            _REMEDY,
                        )
                continue
            shape = (self._envs.num_envs, *(leaf.shape or ()))
            if (batch.dtype, batch.shape) != (leaf.dtype, shape):
                self._kit.fail(
                    f"{path} {where} is {batch.dtype} of shape {batch.shape}, but its space is "
                    f"{leaf.dtype} of shape {shape}",
                    _REMEDY,
                )
            if self._have_same_bounds():
                _check_bounds(self._kit, path, batch, leaf, where)


def check_infos(kit: Kit) -> str:
    """A key has one type in all steps, and one at all resets."""
    seen: dict[tuple[str, bool], tuple[str, str]] = {}
    for row in range(min(kit.envs.num_envs, 3)):
        trace = kit.singles(ending=True).trace(row)
        for number, event in enumerate(trace):
            when = f"{moment(trace, number)} of row {row}"
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
