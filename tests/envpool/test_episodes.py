"""Where episodes begin and end, in every mode, with resets in between."""

from multiprocessing import TimeoutError

import numpy as np
import pytest
from gymnasium.error import AlreadyPendingCallError, ResetNeeded
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from cartwheel import EpisodeOverError, RecordEpisode, TrajectoryDataset
from cartwheel.envpool import EnvBusyError
from tests.envpool.tasks import FAILING, GATED, NESTED, TRANSCRIPT
from tests.support.environments import NestedEnv

PYTHON = "gymnasium.envs.classic_control:CartPole-v1"
STEPS = 150


def steps_shown(observations):
    """The steps since the reset, from an observation of ``NestedEnv``."""
    return observations["state"][0]


def expected_steps(observations, info, mode, over):
    shown = steps_shown(observations).copy()
    if mode == AutoresetMode.SAME_STEP:
        for row in over.nonzero()[0]:
            shown[row] = steps_shown(info["final_obs"][row])
    return shown


@pytest.mark.parametrize("executor", ["inline", "thread", "process"])
@pytest.mark.parametrize("mode", AutoresetMode)
def test_elapsed_step_counts_the_steps_of_the_episode_in_every_mode(make, mode, executor):
    envs = make(NESTED, num_envs=5, seed=1, autoreset_mode=mode, executor=executor)
    observations, info = envs.reset()
    source, ends = np.random.default_rng(0), 0
    for _ in range(STEPS):
        observations, _, terminations, truncations, info = envs.step(source.integers(3, size=5))
        over = terminations | truncations
        expected = expected_steps(observations, info, mode, over)
        assert info["elapsed_step"].tolist() == expected.tolist()
        ends += over.sum()
        if mode == AutoresetMode.DISABLED and over.any():
            observations, info = envs.reset(over.nonzero()[0])
            assert info["elapsed_step"].tolist() == [0] * over.sum()
    assert ends > 10


@pytest.mark.parametrize("mode", AutoresetMode)
def test_elapsed_step_is_right_with_partial_steps_and_resets(make, mode):
    envs = make(NESTED, num_envs=6, seed=4, autoreset_mode=mode, num_threads=2)
    envs.reset()
    source, over = np.random.default_rng(3), np.zeros(6, np.bool_)
    for _ in range(STEPS):
        ids = source.permutation(6)[: source.integers(1, 7)]
        if source.random() < 0.2 or over[ids].any():
            observations, info = envs.reset(ids)
            assert info["elapsed_step"].tolist() == [0] * len(ids)
            over[ids] = False
            continue
        actions = source.integers(3, size=len(ids))
        observations, _, terminations, truncations, info = envs.step(actions, ids)
        assert info["env_id"].tolist() == ids.tolist()
        ended = terminations | truncations
        expected = expected_steps(observations, info, mode, ended)
        assert info["elapsed_step"].tolist() == expected.tolist()
        if mode == AutoresetMode.DISABLED:
            over[ids] = ended


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_elapsed_step_is_right_in_asynchronous_mode(make, mode):
    envs = make(NESTED, num_envs=6, batch_size=2, seed=4, autoreset_mode=mode, num_threads=2)
    assert envs.is_async
    envs.async_reset()
    seen = np.zeros(6, np.int64)
    for turn in range(STEPS + 3):
        observations, _, terminations, truncations, info = envs.recv()
        ended = terminations | truncations
        expected = expected_steps(observations, info, AutoresetMode[mode.upper()], ended)
        assert info["elapsed_step"].tolist() == expected.tolist()
        seen[info["env_id"]] += 1
        if turn < STEPS:
            envs.send(np.ones(2, np.int64), info["env_id"])
    assert seen.sum() == 2 * STEPS + 6
    assert seen.all()  # the last three batches have every row, however slow a worker is


@pytest.mark.parametrize("mode", AutoresetMode)
def test_results_equal_those_of_gymnasium_with_the_same_seed(make, mode):
    envs = make(NESTED, num_envs=4, seed=11, autoreset_mode=mode)
    oracle = SyncVectorEnv([NestedEnv] * 4, autoreset_mode=mode)
    got, expected = envs.reset(), oracle.reset(seed=11)
    source = np.random.default_rng(8)
    for _ in range(STEPS):
        np.testing.assert_array_equal(got[0]["walk"], expected[0]["walk"])
        np.testing.assert_array_equal(steps_shown(got[0]), steps_shown(expected[0]))
        actions = source.integers(3, size=4)
        got, expected = envs.step(actions), oracle.step(actions)
        np.testing.assert_array_equal(got[1], expected[1].astype(np.float32))
        np.testing.assert_array_equal(got[2:4], expected[2:4])
        over = got[2] | got[3]
        if mode == AutoresetMode.DISABLED and over.any():
            got = envs.reset(options={"reset_mask": over})
            expected = oracle.reset(options={"reset_mask": over})


