"""Rollouts as BBRL workspaces: the same frames as runs of BBRL, and the same transitions.

The tables are from ``ParallelGymAgent`` of BBRL 1.0.1: environment 0 is truncated after 2
steps, environment 1 terminates after 4, rewards are 1, observations ``100 * episode + step``.
"""

import itertools

import numpy as np
import pytest

import cartwheel
from tests.support.collecting import collector_of
from tests.support.comparison import assert_identical
from tests.support.environments import NestedEnv, TranscriptEnv
from tests.support.executors import INLINE, PROCESS
from tests.support.simulated_rollouts import FROZEN, MODES

AUTORESET_OFF = {
    "env/env_obs": ([0, 1, 2, 2, 2], [0, 1, 2, 3, 4]),
    "env/reward": ([0, 1, 1, 0, 0], [0, 1, 1, 1, 1]),
    "env/done": ([0, 0, 1, 1, 1], [0, 0, 0, 0, 1]),
    "env/terminated": ([0, 0, 0, 0, 0], [0, 0, 0, 0, 1]),
    "env/truncated": ([0, 0, 1, 1, 1], [0, 0, 0, 0, 0]),
    "env/timestep": ([0, 1, 2, 2, 2], [0, 1, 2, 3, 4]),
    "env/cumulated_reward": ([0, 1, 2, 2, 2], [0, 1, 2, 3, 4]),
}
AUTORESET_ON = {
    "env/env_obs": ([0, 1, 2, 100, 101, 102, 200], [0, 1, 2, 3, 4, 100, 101]),
    "env/reward": ([0, 1, 1, 0, 1, 1, 0], [0, 1, 1, 1, 1, 0, 1]),
    "env/done": ([0, 0, 1, 0, 0, 1, 0], [0, 0, 0, 0, 1, 0, 0]),
    "env/terminated": ([0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 1, 0, 0]),
    "env/truncated": ([0, 0, 1, 0, 0, 1, 0], [0, 0, 0, 0, 0, 0, 0]),
    "env/timestep": ([0, 1, 2, 0, 1, 2, 0], [0, 1, 2, 3, 4, 0, 1]),
    "env/cumulated_reward": ([0, 1, 2, 0, 1, 2, 0], [0, 1, 2, 3, 4, 0, 1]),
}
# `include_last_state=False`. BBRL itself counts the time steps wrongly after the first episode.
WITHOUT_LAST_STATE = {
    "env/env_obs": ([0, 1, 100, 101, 200, 201], [0, 1, 2, 3, 100, 101]),
    "env/reward": ([0, 1, 1, 1, 1, 1], [0, 1, 1, 1, 1, 1]),
    "env/done": ([0, 0, 1, 0, 1, 0], [0, 0, 0, 0, 1, 0]),
    "env/timestep": ([0, 1, 2, 1, 2, 1], [0, 1, 2, 3, 4, 1]),
}


class EpisodeEnv(TranscriptEnv):
    """The observation is ``100 * episode + step``."""

    def observe(self):
        return np.array([100 * (self.episodes - 1) + self.t], np.float32)


def make(build, **keywords):
    first = [lambda: EpisodeEnv(2, terminates=False, truncates=True)]
    return build([*first, lambda: EpisodeEnv(4)], **keywords)


def ones(observations):
    return np.ones(len(observations), np.int64), {"saw": observations[:, 0].copy()}


#: The dtypes of BBRL, whose ``_torch_type`` casts every float of an environment to ``float32``.
DTYPES = {
    "env/reward": np.float32,
    "env/done": np.bool_,
    "env/terminated": np.bool_,
    "env/truncated": np.bool_,
    "env/timestep": np.int64,
    "env/cumulated_reward": np.float32,
}


def assert_dtypes(workspace):
    for name, dtype in DTYPES.items():
        assert_identical(workspace[name].dtype, np.dtype(dtype), name)
    of_envs = {name: array.dtype for name, array in workspace.items() if name.startswith("env/")}
    assert not [name for name, dtype in of_envs.items() if dtype.kind == "f" and dtype != "float32"]


