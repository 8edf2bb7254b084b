"""Infos of functions, and fields that functions see and policies do not."""

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import cartwheel
import cartwheel.mujoco
from tests.support.comparison import assert_identical
from tests.support.reaching import LIMIT, OBSERVED, ROWS, TASK, XML, distance, infos, oracle_of

MODES = pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])


def build(mode="NextStep", **keywords):
    given = {"observation": OBSERVED, "inputs": ["mocap_pos"], "infos": infos, "executor": "inline"}
    return cartwheel.mujoco.make(XML, ROWS, autoreset_mode=mode, **{**given, **TASK, **keywords})


def play(envs, actions):
    results = []
    for action in actions:
        results.append(envs.step(action))
        over = results[-1][2] | results[-1][3]
        if envs.metadata["autoreset_mode"] == AutoresetMode.DISABLED and over.any():
            results.append(envs.reset(options={"reset_mask": over}))
    return results


def drawn(steps, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-1.2, 1.2, (steps, ROWS, 3)).astype(np.float32)


THREADS = [{"executor": "inline"}, {"executor": "auto", "num_workers": 2}]


@pytest.mark.parametrize("keywords", THREADS, ids=str)
@MODES
def test_infos_are_those_of_the_same_environment_of_gymnasium(tmp_path, mode, keywords):
    oracle, envs = oracle_of(tmp_path, mode), build(mode, **keywords)
    assert envs.observation_space == oracle.observation_space
    assert_identical(envs.reset(seed=3), oracle.reset(seed=3))
    actions = drawn(60)
    expected = play(oracle, actions)
    assert_identical(play(envs, actions), expected)
    masks = [result[-1]["_success"] for result in expected if "_success" in result[-1]]
    assert (mode == "Disabled") == all(mask.all() for mask in masks)
    assert mode != "SameStep" or any("final_info" in result[-1] for result in expected)
    oracle.close()
    envs.close()


@MODES
def test_dense_finals_and_wrappers_see_the_first_states(mode):
    plain, dense = build(mode), build(mode, final_obs="dense" if mode == "SameStep" else "object")
    stacked = cartwheel.wrappers.FrameStack(build(mode), stack_size=2)
    shown = [each.reset(seed=7)[0] for each in (plain, dense, stacked)]
    assert_identical(shown[0], shown[1])
    assert_identical(np.ascontiguousarray(shown[2][:, 1]), shown[0])
    for action in drawn(LIMIT + 5, seed=3):
        results = [play(each, [action]) for each in (plain, dense, stacked)]
        for expected, other, frames in zip(*results, strict=True):
            assert_identical(other[0], expected[0])
            assert_identical(np.ascontiguousarray(frames[0][:, -1]), expected[0])
    for each in (plain, dense, stacked):
        each.close()


@MODES
def test_a_state_in_the_middle_has_the_inputs(mode):
    envs, others = build(mode), build(mode, executor="auto", num_workers=7)
    envs.reset(seed=5)
    actions = drawn(LIMIT + 20, seed=1)
    shown = play(envs, actions[:15])[-1][0]
    state = envs.state_dict()
    singles = envs.get_state()
    expected = play(envs, actions[15:])
    assert_identical(others.load_state_dict(state), shown)
    assert_identical(play(others, actions[15:]), expected)
    others.set_state(range(ROWS), singles)
    assert_identical(play(others, actions[15:]), expected)
    for each in (envs, others):
        each.close()


