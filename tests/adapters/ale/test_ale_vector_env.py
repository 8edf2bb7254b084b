"""Atari by ale-py's threads: its results, behind checks, in cartwheel's forms."""

import os
import signal

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import cartwheel
from cartwheel.wrappers import FlattenObservation, RecordEpisodeStatistics
from tests.support.comparison import assert_identical
from tests.support.oracle import D, N, S

pytestmark = pytest.mark.zoo

#: Episodes of a few steps, by a limit or by lost lives.
PONG = {"max_num_frames_per_episode": 60, "repeat_action_probability": 0.25}
LIVES = {"episodic_life": True, "max_num_frames_per_episode": 200, "reward_clipping": False}


@pytest.fixture
def make():
    """Makes vector environments by ``executor="ale"``, and closes them."""
    made = []

    def build(num_envs=3, game="Pong", **keywords):
        envs = cartwheel.make_vec(f"ALE/{game}-v5", num_envs, executor="ale", **keywords)
        made.append(envs)
        return envs

    yield build
    for envs in made:
        envs.close()


@pytest.fixture
def theirs(monkeypatch):
    """Makes ale-py's own vector environments, whose constructor writes into Gymnasium's class."""
    from ale_py.vector_env import AtariVectorEnv

    monkeypatch.setattr(gym.vector.VectorEnv, "metadata", {})
    made = []

    def build(num_envs=3, game="pong", autoreset_mode=N, **keywords):
        keywords = {"repeat_action_probability": 0.25, **keywords}
        made.append(AtariVectorEnv(game, num_envs, autoreset_mode=autoreset_mode, **keywords))
        return made[-1]

    yield build
    for envs in made:
        envs.ale = None  # its `close` leaves the threads


def own(infos):
    """The infos of ale-py: without masks and final values."""
    return {name: infos[name] for name in infos if not name.startswith(("_", "final", "env_index"))}


def assert_same_step(ours, theirs):
    """The same observations, flags and infos; rewards in ``float64``; final rows of ended rows."""
    observations, rewards, terminations, truncations, infos = ours
    expected = theirs[4]
    finals = expected.pop("final_obs", None)
    assert_identical((observations, terminations, truncations), (theirs[0], *theirs[2:4]))
    assert_identical(rewards, theirs[1].astype(np.float64))
    assert_identical(own(infos), expected)
    for name in expected:
        assert_identical(infos[f"_{name}"], np.ones(len(rewards), np.bool_))
    over = terminations | truncations
    assert ("final_obs" in infos) == (finals is not None)
    if finals is not None:
        for name in ("_final_obs", "_final_info"):
            assert_identical(infos[name], over)
        assert infos["final_info"] == {}
        for row, ended in enumerate(over):
            assert_identical(infos["final_obs"][row], finals[row] if ended else None)


@pytest.mark.parametrize("mode", [N, S], ids=lambda mode: mode.value)
@pytest.mark.parametrize("num_envs", [1, 5])
@pytest.mark.parametrize(("game", "keywords"), [("Pong", PONG), ("Breakout", LIVES)])
def test_results_are_ale_pys(make, theirs, mode, num_envs, game, keywords):
    keywords = {"autoreset_mode": mode, **keywords}
    ours = make(num_envs, game, num_threads=7, **keywords)
    oracle = theirs(num_envs, game.lower(), **keywords)
    observations, infos = ours.reset(seed=11)
    expected = oracle.reset(seed=11)
    assert_identical(observations, expected[0])
    assert_identical(own(infos), expected[1])
    oracle.action_space.seed(1)
    ended = 0
    for _ in range(90):
        actions = oracle.action_space.sample()
        step = ours.step(actions)
        assert_same_step(step, oracle.step(actions))
        ended += (step[2] | step[3]).sum()
    assert ended >= num_envs


@pytest.mark.parametrize("mode", [N, S, D])
def test_the_autoreset_mode_cannot_be_set(make, mode):
    envs = make(autoreset_mode=mode)
    with pytest.raises(AttributeError, match=r"mode of AleVectorEnv.* cannot be set"):
        envs.autoreset_mode = D if mode is N else N
    assert envs.autoreset_mode is envs.metadata["autoreset_mode"] is mode


