"""Rollouts on a device: the bits of those on the host, and one copy for each batch."""

import copy
import dataclasses
import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete

import cartwheel
from cartwheel._device import batches
from cartwheel._internal import nested
from cartwheel.wrappers import NumpyToTorch, RecordMetrics, numpy_to_torch
from tests.support.environments import samplers
from tests.support.executors import INLINE
from tests.support.wrapping import MODES, D, N, S

torch = pytest.importorskip("torch")
from tests.support.fake_device import FakeDevice, ImmediateDevice  # noqa: E402 - needs torch

pytestmark = pytest.mark.torch

#: The arrays of a rollout that are tensors on a device.
PARTS = ("observations", "actions", "extras", "final_observations")


@pytest.fixture
def device(monkeypatch):
    """A fake for `device="cuda"` that copies at once."""
    fake = ImmediateDevice()
    monkeypatch.setattr(numpy_to_torch, "Cuda", lambda _: fake)
    yield fake
    assert not fake.registered


class Nested(gym.Env):
    """Two observations, actions of two parts, and episodes of three to five steps."""

    observation_space = Dict(
        pixels=Box(0, 255, (3, 2), np.uint8), speed=Box(-9, 9, (2,), np.float64)
    )
    action_space = Dict(move=Discrete(3), force=Box(-1, 1, (2,), np.float32))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self.left = int(self.np_random.integers(3, 6))
        return self.shown(), {}

    def step(self, action):
        self.left -= 1
        return self.shown(), float(action["force"][0]), self.left == 0, False, {}

    def shown(self):
        return {
            "pixels": self.np_random.integers(0, 255, (3, 2), np.uint8),
            "speed": self.np_random.uniform(-1, 1, 2),
        }


def nested_policy(observations):
    """The same numbers for arrays and tensors."""
    speed, pixels = observations["speed"], observations["pixels"]
    if isinstance(speed, torch.Tensor):
        move = pixels.reshape(len(pixels), -1).long().sum(1) % 3
        actions = {"move": move, "force": speed.float()}
        return actions, {"value": speed[:, 0].float(), "firsts": pixels[:, 0].clone()}
    move = pixels.reshape(len(pixels), -1).astype(np.int64).sum(1) % 3
    actions = {"move": move, "force": speed.astype(np.float32)}
    return actions, {"value": speed[:, 0].astype(np.float32), "firsts": pixels[:, 0].copy()}


def pole_policy(observations):
    if isinstance(observations, torch.Tensor):
        return (observations[:, 2] > 0).long(), {"value": observations[:, 1].clone()}
    return (observations[:, 2] > 0).astype(np.int64), {"value": observations[:, 1].copy()}


def build(environment, mode, **keywords):
    """Four environments in which rows can rest, and their policy."""
    if environment == "nested":
        return INLINE([Nested] * 4, autoreset_mode=mode, **keywords), nested_policy
    return cartwheel.NativeVectorEnv("CartPole-v1", 4, autoreset_mode=mode, **keywords), pole_policy


def assert_same(tensors, arrays):
    """Every part of a rollout, or of a view of it, has the same bits and dtypes."""
    if isinstance(arrays, dict):
        assert tensors.keys() == arrays.keys()
        for key, part in arrays.items():
            assert_same(tensors[key], part)
    elif isinstance(arrays, tuple):
        for pair in zip(tensors, arrays, strict=True):
            assert_same(*pair)
    elif isinstance(arrays, np.ndarray):
        got = tensors.numpy() if isinstance(tensors, torch.Tensor) else tensors
        assert got.dtype == arrays.dtype
        np.testing.assert_array_equal(got, arrays)
    elif dataclasses.is_dataclass(arrays):
        names = {field.name for field in dataclasses.fields(arrays)} - {"device"}
        assert_same(
            {name: getattr(tensors, name) for name in names},
            {name: getattr(arrays, name) for name in names},
        )
    else:
        assert tensors == arrays


def is_tensors(*trees):
    found = []
    nested.apply(found.append, trees)
    return all(isinstance(part, torch.Tensor) for part in found)


