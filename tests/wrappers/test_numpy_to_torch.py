"""NumpyToTorch returns tensors of the same numbers, without a copy, in every autoreset mode."""

import sys

import numpy as np
import pytest
from gymnasium.error import DependencyNotInstalled
from gymnasium.spaces import Box, Dict, Discrete, Tuple

import cartwheel
from cartwheel.wrappers import DtypeObservation, NumpyToTorch, RecordMetrics
from tests.support.environments import RecordingEnv, transcripts
from tests.support.executors import INLINE, PROCESS
from tests.support.wrapping import MODES, D, S, build, settings_of

try:
    import torch
except ImportError:
    torch = None


def test_without_torch_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    envs = INLINE(transcripts(2))
    with pytest.raises(DependencyNotInstalled, match="pip install torch"):
        NumpyToTorch(envs)
    envs.close()


def assert_converted(tensors, arrays, path="infos"):
    """Every array of numbers is a tensor with the same numbers; the rest is the same."""
    if isinstance(arrays, dict):
        assert tensors.keys() == arrays.keys()
        for key in arrays:
            assert_converted(tensors[key], arrays[key], f"{path}[{key!r}]")
    elif isinstance(arrays, tuple):
        for number, pair in enumerate(zip(tensors, arrays, strict=True)):
            assert_converted(*pair, f"{path}[{number}]")
    elif path.endswith("['env_index']") or not isinstance(arrays, np.ndarray):
        assert type(tensors) is type(arrays), path
        assert np.array_equal(tensors, arrays)
    elif arrays.dtype == object:
        assert tensors.shape == arrays.shape
        for number, pair in enumerate(zip(tensors, arrays, strict=True)):
            if "final_obs" in path:
                assert_converted(*pair, f"{path}[{number}]")
            else:
                assert pair[0] == pair[1]
    elif arrays.dtype.kind in "biufc":
        assert isinstance(tensors, torch.Tensor), path
        assert tensors.numpy().dtype == arrays.dtype
        assert tensors.numpy().tobytes() == arrays.tobytes(), path
    else:
        assert np.array_equal(tensors, arrays)


@pytest.mark.torch
@pytest.mark.parametrize("environment", ["nested", "pole"])
def test_results_are_those_without_the_wrapper_as_tensors(environment):
    """In every kind of vector environment and mode."""
    for kind, mode, way, keywords in settings_of(environment):
        if way not in ("mask", "freeze"):
            continue
        bare = build(kind, environment, mode, **keywords)
        wrapped = NumpyToTorch(build(kind, environment, mode, **keywords))
        assert_converted(wrapped.reset(seed=3), bare.reset(seed=3))
        over = np.zeros(3, bool)
        bare.action_space.seed(5)
        for number in range(60):
            if mode == D and over.any() and (way == "mask" or number % 3 == 0):
                assert_converted(
                    wrapped.reset(options={"reset_mask": torch.from_numpy(over.copy())}),
                    bare.reset(options={"reset_mask": over.copy()}),
                )
            actions = bare.action_space.sample()
            before = torch.from_numpy(actions.copy())
            result = bare.step(actions)
            given = before.clone()
            assert_converted(wrapped.step(given), result)
            assert torch.equal(given, before)
            over = result[2] | result[3]
        bare.close()
        wrapped.close()


@pytest.mark.torch
def test_tensors_have_the_memory_of_the_arrays_and_may_be_written():
    class Keeping(cartwheel.wrappers.base.VectorWrapper):
        def transform(self, batch):
            self.batch = batch.observations, batch.rewards, batch.terminations

    for mode in MODES:
        inner = Keeping(cartwheel.NativeVectorEnv("CartPole-v1", 4, autoreset_mode=mode))
        envs = NumpyToTorch(inner)
        tensors = [envs.reset(seed=1)[0], *envs.step(torch.ones(4, dtype=torch.int64))[:3]]
        arrays = inner.batch
        for tensor, array in zip(tensors[1:], arrays, strict=True):
            assert tensor.data_ptr() == array.__array_interface__["data"][0]
        first = [tensor.clone() for tensor in tensors]
        envs.step(torch.zeros(4, dtype=torch.int64))
        for tensor, kept in zip(tensors, first, strict=True):
            assert torch.equal(tensor, kept)
            tensor.zero_()
        envs.close()


class Gaps(cartwheel.wrappers.VectorWrapper):
    """Keeps of which rows it missed the last observation."""

    def transform(self, batch):
        self.gaps = batch.gaps


