"""Costs of wrappers: a step of native CartPole-v1 with one of them, against the bare step.

The bounds are those of a step in ``NEXT_STEP`` on one thread: at most 1.8, 1.2 and 1.1 times as
long with 64, 1,024 and 4,096 rows, and 2.5, 1.5 and 1.3 times in the four wrappers of ``four``,
which are also run in ``SAME_STEP``, with objects as final observations and with dense ones.
``nothing`` is a wrapper that does nothing. Gymnasium's vector wrapper of the same name, where there
is one, is run over the same environments and has no bound. Names on the command line choose some:
``python -m benchmarks.wrappers.overhead NormalizeReward FrameStack``. ``NumpyToTorch`` is measured
where PyTorch is installed, with arrays and with tensors as actions, and has bounds of its own.
"""

from __future__ import annotations

import functools
import importlib.util
import sys
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

import cartwheel
from benchmarks.harness.claim import Claim, check, no_env
from cartwheel import wrappers
from cartwheel.bench.contenders import Contender
from cartwheel.bench.runner import VectorRunner, sample_actions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    #: Wraps a vector environment.
    Wrap = Callable[[Any], Any]

#: The wrapper that needs PyTorch.
TENSORS = "NumpyToTorch"
#: How much longer a step may take, by the number of environments.
BOUNDS = {64: 1.8, 1024: 1.2, 4096: 1.1}
#: The same in four wrappers.
FOUR, FOUR_BOUNDS = "four", {64: 2.5, 1024: 1.5, 4096: 1.3}
#: The wrappers, with the arguments of the benchmark, by the name of the class.
OURS: dict[str, Wrap] = {
    "nothing": wrappers.VectorWrapper,
    "ClipReward": lambda envs: wrappers.ClipReward(envs, -1, 1),
    "DtypeObservation": lambda envs: wrappers.DtypeObservation(envs, np.float64),
    "FlattenObservation": wrappers.FlattenObservation,
    "FrameStack": lambda envs: wrappers.FrameStack(envs, 4),
    "NormalizeObservation": wrappers.NormalizeObservation,
    "NormalizeReward": wrappers.NormalizeReward,
    "RecordEpisodeStatistics": wrappers.RecordEpisodeStatistics,
    "RecordMetrics": wrappers.RecordMetrics,
    "TransformReward": lambda envs: wrappers.TransformReward(envs, lambda rewards: rewards * 0.5),
    FOUR: lambda envs: wrappers.ClipReward(
        wrappers.NormalizeReward(
            wrappers.NormalizeObservation(wrappers.RecordEpisodeStatistics(envs))
        ),
        *(-10, 10),
    ),
}
#: The bounds of ``NumpyToTorch``, with arrays and with tensors as actions.
TENSOR_BOUNDS = {64: (2.6, 3.0), 1024: (1.2, 1.25), 4096: (1.1, 1.15)}
#: Gymnasium's of the same name.
GYMNASIUM: dict[str, Wrap] = {
    name: getattr(gym.wrappers.vector, name)
    for name in ("NormalizeObservation", "NormalizeReward", "RecordEpisodeStatistics")
}


def build(
    wrap: Wrap | None,
    env_fns: Sequence[Any],
    convert: Callable[[Any], Any] | None = None,
    **keywords: Any,
) -> VectorRunner:
    """Wraps native environments on one thread; ``convert`` makes tensors of actions."""
    bare = cartwheel.NativeVectorEnv("CartPole-v1", len(env_fns), num_workers=1, **keywords)
    envs = bare if wrap is None else wrap(bare)
    envs.reset(seed=0)
    actions = sample_actions(envs.action_space)
    return VectorRunner(envs, actions if convert is None else [*map(convert, actions)])


def contender(name: str, wrap: Wrap | None, **keywords: Any) -> Contender:
    """A contender with this name, in environments with these keywords."""
    return Contender(name, functools.partial(build, wrap, **keywords))


BARE = contender("bare", None)
#: The forms of final observations, with ``SAME_STEP`` as the autoreset mode.
FORMS = ("object", "dense")
BARE_BY_FORM = {
    form: contender(f"bare, {form}", None, autoreset_mode="same_step", final_obs=form)
    for form in FORMS
}


def claims(num_envs: int, names: Sequence[str]) -> list[Claim]:
    """One claim for each wrapper, and a line without bound for Gymnasium's."""
    found = []
    for name in names:
        if name == TENSORS:
            found += tensor_claims(num_envs)
            continue
        bounds = FOUR_BOUNDS if name == FOUR else BOUNDS
        found.append(Claim(contender(name[:17], OURS[name]), BARE, 1 / bounds[num_envs]))
        for form in FORMS if name == FOUR else ():
            wrapped = contender(
                f"{name}, {form}", OURS[name], autoreset_mode="same_step", final_obs=form
            )
            found.append(Claim(wrapped, BARE_BY_FORM[form], 1 / bounds[num_envs]))
        if name in GYMNASIUM:
            theirs = contender(f"gym {name}"[:17], GYMNASIUM[name])
            found.append(Claim(theirs, BARE, 0))
    return found


def tensor_claims(num_envs: int) -> list[Claim]:
    """The claims of ``NumpyToTorch`` on the CPU."""
    import torch

    arrays, tensors = TENSOR_BOUNDS[num_envs]
    wrap = wrappers.NumpyToTorch
    with_tensors = functools.partial(build, wrap, convert=torch.from_numpy)
    return [
        Claim(contender("torch, arrays", wrap), BARE, 1 / arrays),
        Claim(Contender("torch, tensors", with_tensors), BARE, 1 / tensors),
    ]


def chosen() -> list[str]:
    """The names on the command line, which are taken off it; all of them if there are none."""
    known = [*OURS, *([TENSORS] if importlib.util.find_spec("torch") else [])]
    names = [name for name in sys.argv[1:] if name in known]
    sys.argv[1:] = [argument for argument in sys.argv[1:] if argument not in known]
    return names or known


if __name__ == "__main__":
    np.seterr(all="ignore")  # Gymnasium's wrappers divide by counts of 0
    names = chosen()
    check("native CartPole-v1 in wrappers", no_env, {n: claims(n, names) for n in BOUNDS})
