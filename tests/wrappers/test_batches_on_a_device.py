"""Batches on a device: one copy each, never from memory that a step fills meanwhile.

A fake device copies when a test says so. It drives every order of steps, ends of copies, errors,
forks and ends of pools, which a real device leaves to chance.
"""

import random
from copy import deepcopy
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Text

import cartwheel
from cartwheel._device import batches, places, transfers
from cartwheel.wrappers import NormalizeReward, NumpyToTorch, RecordMetrics, VectorWrapper
from tests.support import repetitions
from tests.support.environments import RecordingEnv, samplers, transcripts
from tests.support.executors import INLINE, PROCESS
from tests.support.wrapping import MODES, D, N, S, build, settings_of
from tests.wrappers.test_numpy_to_torch import assert_converted

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.torch


def on_device(envs, **keywords):
    return NumpyToTorch(envs, "cuda", **keywords)


def wide():
    """Environments whose batches are above the size that is copied out of slabs."""
    return cartwheel.NativeVectorEnv("CartPole-v1", 300)


@pytest.mark.parametrize("environment", ["nested", "pole"])
def test_results_are_those_without_a_device_whenever_copies_end(device, environment):
    """In every kind of vector environment and mode; and no tensor ever changes again."""
    for kind, mode, way, keywords in settings_of(environment):
        if way not in ("mask", "freeze"):
            continue
        chance = random.Random(repr((kind, mode, way)))
        bare = build(kind, environment, mode, **keywords)
        wrapped = on_device(build(kind, environment, mode, **keywords))
        kept = [(wrapped.reset(seed=3), deepcopy(bare.reset(seed=3)))]
        over = np.zeros(3, bool)
        bare.action_space.seed(5)
        for number in range(40):
            if mode == D and over.any() and (way == "mask" or number % 3 == 0):
                result = bare.reset(options={"reset_mask": over.copy()})
                mask = torch.from_numpy(over.copy())
                kept.append((wrapped.reset(options={"reset_mask": mask}), deepcopy(result)))
            actions = bare.action_space.sample()
            result = bare.step(actions)
            kept.append((wrapped.step(torch.from_numpy(actions)), deepcopy(result)))
            over = result[2] | result[3]
            device.finish(chance.randint(0, device.pending))
        device.finish()
        for tensors, arrays in kept:
            assert_converted(tensors, arrays)
        bare.close()
        wrapped.close()


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("num_envs", [2, 300])
def test_a_batch_is_one_copy_and_infos_are_a_second(device, num_envs, mode, dense):
    keywords = {"final_obs": "dense"} if dense and mode == S else {}
    envs = on_device(
        cartwheel.NativeVectorEnv("CartPole-v1", num_envs, autoreset_mode=mode, **keywords)
    )
    envs.reset(seed=1)
    for _ in range(5):
        before = device.copies
        infos = envs.step(torch.ones(num_envs, dtype=torch.int64))[4]
        extra = {key for key in infos if not key.endswith(("final_obs", "final_info"))}
        assert device.copies - before == (2 if extra else 1), infos.keys()
    assert device.fetches == 5
    envs.close()


def test_a_large_batch_is_copied_from_its_slab(device):
    envs = on_device(wide())
    envs.reset(seed=1)
    for _ in range(20):
        envs.step(torch.ones(300, dtype=torch.int64))
    assert device.staged == 0
    assert device.waits == 21 - 4  # more are never in flight
    assert device.pending == 4  # only the oldest is waited for
    assert device.deliveries == device.own_copies == 21  # the caller's stream waits for each
    # The slabs of four flights and the batch that is being filled.
    assert len(device.registered) == device.registrations == 5
    envs.close()


def test_a_small_batch_needs_neither_a_stream_nor_an_event_nor_a_wait_of_its_own(device):
    envs = on_device(cartwheel.NativeVectorEnv("CartPole-v1", 3))
    bare = cartwheel.NativeVectorEnv("CartPole-v1", 3)
    kept = [(envs.reset(seed=1), bare.reset(seed=1))]
    for _ in range(63):
        kept.append((envs.step(torch.ones(3, dtype=torch.int64)), bare.step(np.ones(3, np.int64))))
        device.finish(device.pending - 7)
    assert device.copies == 64
    assert device.own_copies == device.deliveries == device.waits == 0
    assert device.events == 2
    assert device.staged == 16 * 256 + 16 * 64  # for steps and for resets
    device.finish()
    for tensors, arrays in kept:
        assert_converted(tensors, arrays)
    ones = np.ones(3, np.int64)
    places = []
    while len(places) < 2 or places[-1] != places[-2]:  # memory for a few batches
        last = envs.step(torch.from_numpy(ones)), bare.step(ones)
        places.append(last[0][0].untyped_storage().data_ptr())
    staged, device.stream = device.staged, 1  # memory of the earlier stream ends in its order
    other = envs.step(torch.from_numpy(ones)), bare.step(ones)
    assert device.staged > staged
    assert other[0][0].untyped_storage().data_ptr() != places[-1]
    device.finish()
    assert_converted(*last)
    assert_converted(*other)
    bare.close(), envs.close()


