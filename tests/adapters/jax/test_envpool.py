"""`handle, recv, send, step = envs.xla()` has EnvPool's signatures, and its steps are equal."""

import numpy as np
import pytest

from cartwheel import envpool

jax = pytest.importorskip("jax")

pytestmark = pytest.mark.jax
RuntimeErrors = jax.errors.JaxRuntimeError


@pytest.fixture
def make(closes):
    def make(task="CartPole-v1", num_envs=3, env_type="gymnasium", **keywords):
        keywords = {"seed": 7, **keywords}
        return closes(envpool.make(task, env_type, num_envs=num_envs, **keywords))

    return make


def assert_equal(found, expected):
    observations, rewards, terminated, truncated, info = found
    pairs = [
        *zip(jax.tree.leaves(observations), jax.tree.leaves(expected[0]), strict=True),
        *zip((rewards, terminated, truncated), expected[1:4], strict=True),
        *((info[name], expected[4][name]) for name in ("env_id", "elapsed_step")),
        (info["players"]["env_id"], expected[4]["players"]["env_id"]),
    ]
    for ours, theirs in pairs:
        assert np.asarray(ours).dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("task", ["CartPole-v1", "Blackjack-v1", "FrozenLake-v1", "Pendulum-v1"])
def test_a_compiled_loop_equals_steps(make, task):
    inside, outside = make(task, max_episode_steps=9), make(task, max_episode_steps=9)
    outside.reset()
    handle, _, _, step = inside.xla()
    inside.reset()
    space = inside.action_space
    actions = np.zeros((25, 3, *space.shape), space.dtype)
    handle, found = jax.jit(lambda handle: jax.lax.scan(step, handle, actions))(handle)
    for number in range(25):
        at = jax.tree.map(lambda array, number=number: array[number], found)
        assert_equal(at, outside.step(actions[number]))


def test_batches_of_some_rows_are_sent_and_received(make):
    envs = make(num_envs=4, batch_size=2)
    handle, recv, send, _ = envs.xla()
    envs.async_reset()
    counts = np.zeros(4, int)

    @jax.jit
    def advance(handle):
        handle, results = recv(handle)
        ids = results[4]["env_id"]
        return send(handle, jax.numpy.ones(2, "int32"), ids), results

    for _ in range(12):
        handle, results = advance(handle)
        ids, steps = np.asarray(results[4]["env_id"]), np.asarray(results[4]["elapsed_step"])
        assert len(set(ids.tolist())) == 2
        np.testing.assert_array_equal(steps % 9, steps)
        counts[ids] += 1
    assert counts.sum() == 24
    envs.recv()
    envs.recv()


def test_the_handle_may_be_used_again(make):
    envs = make()
    handle, _, _, step = envs.xla()
    envs.reset()
    actions = np.ones(3, np.int32)
    jax.block_until_ready(step(handle, actions))
    _, results = step(handle, {"action": actions, "env_id": np.arange(3)})
    assert results[4]["elapsed_step"].tolist() == [2, 2, 2]


def test_misuse_is_named(make):
    envs = make()
    handle, recv, send, step = envs.xla()
    actions = np.ones(3, np.int32)
    with pytest.raises(RuntimeErrors, match=r"have no episode.*reset"):
        jax.block_until_ready(step(handle, actions))
    envs.reset()
    with pytest.raises(ValueError, match=r"must have shape \(3,\)"):
        step(handle, actions[:2])
    with pytest.raises(ValueError, match="2 entries of `env_id`"):
        step(handle, actions, np.arange(2))
    with pytest.raises(TypeError, match="`env_id` must be integers"):
        step(handle, actions, np.ones(3))
    with pytest.raises(TypeError, match="float32"):
        step(handle, np.ones(3, np.float32))
    with pytest.raises(TypeError, match="the first argument is the handle"):
        step(actions, handle)
    with pytest.raises(RuntimeErrors, match="not in Discrete"):
        jax.block_until_ready(step(handle, actions * 2))
    with pytest.raises(RuntimeErrors, match="negative"):
        jax.block_until_ready(send(handle, actions[:1], np.array([-1])))
    with pytest.raises(RuntimeErrors, match="9"):
        jax.block_until_ready(send(handle, actions[:1], np.array([9])))
    with pytest.raises(RuntimeErrors, match=r"batch_size=3.* 0: send"):
        jax.block_until_ready(recv(handle))
    envs.send(actions[:1], np.array([1]))
    with pytest.raises(RuntimeErrors, match=r"batch_size=3.* 1: send"):
        jax.block_until_ready(recv(handle))
    envs.recv()
    jax.block_until_ready(step(handle, actions))
    envs.close()
    with pytest.raises(RuntimeErrors, match="close"):
        jax.block_until_ready(step(handle, actions))


@pytest.mark.parametrize(
    ("task", "keywords", "message"),
    [
        (
            "CartPole-v1",
            {"env_type": "gym", "gym_reset_return_info": False},
            "env_type='gymnasium'",
        ),
        ("CartPole-v1", {"env_type": "dm"}, "env_type="),
        ("CartPole-v1", {"autoreset_mode": "same_step"}, "SAME_STEP"),
        ("CartPole-v1", {"render_mode": "human"}, "windows"),
        ("LunarLander-v3", {}, "in Python"),
    ],
)
def test_pools_that_cannot_be_compiled_are_refused(make, task, keywords, message):
    with pytest.raises(RuntimeError, match=message):
        make(task, **keywords).xla()
