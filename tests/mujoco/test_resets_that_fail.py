"""A function of resets that fails, or is interrupted, changes nothing; its rows need a reset."""

import contextlib
import os
import signal
import threading

import gymnasium as gym
import mujoco
import numpy as np
import pytest

import cartwheel
import cartwheel.mujoco
from tests.mujoco.test_resets import build, play
from tests.support.comparison import assert_identical
from tests.support.reaching import LIMIT, ROWS, TASK


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("qpoz", "'qpoz' is not an array of MjData: did you mean 'qpos'"),
        ("body_mass", "did you mean 'model.body_mass'"),
        ("model.body_mas", "of MjModel: did you mean 'model.body_mass'"),
        ("efc_force", "efc_force"),
        ("data.qpos", "did you mean 'qpos'"),
        ("nq", "'nq' is not an array of MjData"),
        ("ncon", "'ncon' is a number of MjData, not an array"),
        ("model.opt.timestep", "a number of MjModel, not an array: `set_attr` sets it"),
        ("contact", "'contact' is not an array of MjData"),
        (3, "fields have names, got 3"),
    ],
)
def test_fields_that_do_not_exist_are_refused_with_a_suggestion(name, text):
    def reset(_rng, _rows, fields):
        return fields[name]

    envs = build(reset=reset)
    with pytest.raises(KeyError) as caught:
        envs.reset(seed=1)
    assert text in str(caught.value)
    assert "rows [0, 1, 2, 3, 4]" in caught.value.__notes__[-1]
    envs.close()


def test_models_that_rows_share_are_not_written():
    envs = build(model_per_row=False)
    with pytest.raises(KeyError, match="model_per_row=True"):
        envs.reset(seed=1)
    envs.close()


def step_as(envs, sound, actions):
    for _ in range(LIMIT + 1):
        result = envs.step(actions)
        assert_identical(result, sound.step(actions))


def spoil(rng, _rows, fields):
    fields["qpos"][:] = 5
    fields["model.body_mass"][:] = 9
    rng.random()
    raise KeyboardInterrupt("stop")


@pytest.mark.parametrize(
    ("function", "error", "text"),
    [
        (spoil, KeyboardInterrupt, "stop"),
        (lambda *_: 1, TypeError, "`reset` writes into `fields` and returns None, got 1"),
        (lambda *_: np.zeros(3) + np.zeros(2), ValueError, "broadcast"),
        (lambda rng, *_: rng.uniform(size=-1), ValueError, "`size` must be"),
        (lambda rng, *_: rng.uniform(np.zeros(ROWS), 1, 3), ValueError, "the same for all rows"),
        (lambda rng, *_: rng.uniform(0, np.inf), ValueError, "must be finite"),
        (lambda rng, *_: rng.uniform([0, 1], [1, 0]), ValueError, "must not be above"),
        (lambda rng, *_: rng.normal(0, -1), ValueError, "negative"),
        (lambda rng, *_: rng.integers([0, 0], [3, 5]), TypeError, r"are numbers, got \[0, 0\]"),
        (lambda rng, *_: rng.integers(3, 3), ValueError, "no int64 from 3 to 2"),
        (lambda rng, *_: rng.choice(3), AttributeError, "it has integers, normal, random"),
        (
            lambda _rng, _rows, fields: fields.__setitem__("qpos", np.zeros(2)),
            ValueError,
            r"fields\['qpos'\] has the shape \(\d, 3\), got .* of shape \(2,\)",
        ),
        (
            lambda _rng, rows, fields: fields.__setitem__(
                "qpos", np.where(rows == 1, np.nan, 0)[:, None]
            ),
            ValueError,
            r"NaN for rows \[1\]",
        ),
        (
            lambda _rng, rows, fields: fields["qpos"].resize((len(rows), 999), refcheck=False),
            ValueError,
            "does not own its data",
        ),
    ],
)
@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_a_function_that_fails_changes_nothing_and_the_rows_need_a_reset(
    mode, function, error, text
):
    broken = [False]

    def reset(*given):
        return function(*given) if broken[0] else TASK["reset"](*given)

    envs, sound = build(mode, reset=reset), build(mode)
    assert_identical(envs.reset(seed=1), sound.reset(seed=1))
    broken[0] = True
    masses = envs.get_attr("model.body_mass")
    with pytest.raises(error, match=text):
        envs.reset(options={"reset_mask": np.arange(ROWS) < 2})
    assert_identical(envs.get_attr("model.body_mass"), masses)
    with pytest.raises(gym.error.ResetNeeded):
        envs.step(np.zeros((ROWS, 3)))
    envs.reset_async(seed=2)
    with pytest.raises(error, match=text):
        envs.reset_wait()
    broken[0] = False
    assert_identical(envs.reset(seed=4), sound.reset(seed=4))
    actions = np.full((ROWS, 3), 0.5)
    if mode != "Disabled":
        broken[0] = True
        with pytest.raises(error, match=text):
            step_as(envs, sound, actions)
        with pytest.raises(gym.error.ResetNeeded):
            envs.step(actions)
    broken[0] = False
    assert_identical(envs.reset(seed=5), sound.reset(seed=5))
    assert_identical(play(envs, [actions] * 5), play(sound, [actions] * 5))
    for each in (envs, sound):
        each.close()


def test_arguments_that_a_function_keeps_are_of_no_use_afterwards():
    kept = []

    def reset(rng, rows, fields):
        kept[:] = rng, rows, fields, fields["qpos"]
        fields["qpos"][:, 0] = 0.5

    envs = build(reset=reset)
    envs.reset(seed=1)
    rng, rows, fields, positions = kept
    before = envs.get_attr("data.qpos")
    positions[:] = 9
    rows[:] = 0
    assert_identical(envs.get_attr("data.qpos"), before)
    with pytest.raises(RuntimeError, match="only during the call"):
        fields["qvel"]
    with pytest.raises(RuntimeError, match="only during the call"):
        rng.random()
    envs.close()