def test_without_autoreset_rows_wait_for_their_reset(make, theirs):
    ours, oracle = make(4, autoreset_mode=D, **PONG), theirs(4, **PONG)
    assert_identical(ours.reset(seed=5)[0], oracle.reset(seed=5)[0])
    oracle.action_space.seed(2)
    stops = 0
    for step in range(60):
        actions = oracle.action_space.sample()
        result = ours.step(actions)
        assert_same_step(result, oracle.step(actions))
        over = result[2] | result[3]
        if over.any():
            stops += 1
            with pytest.raises(cartwheel.EpisodeOverError, match="over") as caught:
                ours.step(actions)
            assert caught.value.env_index == over.nonzero()[0].tolist()
            options = {"reset_mask": over}
            observations, infos = ours.reset(options=options)
            expected = oracle.reset(options=dict(options))
            assert_identical((observations, own(infos)), expected)
        elif step == 5:  # ends the common rhythm
            mask = np.array([True, False, True, False])
            ours.reset(seed=90, options={"reset_mask": mask})
            oracle.reset(seed=np.array([90, 92]), options={"reset_mask": mask})
    assert stops > 4


def preprocessed(env):
    from gymnasium.wrappers import AtariPreprocessing, FrameStackObservation

    env = AtariPreprocessing(env, noop_max=0, frame_skip=4)
    return FrameStackObservation(env, 4, padding_type="zero")


def test_one_game_is_gymnasiums_preprocessing_of_it(make):
    """Gymnasium's environment runs in a process, because OpenCV keeps its threads forever."""
    keywords = {"noop_max": 0, "use_fire_reset": False, "reward_clipping": False}
    envs = make(1, "Breakout", repeat_action_probability=0.0, **keywords)
    single = cartwheel.make_vec(
        "BreakoutNoFrameskip-v4", 1, executor="process", wrappers=[preprocessed]
    )
    assert_identical(envs.reset(seed=3)[0], single.reset(seed=3)[0])
    random, rewarded = np.random.default_rng(4), 0
    for _ in range(250):
        actions = random.integers(4, size=1)
        step, expected = envs.step(actions), single.step(actions)
        assert_identical(step[:4], expected[:4])
        assert step[4]["lives"] == expected[4]["lives"]
        rewarded += expected[1][0]
        if expected[2]:
            break
    assert rewarded
    single.close()


def test_dense_finals_of_rows_that_go_on_are_their_observations(make):
    envs = make(4, "Breakout", autoreset_mode="same_step", final_obs="dense", **LIVES)
    plain = make(4, "Breakout", autoreset_mode="same_step", **LIVES)
    envs.reset(seed=1), plain.reset(seed=1)
    mixed = 0
    for step in range(120):
        actions = [1, 2, 3, 0] if step % 4 else [1] * 4
        observations, _, terminations, truncations, infos = envs.step(actions)
        objects = plain.step(actions)[4]
        over = terminations | truncations
        for row in range(4):
            expected = objects["final_obs"][row] if over[row] else observations[row]
            assert_identical(infos["final_obs"][row], expected)
        assert_identical(infos["_final_obs"], over)
        assert not np.shares_memory(infos["final_obs"], observations)
        mixed += over.any() and not over.all()
    assert mixed


@pytest.mark.parametrize(
    ("actions", "error", "words"),
    [
        ([0, 99, 0], ValueError, "action 99 of row 1 does not exist: there are 0 to 5"),
        ([0, 0, -1], ValueError, "action -1 of row 2"),
        ([0, 0], ValueError, r"shape \(3,\), got \(2,\)"),
        ([0.0, 1.0, 2.0], TypeError, r"must be integers, as in Discrete\(6\), got float64"),
        ([True, False, True], TypeError, "bool"),
    ],
)
def test_actions_that_ale_py_waits_for_for_ever_are_refused(make, actions, error, words):
    envs, other = make(), make()
    envs.reset(seed=1), other.reset(seed=1)
    with pytest.raises(error, match=words):
        envs.step(actions)
    for actions in ([1, 2, 3], np.array([1, 2, 3], np.uint8), np.arange(6)[::2]):
        assert_identical(envs.step(actions), other.step(np.array(actions, np.int64)))


def test_continuous_actions_are_checked(make, theirs):
    envs, oracle = make(continuous=True), theirs(continuous=True)
    assert_identical(envs.reset(seed=2)[0], oracle.reset(seed=2)[0])
    for bad in (np.full((3, 3), np.nan, np.float32), np.zeros((3, 2), np.float32)):
        with pytest.raises(ValueError, match="actions must"):
            envs.step(bad)
    oracle.action_space.seed(0)
    for _ in range(20):
        actions = oracle.action_space.sample()
        assert_same_step(envs.step(actions), oracle.step(actions))