def test_the_first_step_resets_environments_that_were_never_reset(make):
    envs = make(TRANSCRIPT, num_envs=4, length=9)
    envs.reset([1, 2])
    observations, rewards, _, _, info = envs.step(np.array([5, 6, 7, 8]))
    assert observations.tolist() == [[0], [1], [1], [0]]
    assert rewards.tolist() == [0, 6, 7, 0]
    assert info["env_id"].tolist() == [0, 1, 2, 3]
    assert info["elapsed_step"].tolist() == [0, 1, 1, 0]
    assert envs._envs.get_attr("episodes") == (1, 1, 1, 1)


def test_a_first_step_keeps_the_order_of_the_request(make):
    envs = make(TRANSCRIPT, num_envs=4, length=9)
    envs.reset([1, 2])
    _, rewards, _, _, info = envs.step(np.array([5, 6, 7]), [3, 2, 0])
    assert info["env_id"].tolist() == [3, 2, 0]
    assert rewards.tolist() == [0, 6, 0]


@pytest.mark.parametrize("task_id", ["CartPole-v1", TRANSCRIPT])
def test_a_first_step_in_asynchronous_mode_resets(make, task_id):
    envs = make(task_id, num_envs=4, batch_size=2, **({"length": 9} if "/" in task_id else {}))
    envs.send(np.array([1, 1, 1]), [3, 0, 1])
    received = [envs.recv()[4] for _ in range(2)]
    assert sorted(np.concatenate([info["env_id"] for info in received])) == [0, 1, 3]
    assert not np.concatenate([info["elapsed_step"] for info in received]).any()


@pytest.mark.parametrize("task_id", ["CartPole-v1", PYTHON])
@pytest.mark.parametrize("on_done", ["raise", "freeze"])
def test_without_autoreset_a_first_step_is_refused(make, task_id, on_done):
    envs = make(task_id, num_envs=2, autoreset_mode="disabled", on_done=on_done)
    envs.reset([0])
    with pytest.raises(ResetNeeded, match=r"environments \[1\] .* were never reset") as refused:
        envs.step(np.array([1, 1]))
    assert "over" not in str(refused.value)
    assert envs.step(np.array([1]), [0])[4]["elapsed_step"].tolist() == [1]


@pytest.mark.parametrize("task_id", ["CartPole-v1", PYTHON])
def test_without_autoreset_a_row_that_is_over_raises_or_freezes(make, task_id):
    keywords = {"num_envs": 2, "seed": 3, "max_episode_steps": 2, "autoreset_mode": "disabled"}
    envs, again = (make(task_id, **keywords, on_done=how) for how in ("raise", "freeze"))
    for pool in (envs, again):
        pool.reset()
        pool.step(np.array([1, 0]))
        last = pool.step(np.array([1, 0]))
    with pytest.raises(EpisodeOverError, match=r"rows \[0, 1\] are over"):
        envs.step(np.array([1, 0]))
    observations, rewards, terminations, truncations, info = again.step(np.array([0, 1]))
    np.testing.assert_array_equal(observations, last[0])
    assert rewards.tolist() == [0, 0]
    assert not terminations.any()
    assert truncations.all()
    assert info["elapsed_step"].tolist() == [2, 2]


def test_an_explicit_reset_ends_a_pending_autoreset(make):
    envs = make(TRANSCRIPT, num_envs=2, length=2)
    envs.reset()
    envs.step(np.array([1, 1]))
    assert envs.step(np.array([1, 1]))[2].all()
    envs.reset([1])
    info = envs.step(np.array([1, 1]))[4]
    assert info["elapsed_step"].tolist() == [0, 1]


def test_a_reset_mask_returns_the_full_batch(make):
    envs = make(TRANSCRIPT, num_envs=3, length=9)
    envs.reset()
    envs.step(np.array([1, 1, 1]))
    mask = np.array([False, True, False])
    observations, info = envs.reset(options={"reset_mask": mask})
    assert observations.tolist() == [[1], [0], [1]]
    assert info["elapsed_step"].tolist() == [1, 0, 1]
    assert info["env_id"].tolist() == [0, 1, 2]
    assert envs.step(np.array([1, 1, 1]))[4]["elapsed_step"].tolist() == [2, 1, 2]


def test_seeds_of_a_reset_are_honored(make):
    envs = make("CartPole-v1", num_envs=3)
    first = envs.reset(seed=5)[0]
    np.testing.assert_array_equal(envs.reset(seed=[5, 6, 7])[0], first)
    np.testing.assert_array_equal(envs.reset([2, 0], seed=5)[0], first[[2, 0]])
    assert (envs.reset()[0] != first).any()


