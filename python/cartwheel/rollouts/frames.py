"""A rollout in the form of BBRL's workspaces: frames, and pairs of frames.

A frame holds an observation, the reward and flags of the step that led to it, and the action that
was taken on it. So ``T`` steps make ``T + 1`` frames, and the last frame of a rollout is the first
of the next rollout, as after BBRL's ``copy_n_last_steps(1)``. Source of names, meaning and dtypes:
BBRL 1.0.1, ``ParallelGymAgent``, ``_torch_type`` and ``Workspace.get_transitions``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel.choices import RewardPlace, check_choice
from cartwheel.rollouts.transitions import next_observations
from cartwheel.spaces import nested

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cartwheel.rollouts.record import Record


def running(rollout: Record) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Returns the rewards and steps of the episode so far, for each frame, ``[T + 1, N]``.

    A frame that ends an episode has the numbers of the whole episode, also in the modes that show
    the first observation of the next episode there. Frames of resting rows repeat the numbers.
    """
    num_steps, num_envs = rollout.valid.shape
    sums = np.empty((num_steps + 1, num_envs))
    steps = np.empty((num_steps + 1, num_envs), np.int64)
    sums[0], steps[0] = rollout.carry.returns, rollout.carry.lengths
    for t in range(num_steps):
        first, valid = rollout.is_first[t], rollout.valid[t]
        # A row that is not a transition either resets or rests.
        resets = ~valid & rollout.is_first[t + 1]
        for so_far, gain in ((sums, rollout.rewards[t]), (steps, 1)):
            taken = np.where(first, 0, so_far[t]) + gain
            so_far[t + 1] = np.where(valid, taken, np.where(resets, 0, so_far[t]))
    return sums, steps


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
        after["env/reward"] = np.where(over, np.float32(0), rewards[steps + 1, rows])
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
    arrays = {**dict(nested.named(rollout.actions, "action")), **rollout.checked_extras()}
    return {name: _later(array) for name, array in arrays.items()}


def _later(array: NDArray[Any]) -> NDArray[Any]:
    """Returns the array with a row of zeros at its end."""
    return np.concatenate([array, np.zeros_like(array[:1])])