def test_calls_out_of_order_are_errors(make):
    envs = make()
    with pytest.raises(gym.error.ResetNeeded, match="reset"):
        envs.step([0, 0, 0])
    some = {"reset_mask": np.array([True, False, False])}
    with pytest.raises(gym.error.ResetNeeded, match="without a mask"):
        envs.reset(options=some)
    envs.reset(seed=1)
    with pytest.raises(gym.error.NoAsyncCallError, match="3 rows in flight, and there are 0"):
        envs.recv()
    envs.send([0, 0, 0])
    with pytest.raises(gym.error.AlreadyPendingCallError, match="recv"):
        envs.send([0, 0, 0])
    with pytest.raises(gym.error.AlreadyPendingCallError, match="recv"):
        envs.reset(options=some)
    assert envs.reset(seed=1)[1]["episode_frame_number"].max() <= 31  # what was sent is dropped
    parts = make(4, batch_size=2)
    parts.reset(seed=1)
    with pytest.raises(RuntimeError, match=r"leave 'reset_mask' out, or make .* without `batch"):
        parts.reset(options={"reset_mask": np.array([True, False, False, False])})
    envs.close()
    envs.close()
    for call in (envs.reset, envs.recv, lambda: envs.step([0, 0, 0])):
        with pytest.raises(gym.error.ClosedEnvironmentError):
            call()


@pytest.mark.parametrize("moment", ["send", "recv"])
def test_ctrl_c_in_a_call_of_ale_py_leaves_nothing_in_flight(make, monkeypatch, moment):
    from ale_py.vector_env import AtariVectorEnv

    real = getattr(AtariVectorEnv, moment)

    def interrupted(self, *given):
        result = real(self, *given)
        signal.raise_signal(signal.SIGINT)
        return result

    envs = make()
    first = envs.reset(seed=1)
    with monkeypatch.context() as patch:
        patch.setattr(AtariVectorEnv, moment, interrupted)
        with pytest.raises(KeyboardInterrupt):
            envs.step([0, 0, 0])
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    envs.step([0, 0, 0])
    assert_identical(envs.reset(seed=1), first)


def test_a_forked_child_gets_an_error_instead_of_a_hang(make):
    envs = make()
    envs.reset(seed=1)
    child = os.fork()
    if not child:
        signal.alarm(20)
        try:
            envs.step([0, 0, 0])
        except cartwheel.ForkedProcessError as error:
            os._exit(0 if "make the vector environment in this process" in str(error) else 1)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    envs.step([0, 0, 0])


@pytest.mark.parametrize("mode", [N, S], ids=lambda mode: mode.value)
def test_batches_of_some_rows_have_the_results_of_these_rows(make, mode):
    """Each row gets its own number as its action, whenever it is stepped."""
    whole = make(4, autoreset_mode=mode, **PONG)
    parts = make(4, autoreset_mode=mode, batch_size=2, **PONG)
    expected = [[] for _ in range(4)]
    whole.reset(seed=8)
    for _ in range(60):
        observations, rewards, terminations, truncations, infos = whole.step(np.arange(4))
        for row in range(4):
            finals = infos["final_obs"][row] if "final_obs" in infos else None
            flags = terminations[row], truncations[row]
            expected[row].append((observations[row], rewards[row], *flags, finals))
    for _ in range(2):  # a second reset drops the results that are still there
        received = [0] * 4
        _, infos = parts.reset(seed=8)
        begun = set(infos["env_index"].tolist())
        for _ in range(30):
            result = parts.step(infos["env_index"])
            observations, rewards, terminations, truncations, infos = result
            assert infos["env_index"].dtype == np.int64
            for place, row in enumerate(infos["env_index"]):
                if row not in begun:  # the batch has the reset of this row
                    begun.add(row)
                    continue
                finals = infos["final_obs"][place] if "final_obs" in infos else None
                flags = terminations[place], truncations[place]
                got = observations[place], rewards[place], *flags, finals
                assert_identical(got, expected[row][received[row]])
                received[row] += 1
        assert sum(received) >= 56  # of thirty batches of two


def test_seeds_are_those_of_all_vector_environments(make):
    envs, other = make(), make()
    assert_identical(envs.reset(seed=7), other.reset(seed=[7, np.int64(8), 9]))
    mask = np.array([False, True, True])
    ours = envs.reset(seed=20, options={"reset_mask": mask})
    assert_identical(ours, other.reset(seed=(None, 21, 22), options={"reset_mask": mask}))
    assert_identical(envs.reset(), other.reset())
    for seed, words in ((2**31 - 2, "row 2 has 2147483648"), (-1, "zero"), (0.5, "integer")):
        with pytest.raises((gym.error.Error, TypeError), match=words):
            envs.reset(seed=seed)
    for options, words in (
        ({"reset_mask": np.zeros(3, np.bool_)}, "at least one True"),
        ({"env_index": [0]}, "rows are selected by 'reset_mask'"),
        ({"difficulty": 1}, "there is only 'reset_mask'"),
    ):
        with pytest.raises(ValueError, match=words):
            envs.reset(options=options)
    with pytest.raises(TypeError, match=r"`options` must be a dictionary or None, got \[None"):
        envs.reset(options=[None] * 3)