@pytest.mark.torch
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("at", range(4))
def test_a_step_that_is_lost_between_two_tensors_is_missed_by_wrappers_outside(error, at):
    inner = NumpyToTorch(cartwheel.NativeVectorEnv("CartPole-v1", 3, num_workers=1))
    outer = Gaps(inner)
    actions = np.zeros(3, np.int64)
    outer.reset(seed=1)
    outer.step(actions)
    assert outer.gaps is None
    turns = iter(range(4))

    def interrupted(array):
        if next(turns) == at:
            raise error
        return torch.from_numpy(array)

    inner._from_numpy, inner._exchange = interrupted, None
    with pytest.raises(error):
        inner.step(actions)
    inner._from_numpy = torch.from_numpy
    outer.step(actions)
    assert outer.gaps.tolist() == [True] * 3
    outer.step(actions)
    assert outer.gaps is None
    outer.close()


@pytest.mark.torch
def test_a_subclass_sees_its_steps():
    class Halving(NumpyToTorch):
        def transform(self, batch):
            super().transform(batch)
            if batch.rewards is not None:
                batch.rewards = batch.rewards / 2

    envs = Halving(cartwheel.NativeVectorEnv("CartPole-v1", 3, num_workers=1))
    envs.reset(seed=1)
    assert envs.step(np.zeros(3, np.int64))[1].tolist() == [0.5] * 3
    envs.close()


@pytest.mark.torch
def test_actions_are_tensors_of_every_form():
    space = Dict(a=Discrete(5), b=Tuple([Box(-1, 1, (2,), np.float32), Discrete(3)]))
    envs = NumpyToTorch(INLINE([lambda: RecordingEnv(space)] * 2))
    envs.reset()
    floats = torch.tensor([[0.25, 0.5], [-1.0, 1.0]], requires_grad=True)
    envs.step({"a": torch.tensor([1, 4]), "b": (floats, np.array([0, 2]))})
    seen = envs.get_attr("held")
    assert [one["a"] for one in seen] == [1, 4]
    assert [one["b"][0].tolist() for one in seen] == [[0.25, 0.5], [-1.0, 1.0]]
    assert [one["b"][1] for one in seen] == [0, 2]
    envs.close()


@pytest.mark.torch
def test_rows_are_sent_and_received_by_what_infos_say():
    envs = NumpyToTorch(PROCESS(transcripts(2, 3, 4), batch_size=2))
    envs.send_reset()
    for _ in range(6):
        observations, _, _, _, infos = envs.recv(30)
        assert isinstance(observations, torch.Tensor)
        envs.send(torch.ones(2, dtype=torch.int64), infos["env_index"])
    envs.close()


@pytest.mark.torch
def test_final_observations_of_other_wrappers_are_tensors_too():
    inner = DtypeObservation(
        cartwheel.NativeVectorEnv("CartPole-v1", 2, autoreset_mode=S, max_episode_steps=2),
        np.float64,
    )
    envs = NumpyToTorch(RecordMetrics(inner))
    envs.reset(seed=1)
    envs.step(torch.tensor([0, 1]))
    infos = envs.step(torch.tensor([0, 1]))[4]
    assert infos["final_obs"].dtype == object
    assert [one.dtype for one in infos["final_obs"]] == [torch.float64] * 2
    assert infos["final_info"]["episode"]["return"].tolist() == [2.0, 2.0]
    assert infos["episode"]["episode_len"].dtype == torch.int64
    envs.close()


@pytest.mark.torch
def test_dense_final_observations_are_one_tensor():
    envs = NumpyToTorch(
        cartwheel.NativeVectorEnv("CartPole-v1", 3, autoreset_mode=S, final_obs="dense")
    )
    envs.reset(seed=1)
    infos = envs.step(torch.tensor([0, 1, 1]))[4]
    assert isinstance(infos["final_obs"], torch.Tensor)
    assert infos["final_obs"].shape == (3, 4)
    envs.close()


@pytest.mark.torch
def test_rollouts_are_arrays_that_share_memory_with_the_steps():
    envs = NumpyToTorch(cartwheel.NativeVectorEnv("CartPole-v1", 3))
    envs.reset(seed=1)
    arrays = envs.rollout(4)
    for number in range(4):
        observations = envs.step(torch.tensor([0, 1, 1]))[0]
        assert observations.numpy().tobytes() == arrays.observations[number + 1].tobytes()
    envs.close()
    envs = NumpyToTorch(DtypeObservation(cartwheel.NativeVectorEnv("CartPole-v1", 3), np.float64))
    envs.reset(seed=1)
    arrays = envs.rollout(2)
    observations = envs.step(torch.tensor([0, 1, 1]))[0]
    assert arrays.observations[1].tolist() == observations.tolist()
    envs.close()


@pytest.mark.torch
def test_read_only_and_reversed_arrays_are_copied():
    class Odd(cartwheel.wrappers.base.VectorWrapper):
        def transform(self, batch):
            batch.observations = batch.observations[:, ::-1]
            if batch.rewards is not None:
                rewards = batch.rewards.copy()
                rewards.flags.writeable = False
                batch.rewards = rewards

    inner = Odd(cartwheel.NativeVectorEnv("CartPole-v1", 2))
    envs = NumpyToTorch(inner)
    envs.reset(seed=1)
    observations, rewards = envs.step(torch.tensor([0, 1]))[:2]
    assert observations.shape == (2, 4)
    rewards += 1
    assert rewards.tolist() == [2.0, 2.0]
    envs.close()


