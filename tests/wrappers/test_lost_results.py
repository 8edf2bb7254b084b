"""Results that are lost with a time-out, an error or Ctrl-C make no wrapper say anything wrong."""

from functools import partial

import gymnasium as gym
import numpy as np
import pytest

import cartwheel
from cartwheel.wrappers import AutoresetAdapter, FrameStack, RecordEpisodeStatistics, RecordMetrics
from cartwheel.wrappers.base import VectorWrapper
from tests.support.comparison import assert_identical
from tests.support.interrupts import interrupted_at
from tests.support.logged import DEPTH, Caller, Logged, rows_of
from tests.support.wrapping import MODES, D, N, S


def build(mode, executor, **keywords):
    if executor != "inline":
        keywords["num_workers"] = 2
    return cartwheel.VectorEnv([Logged] * 3, executor=executor, autoreset_mode=mode, **keywords)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("executor", ["inline", "thread", "process"])
@pytest.mark.parametrize("seed", range(3))
def test_whatever_is_lost_nothing_wrong_is_told_and_nothing_seen_is_left_out(mode, executor, seed):
    envs = RecordMetrics(
        FrameStack(RecordEpisodeStatistics(build(mode, executor), stats_key="s"), DEPTH)
    )
    caller = Caller(envs, seed)
    caller.run(150)
    assert caller.lost
    caller.check()
    envs.close()


class Refusing(Logged):
    """Its episodes have three steps; a reset raises where the attribute says so."""

    refuses = False

    def reset(self, *, seed=None, options=None):
        shown = super().reset(seed=seed, options={**(options or {}), "raises": self.refuses})
        self.length, self.refuses = 3, False
        return shown


def ends_after_a_reset(wrap, executor, *, reuses, raises):
    """The steps after a reset of some rows, whose mask is used again before it is received."""
    envs = wrap(cartwheel.VectorEnv([Refusing] * 3, executor=executor, autoreset_mode=D))
    envs.reset(seed=1)
    envs.unwrapped.set_attr("length", [3, 3, 9])
    envs.step([0] * 3)
    envs.unwrapped.set_attr("refuses", [False, raises, False])
    mask = np.array([True, True, False])
    envs.reset_async(options={"reset_mask": mask})
    if reuses:
        mask[:] = False
    if raises:
        with pytest.raises(ValueError, match="chosen"):
            envs.reset_wait()
        envs.unwrapped.set_attr("refuses", [False] * 3)
        envs.reset(options={"reset_mask": np.array([False, True, False])})
    else:
        envs.reset_wait()
    results = []
    for _ in range(3):
        observations, rewards, ended, _, infos = envs.step([0] * 3)
        infos.get("episode", {}).pop("t", None)
        results.append((observations, rewards, ended, infos))
    envs.close()
    return results


@pytest.mark.parametrize(
    "wrap", [RecordEpisodeStatistics, partial(AutoresetAdapter, autoreset_mode=N)]
)
@pytest.mark.parametrize("executor", ["inline", "thread", "process"])
@pytest.mark.parametrize("raises", [False, True])
def test_a_mask_that_is_used_again_before_its_reset_is_received_counts_as_it_was(
    wrap, executor, raises
):
    used, left = (
        ends_after_a_reset(wrap, executor, reuses=reuses, raises=raises) for reuses in (True, False)
    )
    assert_identical(used, left)


class Raising(VectorWrapper):
    """A wrapper whose results are those inside; it raises in some batches."""

    _changes_steps = False

    def __init__(self, envs, seed):
        super().__init__(envs)
        self.random = np.random.default_rng(seed)
        self.begun = False

    def transform(self, _batch):
        if self.random.random() < 0.08 and self.begun:
            raise ValueError("chosen to fail in a wrapper")
        self.begun = True


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("executor", ["inline", "process"])
@pytest.mark.parametrize("inside", [0, 1, 2])
def test_a_wrapper_that_raises_after_the_step_makes_no_other_wrapper_wrong(mode, executor, inside):
    envs = build(mode, executor)
    wraps = [
        lambda envs: RecordMetrics(envs, stats_key="inner"),
        lambda envs: FrameStack(envs, DEPTH),
        RecordMetrics,
    ]
    wraps.insert(inside, lambda envs: Raising(envs, inside))
    for wrap in wraps:
        envs = wrap(envs)
    caller = Caller(envs, 5, raises=0.02)
    caller.run(200)
    assert caller.lost
    caller.check()
    envs.close()


@pytest.mark.parametrize("mode", [N, S])
@pytest.mark.parametrize("executor", ["inline", "process"])
@pytest.mark.parametrize("inside", [0, 1, 2])
@pytest.mark.parametrize("seed", range(2))
def test_wrappers_in_and_around_an_adapter_say_nothing_wrong(mode, executor, inside, seed):
    envs = build(D, executor)
    wraps = [
        lambda envs: RecordMetrics(envs, stats_key="inner"),
        lambda envs: FrameStack(envs, DEPTH),
    ]
    wraps.insert(inside, lambda envs: AutoresetAdapter(envs, mode))
    for wrap in wraps:
        envs = wrap(envs)
    caller = Caller(RecordMetrics(envs), seed, ways=("step", "rows", "wait"))
    caller.run(150)
    assert caller.lost
    caller.check()
    caller.envs.close()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("call", ["step", "rows", "wait", "send", "reset"])
def test_ctrl_c_at_any_line_makes_no_wrapper_wrong(mode, call):
    envs = RecordMetrics(FrameStack(build(mode, "inline"), DEPTH))
    caller = Caller(envs, 2, raises=0, ways=("step", "rows"))
    caller.run(10)
    files = (
        *("wrappers/_stack/source", "wrappers/_stack/known_rows", "wrappers/base"),
        *("vector/base", "vector/resets", "vector/sent_rows"),
    )
    line = 0
    while line < 400:
        line += 1
        caller.lost += 1
        try:
            came = interrupted_at(line, getattr(caller, f"do_{call}"), files)
        except gym.error.ResetNeeded as error:
            caller.make(partial(caller.reset, rows_of(error)))
            came = True
        if not came:
            break
        caller.make(caller.recover)
        for _ in range(3):
            caller.run_once()
    assert (8 if call == "step" else 40) < line < 400  # most of a step is one native pass
    caller.check(leaves_out=True)
    envs.close()