def test_pinned_memory_of_small_batches_waits_for_its_copies(device):
    envs = on_device(cartwheel.NativeVectorEnv("CartPole-v1", 3))
    bare = cartwheel.NativeVectorEnv("CartPole-v1", 3)
    kept = [(envs.reset(seed=1), bare.reset(seed=1))]
    ones = np.ones(3, np.int64)
    kept += [(envs.step(torch.from_numpy(ones)), bare.step(ones)) for _ in range(40)]
    assert device.waits == 3  # 16 places: before the 17th, 25th and 33rd step
    device.finish()
    for tensors, arrays in kept:
        assert_converted(tensors, arrays)
    bare.close(), envs.close()


def test_a_batch_of_medium_size_is_copied_from_its_slab_in_the_stream_of_the_caller(
    device, monkeypatch
):
    monkeypatch.setattr(batches, "IN_STREAM", 1 << 20)
    envs, bare = on_device(wide()), wide()
    kept = [(envs.reset(seed=1), bare.reset(seed=1))]
    for _ in range(20):
        actions = np.ones(300, np.int64)
        kept.append((envs.step(torch.from_numpy(actions)), bare.step(actions)))
    assert device.staged == device.own_copies == 0
    assert device.waits == 21 - 4
    device.finish()
    for tensors, arrays in kept:
        assert_converted(tensors, arrays)
    bare.close(), envs.close()


def test_a_slab_is_free_once_its_copy_is_over(device):
    envs = on_device(wide())
    envs.reset(seed=1)
    for _ in range(50):
        envs.step(torch.ones(300, dtype=torch.int64))
        device.finish()
    assert device.waits == 0
    assert device.registrations <= 3
    envs.close()


def test_rewards_of_a_wrapper_travel_with_the_slab(device):
    bare = NormalizeReward(wide())
    envs = on_device(NormalizeReward(wide()))
    bare.reset(seed=1), envs.reset(seed=1)
    for _ in range(15):
        expected = bare.step(np.ones(300, np.int64))
        result = envs.step(torch.ones(300, dtype=torch.int64))
        device.finish()
        assert_converted(result, expected)
    assert device.staged == 0
    bare.close(), envs.close()


