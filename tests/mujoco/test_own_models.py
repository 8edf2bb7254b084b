"""Models of one's own have the results of the same environment of Gymnasium, bit for bit."""

import gymnasium as gym
import mujoco
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import cartwheel
import cartwheel.mujoco
from tests.support.bytes_of_flags import with_byte
from tests.support.comparison import assert_identical
from tests.support.own_models import (
    LIMIT,
    NO_TASK,
    ROWS,
    TASK,
    XML,
    Hopping,
)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "hopping.xml"
    path.write_text(XML)
    return str(path)


def oracle_of(path, mode, **keywords):
    def env():
        return gym.wrappers.TimeLimit(Hopping(path, **keywords), LIMIT)

    return SyncVectorEnv([env] * ROWS, autoreset_mode=mode)


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_a_function_may_return_flags_of_any_byte(make, path, mode):
    tasks = {name: TASK[name] for name in ("terminated", "truncated")}
    odd = {
        name: lambda *given, flags=flags: with_byte(flags(*given), 254)
        for name, flags in tasks.items()
    }
    envs, twin = (make(path, autoreset_mode=mode, **functions) for functions in (odd, tasks))
    assert_identical(envs.reset(seed=3), twin.reset(seed=3))
    rng, ends = np.random.default_rng(0), np.zeros(2, int)
    for _ in range(100):
        actions = drawn(rng, envs, np.float32)
        result = envs.step(actions)
        assert_identical(result, twin.step(actions))
        assert all(set(flags.view(np.uint8)) <= {0, 1} for flags in result[2:4])
        ends += [result[2].sum(), result[3].sum()]
    assert ends.any()


def drawn(rng, envs, dtype):
    return rng.uniform(-1.2, 1.2, envs.action_space.shape).astype(dtype)


@pytest.mark.parametrize("keywords", [{"executor": "inline"}, {"num_workers": 3}], ids=str)
@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize("noise", ["uniform", "normal"])
def test_results_are_those_of_the_same_environment_of_gymnasium(make, path, mode, noise, keywords):
    oracle = oracle_of(path, AutoresetMode(mode), noise=noise)
    envs = make(path, autoreset_mode=mode, reset_noise=noise, max_episode_steps=LIMIT, **keywords)
    assert envs.action_space == oracle.action_space
    assert envs.single_observation_space == oracle.single_observation_space
    assert_identical(envs.reset(seed=3), oracle.reset(seed=3))
    rng, ends = np.random.default_rng(0), np.zeros(2, int)
    for step in range(250):
        actions = drawn(rng, envs, (np.float32, np.float64)[step % 3 == 0])
        result, expected = envs.step(actions), oracle.step(actions)
        assert_identical(result[:4], expected[:4])
        assert_identical(_finals(result[4]), _finals(expected[4]))
        ends += [result[2].sum(), result[3].sum()]
        if step == 120:
            assert_identical(envs.reset(seed=8), oracle.reset(seed=8))
    assert (ends > 5).all(), ends
    oracle.close()


def _finals(infos):
    return {key: infos[key] for key in ("final_obs", "_final_obs") if key in infos}


def test_without_autoreset_rows_are_reset_by_a_mask(make, path):
    oracle = oracle_of(path, AutoresetMode.DISABLED)
    envs = make(path, autoreset_mode="Disabled", max_episode_steps=LIMIT)
    assert_identical(envs.reset(seed=3), oracle.reset(seed=3))
    rng, resets = np.random.default_rng(0), 0
    for _ in range(200):
        actions = drawn(rng, envs, np.float32)
        result, expected = envs.step(actions), oracle.step(actions)
        assert_identical(result[:4], expected[:4])
        over = result[2] | result[3]
        if over.any():
            resets += 1
            options = {"reset_mask": over}
            assert_identical(envs.reset(options=options)[0], oracle.reset(options=options)[0])
    assert resets > 5
    oracle.close()


def test_dense_finals_rollouts_and_async_steps_are_those_of_steps(make):
    keywords = {"autoreset_mode": "SameStep", "max_episode_steps": 7}
    plain, dense, asynchronous = (
        make(**keywords),
        make(final_obs="dense", **keywords),
        make(**keywords),
    )
    recorded = make(**keywords)
    for envs in (plain, dense, asynchronous):
        envs.reset(seed=3)
    rng, batches, taken = np.random.default_rng(0), [], []
    for _ in range(20):
        taken.append(drawn(rng, plain, np.float64))
        observations, *outcomes, _ = plain.step(taken[-1])
        batches.append((observations, *outcomes))
        assert_identical(dense.step(taken[-1])[:4], batches[-1])
        actions = taken[-1].copy()
        asynchronous.step_async(actions)
        actions[:] = 0  # the caller's array is the caller's
        assert_identical(asynchronous.step_wait()[:4], batches[-1])
    steps = iter(taken)
    collector = cartwheel.Collector(recorded, lambda _: next(steps), num_steps=20, seed=3)
    rollout = collector.collect()
    for at, (observations, rewards, terminations, truncations) in enumerate(batches):
        assert_identical(rollout.observations[at + 1], observations)
        assert_identical(rollout.rewards[at], rewards)
        assert_identical(rollout.terminated[at], terminations)
        assert_identical(rollout.truncated[at], truncations)


