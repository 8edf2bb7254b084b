"""Environments that want it get float actions in the dtype that the caller passed."""

import gymnasium as gym
import numpy as np
import pytest

import cartwheel

EFFORT = "test_plugin/Effort-v0"
ROWS = 5
F16, F32, F64 = np.float16, np.float32, np.float64
EXECUTORS = pytest.mark.parametrize(
    "keywords", [{"executor": "inline"}, {"num_workers": 2}], ids=str
)

pytestmark = pytest.mark.usefixtures("plugin")


@pytest.fixture
def make_envs(closes):
    """Makes rows of the environment, which are closed after the test."""

    def make_envs(**keywords):
        return closes(cartwheel.NativeVectorEnv(EFFORT, ROWS, **keywords))

    return make_envs


def actions(dtype, seed=0, rows=ROWS):
    return np.random.default_rng(seed).uniform(-1, 1, (rows, 3)).astype(dtype)


def efforts(batch):
    """The reward of each row, computed by NumPy in the dtype of the batch."""
    return [float(np.sum(np.square(row))) for row in batch]


def check(batch, observations, rewards):
    assert rewards.tolist() == efforts(batch)
    assert observations.tolist() == [batch.dtype.itemsize] * len(batch)


@EXECUTORS
@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_a_step_has_the_dtype_of_its_batch_whatever_the_one_before_had(make_envs, keywords, mode):
    envs = make_envs(autoreset_mode=mode, max_episode_steps=1000, **keywords)
    envs.reset(seed=0)
    for step, dtype in enumerate([F32, F64, F64, F32, F64, F32]):
        batch = actions(dtype, step)
        observations, rewards, *_ = envs.step(batch)
        check(batch, observations, rewards)
    assert efforts(actions(F32)) != efforts(actions(F64))


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        (actions(F16), actions(F16).astype(F32)),
        (np.ones((ROWS, 3), np.int64), np.ones((ROWS, 3), F32)),
        (actions(F64).tolist(), actions(F64)),
        (list(actions(F32)), actions(F32)),
        (actions(F64).astype(">f8"), actions(F64)),
        (np.asfortranarray(actions(F64)), actions(F64)),
        (actions(F64, rows=2 * ROWS)[::2], actions(F64, rows=2 * ROWS)[::2]),
    ],
    ids=["float16", "integers", "lists", "rows", "other byte order", "columns", "every other row"],
)
def test_other_arrays_count_as_the_floats_that_they_are(make_envs, given, seen):
    envs = make_envs(executor="inline")
    envs.reset(seed=0)
    observations, rewards, *_ = envs.step(given)
    check(seen, observations, rewards)


def test_other_kinds_and_what_is_no_number_are_refused(make_envs):
    envs = make_envs(executor="inline")
    envs.reset(seed=0)
    with pytest.raises(TypeError, match="cannot cast actions of dtype complex128"):
        envs.step(actions(np.complex128))
    wrong = actions(F64)
    wrong[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"^action nan of row 3 is not in Box\(\[3\], float32\)$"):
        envs.step(wrong)
    batch = actions(F64)
    observations, rewards, *_ = envs.step(batch)
    check(batch, observations, rewards)


def test_sampled_actions_are_float32_and_a_single_environment_keeps_the_dtype(make_envs):
    envs = make_envs(executor="inline")
    envs.reset(seed=0)
    batch = envs.action_space.sample()
    observations, rewards, *_ = envs.step(batch)
    check(batch, observations, rewards)
    env = gym.make(EFFORT)
    env.reset(seed=0)
    for dtype in (F32, F64):
        (action,) = actions(dtype, rows=1)
        observation, reward, *_ = env.step(action)
        assert (observation, reward) == (np.dtype(dtype).itemsize, efforts([action])[0])
    env.close()


@EXECUTORS
def test_rows_in_flight_keep_the_dtype_of_their_send(make_envs, keywords):
    envs = make_envs(max_episode_steps=1000, **keywords)
    envs.reset(seed=0)
    for turn in range(4):
        sends = [([0, 3], F32), ([4], F64), ([1], F16), ([2], F64)]
        expected = {}
        for rows, dtype in sends[turn % 2 :] + sends[: turn % 2]:
            batch = actions(dtype, turn, len(rows))
            envs.send(batch, rows)
            seen = batch.astype(F32) if dtype is F16 else batch
            expected |= dict(
                zip(rows, zip(efforts(seen), [seen.itemsize] * len(rows), strict=True), strict=True)
            )
        observations, rewards, _, _, infos = envs.recv()
        got = dict(
            zip(
                infos["env_index"].tolist(),
                zip(rewards.tolist(), observations.tolist(), strict=True),
                strict=True,
            )
        )
        assert got == expected


@EXECUTORS
def test_checked_batches_and_rollouts_have_the_dtype_too(make_envs, keywords, monkeypatch):
    monkeypatch.setenv("CARTWHEEL_CHECK_PLUGINS", "1")
    envs = make_envs(max_episode_steps=1000, **keywords)
    dtypes = iter([F32, F64, F32, F64])
    taken = []

    def policy(_observations):
        taken.append(actions(next(dtypes), len(taken)))
        return taken[-1]

    rollout = cartwheel.Collector(envs, policy, num_steps=4).collect()
    for rewards, batch in zip(rollout.rewards, taken, strict=True):
        assert rewards.tolist() == efforts(batch)


def test_a_repeated_action_is_summed_in_its_dtype(make_envs):
    envs = make_envs(executor="inline", action_repeat=3, max_episode_steps=1000)
    envs.reset(seed=0)
    for dtype in (F64, F32):
        batch = actions(dtype)
        _, rewards, *_ = envs.step(batch)
        assert rewards.tolist() == [0.0 + effort + effort + effort for effort in efforts(batch)]
