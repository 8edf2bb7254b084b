"""Rollouts on a real card: the bits of those on the host, whatever its streams do meanwhile."""

import numpy as np
import pytest

import cartwheel
from cartwheel._device import batches
from tests.rollouts.test_rollouts_on_a_device import WAYS, assert_same, build
from tests.support.wrapping import MODES, D

torch = pytest.importorskip("torch")

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a card"),
]
#: About a hundredth of a second of a card's clock.
CYCLES = 20_000_000


@pytest.fixture(autouse=True)
def _nothing_is_left_behind():
    """CUDA keeps threads and descriptors, so the fixture of the same name cannot tell."""


@pytest.mark.parametrize("is_large", [False, True])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("way", WAYS)
def test_rollouts_have_the_bits_of_those_on_the_host(monkeypatch, way, mode, is_large):
    if is_large:  # in a stream of its own
        monkeypatch.setattr(batches, "PACKED", 16)
        monkeypatch.setattr(batches, "IN_STREAM", 16)
    keywords = {"on_done": "freeze"} if mode == D and way in ("all_done", "num_episodes") else {}
    for environment in ("nested", "pole"):
        found = []
        for where in ({}, {"device": "cuda"}):
            envs, policy = build(environment, mode, **keywords)

            def slow(observations, policy=policy, where=where):
                if where:
                    torch.cuda._sleep(CYCLES // 100)
                return policy(observations)

            collector = cartwheel.Collector(envs, slow, seed=3, **WAYS[way], **where)
            found.append([collector.collect() for _ in range(4)])
            collector.close()
            envs.close()
        for arrays, tensors in zip(*found, strict=True):
            assert tensors.device == torch.device("cuda", 0)
            assert_same(tensors.numpy(), arrays)
            assert_same(arrays.to("cuda").numpy(), arrays)
            rows, like = tensors.transitions(), arrays.transitions()
            assert rows.rewards.is_cuda
            np.testing.assert_array_equal(rows.rewards.cpu(), like.rewards)
            assert next(tensors.minibatches(5, seed=1)).rewards.is_cuda


def test_streams_of_the_caller_and_of_the_background_wait_for_copies():
    def policy(observations):
        torch.cuda._sleep(CYCLES)
        return (observations[:, 2] > 0).long(), {"seen": observations}

    for num_envs, rounds in ((8, 4), (100_000, 2)):
        envs = cartwheel.NativeVectorEnv("CartPole-v1", num_envs, executor="thread", num_workers=2)
        collector = cartwheel.Collector(
            envs, policy, 6, seed=3, order="groups", background=True, device="cuda"
        )
        side = torch.cuda.Stream()
        for _ in range(rounds):
            with torch.cuda.stream(side):
                rollout = collector.collect()
                seen, shown = rollout.extras["seen"], rollout.observations[:-1]
                asked = torch.from_numpy(rollout.valid | ~rollout.is_first[1:]).cuda()
                differs = (seen != shown).any(-1) & (seen != 0).any(-1) & asked
                assert not differs.any().item()
        collector.close()
        envs.close()


def test_a_rollout_without_memory_can_be_collected_later():
    envs, policy = build("pole", MODES[0])
    collector = cartwheel.Collector(envs, policy, 3_000, seed=3, device="cuda")
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(0).total_memory
    taken = torch.empty(30_000_000, dtype=torch.uint8, device="cuda")
    torch.cuda.set_per_process_memory_fraction(31e6 / total)
    try:
        collector.num_steps = 60_000
        with pytest.raises(torch.cuda.OutOfMemoryError, match="memory") as caught:
            collector.collect()
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert "a rollout" in "".join(caught.value.__notes__)
    del taken
    collector.num_steps = 50
    assert np.isfinite(collector.collect().rewards).all()
    envs.close()
