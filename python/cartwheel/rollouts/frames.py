"""The frames of BBRL: a rollout as the variables of a workspace.

A frame holds an observation, the reward and flags of the step that led to it, and the action that
was taken on it. So ``T`` steps make ``T + 1`` frames, and the last frame of a rollout is the first
of the next rollout, as after BBRL's ``copy_n_last_steps(1)``. Source of names, meaning and dtypes:
BBRL 1.0.1, ``ParallelGymAgent``, ``_torch_type`` and ``Workspace.get_transitions``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel._internal import nested
from cartwheel._internal.literals import RewardPlace, check_choice
from cartwheel.rollouts.views import next_observations, running

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cartwheel.rollouts.record import Record


def frames(rollout: Record, reward_at: str) -> dict[str, NDArray[Any]]:
    """See :meth:`Rollout.to_workspace`."""
    check_choice("reward_at", reward_at, RewardPlace)
    carry = rollout.carry
    sums, steps = running(rollout)
    rewards, terminated, truncated = (
        np.concatenate([before[None], rows])
        for before, rows in (
            (carry.rewards, rollout.rewards),
            (carry.terminated, rollout.terminated),
            (carry.truncated, rollout.truncated),
        )
    )
    if reward_at == "t":
        rewards = _later(rollout.rewards)
    of_envs = {
        **dict(nested.named(rollout.observations, "env/env_obs")),
        "env/reward": rewards,
        "env/terminated": terminated,
        "env/truncated": truncated,
        "env/done": terminated | truncated,
        "env/cumulated_reward": sums,
        "env/timestep": steps,
    }
    return {**{name: _single(array) for name, array in of_envs.items()}, **_acted(rollout)}


def pairs(rollout: Record, reward_at: str) -> dict[str, NDArray[Any]]:
    """See :meth:`Rollout.workspace_transitions`."""
    check_choice("reward_at", reward_at, RewardPlace)
    index = steps, rows = np.nonzero(rollout.valid)
    whole = frames(rollout, "t+1")
    first = rollout.is_first[index]
    names = [name for name in whole if not name.startswith("env/env_obs")]
    before = {name: whole[name][index] for name in names}
    after = {name: whole[name][steps + 1, rows] for name in names}
    # In SAME_STEP and DISABLED, one frame ends an episode and begins the next one. In a pair, the
    # frame before a step must only have the begin of its episode.
    for name in names:
        if name.startswith("env/"):
            before[name][first] = 0
    if reward_at == "t":
        over = after["env/done"]
        rewards = _single(_later(rollout.rewards))
        before["env/reward"] = rewards[index]
        after["env/reward"] = rewards[steps + 1, rows]
        after["env/reward"][over] = 0
    for tree, pair in (
        (nested.at(rollout.observations, index), before),
        (next_observations(rollout, steps, rows), after),
    ):
        named = nested.named(tree, "env/env_obs")
        pair.update({name: _single(array) for name, array in named})
    return {name: np.stack([before[name], after[name]]) for name in whole}


def _single(array: NDArray[Any]) -> NDArray[Any]:
    """Converts floats to ``float32``, as BBRL does."""
    return array.astype(np.float32, copy=False) if array.dtype.kind == "f" else array


def _acted(rollout: Record) -> dict[str, NDArray[Any]]:
    """Returns actions and extras; the last frame has no action yet, so it has zeros."""
    arrays = {**dict(nested.named(rollout.actions, "action")), **rollout._checked_extras()}
    return {name: _later(array) for name, array in arrays.items()}


def _later(array: NDArray[Any]) -> NDArray[Any]:
    """Returns the array with a row of zeros at its end."""
    return np.concatenate([array, np.zeros_like(array[:1])])