WAYS = {
    "lockstep": {"num_steps": 9},
    "all_done": {"until": "all_done"},
    "num_episodes": {"num_episodes": 9},
    "groups": {"num_steps": 9, "order": "groups"},
    "ahead": {"num_steps": 9, "order": "groups", "run_ahead": 1},
    "columns": {"num_steps": 9, "order": "groups", "columns": 2},
    "free": {"num_steps": 9, "order": "free"},
    "auto": {"num_steps": 9, "order": "auto"},
}


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("environment", ["nested", "pole"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("way", WAYS)
def test_rollouts_have_the_bits_of_those_on_the_host(way, mode, environment, monkeypatch):
    # "auto" then tries another order after two rollouts, however long a step took.
    monkeypatch.setattr("cartwheel.rollouts.collecting.auto.SHORTEST_STEP", 0.0)
    monkeypatch.setattr("cartwheel.rollouts.collecting.auto.LEAST_SHARE", 0.0)
    keywords = {"on_done": "freeze"} if mode == D and way in ("all_done", "num_episodes") else {}
    found = []
    for where in ({}, {"device": "cuda"}):
        envs, policy = build(environment, mode, **keywords)
        collector = cartwheel.Collector(envs, policy, seed=3, **WAYS[way], **where)
        found.append([collector.collect() for _ in range(4)])
        assert way != "auto" or collector.stats().order == "groups"
        collector.close()
        envs.close()
    for arrays, tensors in zip(*found, strict=True):
        assert is_tensors(*(getattr(tensors, name) for name in PARTS))
        assert tensors.device == torch.device("cpu")
        assert arrays.device is None
        assert_same(tensors, arrays)


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("environment", ["nested", "pole"])
@pytest.mark.parametrize("mode", MODES)
def test_everything_computed_from_a_rollout_is_the_same(mode, environment):
    envs, policy = build(environment, mode)
    arrays = cartwheel.Collector(envs, policy, 12, seed=3).collect()
    envs.close()
    tensors = arrays.to("cpu")
    pairs = [(tensors, arrays), (tensors.tail(5), arrays.tail(5))]
    for each, like in pairs:
        assert_same(each.value_inputs(), like.value_inputs())
        assert_same(each.next_observations(), like.next_observations())
        count = len(next(iter(nested.paths(like.value_inputs(), ())))[1])
        values = np.linspace(-1, 1, count, dtype=np.float32)
        like.set_values(values)
        each.set_values(torch.from_numpy(values).requires_grad_())
        for one, other in zip(each.gae(0.9, 0.8), like.gae(0.9, 0.8), strict=True):
            np.testing.assert_array_equal(one, other)
        ratios = np.full(like.rewards.shape, 0.7, np.float32)
        for one, other in zip(
            each.vtrace(torch.from_numpy(ratios), 0.9), like.vtrace(ratios, 0.9), strict=True
        ):
            np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(
            each.retrace(*[torch.from_numpy(ratios)] * 2, 0.9, 0.8),
            like.retrace(ratios, ratios, 0.9, 0.8),
        )
        like.extras["advantages"] = each.extras["advantages"] = like.gae(0.9, 0.8)[0]
        for view in (
            lambda rollout: rollout.flatten(),
            lambda rollout: rollout.flatten(valid_only=False),
            lambda rollout: rollout.transitions(),
            lambda rollout: rollout.transitions("env", 3, gamma=0.9),
            lambda rollout: rollout.windows(3),
            lambda rollout: rollout.windows(3, 2, stop_at_done=False),
            lambda rollout: rollout.episodes(),
            lambda rollout: list(rollout.minibatches(5, seed=1))[1],
            lambda rollout: list(rollout.minibatches(2, by="sequence", length=4, seed=1))[1],
            lambda rollout: rollout.to_workspace(),
            lambda rollout: rollout.workspace_transitions("t"),
            lambda rollout: rollout.numpy(),
        ):
            assert_same(view(each), view(like))
        rows = next(each.minibatches(5))
        assert is_tensors(*(getattr(rows, name) for name in PARTS[:3]), rows.rewards)
        assert rows["advantages"].shape == (5,)
    assert tensors.to("cpu") is tensors
    assert arrays.numpy() is arrays
    assert_same(pickle.loads(pickle.dumps(tensors)), arrays)


@pytest.mark.parametrize("num_envs", [4, 300])
def test_each_batch_is_copied_once_to_its_place(monkeypatch, num_envs):
    monkeypatch.setattr(batches, "PACKED", 2_048)
    monkeypatch.setattr(batches, "IN_STREAM", 2_048)
    fake = FakeDevice()
    monkeypatch.setattr(numpy_to_torch, "Cuda", lambda _: fake)
    envs = cartwheel.NativeVectorEnv("CartPole-v1", num_envs)
    shown = []

    def policy(observations):
        fake.finish()
        shown.append(observations)
        return pole_policy(observations)

    def fails(observations):
        raise ValueError(f"not for {len(observations)} rows")

    collector = cartwheel.Collector(envs, policy, 8, seed=1, device="cuda")
    before = collector.reset(seed=1)  # is a copy, too
    copies = fake.copies
    for number in range(1, 4):
        collector.policy = fails
        with pytest.raises(ValueError, match="not for"):
            collector.collect()
        collector.policy = policy
        rollout = collector.collect()
        fake.finish()
        # The last row is the first one of the next rollout, and what a policy fails for is copied
        # again: others may use the environments before the next call.
        assert fake.copies - copies == 10 * number
        assert fake.own_copies == (fake.copies if num_envs == 300 else 0)
        for step, observations in enumerate(shown[-8:]):
            assert observations.data_ptr() == rollout.observations[step].data_ptr()
    assert fake.waits == 0
    assert fake.fetches == 24
    assert fake.registrations == 0
    assert torch.equal(before[0], shown[0])
    collector.close()
    envs.close()


@pytest.mark.usefixtures("device")
def test_the_policy_may_keep_gradients_of_every_step():
    envs, _ = build("pole", N)
    weights = torch.ones(4, 2, requires_grad=True)
    collector = cartwheel.Collector(
        envs, lambda shown: ((shown @ weights).argmax(1), {}), 6, seed=1, device="cuda"
    )
    losses = []

    def policy(observations):
        scores = observations @ weights
        losses.append(scores.sum())
        return scores.argmax(1), {"score": scores}

    collector.policy = policy
    rollout = collector.collect()
    torch.stack(losses).sum().backward()
    expected = rollout.observations[:-1].sum((0, 1))
    torch.testing.assert_close(weights.grad[:, 0], expected)
    assert not rollout.extras["score"].requires_grad
    envs.close()


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("order", ["lockstep", "groups"])
def test_a_policy_that_raises_loses_nothing(order):
    found = []
    for where in ({}, {"device": "cuda"}):
        envs, policy = build("pole", S)
        calls = []

        def fragile(observations, policy=policy, calls=calls):
            calls.append(len(observations))
            if len(calls) in (3, 4, 11):
                raise ValueError("not now")
            return policy(observations)

        collector = cartwheel.Collector(envs, fragile, 7, seed=3, order=order, **where)
        rollouts = []
        while len(rollouts) < 3:
            try:
                rollouts.append(collector.collect())
            except ValueError:  # expected
                collector.pause()
        found.append(rollouts)
        envs.close()
    for arrays, tensors in zip(*found, strict=True):
        assert_same(tensors, arrays)


def test_without_memory_of_the_device_nothing_is_stepped(device):
    envs, policy = build("pole", N)
    collector = cartwheel.Collector(envs, policy, 5, seed=1, device="cuda")
    first = collector.collect()
    device.free = 0
    with pytest.raises(RuntimeError, match="out of memory"):
        collector.collect()
    device.free = 1 << 40
    second = collector.collect()
    np.testing.assert_array_equal(first.observations[-1], second.observations[0])
    arrays = cartwheel.NativeVectorEnv("CartPole-v1", 4)
    expected = cartwheel.Collector(arrays, policy, 10, seed=1).collect()
    np.testing.assert_array_equal(second.observations, expected.observations[5:])
    envs.close(), arrays.close()


@pytest.mark.usefixtures("device")
def test_a_state_continues_on_a_device_or_on_the_host():
    envs, policy = build("pole", S)
    collector = cartwheel.Collector(envs, policy, 5, seed=1, device="cuda")
    collector.collect()
    state = pickle.loads(pickle.dumps(collector.state_dict()))
    expected = collector.collect()
    for where in ({}, {"device": "cuda"}):
        others, _ = build("pole", S)
        other = cartwheel.Collector(others, policy, 5, **where)
        other.load_state_dict(copy.deepcopy(state))
        assert_same(expected, other.collect().numpy())
        others.close()
    envs.close()


@pytest.mark.usefixtures("device")
def test_a_collector_takes_the_device_of_the_wrapper_alone():
    envs, policy = build("pole", S)
    wrapped = NumpyToTorch(RecordMetrics(envs), "cuda")
    rollout = cartwheel.Collector(wrapped, policy, 3, seed=1, device="cuda").collect()
    assert isinstance(rollout.observations, torch.Tensor)
    plain = cartwheel.Collector(wrapped, policy, 3, seed=1).collect()
    assert_same(rollout, plain)
    for given, name in (("cpu", "cpu"), ("cuda", "cuda:1")):
        other = NumpyToTorch(RecordMetrics(envs), given)
        with pytest.raises(ValueError, match=f"which is '{given}'; got '{name}'|got 'cuda"):
            cartwheel.Collector(other, policy, 3, device="cuda" if given == "cpu" else name)
    with pytest.raises(RuntimeError, match="nowhere"):
        cartwheel.Collector(envs, policy, 3, device="nowhere")
    envs.close()


def test_on_the_cpu_tensors_have_the_memory_of_the_arrays():
    envs, policy = build("nested", S)
    collector = cartwheel.Collector(envs, policy, 6, seed=3, device="cpu")
    rollout = collector.collect()
    assert is_tensors(*(getattr(rollout, name) for name in PARTS))
    arrays = rollout.numpy()
    assert arrays.observations["speed"].ctypes.data == rollout.observations["speed"].data_ptr()
    assert_same(rollout, arrays)
    if not torch.cuda.is_available():
        with pytest.raises(RuntimeError, match=r"finds no card or no driver|built for CPUs alone"):
            arrays.to("cuda")
    envs.close()


@pytest.mark.usefixtures("device")
def test_a_thread_in_the_background_hands_over_rollouts_of_a_device():
    envs = cartwheel.NativeVectorEnv("CartPole-v1", 4, executor="thread", num_workers=2)
    collector = cartwheel.Collector(
        envs, pole_policy, 6, seed=3, background=True, order="groups", device="cuda"
    )
    found = [collector.collect() for _ in range(4)]
    collector.close()
    envs.close()
    envs, policy = build("pole", N)
    expected = cartwheel.Collector(envs, policy, 6, seed=3, order="groups")
    for rollout in found:
        arrays = expected.collect()
        assert_same(
            {name: getattr(rollout, name) for name in (*PARTS, "rewards")},
            {name: getattr(arrays, name) for name in (*PARTS, "rewards")},
        )
    envs.close()


def test_parts_without_bytes_are_tensors_without_a_copy(device):
    space = Dict(none=Box(-1, 1, (0, 2), np.float32), some=Box(-1, 1, (3,), np.float32))
    envs = INLINE(samplers(space, 2))
    ones = torch.ones(2, dtype=torch.int64)
    collector = cartwheel.Collector(envs, lambda _: ones, 3, device="cuda")
    observations = collector.collect().observations
    assert observations["none"].shape == (4, 2, 0, 2)
    assert observations["some"].abs().sum() > 0
    assert device.copies == 4
    envs.close()


@pytest.mark.parametrize(("order", "copies"), [("lockstep", 9), ("groups", 17), ("free", 9)])
def test_batches_are_copied_once_in_any_order(device, monkeypatch, order, copies):
    """Of two groups there are two batches for each step, and the host waits for none of them."""
    monkeypatch.setattr(batches.DeviceBatches, "on_device", lambda *_: pytest.fail("waits"))
    envs, policy = build("pole", N)
    collector = cartwheel.Collector(envs, policy, 8, seed=1, order=order, device="cuda")
    collector.collect()
    assert device.copies == copies
    envs.close()
