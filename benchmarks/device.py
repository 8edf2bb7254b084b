"""Batches on a GPU: bits, copies, waits, bandwidth, overlap, a CUDA graph, and PPO.

``python -m benchmarks.device`` takes about two minutes on a machine with a card; with
``--device cpu`` it rehearses the parts that need none. Each part prints a table, and a part that
fails does not keep the others from being measured; then the exit status is 1.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import statistics
import sys
import time
import traceback
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

import cartwheel
from benchmarks.harness.workloads import IMAGE, Idle
from cartwheel.bench.machine import machine_line
from cartwheel.wrappers import NumpyToTorch

if TYPE_CHECKING:
    from collections.abc import Callable

#: Rows of CartPole whose batches have about so many bytes, and rows of frames.
POLES = {"28 KB": 1_024, "1 MB": 38_000}
FRAMES = {"30 MB": 1_024}


def poles(num_envs: int, **keywords: Any) -> Any:
    """CartPole in Rust."""
    return cartwheel.NativeVectorEnv("CartPole-v1", num_envs, **keywords)


def frames(num_envs: int) -> Any:
    """Environments in Python whose observations are frames and whose steps take no time."""
    env_fns = [functools.partial(Idle, IMAGE)] * num_envs
    return cartwheel.VectorEnv(env_fns, executor="process", num_workers=8)


def synchronize(device: str) -> None:
    """Waits for everything on the device."""
    if device != "cpu":
        torch.cuda.synchronize()


def median_us(call: Callable[[], Any], device: str, repeats: int) -> float:
    """The median of a call in microseconds; what it leaves on the device is not counted."""
    times = []
    for _ in range(repeats):
        synchronize(device)
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return 1e6 * statistics.median(times)


def is_equal(tensors: Any, arrays: Any) -> bool:
    """Whether nested tensors have the bits of nested arrays."""
    if isinstance(arrays, dict):
        return all(is_equal(tensors[key], arrays[key]) for key in arrays)
    if isinstance(arrays, tuple):
        return all(map(is_equal, tensors, arrays))
    if isinstance(arrays, np.ndarray) and arrays.dtype == object:
        return all(map(is_equal, tensors, arrays))
    if isinstance(arrays, np.ndarray) and isinstance(tensors, torch.Tensor):
        return bool(tensors.cpu().numpy().tobytes() == arrays.tobytes())
    return bool(np.array_equal(tensors, arrays))


def check_bits(device: str) -> None:
    """Every output of 300 steps equals that on the CPU, looked at after all of them."""
    cases: list[tuple[int, str, dict[str, Any], dict[str, Any]]] = [
        (64, "next_step", {}, {}),
        (64, "same_step", {}, {}),
        (1_024, "same_step", {"final_obs": "dense"}, {}),
        (4_096, "disabled", {"on_done": "freeze"}, {"depth": 1}),
        (1_024, "next_step", {}, {"static": True, "depth": 2}),
    ]
    for num_envs, mode, keywords, on_card in cases:
        ours = {} if device == "cpu" else on_card
        bare = poles(num_envs, autoreset_mode=mode, **keywords)
        envs = NumpyToTorch(poles(num_envs, autoreset_mode=mode, **keywords), device, **ours)
        kept: list[tuple[Any, Any]] = [(envs.reset(seed=1), bare.reset(seed=1))]
        rng = np.random.default_rng(1)
        wrong = 0
        if ours.get("static"):  # the next batches overwrite it
            wrong += not is_equal(*kept.pop())
        for _ in range(300):
            actions = rng.integers(0, 2, num_envs)
            kept.append((envs.step(torch.from_numpy(actions).to(device)), bare.step(actions)))
            if ours.get("static"):
                wrong += not is_equal(*kept.pop())
        wrong += sum(not is_equal(*pair) for pair in kept)
        envs.close()
        bare.close()
        print(f"{num_envs:>6} rows  {mode:<10} {ours!s:<32} {301 - wrong} of 301 batches equal")
        if wrong:
            raise AssertionError(f"{wrong} batches differ")


def measure_bandwidth(device: str) -> None:
    """Copies of one buffer, pinned by either way and pageable: microseconds and GB/s."""
    if device == "cpu":
        print("needs a card")
        return
    print(f"{'bytes':>12}{'pinned':>18}{'registered':>18}{'pageable':>18}")
    for nbytes in (28 << 10, 1 << 20, 30 << 20):
        line = f"{nbytes:>12,}"
        target = torch.empty(nbytes, dtype=torch.uint8, device=device)
        registered = torch.from_numpy(np.zeros(nbytes + 4096, np.uint8))
        error = torch.cuda.cudart().cudaHostRegister(registered.data_ptr(), nbytes + 4096, 0)
        sources = {
            "pinned": torch.zeros(nbytes, dtype=torch.uint8, pin_memory=True),
            "registered": registered[:nbytes],
            "pageable": torch.zeros(nbytes, dtype=torch.uint8),
        }
        for source in sources.values():
            times = []
            for _ in range(50):
                first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                torch.cuda.synchronize()
                first.record()
                target.copy_(source, non_blocking=True)
                last.record()
                last.synchronize()
                times.append(first.elapsed_time(last) * 1e3)
            median = statistics.median(times)
            line += f"{median:>9.1f} µs{nbytes / median / 1e3:>6.1f}"
        print(line, "" if int(error) == 0 else f" (registering: {error})")
        torch.cuda.cudart().cudaHostUnregister(registered.data_ptr())


def measure_steps(device: str) -> None:
    """The time in `step` beyond the inner step, by hand and by the wrapper; and the copies."""
    print(
        f"{'batch':>8}{'step':>12}{'by hand':>12}{'wrapper: step':>16}{'more':>10}{'arrived':>12}"
        f"{'copy':>12}{'GB/s':>7}"
    )
    for name, num_envs in {**POLES, **FRAMES}.items():
        build = frames if name in FRAMES else poles
        envs = build(num_envs)
        actions = np.zeros(num_envs, np.int64)
        wrapped = NumpyToTorch(envs, device)
        copies = _Copies(wrapped, device)
        envs.reset(seed=1)
        inner: list[float] = []
        bare = envs.step

        def step(actions: Any, bare: Any = bare, inner: Any = inner) -> Any:
            began = time.perf_counter()
            result = bare(actions)
            inner.append(1e6 * (time.perf_counter() - began))
            return result

        def by_hand(bare: Any = bare, actions: Any = actions) -> None:
            for array in bare(actions)[:4]:
                torch.from_numpy(array).to(device)

        def arrived(wrapped: Any = wrapped, actions: Any = actions) -> None:
            wrapped.step(actions)
            synchronize(device)

        envs.step = step
        calls: list[Callable[[], Any]] = [
            functools.partial(bare, actions),
            by_hand,
            functools.partial(wrapped.step, actions),
            arrived,
        ]
        rounds: list[list[float]] = [[] for _ in calls]
        more = []
        for _ in range(5):
            for times, call in zip(rounds, calls, strict=True):
                inner.clear()
                copies.are_timed = call is arrived  # which takes time itself
                times.append(median_us(call, device, 40))
                if call is calls[2]:
                    more.append(times[-1] - statistics.median(inner))
        alone, hand, own, there = (statistics.median(each) for each in rounds)
        microseconds, rate = copies.median()
        print(
            f"{name:>8}{alone:>9.0f} µs{hand:>9.0f} µs{own:>13.0f} µs"
            f"{statistics.median(more):>7.0f} µs{there:>9.0f} µs{microseconds:>9.0f} µs{rate:>7.1f}"
        )
        wrapped.close()


class _Copies:
    """Times of the copies of a wrapper.

    Attributes:
        are_timed: Whether the next ones are.
    """

    def __init__(self, wrapped: Any, device: str) -> None:
        """Times none yet, and none on the CPU."""
        self._events: list[tuple[Any, Any, int]] = []
        self.are_timed = False
        if device == "cpu":
            return
        made = wrapped._transfers.device
        copy = made.copy

        def timed(target: Any, source: Any, *, is_own: bool) -> None:
            if not self.are_timed:
                copy(target, source, is_own=is_own)
                return
            first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            stream = made._stream if is_own else torch.cuda.current_stream()
            first.record(stream)
            copy(target, source, is_own=is_own)
            last.record(stream)
            self._events.append((first, last, source.numel()))

        made.copy = timed

    def median(self) -> tuple[float, float]:
        """Microseconds of a copy, and billions of bytes a second."""
        times = [first.elapsed_time(last) * 1e3 for first, last, _ in self._events[10:]]
        if not times:
            return float("nan"), float("nan")
        microseconds = statistics.median(times)
        return microseconds, self._events[-1][2] / microseconds / 1e3


def count_calls(device: str) -> None:
    """Calls of CUDA in a step, as PyTorch's profiler sees them."""
    if device == "cpu":
        print("needs a card")
        return
    from torch.profiler import ProfilerActivity, profile

    for num_envs, mode, keywords in (
        (64, "next_step", {}),
        (1_024, "next_step", {}),
        (1_024, "same_step", {"final_obs": "dense"}),
        (1_024, "same_step", {}),
    ):
        envs = NumpyToTorch(poles(num_envs, autoreset_mode=mode, **keywords), device)
        envs.reset(seed=1)
        actions = torch.zeros(num_envs, dtype=torch.int64, device=device)
        for _ in range(30):
            envs.step(actions)
        torch.cuda.synchronize()
        steps = 50
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiled:
            for _ in range(steps):
                envs.step(actions)
        counts = {
            each.key: each.count / steps
            for each in profiled.key_averages()
            if each.key.startswith(("cuda", "Memcpy", "cuLaunch")) and each.count / steps >= 0.05
        }
        shown = ", ".join(f"{key} {count:g}" for key, count in sorted(counts.items()))
        print(f"{num_envs:>6} rows  {mode:<10} {keywords!s:<24} {shown}")
        envs.close()