def test_rollouts_asynchronous_steps_and_rows_have_the_infos_of_steps():
    envs, recorded, asynchronous, by_row = (build("SameStep") for _ in range(4))
    for each in (envs, recorded, asynchronous, by_row):
        each.reset(seed=4)
    actions = drawn(LIMIT + 3, seed=2)
    results = play(envs, actions)
    rollout = recorded.rollout(len(actions))
    for action, expected in zip(actions, results, strict=True):
        assert_identical(recorded.step(action)[-1], expected[-1])
        asynchronous.step_async(action)
        assert_identical(asynchronous.step_wait()[-1], expected[-1])
        infos_of_rows = by_row._pool.step_by_row(action, [{}] * ROWS)[-1]
        over = expected[2] | expected[3]
        for row, own in enumerate(infos_of_rows):
            last = expected[-1]["final_info"] if over[row] else expected[-1]
            assert_identical(own["tip"], last["tip"][row])
            assert own["success"] == last["success"][row]
    assert_identical(rollout.rewards, np.stack([result[1] for result in results]))
    assert_identical(rollout.observations[1:], np.stack([result[0] for result in results]))
    for each in (envs, recorded, asynchronous, by_row):
        each.close()


def test_functions_see_inputs_and_time_before_and_after_a_step():
    seen = []

    def reward(before, _actions, after):
        seen.append({name: (before[name], after[name]) for name in ("time", "qfrc_actuator")})
        with pytest.raises(ValueError, match="read-only"):
            after["time"][:] = 0
        return before["time"] + after["time"]

    envs = build(
        reward=reward,
        observation=["qpos"],
        inputs=["time", "qfrc_actuator", "mocap_pos", "site_xpos"],
        terminated=None,
        max_episode_steps=None,
        reset=lambda _rng, rows, fields: fields.__setitem__("time", rows),
    )
    assert envs.single_observation_space.shape == (3,)
    envs.reset(seed=1)
    rewards = [envs.step(np.ones((ROWS, 3)))[1] for _ in range(2)]
    np.testing.assert_allclose(rewards[0], 2 * np.arange(ROWS) + 0.03)
    np.testing.assert_allclose(rewards[1], 2 * np.arange(ROWS) + 0.09)
    assert_identical(seen[1]["time"][0], seen[0]["time"][1])
    assert (seen[0]["qfrc_actuator"][1] != 0).any()
    assert_identical(envs.get_attr("data.time"), tuple(seen[1]["time"][1].tolist()))
    envs.close()


def test_time_can_be_observed():
    envs = build(observation=[*OBSERVED, "time"], terminated=None, reset=lambda *_: None)
    first, _ = envs.reset(seed=1)
    observations = envs.step(np.zeros((ROWS, 3)))[0]
    np.testing.assert_array_equal(envs.fields(first)["time"], np.zeros(ROWS))
    np.testing.assert_allclose(envs.fields(observations)["time"], np.full(ROWS, 0.03))
    envs.close()


@pytest.mark.parametrize(
    ("inputs", "error", "text"),
    [
        ("qpos", TypeError, r"`inputs` must be a list of names, got 'qpos'"),
        (["qpos"], ValueError, "`inputs` names 'qpos', which `observation` names, too"),
        (["mocap_poss"], ValueError, "`inputs` names 'mocap_poss'.* did you mean 'mocap_pos'"),
        (["efc_force"], ValueError, "efc_force"),
        (["ncno"], ValueError, "'ncno', which is not an array or a number .* did you mean 'ncon'"),
        (["threadpool"], ValueError, "'threadpool', which is not an array or a number of MjData$"),
        (["mocap_pos", "mocap_pos"], ValueError, "each once"),
        ([3], TypeError, "got 3 in it"),
    ],
)
def test_inputs_that_do_not_exist_are_refused(inputs, error, text):
    with pytest.raises(error, match=text):
        build(inputs=inputs)