def single(array):
    return array.astype(np.float32)


def assert_frames(workspace, table):
    assert_dtypes(workspace)
    for name, columns in table.items():
        array = workspace[name].reshape(workspace[name].shape[:2])
        assert_identical(array.T.astype(int).tolist(), [list(column) for column in columns])


@pytest.mark.parametrize("build", [INLINE, PROCESS], ids=str)
@pytest.mark.parametrize("mode", ["next_step", "same_step", "disabled"])
def test_autoreset_off_with_a_stop_variable(mode, build):
    envs = make(build, autoreset_mode=mode, on_done="freeze")
    collector = cartwheel.Collector(envs, ones, until="all_done")
    workspace = collector.collect().to_workspace()
    assert_frames(workspace, AUTORESET_OFF)
    assert_identical(workspace["action"].dtype, np.dtype(np.int64))
    assert {len(array) for array in workspace.values()} == {5}
    again = collector.collect().to_workspace()
    assert_identical(again["env/timestep"], workspace["env/timestep"])
    assert (again["env/env_obs"][0] >= 100).all()
    envs.close()


@pytest.mark.parametrize("build", [INLINE, PROCESS], ids=str)
def test_autoreset_on(build):
    envs = make(build, autoreset_mode="next_step")
    workspace = cartwheel.Collector(envs, ones, 6).collect().to_workspace()
    assert_frames(workspace, AUTORESET_ON)
    envs.close()


@pytest.mark.parametrize("mode", ["same_step", "disabled"])
def test_autoreset_on_without_the_last_state(mode):
    envs = make(INLINE, autoreset_mode=mode)
    rollout = cartwheel.Collector(envs, ones, 5).collect()
    assert_frames(rollout.to_workspace(), WITHOUT_LAST_STATE)
    # The terminal observation that BBRL loses there is in the transitions.
    before, after = rollout.workspace_transitions()["env/env_obs"][..., 0].astype(int)
    steps = list(zip(before.tolist(), after.tolist(), strict=True))
    assert steps == [
        (0, 0 + 1),
        (0, 1),
        (1, 2),
        (1, 2),
        (100, 101),
        (2, 3),
        (101, 102),
        (3, 4),
        (200, 201),
        (100, 101),
    ]
    envs.close()


@pytest.mark.parametrize("epochs", [(1, 1, 4), (2, 3, 1), (3, 3), (4, 2)])
def test_epochs_are_joined_as_by_copying_the_last_step(epochs):
    """BBRL's ``copy_n_last_steps(1)``: an epoch begins with the last frame of the previous one."""
    frames = []
    envs = make(INLINE, autoreset_mode="next_step")
    collector = cartwheel.Collector(envs, ones, epochs[0])
    for steps in epochs:
        collector.num_steps = steps
        frames.append(collector.collect().to_workspace())
    for one, two in itertools.pairwise(frames):
        for name in AUTORESET_ON:
            assert_identical(one[name][-1], two[name][0])
    joined = {
        name: np.concatenate([frames[0][name], *(each[name][1:] for each in frames[1:])])
        for name in AUTORESET_ON
    }
    assert_frames(joined, AUTORESET_ON)
    envs.close()


@pytest.mark.parametrize("n", [1, 3, 6])
@pytest.mark.parametrize("mode", MODES)
def test_the_tail_has_the_last_frames_of_the_workspace(mode, n):
    """BBRL's ``copy_n_last_steps(n + 1)``: ``n`` steps have ``n + 1`` frames."""
    with collector_of(mode, None if mode == FROZEN else 6) as collector:
        rollout = collector.collect()
        n = min(n, rollout.num_steps)
        whole = rollout.to_workspace()
        for name, array in rollout.tail(n).to_workspace().items():
            assert_identical(array, whole[name][-(n + 1) :])


