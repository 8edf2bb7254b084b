"""Models of one's own have the results of the same environment of Gymnasium, bit for bit."""

import gc
import weakref

import gymnasium as gym
import mujoco
import numpy as np
import pytest
from gymnasium.envs.mujoco import MujocoEnv
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import cartwheel
import cartwheel.mujoco
from tests.support.comparison import assert_identical

ROWS, LIMIT, FRAME_SKIP, SCALE = 5, 40, 4, 5e-3
FIELDS = ("qpos", "qvel", "xpos", "cfrc_ext", "sensordata")
XML = """
<mujoco>
  <option timestep="0.004" integrator="RK4"/>
  <default>
    <joint armature="0.1" damping="0.5" limited="true"/>
    <geom density="900" condim="3"/>
  </default>
  <worldbody>
    <geom name="floor" type="plane" size="20 20 0.1" conaffinity="1"/>
    <body name="torso" pos="0 0 1.1">
      <joint name="x" type="slide" axis="1 0 0" limited="false" armature="0" damping="0"/>
      <joint name="z" type="slide" axis="0 0 1" limited="false" armature="0" damping="0"/>
      <joint name="tilt" type="hinge" axis="0 1 0" limited="false" armature="0" damping="0"/>
      <geom type="capsule" fromto="0 0 0.2 0 0 -0.2" size="0.05"/>
      <site name="eye" pos="0 0 0.2"/>
      <body name="thigh" pos="0 0 -0.2">
        <joint name="hip" axis="0 -1 0" range="-100 20"/>
        <geom type="capsule" fromto="0 0 0 0 0 -0.4" size="0.05"/>
        <body name="leg" pos="0 0 -0.4">
          <joint name="knee" axis="0 -1 0" range="-100 10"/>
          <geom type="capsule" fromto="0 0 0 0 0 -0.45" size="0.05"/>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor joint="hip" gear="120" ctrlrange="-1 1" ctrllimited="true"/>
    <motor joint="knee" gear="90" ctrlrange="-0.5 1" ctrllimited="true"/>
  </actuator>
  <sensor><accelerometer site="eye"/></sensor>
</mujoco>
"""


class Hopping(MujocoEnv):
    """The same environment, as one writes it for Gymnasium."""

    metadata = {  # noqa: RUF012 - Gymnasium's form
        "render_modes": ["human", "rgb_array", "depth_array", "rgbd_tuple"],
        "render_fps": 62,
    }

    def __init__(self, path, noise="uniform"):
        super().__init__(path, FRAME_SKIP, observation_space=None)
        self._noise = noise
        self.observation_space = Box(-np.inf, np.inf, self._get_obs().shape, np.float64)

    def _get_obs(self):
        return np.concatenate([getattr(self.data, name).ravel() for name in FIELDS])

    def step(self, action):
        before = self.data.qpos[0].copy()
        self.do_simulation(action, self.frame_skip)
        speed = (self.data.qpos[0] - before) / self.dt
        height = self.data.xpos[1, 2]
        reward = speed + 1.0 - 1e-3 * np.sum(np.square(action))
        terminated = bool(height < 0.75 or abs(self.data.qpos[2]) > 0.5)
        truncated = bool(self.data.qpos[0] > 0.02)
        return self._get_obs(), reward, terminated, truncated, {}

    def reset_model(self):
        qpos = self.init_qpos + self.np_random.uniform(-SCALE, SCALE, self.model.nq)
        if self._noise == "uniform":
            qvel = self.init_qvel + self.np_random.uniform(-SCALE, SCALE, self.model.nv)
        else:
            qvel = self.init_qvel + SCALE * self.np_random.standard_normal(self.model.nv)
        self.set_state(qpos, qvel)
        return self._get_obs()


def reward(before, actions, after):
    speed = (after["qpos"][:, 0] - before["qpos"][:, 0]) / (0.004 * FRAME_SKIP)
    return speed + 1.0 - 1e-3 * np.sum(np.square(actions), axis=1)


def terminated(_before, _actions, after):
    return (after["xpos"][:, 1, 2] < 0.75) | (np.abs(after["qpos"][:, 2]) > 0.5)


def truncated(_before, _actions, after):
    return after["qpos"][:, 0] > 0.02


TASK = {"reward": reward, "terminated": terminated, "truncated": truncated}
NO_TASK = {"reward": lambda *_: np.zeros(ROWS), "terminated": None, "truncated": None}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "hopping.xml"
    path.write_text(XML)
    return str(path)


@pytest.fixture
def make():
    """Makes vector environments, which are closed after the test."""
    made = []

    def make(model=XML, num_envs=ROWS, **keywords):
        given = {"frame_skip": FRAME_SKIP, "observation": FIELDS, "reset_noise_scale": SCALE}
        made.append(cartwheel.mujoco.make(model, num_envs, **{**given, **TASK, **keywords}))
        return made[-1]

    yield make
    for envs in made:
        envs.close()


def oracle_of(path, mode, **keywords):
    def env():
        return gym.wrappers.TimeLimit(Hopping(path, **keywords), LIMIT)

    return SyncVectorEnv([env] * ROWS, autoreset_mode=mode)


def drawn(rng, envs, dtype):
    return rng.uniform(-1.2, 1.2, envs.action_space.shape).astype(dtype)


# Results


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
        ({"observation": ["qpos", "qvle"]}, ValueError, "'qvle', which is no array .* 'qvel'"),
        ({"observation": "qpos"}, TypeError, r"list of names, got 'qpos': did you mean \['qpos'\]"),
        ({"observation": []}, ValueError, "must name arrays, each once"),
        ({"observation": ["qpos", "qpos"]}, ValueError, "must name arrays, each once"),
        ({"observation": ["efc_force"]}, ValueError, "MuJoCo moves it in every step"),
        ({"observation": ["body_awake"]}, ValueError, "float64, got int32|no array of MjData"),
        ({"observation": [3]}, TypeError, "list of names, got 3 in it"),
        ({"reward": None}, TypeError, "`reward` must be a function of .before, actions, after."),
        ({"terminated": 3}, TypeError, "`terminated` must be a function"),
        ({"frame_skip": 0}, ValueError, "`frame_skip` must be a positive integer"),
        ({"reset_noise_scale": -1.0}, ValueError, "`reset_noise_scale` must be finite and not neg"),
        ({"reset_noise": "gauss"}, ValueError, "`reset_noise` must be one of"),
        ({"init_qpos": [0.0]}, ValueError, r"`init_qpos` must be finite numbers of shape \(5,\)"),
        ({"init_qvel": [np.nan] * 5}, ValueError, "`init_qvel` must be finite numbers"),
        ({"gravity": 9.8}, TypeError, "`gravity` is not a keyword of cartwheel.mujoco.make"),
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


def test_rows_are_not_sent_nor_stepped_by_number(make):
    envs = make()
    envs.reset(seed=0)
    actions = np.zeros((ROWS, 2), np.float32)
    for call in (envs.send, envs.step):
        with pytest.raises(ValueError, match="judged are stepped all together"):
            call(actions[:2], [0, 1])
    envs.step(actions)


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


# What functions do


class Wrong(Exception):
    """Raised by a function of the caller."""


def _raise(*_):
    raise Wrong("no reward")


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
    broken = [False]

    def maybe(*given):
        return function(*given) if broken[0] else TASK[name](*given)

    envs = make(autoreset_mode=mode, **{name: maybe})
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
def test_an_error_of_one_row_is_reported_after_the_others_were_judged(make, full, mode):
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