def measure_overlap(device: str) -> None:
    """A policy's kernels run while the next batch is stepped and copied."""
    if device == "cpu":
        print("needs a card")
        return
    envs = NumpyToTorch(frames(1_024), device)
    envs.reset(seed=1)
    actions = np.zeros(1_024, np.int64)
    square = torch.randn(4_096, 4_096, device=device, dtype=torch.bfloat16)

    def compute(times: int) -> None:
        for _ in range(times):
            torch.mm(square, square)

    def alone() -> None:
        envs.step(actions)
        torch.cuda.synchronize()

    step_us = median_us(alone, device, 50)
    times = 20

    def policy() -> None:
        compute(times)
        torch.cuda.synchronize()

    times = max(1, round(step_us / median_us(policy, device, 20) * 20))

    def both() -> None:
        compute(times)
        envs.step(actions)
        torch.cuda.synchronize()

    found: list[list[float]] = [[], [], []]
    for _ in range(5):
        for each, call in zip(found, (alone, policy, both), strict=True):
            each.append(median_us(call, device, 20))
    first, second, together = (statistics.median(each) for each in found)
    hidden = (first + second - together) / min(first, second)
    print(
        f"step and copy {first:,.0f} µs, kernels {second:,.0f} µs, together {together:,.0f} µs: "
        f"{hidden:.0%} of the shorter is hidden"
    )
    envs.close()