def test_a_saved_state_goes_on_alike(make):
    envs = make(autoreset_mode="SameStep", max_episode_steps=9)
    envs.reset(seed=1)
    rng = np.random.default_rng(0)
    for _ in range(5):
        envs.step(drawn(rng, envs, np.float32))
    state, actions = envs.get_state(), [drawn(rng, envs, np.float32) for _ in range(12)]
    first = [envs.step(each)[:4] for each in actions]
    envs.set_state(None, state)
    assert_identical([envs.step(each)[:4] for each in actions], first)


def test_observations_are_the_fields_one_after_the_other(make):
    envs = make(observation=["ctrl", "xpos", "qvel"], **NO_TASK)
    seen = []
    envs.reset(seed=0)
    observations, *_ = envs.step(np.full((ROWS, 2), 0.25))
    split = envs.fields(observations)
    assert {name: array.shape for name, array in split.items()} == {
        "ctrl": (ROWS, 2), "xpos": (ROWS, 4, 3), "qvel": (ROWS, 5)
    }  # fmt: skip
    assert all(np.shares_memory(array, observations) for array in split.values())
    assert (split["ctrl"] == 0.25).all()
    for row, data in enumerate(envs.get_attr("data")):
        assert_identical(split["xpos"][row], data.xpos)
        seen.append(data)
    assert len({id(data) for data in seen}) == ROWS


# What users pass


def test_models_come_from_files_texts_and_objects(make, path, tmp_path):
    model = mujoco.MjModel.from_xml_string(XML)
    binary = tmp_path / "hopping.mjb"
    mujoco.mj_saveModel(model, str(binary), None)
    results = []
    for given in (XML, path, model, binary):
        envs = make(given, num_envs=2)
        envs.reset(seed=1)
        results.append(envs.step(np.ones((2, 2)))[:4])
    for result in results[1:]:
        assert_identical(result, results[0])


def test_initial_states_are_the_callers(make):
    start = np.array([0.1, 0.2, 0.0, -0.3, 0.1])
    envs = make(init_qpos=start, init_qvel=[1, 0, 0, 0, 0], reset_noise_scale=0)
    split = envs.fields(envs.reset(seed=0)[0])
    assert (split["qpos"] == start).all()
    assert (split["qvel"] == [1, 0, 0, 0, 0]).all()


def test_unlimited_actuators_have_no_bounds(make):
    xml = XML.replace('ctrlrange="-0.5 1" ctrllimited="true"', 'ctrllimited="false"')
    space = make(xml).single_action_space
    assert space.low.tolist() == [-1, -np.inf]
    assert space.high.tolist() == [1, np.inf]


