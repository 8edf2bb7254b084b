"""Functions of own models that fail, and errors of MuJoCo beneath them, are survived."""

import gc
import weakref

import gymnasium as gym
import mujoco
import numpy as np
import pytest

import cartwheel
import cartwheel.mujoco
from tests.support.comparison import assert_identical
from tests.support.own_models import NO_TASK, ROWS, TASK, XML, reward

# What functions do


class Wrong(Exception):
    """Raised by a function of the caller."""


def _raise(*_):
    raise Wrong("no reward")


def test_an_array_that_is_not_observed_is_named_with_those_that_are(make):
    envs = make(reward=lambda _, __, after: after["act"][:, 0])
    envs.reset(seed=1)
    with pytest.raises(KeyError, match="act") as caught:
        envs.step(np.zeros((ROWS, 2)))
    assert "what `observation` and `inputs` name: [" in caught.value.__notes__[-1]


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
@pytest.mark.parametrize(
    ("name", "function", "error", "text"),
    [
        ("reward", _raise, Wrong, "no reward"),
        ("reward", lambda *_: 1.0, ValueError, r"`reward` must return .* of shape \(5,\); got"),
        ("reward", lambda *_: np.zeros((ROWS, 1)), ValueError, r"got shape \(5, 1\)"),
        ("reward", lambda *_: ["a"] * ROWS, TypeError, "`reward` must return floats"),
        ("reward", lambda *_: [0, np.nan, 0, 0, np.nan], ValueError, r"NaN for rows \[1, 4\]"),
        ("terminated", lambda *_: np.zeros(ROWS), TypeError, "truth values, got .* float64"),
        ("terminated", _raise, Wrong, "no reward"),
        ("truncated", lambda *_: np.zeros(2, bool), ValueError, r"`truncated` .* got shape \(2,\)"),
        ("truncated", lambda *_: None, ValueError, r"got shape \(\)"),
    ],
)  # fmt: skip
def test_a_function_that_fails_fails_the_step_and_a_reset_mends_it(
    make, mode, name, function, error, text
):
    """With ``on_error="restart"``, too: no environment has failed."""
    broken = [False]

    def maybe(*given):
        return function(*given) if broken[0] else TASK[name](*given)

    envs = make(autoreset_mode=mode, on_error="restart", **{name: maybe})
    sound = make(autoreset_mode=mode)
    actions = np.full((ROWS, 2), 0.5)
    envs.reset(seed=2)
    envs.step(actions)
    broken[0] = True
    with pytest.raises(error, match=text):
        envs.step(actions)
    broken[0] = False
    with pytest.raises(gym.error.ResetNeeded, match="failed in an earlier call"):
        envs.step(actions)
    assert_identical(envs.reset(seed=4), sound.reset(seed=4))
    for _ in range(3):
        assert_identical(envs.step(actions)[:4], sound.step(actions)[:4])


def test_a_function_cannot_use_its_environment_while_it_runs(make):
    held = []

    def stepping(_before, actions, _after):
        held[0].step(actions)

    held.append(make(reward=stepping))
    held[0].reset(seed=0)
    with pytest.raises(gym.error.AlreadyPendingCallError):
        held[0].step(np.zeros((ROWS, 2)))
    held[0].reset(seed=0)


def test_a_function_may_close_its_environment_which_is_closed_after_the_step(make):
    held = []

    def closing(*_):
        held[0].close()
        return np.zeros(ROWS)

    held.append(make(reward=closing))
    held[0].reset(seed=0)
    held[0].step(np.zeros((ROWS, 2)))
    with pytest.raises(gym.error.ClosedEnvironmentError):
        held[0].reset(seed=0)


def test_an_environment_that_its_own_function_refers_to_is_collected():
    def made():
        held = []

        def zeros(*_):
            return np.zeros(held[0].num_envs)

        held.append(cartwheel.mujoco.make(XML, 2, reward=zeros))
        held[0].reset(seed=0)
        held[0].step(np.zeros((2, 2)))
        return weakref.ref(held[0]), weakref.ref(held[0].get_attr("data")[0])

    references = made()
    gc.collect()
    assert [reference() for reference in references] == [None, None]


def test_functions_write_nothing_and_what_callers_write_changes_nothing(make):
    def spoiling(before, actions, after):
        for array in (actions, *before.values(), *after.values()):
            with pytest.raises(ValueError, match="read-only"):
                array[:] = 9
        return reward(before, actions, after)

    envs, sound = make(reward=spoiling), make()
    assert_identical(envs.reset(seed=0), sound.reset(seed=0))
    for _ in range(5):
        actions = np.full((ROWS, 2), 0.3)
        observations, *outcomes, _ = envs.step(actions)
        assert_identical((observations, *outcomes), sound.step(actions)[:4])
        assert (actions == 0.3).all()
        observations[:] = 7  # the caller may, too


def test_an_unstable_simulation_warns_and_an_interrupt_is_survived(make):
    xml = XML.replace('gear="120"', 'gear="1e14"').replace('integrator="RK4"', "")
    envs = make(xml, **NO_TASK)
    envs.reset(seed=0)
    warned = [envs.step(np.ones((ROWS, 2)))[4].get("mujoco_warning") for _ in range(40)]
    assert any("Nan, Inf or huge value" in str(each) for each in warned)
    interrupts = [KeyboardInterrupt]

    def interrupted(*_):
        for each in interrupts[:1]:
            interrupts.clear()
            raise each
        return np.zeros(ROWS)

    envs = make(reward=interrupted)
    envs.reset(seed=0)
    with pytest.raises(KeyboardInterrupt):
        envs.step(np.ones((ROWS, 2)))
    envs.reset(seed=0)
    envs.step(np.ones((ROWS, 2)))


