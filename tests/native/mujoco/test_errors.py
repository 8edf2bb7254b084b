"""Errors and warnings of MuJoCo are those of one row: the process lives, and nothing is logged.

The model is a press above boxes. Pressed down far enough, it makes more contacts than there is
memory for. Which amount of memory gives an error, and which a warning, depends on MuJoCo.
"""

import ctypes
from pathlib import Path

import gymnasium as gym
import mujoco
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv

import cartwheel
from tests.support.comparison import assert_identical
from tests.support.mujoco_cases import model
from tests.support.oracle import MODE

ENV_ID = "HalfCheetah-v5"
PRESS = """
<mujoco model="press">
  <size memory="{memory}"/>
  <option timestep="0.005" gravity="0 0 0"/>
  <worldbody>
    <body pos="0 0 1">
      <joint name="height" type="slide" axis="0 0 1" damping="1"/>
      <geom type="box" size="1 1 0.05" mass="1"/>
    </body>
    {boxes}
  </worldbody>
  <actuator><motor joint="height" gear="30" ctrlrange="-1 1" ctrllimited="true"/></actuator>
</mujoco>
"""
BOX = '<geom type="box" size="0.04 0.04 0.04" pos="{} {} 0"/>'
DOWN, UP = -1, 1


def write_press(folder, memory):
    """The path of a model with this amount of memory."""
    places = [(-0.5 + 0.1 * (box % 10), -0.5 + 0.1 * (box // 10)) for box in range(100)]
    boxes = "".join(BOX.format(*place) for place in places)
    path = folder / f"press_{memory}.xml"
    path.write_text(PRESS.format(memory=memory, boxes=boxes))
    return str(path)


def outcome_of(path):
    """The error or warning of MuJoCo when it is pressed down, by its own bindings."""
    told = []
    model = mujoco.MjModel.from_xml_path(path)
    simulation = mujoco.MjData(model)
    simulation.ctrl[:] = DOWN
    mujoco.set_mju_user_warning(told.append)
    try:
        for _ in range(100):
            mujoco.mj_step(model, simulation)
    except mujoco.FatalError as error:
        return "error", str(error)
    finally:
        mujoco.set_mju_user_warning(None)
    return ("warning", told[0]) if told else ("nothing", "")


@pytest.fixture
def press(tmp_path, monkeypatch):
    """Finds a model with the requested outcome; nothing may be logged here."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)

    def press(kind):
        for memory in ("40K", "50K", "60K", "80K", "100K", "120K"):
            path = write_press(tmp_path, memory)
            found, text = outcome_of(path)
            if found == kind:
                (here / "MUJOCO_LOG.TXT").unlink(missing_ok=True)  # of `outcome_of`
                return path, text
        return pytest.skip(f"no amount of memory gives an {kind} in MuJoCo {mujoco.__version__}")

    yield press
    assert not (here / "MUJOCO_LOG.TXT").exists()


def actions(pressed, num_envs):
    return np.where(np.isin(np.arange(num_envs), pressed), DOWN, UP)[:, None].astype(np.float32)


def press_down(envs, rows, steps=30):
    """Steps until the rows make contact, and beyond."""
    for _ in range(steps):
        envs.step(actions(rows, envs.num_envs))


def words(text):
    """A message without its numbers, which may depend on the state."""
    return text.split("\n", maxsplit=1)[0].split(",")[0]


@MODE
def test_an_overflow_of_a_row_is_its_error_and_other_rows_go_on(press, mode):
    path, text = press("error")
    envs, twin = (
        cartwheel.NativeVectorEnv(ENV_ID, 5, xml_file=path, autoreset_mode=mode, num_workers=2)
        for _ in range(2)
    )
    for turn in range(3):
        assert_identical(envs.reset(seed=turn), twin.reset(seed=turn))
        with pytest.raises(cartwheel.EnvFailedError, match="row 3 failed") as caught:
            press_down(envs, [3])
        assert words(text) in str(caught.value)
        with pytest.raises(gym.error.ResetNeeded, match=r"rows \[3\] failed"):
            envs.step(actions([], 5))
        mask = np.arange(5) == 3
        envs.reset(seed=9, options={"reset_mask": mask})
        envs.step(actions([], 5))
    assert_identical(envs.reset(seed=1), twin.reset(seed=1))
    for _ in range(5):
        assert_identical(envs.step(actions([], 5)), twin.step(actions([], 5)))
    envs.close()
    twin.close()


@pytest.mark.slow
def test_a_thousand_overflows_are_named_and_the_process_lives(press):
    path, text = press("error")
    num_envs, random, named = 16, np.random.default_rng(1), np.zeros(16, int)
    envs = cartwheel.NativeVectorEnv(
        ENV_ID,
        num_envs,
        xml_file=path,
        autoreset_mode="same_step",
        num_workers=2,
        on_error="restart",
        max_restarts=None,
    )
    envs.reset(seed=1)
    pressed = np.arange(num_envs) % 2 == 0
    while named.sum() < 1000:
        _, _, _, truncations, infos = envs.step(actions(np.flatnonzero(pressed), num_envs))
        if "env_error" in infos:
            failed = infos["_env_error"]
            assert truncations[failed].all()
            assert not (failed & ~pressed).any(), "a row failed that was not pressed"
            assert all(words(text) in str(each) for each in infos["env_error"][failed])
            named += failed
            pressed[failed] = random.random(failed.sum()) < 0.9
        if not pressed.any():
            pressed[:] = True
    assert (named > 0).all()
    envs.close()


def play(envs, episodes):
    """The results of a reset and of steps with these actions, for each episode."""
    for seed, batches in enumerate(episodes):
        yield envs.reset(seed=seed)
        yield from map(envs.step, batches)


def recorded(num_envs, episodes, path):
    """The results of Gymnasium; what its MuJoCo logs is removed."""
    oracle = SyncVectorEnv([lambda: gym.make(ENV_ID, xml_file=path)] * num_envs)
    results = list(play(oracle, episodes))
    oracle.close()
    Path("MUJOCO_LOG.TXT").unlink(missing_ok=True)
    return results


def assert_warns_like_gymnasium(episodes, path, rows, text):
    """Rows that ``rows`` names warn once in each episode, at least 1,000 times; nothing differs.

    MuJoCo tells of the first warning of a kind only, until the simulation is reset.
    """
    num_envs = len(rows)
    expected = recorded(num_envs, episodes, path)
    envs = cartwheel.NativeVectorEnv(ENV_ID, num_envs, num_workers=2, xml_file=path)
    count = np.zeros(num_envs, int)
    for (*ours, infos), result in zip(play(envs, episodes), expected, strict=True):
        warned = infos.pop("_mujoco_warning", np.zeros(num_envs, np.bool_))
        texts = infos.pop("mujoco_warning", np.full(num_envs, None))
        assert_identical((*ours, infos), result)
        assert all(text in each for each in texts[warned])
        assert texts[~warned].tolist() == [None] * (~warned).sum()
        count += warned
    assert_identical(count, np.where(rows, len(episodes), 0))
    assert count.sum() >= 1000
    envs.close()


@pytest.mark.slow
def test_a_thousand_warnings_of_full_memory_are_named_and_change_no_bit(press):
    path, text = press("warning")
    pressed = np.arange(50) % 10 != 3
    batches = [actions(np.flatnonzero(pressed), 50)] * 12
    assert_warns_like_gymnasium([batches] * 23, path, pressed, words(text))


def test_a_thousand_instabilities_are_named_and_change_no_bit(tmp_path, monkeypatch):
    """MuJoCo resets a simulation whose acceleration is out of bounds."""
    monkeypatch.chdir(tmp_path)
    wild, random = np.arange(50) % 5 != 2, np.random.default_rng(3)
    batches = random.uniform(0.1, 1, (26, 3, 50, 2)).astype(np.float32)
    batches[:, :, ~wild, 1] = 0  # else the strong motor is used
    assert_warns_like_gymnasium(list(map(list, batches)), model("loose"), wild, "QACC")
    assert not Path("MUJOCO_LOG.TXT").exists()


def test_an_overflow_at_a_reset_is_the_error_of_its_row(press):
    """A press of its own model that begins too low."""
    path, text = press("error")
    envs = cartwheel.NativeVectorEnv(
        ENV_ID, 3, xml_file=path, num_workers=2, model_per_row=True, reset_noise_scale=0
    )
    envs.reset(seed=1)
    places = [place.copy() for place in envs.get_attr("model.body_pos")]
    before = [place.copy() for place in places]
    places[1][1, 2] = 0.08
    envs.set_attr("model.body_pos", places)
    with pytest.raises(cartwheel.EnvFailedError, match="row 1 failed") as caught:
        envs.reset(seed=1)
    assert words(text) in str(caught.value)
    envs.set_attr("model.body_pos", before)
    envs.reset(seed=1)
    envs.step(actions([], 3))
    envs.close()


def test_simulations_of_the_caller_raise_and_warn_as_without_cartwheel(press):
    """While native rows live and afterwards, and with a handler of the caller's own."""
    path, text = press("error")
    envs = cartwheel.NativeVectorEnv(ENV_ID, 2, xml_file=path, num_workers=2)
    assert outcome_of(path) == ("error", text)
    told = []
    mujoco.set_mju_user_warning(told.append)
    try:
        envs.reset(seed=1)
        with pytest.raises(cartwheel.EnvFailedError):
            press_down(envs, [1])
        assert told == [], "a row warned the caller's handler"
        envs.close()
        del envs
        model = mujoco.MjModel.from_xml_path(path)
        simulation = mujoco.MjData(model)
        simulation.qpos[:] = np.nan
        mujoco.mj_step(model, simulation)
        assert len(told) == 1
        assert "QPOS" in told[0]
    finally:
        mujoco.set_mju_user_warning(None)
    assert outcome_of(path) == ("error", text)


def test_handlers_that_are_cleared_while_rows_live_do_not_end_the_process(press):
    """As by ``mju_clearHandlers``, which other users of the library may call."""
    path, text = press("error")
    envs = cartwheel.NativeVectorEnv(ENV_ID, 2, xml_file=path, num_workers=2)
    envs.reset(seed=1)
    mujoco.set_mju_user_warning(None)
    library = ctypes.CDLL(str(next(Path(mujoco.__file__).parent.glob("libmujoco*"))))
    for name in ("mju_user_error", "mju_user_warning"):
        ctypes.c_void_p.in_dll(library, name).value = None
    with pytest.raises(cartwheel.EnvFailedError) as caught:
        press_down(envs, [1])
    assert words(text) in str(caught.value)
    envs.close()


def test_rows_still_log_nothing_when_the_callers_handler_of_warnings_goes(press):
    path, _ = press("warning")
    envs = cartwheel.NativeVectorEnv(ENV_ID, 2, xml_file=path, num_workers=2)
    envs.reset(seed=1)
    mujoco.set_mju_user_warning(None)
    press_down(envs, [1], 15)
    envs.close()