@pytest.mark.torch
def test_a_device_is_checked_and_used():
    envs = cartwheel.NativeVectorEnv("CartPole-v1", 2)
    with pytest.raises(RuntimeError, match="device"):
        NumpyToTorch(envs, device="no such device")
    meta = NumpyToTorch(envs, device="meta")  # a device with shapes and dtypes alone
    assert meta.reset(seed=1)[0].device.type == "meta"
    assert meta.device == "meta"
    changed = NumpyToTorch(DtypeObservation(envs, np.float64), device="meta")
    with pytest.raises(TypeError, match="needs tensors on the CPU"):
        changed.rollout(2)
    envs.close()


def leaning(observations, *recurrent):
    """Leans with NumPy, or with a layer of PyTorch where it gets tensors."""
    del recurrent
    if isinstance(observations, np.ndarray):
        return (observations[:, 2] > 0).astype(np.int64), {"angle": observations[:, 2] * 1}
    assert isinstance(observations, torch.Tensor)
    weights = torch.nn.Parameter(torch.tensor([0.0, 0.0, 1.0, 0.0]))
    angles = (observations * weights).sum(1)
    assert angles.requires_grad
    return (angles > 0).long(), {"angle": angles}


def pairs_of_poles(mode):
    """The same environments with tensors and with arrays."""
    plain = build("process", "pole", mode, 5)
    return NumpyToTorch(RecordMetrics(build("process", "pole", mode, 5))), RecordMetrics(plain)


@pytest.mark.torch
@pytest.mark.parametrize("recurrent", [False, True])
@pytest.mark.parametrize("order", ["lockstep", "free"])
@pytest.mark.parametrize("mode", MODES)
def test_an_evaluation_shows_tensors_to_the_policy_alone(mode, order, recurrent):
    found = []
    for envs in pairs_of_poles(mode):
        found.append(
            cartwheel.evaluate(
                envs, leaning, episodes_per_env=3, seed=1, order=order, recurrent=recurrent
            )
        )
        envs.close()
    for name in ("returns", "lengths", "terminated", "truncated"):
        np.testing.assert_array_equal(*(getattr(evaluation, name) for evaluation in found))


@pytest.mark.torch
@pytest.mark.parametrize("recurrent", [False, True])
@pytest.mark.parametrize(
    "how",
    [
        {},
        {"num_steps": None, "until": "all_done"},
        {"order": "groups", "groups": 5},
        {"order": "free", "run_ahead": 1},
        {"background": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("mode", MODES)
def test_a_collector_shows_tensors_to_the_policy_alone(mode, how, recurrent):
    found = []
    for envs in pairs_of_poles(mode):
        keywords = {"num_steps": 9, "seed": 1, "recurrent": recurrent, **how}
        collector = cartwheel.Collector(envs, leaning, **keywords)
        found.append([collector.collect() for _ in range(3)])
        assert collector.envs is envs
        collector.close()
        envs.close()
    for tensors, arrays in zip(*found, strict=True):
        for name in ("observations", "actions", "rewards", "terminated", "valid", "is_first"):
            assert isinstance(getattr(tensors, name), np.ndarray)
            np.testing.assert_array_equal(getattr(tensors, name), getattr(arrays, name))
        np.testing.assert_array_equal(tensors.final_observations, arrays.final_observations)
        np.testing.assert_array_equal(tensors.extras["angle"], arrays.extras["angle"])


@pytest.mark.torch
def test_a_reset_of_a_collector_returns_tensors():
    envs = NumpyToTorch(build("inline", "nested", S))
    collector = cartwheel.Collector(envs, lambda _: None, 3)
    results = collector.reset(seed=1, options={"mass": torch.tensor(2.0)})
    plain = build("inline", "nested", S)
    assert_converted(results, plain.reset(seed=1, options={"mass": np.array(2.0, np.float32)}))
    envs.close()
    plain.close()


@pytest.mark.torch
def test_evaluations_and_collectors_refuse_what_they_would_leave_out():
    class Changing(NumpyToTorch):
        def transform(self, batch):
            super().transform(batch)

    envs = build("inline", "pole", S)
    for wrapped, message in (
        (RecordMetrics(NumpyToTorch(envs)), "NumpyToTorch must be the outermost wrapper"),
        (Changing(envs), "Changing overrides transform"),
    ):
        with pytest.raises(TypeError, match=message):
            cartwheel.evaluate(wrapped, leaning)
        with pytest.raises(TypeError, match=message):
            cartwheel.Collector(wrapped, leaning, 3)
    envs.close()