@pytest.mark.parametrize(
    ("keywords", "error", "text"),
    [
        ({"observation": ["qpos", "qvle"]}, ValueError, "'qvle', which is not an array .* 'qvel'"),
        ({"observation": ["ncno"]}, ValueError, "not an array or a number .* did you mean 'ncon'"),
        ({"observation": ["flg_rnepost"]}, ValueError, "not an array or a number of MjData"),
        ({"observation": ["eq_active"]}, ValueError, "float64 or int32, got (bool|uint8)"),
        ({"observation": "qpos"}, TypeError, r"list of names, got 'qpos': did you mean \['qpos'\]"),
        ({"observation": []}, ValueError, "must name arrays, each once"),
        ({"observation": ["qpos", "qpos"]}, ValueError, "must name arrays, each once"),
        ({"observation": ["efc_force"]}, ValueError, "MuJoCo moves it in every step"),
        ({"observation": [3]}, TypeError, "list of names, got 3 in it"),
        ({"reward": None}, TypeError, "`reward` must be a function of .before, actions, after."),
        ({"terminated": 3}, TypeError, "`terminated` must be a function"),
        ({"frame_skip": 0}, ValueError, "`frame_skip` must be a positive integer"),
        ({"frame_skip": 2**40}, ValueError, "`frame_skip` must be at most 4294967295"),
        ({"reset_noise_scale": -1.0}, ValueError, "`reset_noise_scale` must be finite and not neg"),
        ({"reset_noise": "gauss"}, ValueError, "`reset_noise` must be one of"),
        ({"init_qpos": [0.0]}, ValueError, r"`init_qpos` must be finite numbers of shape \(5,\)"),
        ({"init_qvel": [np.nan] * 5}, ValueError, "`init_qvel` must be finite numbers"),
        ({"width": 0}, ValueError, "`width` must be a positive integer"),
        ({"camera_id": 7}, ValueError, "`camera_id` must be an integer .*, got 7"),
        ({"camera_name": "sied"}, ValueError, "`camera_name` must be one of .*, got 'sied'"),
        ({"camera_id": -1, "camera_name": "a"}, ValueError, "name one camera: pass one of them"),
        ({"gravity": 9.8}, TypeError, "`gravity` is not a keyword of cartwheel.mujoco.make, "),
        ({"frameskip": 5}, TypeError, "`frameskip` is not a keyword .* did you mean `frame_skip`"),
        ({"autoreset": 5}, TypeError, "`autoreset` is not a keyword .* mean `autoreset_mode`"),
        ({"action_repeat": 2}, ValueError, "`frame_skip` repeats controls"),
        ({"batch_size": 2}, ValueError, "`batch_size` is `num_envs` here"),
        ({"model": "nowhere.xml"}, FileNotFoundError, "there is no file 'nowhere.xml'"),
        ({"model": "<mujoco><nothing/></mujoco>"}, ValueError, "nothing"),
        ({"model": 3}, TypeError, "`model` must be a mujoco.MjModel, the path of a file, or XML"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_named(make, keywords, error, text):
    with pytest.raises(error, match=text):
        make(**keywords)


@pytest.mark.parametrize(
    "keywords", [{}, {"autoreset_mode": "Disabled", "on_done": "freeze"}], ids=str
)
def test_rewards_of_rows_that_are_not_stepped_are_not_used(make, keywords):
    """They may be NaN, as a speed is where no time passes."""

    def speed(_before, _actions, after):
        return after["qvel"][:, 0]

    def speed_in_time(before, actions, after):
        passed = after["time"] > before["time"]
        return np.where(passed, speed(before, actions, after), np.nan)

    keywords = {"max_episode_steps": 2, "inputs": ["time"], **keywords}
    envs, sound = make(reward=speed_in_time, **keywords), make(reward=speed, **keywords)
    assert_identical(envs.reset(seed=0), sound.reset(seed=0))
    for _ in range(5):
        actions = np.full((ROWS, 2), 0.3)
        assert_identical(envs.step(actions), sound.step(actions))


def test_rows_are_not_sent_nor_stepped_by_number(make):
    envs = make()
    envs.reset(seed=0)
    actions = np.zeros((ROWS, 2), np.float32)
    for call in (envs.send, envs.step):
        with pytest.raises(ValueError, match="external rewards are stepped all together"):
            call(actions[:2], [0, 1])
    envs.step(actions)


def test_an_adapter_that_would_step_rows_apart_is_refused_and_the_other_one_works(make):
    envs, same = make(autoreset_mode="disabled"), make(autoreset_mode="same_step")
    with pytest.raises(TypeError, match=r"except those of `cartwheel\.mujoco\.make`.* SAME_STEP"):
        cartwheel.wrappers.AutoresetAdapter(cartwheel.wrappers.ClipAction(envs), "next_step")
    adapted = cartwheel.wrappers.AutoresetAdapter(envs, "same_step")
    assert_identical(adapted.reset(seed=4), same.reset(seed=4))
    rng = np.random.default_rng(4)
    for _ in range(20):
        actions = drawn(rng, envs, np.float32)
        assert_identical(adapted.step(actions), same.step(actions))


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_an_evaluation_is_that_of_the_same_environment_of_gymnasium(make, path, mode):
    """Rows have played their episodes at different times, and are rewarded together anyway."""
    ours, oracle = make(autoreset_mode=mode), oracle_of(path, AutoresetMode(mode))

    def policy(observations):
        return np.sin(50 * observations[:, :2])

    found, expected = (
        cartwheel.evaluate(envs, policy, episodes_per_env=3, seed=4) for envs in (ours, oracle)
    )
    oracle.close()
    assert found.lengths.tolist() == expected.lengths.tolist()
    assert len(set(found.lengths.sum(axis=1).tolist())) > 1
    assert found.returns.tobytes() == expected.returns.tobytes()


def test_rows_that_were_reset_by_number_go_on_from_where_they_are(make):
    envs, sound = make(), make()
    for each in (envs, sound):
        each.reset(seed=0)
        each.step(np.ones((ROWS, 2)))
    observations, infos = envs.reset(seed=[9, 7], options={"env_index": [4, 1]})
    assert infos["env_index"].tolist() == [4, 1]
    mask = np.array([False, True, False, False, True])
    expected = sound.reset(seed=[None, 7, None, None, 9], options={"reset_mask": mask})[0]
    assert_identical(observations, expected[[4, 1]])
    for _ in range(3):
        assert_identical(envs.step(np.ones((ROWS, 2)))[:4], sound.step(np.ones((ROWS, 2)))[:4])


def test_a_models_fields_belong_to_rows_that_have_a_copy(make):
    envs = make(model_per_row=True, observation=["qacc"], **NO_TASK)
    envs.set_attr("model.body_mass", [np.array([0, mass, 1, 1.0]) for mass in range(1, ROWS + 1)])
    envs.reset(seed=[0] * ROWS)
    accelerations = envs.step(np.ones((ROWS, 2)))[0]
    assert len(np.unique(accelerations[:, 0])) == ROWS
    with pytest.raises(ValueError, match="model_per_row=True"):
        make().set_attr("model.body_mass", np.ones(4))