def captured(act: Callable[[Any], Any], observations: Any) -> Callable[[Any], Any]:
    """Returns a policy that replays a CUDA graph of another one, over these observations."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            act(observations)
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        actions = act(observations)

    def policy(_: Any) -> Any:
        graph.replay()
        return actions

    return policy


def measure_graph(device: str) -> None:
    """A CUDA graph of a policy over static observations: the same actions, and its rate."""
    if device == "cpu":
        print("needs a card")
        return
    num_envs, steps = 1_024, 500
    torch.manual_seed(1)
    net = torch.nn.Sequential(
        *(torch.nn.Linear(4, 256), torch.nn.Tanh(), torch.nn.Linear(256, 256)),
        *(torch.nn.Tanh(), torch.nn.Linear(256, 2)),
    ).to(device)

    def act(observations: Any) -> Any:
        with torch.inference_mode():
            return net(observations).argmax(-1)

    shown, rates = [], []
    for static in (False, True):
        keywords: dict[str, Any] = {"static": True, "depth": 1} if static else {}
        envs = NumpyToTorch(poles(num_envs), device, **keywords)
        observations = envs.reset(seed=1)[0]
        policy = captured(act, observations) if static else act
        seen = []
        began = time.perf_counter()
        for _ in range(steps):
            chosen = policy(observations)
            seen.append(chosen.clone())
            observations = envs.step(chosen)[0]
        torch.cuda.synchronize()
        rates.append(steps / (time.perf_counter() - began))
        shown.append(torch.stack(seen))
        envs.close()
    same = bool(torch.equal(*shown))
    print(
        f"{rates[0]:,.0f} steps/s without a graph, {rates[1]:,.0f} with one: "
        f"{rates[1] / rates[0]:.2f} ×; the actions are {'the same' if same else 'DIFFERENT'}"
    )
    if not same:
        raise AssertionError("a graph chose other actions")


def measure_collector(device: str) -> None:
    """Rollouts that are on the device at the end: filled there, or sent when they are complete."""
    cases: list[tuple[str, Any, int, int]] = [
        ("28 KB a batch", poles, 128, 4),
        ("30 MB a batch", frames, 16, 84 * 84 * 4),
    ]
    for name, build, num_steps, width in cases:
        torch.manual_seed(1)
        net = torch.nn.Sequential(
            *(torch.nn.Flatten(), torch.nn.Linear(width, 64), torch.nn.Tanh()),
            torch.nn.Linear(64, 2),
        ).to(device)

        def act(observations: Any, net: Any = net) -> Any:
            with torch.no_grad():
                scores = net(observations.float())
            return scores.argmax(-1), {"value": scores[:, 0]}

        ways: dict[str, dict[str, Any]] = {
            "host, then to(…)": {},
            "on the device": {"device": device},
            "on the device, in groups": {"device": device, "order": "groups"},
        }
        collectors = {}
        for way, keywords in ways.items():
            envs = build(1_024)
            shown = envs if keywords else NumpyToTorch(envs, device)
            collectors[way] = cartwheel.Collector(
                shown, act, num_steps, seed=1, progress=False, **keywords
            )
        times: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(6):
            for way, collector in collectors.items():
                synchronize(device)
                began = time.perf_counter()
                rollout = collector.collect().to(device)
                synchronize(device)
                times[way].append(1e3 * (time.perf_counter() - began))
                del rollout
        for way, each in times.items():
            print(f"{name}, {num_steps} steps  {way:<26}{statistics.median(each[1:]):>9.1f} ms")
        for collector in collectors.values():
            collector.close()
            collector.envs.close()


def measure_ppo(device: str) -> None:
    """PPO of `examples/` with the wrapper and with copies by hand: the same returns, and rates."""
    from examples import ppo

    settings = ppo.Settings(num_envs=256, num_steps=32, device=device)
    found: dict[str, list[Any]] = {"by hand": [], "wrapper": [], "collector": []}
    rates: dict[str, list[float]] = {name: [] for name in found}
    torch.set_num_threads(1)
    for _ in range(3):
        for name in found:
            torch.manual_seed(1)
            envs: Any = poles(settings.num_envs, autoreset_mode="same_step")
            agent = ppo.Agent(device)
            explore = agent.explore
            if name == "wrapper":
                envs = NumpyToTorch(envs, device)
            elif name == "by hand":

                def explore(observations: Any, agent: Any = agent) -> Any:
                    actions, extras = agent.explore(observations)
                    return actions.cpu(), {key: value.cpu() for key, value in extras.items()}

            optimizer = torch.optim.Adam(agent.parameters, lr=1e-3, eps=1e-5)
            own = device if name == "collector" else None
            collector = cartwheel.Collector(envs, explore, settings.num_steps, seed=1, device=own)
            returns, collecting, began = [], 0.0, time.perf_counter()
            for _ in range(8):
                before = time.perf_counter()
                rollout = collector.collect()
                collecting += time.perf_counter() - before
                ppo.update(agent, optimizer, rollout, settings)
                returns += rollout.episodes(complete_only=True).returns.tolist()
            synchronize(device)
            seconds = time.perf_counter() - began
            found[name].append(returns)
            steps = 8 * settings.num_envs * settings.num_steps
            rates[name].append(steps / seconds)
            rates.setdefault(f"{name}, collecting", []).append(steps / collecting)
            collector.close()
            envs.close()
    for name, each in rates.items():
        print(f"{name:<20}{statistics.median(each):>12,.0f} steps/s")
    same = all(each == found["by hand"][0] for several in found.values() for each in several)
    print(f"{len(found['wrapper'][0])} episodes, returns {'the same' if same else 'DIFFERENT'}")


PARTS = {
    "bits": check_bits,
    "bandwidth": measure_bandwidth,
    "steps": measure_steps,
    "graph": measure_graph,
    "overlap": measure_overlap,
    "collector": measure_collector,
    "ppo": measure_ppo,
    "calls": count_calls,  # last: every launch takes longer once a profiler has run
}


def main() -> None:
    """Measures the chosen parts."""
    parser = argparse.ArgumentParser(description="Batches on a GPU.")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--part", choices=PARTS, action="append")
    arguments = parser.parse_args()
    print(machine_line())
    card = "the CPU" if arguments.device == "cpu" else torch.cuda.get_device_name(arguments.device)
    print(f"device: {card}, PyTorch {torch.__version__}")
    failed = []
    for name in arguments.part or PARTS:
        print(f"\n== {name}: {(PARTS[name].__doc__ or '').splitlines()[0]}")
        began = time.perf_counter()
        try:
            PARTS[name](arguments.device)
        except Exception:
            traceback.print_exc(file=sys.stdout)
            failed.append(name)
        print(f"({time.perf_counter() - began:.0f} s)", flush=True)
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        main()