@pytest.mark.parametrize(
    ("returned", "error", "text"),
    [
        ([1], TypeError, r"`infos` must return a dictionary of arrays, got \[1\]"),
        ({"a": np.zeros(2)}, ValueError, r"5 rows, got 'a' of shape \(2,\)"),
        ({"a": 1.0}, ValueError, r"got 'a' of shape \(\)"),
        ({"a": ["x"] * ROWS}, TypeError, "numbers and truth values, got 'a' of <U1"),
        ({"_a": np.zeros(ROWS)}, ValueError, "key '_a'"),
        ({"final_info": np.zeros(ROWS)}, ValueError, "key 'final_info'.* none of final_obs"),
        ({3: np.zeros(ROWS)}, ValueError, "key 3"),
        (KeyError("xpos"), KeyError, "xpos"),
    ],
)
def test_infos_that_do_not_fit_fail_the_step_and_a_reset_repairs_it(returned, error, text):
    broken = [True]

    def function(*given):
        if broken[0] and isinstance(returned, Exception):
            raise returned
        return returned if broken[0] else infos(*given)

    envs, sound = build(infos=function), build()
    envs.reset(seed=1)
    with pytest.raises(error, match=text) as caught:
        envs.step(np.zeros((ROWS, 3)))
    if isinstance(returned, KeyError):
        assert "`observation` and `inputs` name: ['qpos'" in caught.value.__notes__[-1]
    broken[0] = False
    assert_identical(envs.reset(seed=2), sound.reset(seed=2))
    assert_identical(play(envs, drawn(3)), play(sound, drawn(3)))
    for each in (envs, sound):
        each.close()


def test_what_is_not_a_function_is_refused():
    with pytest.raises(TypeError, match="`infos` must be a function of"):
        build(infos={"distance": distance})


FALLING = """
<mujoco>
  <option timestep="0.01"><flag energy="enable"/></option>
  <worldbody>
    <geom type="plane" size="1 1 1"/>
    <body pos="0 0 0.15"><freejoint/><geom type="box" size="0.1 0.1 0.1"/></body>
  </worldbody>
</mujoco>
"""
NUMBERS = ("time", "ncon", "nefc")


@MODES
def test_numbers_of_mujoco_are_those_of_its_data_before_and_after_a_step(mode):
    seen = []

    def reward(before, _actions, after):
        seen.append((before, after))
        return after["nefc"]

    keywords = {
        "reward": reward,
        "observation": ["ncon", "energy", "qpos"],
        "inputs": ["nefc", "solver_niter", "time"],
        "max_episode_steps": 15,
        "autoreset_mode": mode,
        "executor": "inline",
    }
    envs, other = (cartwheel.mujoco.make(FALLING, 2, **keywords) for _ in range(2))
    assert envs.single_observation_space.shape == (1 + 2 + 7,)
    observations, _ = envs.reset(seed=1)
    actions = np.zeros((2, 0), np.float32)
    for step in range(14):
        observations, rewards, *_ = envs.step(actions)
        before, after = seen[-1]
        for name in NUMBERS:
            of_data = envs.get_attr(f"data.{name}")
            assert after[name].tolist() == list(of_data)
            assert after[name].dtype == np.float64
        assert_identical(rewards, after["nefc"])
        niter = np.stack(envs.get_attr("data.solver_niter"))
        assert_identical(after["solver_niter"], niter.astype(np.float64))
        assert_identical(envs.fields(observations)["ncon"], after["ncon"])
        if step:
            for name in ("ncon", "nefc", "time", "energy", "solver_niter"):
                assert_identical(before[name], seen[-2][1][name])
    assert (after["ncon"] > 0).all()
    assert len({float(after["ncon"][0]) for _, after in seen}) > 1
    assert_identical(other.load_state_dict(envs.state_dict()), observations)
    for each in (envs, other):
        each.step(actions)
    for name in ("ncon", "nefc", "time", "solver_niter"):
        assert_identical(seen[-1][0][name], seen[-2][0][name])
    for each in (envs, other):
        each.close()


def test_integers_that_functions_see_are_not_written():
    def reset(_rng, _rows, fields):
        fields["ncon"][:] = 3

    envs = cartwheel.mujoco.make(
        FALLING, 2, reward=lambda *_: np.zeros(2), inputs=["ncon"], reset=reset, executor="inline"
    )
    with pytest.raises(KeyError, match="'ncon' cannot be written: MuJoCo computes it"):
        envs.reset(seed=1)
    envs.close()