# Errors of MuJoCo


@pytest.fixture(scope="module")
def full():
    """A model whose memory for contacts is full once a plate is pressed on boxes: error and XML."""
    places = [(-0.5 + 0.1 * (box % 10), -0.5 + 0.1 * (box // 10)) for box in range(100)]
    boxes = [f'<geom type="box" size="0.04 0.04 0.04" pos="{x} {y} 0"/>' for x, y in places]
    for memory in ("40K", "50K", "60K", "80K", "100K"):
        xml = f"""
        <mujoco><size memory="{memory}"/><option timestep="0.005" gravity="0 0 0"/><worldbody>
          <body pos="0 0 1"><joint name="height" type="slide" axis="0 0 1" damping="1"/>
            <geom type="box" size="1 1 0.05" mass="1"/></body>
          {"".join(boxes)}
        </worldbody><actuator><motor joint="height" gear="30"/></actuator></mujoco>"""
        model = mujoco.MjModel.from_xml_string(xml)
        simulation = mujoco.MjData(model)
        simulation.ctrl[:] = -1
        try:
            for _ in range(100):
                mujoco.mj_step(model, simulation)
        except mujoco.FatalError as error:
            return str(error), xml
    return pytest.skip(f"MuJoCo {mujoco.__version__} only warns")


def press_row_two(envs):
    """Steps until an error is raised or reported: returns the error, or the result of the step."""
    actions = np.ones((ROWS, 1))
    actions[2] = -1
    for _ in range(100):
        try:
            result = envs.step(actions)
        except cartwheel.EnvFailedError as error:
            return error
        if "env_error" in result[4]:
            return result
    return pytest.fail("no row failed")


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_an_error_of_one_row_is_reported_after_the_others_were_rewarded(make, full, mode):
    text, xml = full
    task = {**NO_TASK, "reward": lambda _before, _actions, after: after["qpos"][:, 0]}
    keywords = {"observation": ["qpos"], "autoreset_mode": mode, "reset_noise_scale": 0, **task}
    raising, restarting = make(xml, **keywords), make(xml, on_error="restart", **keywords)
    for envs in (raising, restarting):
        envs.reset(seed=0)
    error = str(press_row_two(raising))
    assert error.startswith("the environment of row 2 failed: ")
    assert error.endswith(text)
    observations, rewards, _, truncations, infos = press_row_two(restarting)
    assert infos["env_error"][2].endswith(text)
    assert truncations.tolist() == [False, False, True, False, False]
    assert rewards[2] == 0
    np.testing.assert_array_equal(rewards[[0, 1, 3, 4]], observations[[0, 1, 3, 4], 0])
    for envs in (raising, restarting):
        envs.reset(seed=0)
        envs.step(np.ones((ROWS, 1)))


def test_inputs_of_a_row_that_is_replaced_in_a_step_are_not_read_from_memory_that_was_freed(
    make, full
):
    held, alive = [], []

    def reward(_before, _actions, after):
        alive.append([simulation() is not None for simulation in held])
        return after["qvel"][:, 0]

    keywords = {"observation": ["qpos"], "inputs": ["qvel"], **NO_TASK, "reward": reward}
    envs = make(full[1], on_error="restart", **keywords)
    envs.reset(seed=0)
    held += map(weakref.ref, envs.get_attr("data"))
    press_row_two(envs)
    assert alive[-1] == [True] * ROWS
    envs.step(np.ones((ROWS, 1)))  # it has begun an episode, with its new simulation
    assert held[2]() is None


def test_a_row_that_is_replaced_after_its_last_step_has_no_frame(make, full):
    keywords = {"observation": ["qpos"], "render_mode": "rgb_array", "max_episode_steps": 2}
    envs = make(full[1], autoreset_mode="SameStep", on_error="restart", **keywords, **NO_TASK)
    envs.draw_final_frames([2])
    envs.reset(seed=0)
    envs.set_attr("init_qpos", [np.array([-1.0])], env_index=[2])  # its reset presses the plate
    envs.step(np.ones((ROWS, 1)))
    *_, truncations, infos = envs.step(np.ones((ROWS, 1)))
    assert truncations.all()
    assert infos["_env_error"].tolist() == [False, False, True, False, False]
    assert "final_frame" not in infos
    envs.step(np.ones((ROWS, 1)))


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_a_row_that_is_replaced_begins_as_others_do_and_its_inputs_are_followed(make, full, mode):
    _, xml = full
    begun, heights = [], []

    def reset(_rng, rows, fields):
        begun.append(rows.tolist())
        fields["qpos"][:, 0] = 0.25

    def reward(before, _actions, after):
        heights.append((before["qpos"][:, 0], after["qpos"][:, 0]))
        return after["qpos"][:, 0]

    task = {"reward": reward, "terminated": None, "truncated": None, "reset": reset}
    keywords = {"observation": ["qvel"], "inputs": ["qpos"], "reset_noise_scale": 0}
    envs = make(xml, autoreset_mode=mode, on_error="restart", **keywords, **task)
    envs.reset(seed=0)
    result = press_row_two(envs)
    if mode == "NextStep":
        assert result[3][2]
        result = envs.step(np.ones((ROWS, 1)))
    assert [2] in begun
    assert (envs.get_attr("data.qpos")[2] == 0.25).all()
    assert (result[0][2] == 0).all()
    envs.reset(options={"env_index": [2]})
    for _ in range(2):
        envs.step(np.ones((ROWS, 1)))
    before, after = heights[-1]
    assert 0.25 <= before[2] < after[2]
    assert_identical(after, np.concatenate(envs.get_attr("data.qpos")))