def test_rows_lost_by_an_exception_are_reset(make):
    envs = make(FAILING, num_envs=4, length=9, num_threads=2)
    envs.reset()
    envs.step(np.array([1, 1, 1, 1]))
    envs.send(np.array([1, 9]), [0, 1])
    with pytest.raises(RuntimeError, match="nine"):
        envs.recv()
    observations, rewards, _, _, info = envs.step(np.array([2, 3, 4, 5]))
    assert observations.tolist() == [[0], [0], [2], [2]]
    assert rewards.tolist() == [0, 0, 4, 5]
    assert info["elapsed_step"].tolist() == [0, 0, 2, 2]


def test_a_time_out_loses_nothing(make, gates):
    envs = make(GATED, num_envs=2, num_threads=2, gates=gates)
    envs.reset()
    envs.send(np.array([1, 0]))
    with pytest.raises(TimeoutError):
        envs.recv(timeout=0.01)
    with gates.opened_soon(1):
        assert envs.recv()[4]["elapsed_step"].tolist() == [1, 1]
    envs.send(np.array([2]), [1])
    with pytest.raises(TimeoutError):
        envs.recv(timeout=0.01)
    gates.open(2)
    assert envs.recv()[4]["elapsed_step"].tolist() == [2]


@pytest.mark.parametrize("executor", ["inline", "process"])
@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_a_masked_reset_returns_the_elapsed_steps_of_its_observations(make, mode, executor):
    envs = make(NESTED, num_envs=7, seed=1, autoreset_mode=mode, executor=executor)
    envs.reset()
    source, ended = np.random.default_rng(0), 0
    for _ in range(STEPS):
        *_, terminations, truncations, _ = envs.step(source.integers(3, size=7))
        mask = source.random(7) < 0.3
        ended += (~mask & (terminations | truncations)).sum()
        if mask.any():
            observations, info = envs.reset(options={"reset_mask": mask})
            assert info["elapsed_step"].tolist() == steps_shown(observations).tolist()
    assert ended > 10


def test_a_reset_after_a_time_out_loses_nothing_of_the_other_environments(make, gates):
    envs = make(GATED, num_envs=3, num_threads=3, gates=gates)
    envs.reset()
    envs.send(np.array([1, 0]), [0, 1])
    with pytest.raises(TimeoutError):
        envs.recv(timeout=0.01)
    with pytest.raises(EnvBusyError) as raised:
        envs.reset([2])  # a reset cannot return the rewards of the busy rows
    assert raised.value.env_ids == [0, 1]
    envs.async_reset([2])
    with gates.opened_soon(1):
        _, rewards, _, _, info = envs.recv()
    assert rewards.tolist() == [1, 0, 0]
    assert info["env_id"].tolist() == [0, 1, 2]
    assert info["elapsed_step"].tolist() == [1, 1, 0]
    info = envs.step(np.zeros(3, np.int64))[4]
    assert info["elapsed_step"].tolist() == [2, 2, 1]


def test_a_state_that_a_busy_pool_refuses_changes_no_count(make):
    envs = make("CartPole-v1", num_envs=3)
    envs.reset()
    envs.step(np.zeros(3, int))
    state = envs.state_dict()
    envs.async_reset()
    with pytest.raises(AlreadyPendingCallError):
        envs.load_state_dict(state)
    assert envs.recv()[-1]["elapsed_step"].tolist() == [0, 0, 0]


@pytest.mark.parametrize("env_type", ["gymnasium", "gym"])
def test_a_recording_of_a_pool_has_its_task_and_the_steps_that_it_showed(make, tmp_path, env_type):
    keywords = {"env_type": env_type, "num_envs": 2, "seed": 3, "max_episode_steps": 5}
    shown = make("CartPole-v1", **keywords)
    seen = [shown.reset()[0]]
    with RecordEpisode(make("CartPole-v1", **keywords), tmp_path, trajectory_name="pool") as envs:
        envs.reset()
        for _ in range(11):  # an episode, a reset, and another one
            actions = np.array([0, 1], np.int32)
            envs.step(actions)
            seen.append(shown.step(actions)[0])
    dataset = TrajectoryDataset(tmp_path / "pool.h5")
    assert dataset.env_info["env_id"] == "CartPole-v1"
    assert [episode["elapsed_steps"] for episode in dataset.episodes] == [5] * 4
    rows = [episode["env_index"] for episode in dataset.episodes]
    expected = [
        np.stack([step[row] for step in seen[first : first + 5]])
        for row, first in zip(rows, [0, 0, 6, 6], strict=True)
    ]
    np.testing.assert_array_equal(dataset.obs, np.concatenate(expected))
