"""Batches on a real card: the bits of the CPU, whatever its streams do meanwhile.

``test_batches_on_a_device.py`` has the same promises with a fake device, in every order.
"""

import logging
import os
from copy import deepcopy

import numpy as np
import pytest
from gymnasium.spaces import Box

import cartwheel
from cartwheel._device import batches, transfers
from cartwheel._device.cuda import Cuda
from cartwheel.wrappers import NumpyToTorch
from tests.support.environments import samplers, transcripts
from tests.support.executors import PROCESS
from tests.support.wrapping import MODES, S, build
from tests.wrappers.test_numpy_to_torch import assert_converted

torch = pytest.importorskip("torch")

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a card"),
]
#: About a tenth of a second of a card's clock.
CYCLES = 200_000_000


@pytest.fixture(autouse=True)
def _nothing_is_left_behind():
    """CUDA keeps threads and descriptors, so the fixture of the same name cannot tell."""


@pytest.fixture
def _large_from_4_kb(monkeypatch):
    """Batches above this size have copies from their slab, in a stream of their own."""
    monkeypatch.setattr(batches, "PACKED", 4_096)
    monkeypatch.setattr(batches, "IN_STREAM", 4_096)


def on_cpu(value):
    """Returns nested tensors on the CPU; other values stay."""
    if isinstance(value, dict):
        return {key: on_cpu(part) for key, part in value.items()}
    if isinstance(value, tuple):
        return tuple(map(on_cpu, value))
    if isinstance(value, np.ndarray) and value.dtype == object:
        return np.array([*map(on_cpu, value), 0], object)[:-1]
    if isinstance(value, torch.Tensor):
        assert value.device.type == "cuda"
        return value.cpu()
    return value


def poles(num_envs, **keywords):
    return cartwheel.NativeVectorEnv("CartPole-v1", num_envs, **keywords)


def ones(envs):
    return torch.ones(envs.num_envs, dtype=torch.int64, device="cuda")


@pytest.mark.parametrize("keywords", [{}, {"depth": 1}], ids=str)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["native", "inline", "process", "sync"])
def test_results_are_those_on_the_cpu_and_stay(kind, mode, keywords):
    for environment in ("nested", "pole"):
        if kind == "native" and environment == "nested":
            continue
        bare = build(kind, environment, mode)
        envs = NumpyToTorch(build(kind, environment, mode), "cuda", **keywords)
        kept = [(envs.reset(seed=3), deepcopy(bare.reset(seed=3)))]
        bare.action_space.seed(5)
        for _ in range(30):
            actions = bare.action_space.sample()
            if mode == MODES[2] and kept[-1][1][2:] and (kept[-1][1][2] | kept[-1][1][3]).any():
                over = kept[-1][1][2] | kept[-1][1][3]
                mask = torch.from_numpy(over).cuda()
                expected = deepcopy(bare.reset(options={"reset_mask": over.copy()}))
                kept.append((envs.reset(options={"reset_mask": mask}), expected))
            given = torch.from_numpy(actions).cuda()
            kept.append((envs.step(given), deepcopy(bare.step(actions))))
        for tensors, arrays in kept:
            assert_converted(on_cpu(tensors), arrays)
        bare.close()
        envs.close()


@pytest.mark.usefixtures("_large_from_4_kb")
@pytest.mark.parametrize("dense", [False, True])
def test_slabs_are_pinned_and_survive_slow_streams(dense, caplog):
    keywords = {"autoreset_mode": S, **({"final_obs": "dense"} if dense else {})}
    bare, envs = poles(2_000, **keywords), NumpyToTorch(poles(2_000, **keywords), "cuda")
    kept = [(envs.reset(seed=1), bare.reset(seed=1))]
    for number in range(60):
        if number % 20 == 0:
            with torch.cuda.stream(envs._transfers.device._stream):
                torch.cuda._sleep(CYCLES)
        if number % 13 == 0:
            torch.cuda._sleep(CYCLES)
        kept.append((envs.step(ones(envs)), bare.step(np.ones(2_000, np.int64))))
    assert 1 < len(envs._transfers.registrations._sizes) <= 5
    assert caplog.records == []
    for tensors, arrays in kept:
        assert_converted(on_cpu(tensors), arrays)
    envs.close()
    bare.close()
    assert envs._transfers.registrations._sizes == {}