def test_cached_resets_are_refused():
    envs = build()
    with pytest.raises(ValueError, match="`reset`"):
        cartwheel.wrappers.CachedReset(envs, num_states=3)
    envs.close()


BALL = """
<mujoco><worldbody><body><freejoint/><geom size="0.1"/></body></worldbody></mujoco>
"""


def test_a_model_that_mujoco_refuses_is_an_error_of_its_row_and_a_reset_repairs_it():
    model = mujoco.MjModel.from_xml_string(BALL)
    model.body_ipos[1] = 0.3
    try:
        mujoco.mj_setConst(model, mujoco.MjData(model))
    except mujoco.FatalError:
        pass
    else:
        pytest.skip(f"MuJoCo {mujoco.__version__} takes it")
    offset = [0.3]

    def reset(_rng, rows, fields):
        fields["model.body_ipos"][:, 1] = np.where(rows[:, None] == 2, offset[0], 0)

    keywords = {"reset": reset, "model_per_row": True}
    envs = cartwheel.mujoco.make(BALL, 4, reward=lambda *_: np.zeros(4), **keywords)
    with pytest.raises(cartwheel.EnvFailedError, match="row 2 failed: MuJoCo: "):
        envs.reset(seed=1)
    with pytest.raises(gym.error.ResetNeeded):
        envs.step(np.zeros((4, 0)))
    offset[0] = 0.0
    envs.reset(seed=1)
    envs.step(np.zeros((4, 0)))
    envs.close()


def test_resets_are_not_sent():
    envs = build()
    with pytest.raises(ValueError, match="use `reset`, or `reset_async` and `reset_wait`"):
        envs.send_reset(seed=1, options={"env_index": [1]})
    envs.reset(seed=1)
    envs.close()


def test_a_signal_in_a_function_and_a_wait_that_times_out_are_survived():
    numbers = [signal.SIGINT]

    def interrupted(rng, _rows, fields):
        for number in numbers:
            signal.raise_signal(number)
        fields["mocap_pos"][:, 0] = rng.uniform(size=3)

    envs, sound = (
        build(reset=interrupted, executor="auto", num_workers=2),
        build(reset=interrupted),
    )
    with pytest.raises(KeyboardInterrupt):
        envs.reset(seed=1)
    with pytest.raises(gym.error.ResetNeeded):
        envs.step(np.zeros((ROWS, 3)))
    numbers.clear()
    envs.reset_async(seed=2)
    with contextlib.suppress(cartwheel.WorkerTimeoutError):
        envs.reset_wait(timeout=0)
        envs.reset_async(seed=2)
    assert_identical(envs.reset_wait(), sound.reset(seed=2))
    envs.reset_async(seed=3)
    with contextlib.suppress(cartwheel.WorkerTimeoutError):
        envs.reset_wait(timeout=0)
    assert_identical(envs.reset(seed=4), sound.reset(seed=4))
    actions = [np.full((ROWS, 3), 0.5)] * 3
    assert_identical(play(envs, actions), play(sound, actions))
    for each in (envs, sound):
        each.close()


class InterruptedForward:
    """Ctrl-C while the main thread waits for ``mj_forward``, which another thread is in.

    ``mj_forward`` calls :meth:`control`. The main thread waits there until another thread has taken
    the other shard; that thread repeats the signal until the main thread has left its wait.
    """

    def __init__(self):
        self.armed = False
        self._entered, self.ended = threading.Event(), threading.Event()

    def control(self, _model, _data):
        if not self.armed:
            return
        if threading.get_ident() == threading.main_thread().ident:
            self._entered.wait(30)
        else:
            self._entered.set()
            while not self.ended.wait(0.01):
                os.kill(os.getpid(), signal.SIGINT)

    def on_signal(self, _number, frame):
        # Where a callback raises, MuJoCo's module ends the process. Each row's may be interrupted.
        while frame is not None and frame.f_code is not InterruptedForward.control.__code__:
            frame = frame.f_back
        if self.armed and frame is None:
            self.armed = False
            raise KeyboardInterrupt


def test_rows_need_a_reset_after_a_signal_while_mujoco_computes_their_first_states():
    forward = InterruptedForward()
    envs = build(executor="thread", num_workers=2)
    envs.reset(seed=1)
    before = signal.signal(signal.SIGINT, forward.on_signal)
    mujoco.set_mjcb_control(forward.control)
    try:
        forward.armed = True
        with pytest.raises(KeyboardInterrupt):
            envs.reset(seed=2)
        with pytest.raises(gym.error.AlreadyPendingCallError):
            envs.step(np.zeros((ROWS, 3)))
        forward.ended.set()
        only_first = np.arange(ROWS) == 0
        envs.reset(options={"reset_mask": only_first})  # waits for the other thread
    finally:
        forward.ended.set()
        mujoco.set_mjcb_control(None)
        signal.signal(signal.SIGINT, before)
    with pytest.raises(gym.error.ResetNeeded, match=r"rows \[1, 2"):
        envs.step(np.zeros((ROWS, 3)))
    envs.reset(options={"reset_mask": ~only_first})
    envs.step(np.zeros((ROWS, 3)))
    envs.close()


def test_what_is_not_a_function_is_refused():
    with pytest.raises(TypeError, match="`reset` must be a function of"):
        build(reset=3)