def test_the_metadata_of_other_vector_environments_stay_as_they_are(make):
    before = dict(gym.vector.VectorEnv.metadata)
    first, second = make(autoreset_mode="same_step"), make(autoreset_mode="disabled")
    assert gym.vector.VectorEnv.metadata == before
    assert first.metadata["autoreset_mode"] is first.autoreset_mode is S
    assert second.metadata["autoreset_mode"] is second.autoreset_mode is D


@pytest.mark.parametrize(
    ("keywords", "error", "words"),
    [
        ({"stack_nun": 4}, TypeError, "`stack_nun` is not a keyword.*did you mean `stack_num`"),
        ({"max_episode_steps": 9}, TypeError, "max_num_frames_per_episode"),
        ({"render_mode": "rgb_array"}, TypeError, "executor='process' does"),
        ({"on_error": "restart"}, TypeError, "ale-py has nothing like it"),
        ({"seed": 3}, TypeError, r"reset\(seed=3\)"),
        ({"banana": 3}, TypeError, "which has .*`noop_max`"),
        ({"num_envs": 0}, ValueError, "`num_envs` must be a positive integer, got 0"),
        ({"batch_size": 9}, ValueError, "`batch_size` must be an integer from 0 to 3, got 9"),
        ({"batch_size": 2}, ValueError, "`batch_size` must divide num_envs=3, got 2"),
        ({"batch_size": 1, "autoreset_mode": "disabled"}, ValueError, "batches of all rows"),
        ({"img_height": 0}, ValueError, "`img_height` must be a positive integer, got 0"),
        ({"repeat_action_probability": 3}, ValueError, "from 0 to 1, got 3"),
        ({"final_obs": "dense"}, ValueError, "autoreset_mode='same_step'"),
        ({"life_loss_info": True, "autoreset_mode": "same_step"}, ValueError, "episodic_life"),
        ({"vector_kwargs": {"game": "ping"}}, ValueError, "'ping': did you mean 'pong'"),
        ({"vectorization_mode": "async"}, ValueError, "leave out `vectorization_mode`"),
        (
            {"wrappers": [gym.wrappers.NormalizeReward]},
            gym.error.Error,
            r"gymnasium.wrappers.vector.NormalizeReward\(envs\)",
        ),
        (
            {"wrappers": [gym.wrappers.TimeLimit]},
            gym.error.Error,
            "For TimeLimit, use executor='process'",
        ),
    ],
)
def test_arguments_that_ale_py_cannot_take_are_refused(make, keywords, error, words):
    with pytest.raises(error, match=words):
        make(**{"num_envs": 3, **keywords})


@pytest.mark.parametrize("env_id", ["CartPole-v1", "cartwheel/CartPole-v1", "PongNoFrameskip-v4"])
def test_only_games_with_a_vector_environment_are_stepped_by_ale_py(env_id):
    with pytest.raises(ValueError, match=f"ids such as 'ALE/Pong-v5'.* got '{env_id}'"):
        cartwheel.make_vec(env_id, 2, executor="ale")


@pytest.mark.parametrize("again", [cartwheel.make_vec, gym.make_vec])
def test_the_spec_makes_the_same_again(make, again):
    envs = make(2, autoreset_mode="same_step", vector_kwargs={"final_obs": "dense"}, **PONG)
    spec = type(envs.spec).from_json(envs.spec.to_json())
    other = again(spec)
    assert (type(other), str(other)) == (type(envs), str(envs))
    assert_identical(envs.reset(seed=1), other.reset(seed=1))
    for _ in range(20):
        assert_identical(envs.step([2, 3]), other.step([2, 3]))
    other.close()


@pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.value)
def test_wrappers_and_evaluate_see_whole_episodes(make, mode):
    envs = make(3, autoreset_mode=mode, **PONG)
    wrapped = RecordEpisodeStatistics(FlattenObservation(envs))
    assert wrapped.reset(seed=1)[0].shape == (3, 4 * 84 * 84)
    lengths = []
    for _ in range(40):
        _, _, terminations, truncations, infos = wrapped.step([0, 2, 3])
        over = terminations | truncations
        if over.any():
            lengths += infos["episode"]["l"][over].tolist()
            if mode is S:
                assert infos["final_obs"][over.argmax()].shape == (4 * 84 * 84,)
            if mode is D:
                wrapped.reset(options={"reset_mask": over})
    assert len(lengths) > 3
    assert set(lengths) <= set(range(1, 16))
    evaluation = cartwheel.evaluate(
        wrapped, lambda observations: np.zeros(len(observations), int), episodes_per_env=2
    )
    assert evaluation.lengths.shape == (3, 2)
    assert set(evaluation.lengths.ravel()) <= set(range(1, 16))