def get_transitions(workspace):
    """As in BBRL: every pair of frames whose first frame is not over, time-major."""
    keep = ~workspace["env/done"][:-1]
    return {
        name: np.stack([array[:-1][keep], array[1:][keep]]) for name, array in workspace.items()
    }


@pytest.mark.parametrize("reward_at", ["t+1", "t"])
@pytest.mark.parametrize("mode", ["NEXT_STEP", FROZEN])
def test_transitions_equal_those_of_get_transitions(mode, reward_at):
    with collector_of(mode, None if mode == FROZEN else 13) as collector:
        for _ in range(3):
            rollout = collector.collect()
            wanted = get_transitions(rollout.to_workspace(reward_at))
            found = rollout.workspace_transitions(reward_at)
            assert_identical(found, wanted)
            rewards = found["env/reward"][int(reward_at == "t+1")]
            assert_identical(rewards, single(rollout.transitions().rewards))


@pytest.mark.parametrize("mode", MODES)
def test_transitions_are_right_in_every_mode(mode):
    """In every mode they equal what :func:`get_transitions` gives for ``NEXT_STEP`` frames."""
    with collector_of(mode, None if mode == FROZEN else 13) as collector:
        for _ in range(3):
            rollout = collector.collect()
            pairs, rows = rollout.workspace_transitions(), rollout.transitions()
            assert_dtypes(pairs)
            assert_identical(pairs["env/env_obs"][0], single(rows.observations))
            assert_identical(pairs["env/env_obs"][1], single(rows.next_observations))
            assert_identical(pairs["action"][0], rows.actions)
            assert_identical(pairs["half"][0], rows.extras["half"])
            assert_identical(pairs["env/reward"][1], single(rows.rewards))
            assert_identical(pairs["env/terminated"][1], rows.terminated)
            assert_identical(pairs["env/truncated"][1], rows.truncated)
            assert not pairs["env/done"][0].any()
            elapsed = pairs["env/timestep"]
            assert_identical(elapsed[1], elapsed[0] + 1)
            begins = rollout.is_first[rows.steps, rows.env_index]
            assert_identical(elapsed[0] == 0, begins)
            gained = pairs["env/cumulated_reward"][1] - pairs["env/cumulated_reward"][0]
            np.testing.assert_allclose(gained, rows.rewards, atol=1e-5)
            assert not pairs["env/reward"][0][begins].any()


def test_nested_observations_and_rewards_at_t_have_the_names_of_bbrl():
    envs = INLINE([NestedEnv] * 2)
    rollout = cartwheel.Collector(envs, lambda _: np.ones(2, np.int64), 4).collect()
    workspace = rollout.to_workspace(reward_at="t")
    assert_dtypes(workspace)
    assert_identical(workspace["env/env_obs/walk"], single(rollout.observations["walk"]))
    assert_identical(workspace["env/env_obs/pixels"], rollout.observations["pixels"])
    clock = rollout.observations["state"][2]["clock"]
    assert_identical(workspace["env/env_obs/state/2/clock"], clock)
    assert_identical(workspace["env/reward"][:-1], single(rollout.rewards))
    assert_identical(workspace["env/reward"][-1], np.zeros(2, np.float32))
    assert_identical(workspace["action"], np.array([[1, 1]] * 4 + [[0, 0]]))
    assert_dtypes(rollout.workspace_transitions(reward_at="t"))
    envs.close()


def test_rewards_are_summed_in_double_precision_and_then_cast():
    envs = INLINE([lambda: EpisodeEnv(9)])
    rewards = iter([2**24, 1, 1, -(2**24), 0, 0])

    def act(_):
        return np.array([next(rewards)])  # the reward is the action

    workspace = cartwheel.Collector(envs, act, 6).collect().to_workspace()
    sums = [0, 2**24, 2**24 + 1, 2**24 + 2, 2, 2, 2]
    assert_identical(workspace["env/cumulated_reward"][:, 0], np.array(sums, np.float32))
    envs.close()