@pytest.mark.usefixtures("_large_from_4_kb")
@pytest.mark.parametrize("build_wide", [lambda: poles(2_000), lambda: PROCESS(wide_rows())])
def test_a_pool_ends_while_a_copy_waits(build_wide):
    bare, envs = build_wide(), NumpyToTorch(build_wide(), "cuda")
    expected = deepcopy(bare.reset(seed=1)[0])
    envs.reset(seed=1)
    with torch.cuda.stream(envs._transfers.device._stream):
        torch.cuda._sleep(CYCLES)
    observations = envs.reset(seed=1)[0]
    envs.close()
    np.testing.assert_array_equal(observations.cpu().numpy(), expected)
    bare.close()


def wide_rows():
    return samplers(Box(-1, 1, (3_000,), np.float64), 2)


@pytest.mark.usefixtures("_large_from_4_kb")
def test_a_copy_that_does_not_end_keeps_its_memory(monkeypatch, caplog):
    monkeypatch.setattr(transfers, "DRAIN_S", 0.01)
    bare, envs = poles(2_000), NumpyToTorch(poles(2_000), "cuda")
    expected = bare.reset(seed=1)[0]
    envs.reset(seed=1)
    with torch.cuda.stream(envs._transfers.device._stream):
        torch.cuda._sleep(3 * CYCLES)
    observations = envs.reset(seed=1)[0]
    envs.close()
    assert "did not end within 0.01 s" in caplog.text
    np.testing.assert_array_equal(observations.cpu().numpy(), expected)
    for address in envs._transfers.registrations._sizes:
        envs._transfers.device.unregister(address)
    transfers._never_over.clear()
    bare.close()


@pytest.mark.usefixtures("_large_from_4_kb")
def test_a_forked_child_is_refused_and_the_parent_goes_on():
    bare, envs = poles(2_000), NumpyToTorch(poles(2_000), "cuda")
    envs.reset(seed=1)
    bare.reset(seed=1)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            envs.step(np.ones(2_000, np.int64))
        except cartwheel.ForkedProcessError:
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    result = envs.step(ones(envs))
    assert_converted(on_cpu(result), bare.step(np.ones(2_000, np.int64)))
    assert envs._transfers.registrations._sizes
    envs.close()
    bare.close()


def test_without_memory_nothing_is_stepped_and_the_error_says_what_to_do():
    bare, envs = poles(100_000), NumpyToTorch(poles(100_000), "cuda")
    bare.reset(seed=1)
    kept = [envs.reset(seed=1)]
    actions = np.ones(100_000, np.int64)
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(40e6 / total)
    try:
        with pytest.raises(torch.cuda.OutOfMemoryError) as caught:
            kept.extend(envs.step(actions) for _ in range(40))
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert "static=True" in "".join(caught.value.__notes__)
    for step in kept[1:]:
        assert_converted(on_cpu(step), bare.step(actions))
    assert_converted(on_cpu(envs.step(actions)), bare.step(actions))
    envs.close()
    bare.close()


@pytest.mark.usefixtures("_large_from_4_kb")
def test_a_refused_registration_leaves_no_error_behind(caplog):
    device = Cuda(torch.device("cuda"))
    assert not device.register(4096, 4096)  # unmapped
    assert torch.ones(3, device="cuda").sum().item() == 3
    bare, envs = poles(2_000), NumpyToTorch(poles(2_000), "cuda")
    envs._transfers.device.register = lambda *_: False
    assert_converted(on_cpu(envs.reset(seed=1)), bare.reset(seed=1))
    with caplog.at_level(logging.WARNING):
        for _ in range(10):
            result = envs.step(ones(envs))
            assert_converted(on_cpu(result), bare.step(np.ones(2_000, np.int64)))
    envs.close()
    bare.close()


def test_rows_are_sent_and_received_on_a_card():
    envs = NumpyToTorch(PROCESS(transcripts(2, 3, 4), batch_size=2), "cuda")
    single = PROCESS(transcripts(2, 3, 4))
    steps = [single.reset(), *(single.step(np.ones(3, np.int64)) for _ in range(12))]
    expected = [deepcopy(step[0]) for step in steps]
    envs.send_reset()
    seen = {}
    for _ in range(12):
        observations, _, _, _, infos = envs.recv(30)
        for row, shown in zip(infos["env_index"].tolist(), observations, strict=True):
            seen.setdefault(row, []).append(shown)
        envs.send(torch.ones(2, dtype=torch.int64, device="cuda"), infos["env_index"])
    for row, shown in seen.items():
        arrays = [batch[row] for batch in expected[: len(shown)]]
        np.testing.assert_array_equal(torch.stack(shown).cpu().numpy(), arrays)
    envs.close()
    single.close()


def test_a_device_beyond_the_last_is_named():
    count = torch.cuda.device_count()
    with pytest.raises(RuntimeError, match=f"finds {count}, the last of which"):
        NumpyToTorch(poles(2), f"cuda:{count}")