class TwoGoals(gym.Env):
    """Rewards of two objectives, and an observation above the size that is copied out of slabs."""

    observation_space = Box(-1, 1, (2_000,), np.float32)
    action_space = Discrete(2)
    reward_space = Box(-9, 9, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self.steps = 0
        return np.full(2_000, 0.5, np.float32), {}

    def step(self, action):
        self.steps += 1
        rewards = np.array([self.steps, -int(action)], np.float32)
        return np.full(2_000, self.steps / 8, np.float32), rewards, self.steps == 5, False, {}


def test_rewards_of_several_objectives_travel_with_the_slab(device):
    bare, envs = INLINE([TwoGoals] * 3), on_device(INLINE([TwoGoals] * 3))
    bare.reset(seed=1)
    envs.reset(seed=1)
    for _ in range(12):
        expected = bare.step(np.ones(3, np.int64))
        assert expected[1].shape == (3, 2)
        assert_converted(after(device, envs.step(torch.ones(3, dtype=torch.int64))), expected)
    assert device.staged == 0
    bare.close()
    envs.close()


class BothWays(VectorWrapper):
    """Makes rewards of two objectives, which are larger than those of the environments."""

    def transform(self, batch):
        if batch.rewards is not None:
            batch.rewards = np.stack([batch.rewards, -batch.rewards], axis=1)


def test_rewards_without_room_in_the_slab_leave_its_flags_alone(device):
    bare, envs = BothWays(wide()), on_device(BothWays(wide()))
    bare.reset(seed=1), envs.reset(seed=1)
    for _ in range(3):
        expected = bare.step(np.ones(300, np.int64))
        assert_converted(after(device, envs.step(torch.ones(300, dtype=torch.int64))), expected)
    assert device.staged
    bare.close(), envs.close()


class Borrowed(gym.vector.VectorEnv):
    """An environment of another library: it shows arrays of a pool, whose end it does not tell."""

    def __init__(self):
        self.pool = wide()
        self.num_envs, self.metadata = 300, self.pool.metadata
        self.single_observation_space = self.pool.single_observation_space
        self.single_action_space = self.pool.single_action_space
        self.observation_space = self.pool.observation_space
        self.action_space = self.pool.action_space

    def reset(self, *, seed=None, options=None):
        return self.pool.reset(seed=seed, options=options)

    def step(self, actions):
        return self.pool.step(actions)

    def close_extras(self, **_):
        self.pool.close()


def test_slabs_whose_end_is_unknown_are_never_pinned(device):
    bare, envs = wide(), on_device(Borrowed())
    assert_converted(after(device, envs.reset(seed=1)), bare.reset(seed=1))
    result = envs.step(torch.ones(300, dtype=torch.int64))
    assert_converted(after(device, result), bare.step(np.ones(300, np.int64)))
    assert device.registrations == 0
    bare.close(), envs.close()


def test_refused_pins_are_one_log_record_and_copies_of_other_memory(device, caplog):
    device.refuses = True
    bare, envs = wide(), on_device(wide())
    assert_converted(after(device, envs.reset(seed=1)), bare.reset(seed=1))
    for _ in range(3):
        result = envs.step(torch.ones(300, dtype=torch.int64))
        assert_converted(after(device, result), bare.step(np.ones(300, np.int64)))
    assert ["cannot be pinned for cpu" in record.message for record in caplog.records] == [True]
    bare.close(), envs.close()


def after(device, result):
    device.finish()
    return result


@pytest.mark.parametrize("num_envs", [2, 300])
@pytest.mark.parametrize("depth", [1, 3])
def test_static_results_have_places_in_turn(device, num_envs, depth):
    envs = on_device(
        cartwheel.NativeVectorEnv("CartPole-v1", num_envs, autoreset_mode=S),
        static=True,
        depth=depth,
    )
    bare = cartwheel.NativeVectorEnv("CartPole-v1", num_envs, autoreset_mode=S)
    shown = [after(device, envs.reset(seed=1))[0]]
    bare.reset(seed=1)
    for _ in range(30):
        result = envs.step(torch.ones(num_envs, dtype=torch.int64))
        assert_converted(after(device, result), bare.step(np.ones(num_envs, np.int64)))
        shown.append(result[0])
    # In the caller's own stream, copies are after its work anyway.
    assert device.follows == (31 if num_envs == 300 else 0)
    places = [tensor.data_ptr() for tensor in shown]
    assert len(set(places)) == depth
    assert places[depth:] == places[:-depth]
    envs.close(), bare.close()


@pytest.mark.parametrize("num_envs", [10, 300])
def test_static_places_do_not_depend_on_the_stream_or_on_the_rows(device, num_envs):
    envs = on_device(cartwheel.NativeVectorEnv("CartPole-v1", num_envs), static=True, depth=1)
    bare = cartwheel.NativeVectorEnv("CartPole-v1", num_envs)
    envs.reset(seed=1), bare.reset(seed=1)
    first = after(device, envs.step(torch.ones(num_envs, dtype=torch.int64)))
    bare.step(np.ones(num_envs, np.int64))
    device.stream = 1
    rows = np.arange(num_envs // 2)
    for env_index in (None, rows):
        ones = np.ones(num_envs if env_index is None else len(rows), np.int64)
        result = after(device, envs.step(torch.from_numpy(ones), env_index))
        assert_converted(result, bare.step(ones, env_index))
        for tensor, other in zip(result[:4], first[:4], strict=True):
            assert tensor.data_ptr() == other.data_ptr()
    bare.close(), envs.close()


@pytest.mark.parametrize(
    ("num_envs", "shared", "most"),
    [(3, 4 << 20, 16 * 256), (300, 40_000, 5 * 7_872), (300, 4_000, 7_872)],
)
def test_a_tensor_keeps_the_memory_of_few_batches(device, monkeypatch, num_envs, shared, most):
    monkeypatch.setattr(places, "SHARED", shared)
    envs = on_device(cartwheel.NativeVectorEnv("CartPole-v1", num_envs))
    envs.reset(seed=1)
    kept = set()
    for _ in range(20):
        observations = envs.step(torch.ones(num_envs, dtype=torch.int64))[0]
        kept.add(observations.untyped_storage().nbytes())
        device.finish()
    assert max(kept) == most
    envs.close()


def test_static_places_are_the_same_in_a_slab_and_packed(device):
    found = []
    for refuses in (False, True):
        device.refuses = refuses
        envs = on_device(
            cartwheel.NativeVectorEnv("CartPole-v1", 300, autoreset_mode=S, final_obs="dense"),
            static=True,
        )
        envs.reset(seed=1)
        results = envs.step(torch.ones(300, dtype=torch.int64))
        tensors = [*results[:4], results[4]["final_obs"], results[4]["_final_obs"]]
        found.append([tensor.storage_offset() * tensor.itemsize for tensor in tensors])
        assert (device.staged > 0) == refuses
        envs.close()
    assert found[0] == found[1]


def test_actions_of_the_device_are_fetched_together(device):
    space = Dict(a=Box(-1, 1, (2,), np.float32), b=Box(-1, 1, (1,), np.float32))
    envs = on_device(INLINE([lambda: RecordingEnv(space)] * 2))
    envs.reset()
    floats = torch.tensor([[0.25, 0.5], [-1.0, 1.0]], requires_grad=True)
    envs.step({"a": floats, "b": torch.zeros(2, 1)})
    assert [one["a"].tolist() for one in envs.get_attr("held")] == [[0.25, 0.5], [-1.0, 1.0]]
    assert device.fetches == 1
    with pytest.raises(TypeError, match=r"no dtype for a tensor of torch\.bfloat16"):
        envs.step({"a": floats.bfloat16(), "b": torch.zeros(2, 1)})
    envs.close()


@pytest.mark.parametrize("batch_size", [2, 3])
def test_rows_are_sent_and_received(device, batch_size):
    envs = on_device(PROCESS(transcripts(2, 3, 4), batch_size=batch_size))
    envs.send_reset()
    seen = {}
    for _ in range(12):
        observations, _, _, _, infos = envs.recv(30)
        assert isinstance(infos["env_index"], np.ndarray)
        for row, shown in zip(infos["env_index"].tolist(), observations, strict=True):
            seen.setdefault(row, []).append(shown)
        envs.send(torch.ones(len(observations), dtype=torch.int64), infos["env_index"])
    device.finish()
    single = INLINE(transcripts(2, 3, 4))
    steps = [single.reset(), *(single.step(np.ones(3, np.int64)) for _ in range(12))]
    expected = [step[0].copy() for step in steps]
    for row, shown in seen.items():
        arrays = [batch[row] for batch in expected[: len(shown)]]
        np.testing.assert_array_equal(torch.stack(shown).numpy(), arrays)
    envs.close(), single.close()


def test_a_rollout_and_a_collector_are_those_without_a_device(device):
    def policy(observations):
        if isinstance(observations, torch.Tensor):
            device.finish()
            return (observations[:, 2] > 0).long()
        return (observations[:, 2] > 0).astype(np.int64)

    found = []
    for envs in (RecordMetrics(wide()), on_device(RecordMetrics(wide()))):
        collector = cartwheel.Collector(envs, policy, 7, seed=1)
        found.append([collector.collect() for _ in range(3)])
        collector.close()
        envs.close()
    for arrays, tensors in zip(*found, strict=True):
        np.testing.assert_array_equal(arrays.observations, tensors.observations)
        np.testing.assert_array_equal(arrays.actions, tensors.actions)
    envs = on_device(wide())
    envs.reset(seed=1)
    before = device.registrations
    arrays = envs.rollout(4)
    shown = [envs.step(torch.ones(300, dtype=torch.int64))[0] for _ in range(4)]
    device.finish()
    np.testing.assert_array_equal(torch.stack(shown).numpy(), arrays.observations[1:])
    assert device.registrations == before  # the memory of rollouts is never pinned
    del arrays
    envs.close()


def test_values_without_a_dtype_stay(device):
    space = Dict(a=Box(-1, 1, (2,), np.float32), text=Text(5))
    envs = on_device(INLINE(samplers(space, 2)))
    observations = after(device, envs.reset(seed=1))[0]
    assert isinstance(observations["a"], torch.Tensor)
    assert isinstance(observations["text"], tuple)
    with pytest.raises(ValueError, match="static=True needs observations of a fixed size"):
        on_device(envs.env, static=True)
    envs.close()
    envs = on_device(INLINE(samplers(Text(5), 2)))
    assert all(isinstance(text, str) for text in envs.reset(seed=1)[0])  # no array is sent
    envs.close()


def test_orders_of_everything_lose_nothing(device):
    """Steps, ends of copies, failures, shortages of memory, forks and ends, in random orders."""
    for seed in range(repetitions.times(20, with_full=400)):
        chance = random.Random(seed)
        mode = chance.choice(MODES[:2])
        pair = [
            cartwheel.NativeVectorEnv("CartPole-v1", chance.choice((3, 300)), autoreset_mode=mode)
        ]
        pair.append(cartwheel.NativeVectorEnv("CartPole-v1", pair[0].num_envs, autoreset_mode=mode))
        bare, envs = pair[0], on_device(pair[1], depth=chance.randint(1, 4))
        kept = [(envs.reset(seed=seed), deepcopy(bare.reset(seed=seed)))]
        for _ in range(40):
            event = chance.choice(("step",) * 6 + ("finish",) * 3 + ("copy", "memory", "fork"))
            actions = np.array([chance.randint(0, 1) for _ in range(bare.num_envs)])
            if event == "step":
                kept.append((envs.step(torch.from_numpy(actions)), deepcopy(bare.step(actions))))
            elif event == "finish":
                device.finish(chance.randint(0, device.pending))
            elif event == "copy":
                device.fails_to_copy = True
                with pytest.raises(RuntimeError, match="the copy fails"):
                    envs.step(actions)
                device.fails_to_copy = False
                bare.step(actions)
            elif event == "memory" and mode == N:  # nothing is stepped without a place for it
                device.free = 0
                try:
                    result = envs.step(actions)
                except RuntimeError as error:
                    assert "out of memory" in str(error)  # noqa: PT017 - it may also succeed
                else:
                    kept.append((result, deepcopy(bare.step(actions))))
                device.free = 1 << 40
                if chance.random() < 0.5:
                    kept = kept[-3:]
            elif event == "fork":
                transfers._before_fork()
                assert not device.registered
        envs.close()
        bare.close()
        device.finish()
        for tensors, arrays in kept:
            assert_converted(tensors, arrays)


def test_a_device_that_does_not_exist_is_named(monkeypatch):
    envs = cartwheel.NativeVectorEnv("CartPole-v1", 2)
    if not torch.cuda.is_available():
        with pytest.raises(RuntimeError, match=r"'cuda' does not exist: .* finds no card or no dr"):
            NumpyToTorch(envs, "cuda")
    monkeypatch.setattr(torch.version, "cuda", None)
    with pytest.raises(RuntimeError, match=r"'cuda:1' does not exist: .* built for CPUs alone"):
        NumpyToTorch(envs, "cuda:1")
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(RuntimeError, match=r"finds 2, the last of which is 'cuda:1'"):
        NumpyToTorch(envs, torch.device("cuda", 2))
    for other in ("hpu", torch.device("vulkan")):  # errors of two types in PyTorch
        for make in (NumpyToTorch, partial(cartwheel.Collector, policy=len, num_steps=1)):
            with pytest.raises(RuntimeError, match=f"'{other}' does not exist for PyTorch"):
                make(envs, device=other)
    with pytest.raises(ValueError, match="static=True needs a CUDA device"):
        NumpyToTorch(envs, static=True)
    with pytest.raises(ValueError, match="depth"):
        NumpyToTorch(envs, depth=0)
    envs.close()


@pytest.mark.parametrize("num_envs", [2, 300, 30_000])
def test_autograd_takes_no_batch_for_a_change_of_another(device, num_envs):
    envs = on_device(cartwheel.NativeVectorEnv("CartPole-v1", num_envs))
    with torch.inference_mode():
        envs.reset(seed=1)
        for _ in range(5):
            envs.step(torch.ones(num_envs, dtype=torch.int64))
            device.finish()
    weights = torch.ones(4, 1, requires_grad=True)
    observations, rewards = envs.step(torch.ones(num_envs, dtype=torch.int64))[:2]
    device.finish()
    values = observations @ weights  # keeps the observations for the gradient
    rewards *= 2
    for _ in range(20):
        envs.step(torch.ones(num_envs, dtype=torch.int64))
        device.finish()
    values.sum().backward()
    summed, close = observations.sum(0), 1e-4 * num_envs
    torch.testing.assert_close(weights.grad[:, 0], summed, rtol=1e-4, atol=close)
    envs.close()
