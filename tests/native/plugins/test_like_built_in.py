"""Environments of plugins have everything that the environments of cartwheel have."""

import copy
import json
import pickle

import gymnasium as gym
import numpy as np
import pytest

import cartwheel
from cartwheel import envpool
from tests.support.comparison import assert_identical
from tests.support.oracle import MODE

CORRIDOR = "test_plugin/Corridor-v0"
MAKERS = {
    "cartwheel.make_vec": cartwheel.make_vec,
    "gym.make_vec": gym.make_vec,
    "the class": cartwheel.NativeVectorEnv,
}
MAKE = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
ID = pytest.mark.parametrize("env_id", [CORRIDOR, f"test_plugin:{CORRIDOR}"])

pytestmark = pytest.mark.usefixtures("plugin")


@pytest.fixture
def make_envs(closes):
    """Makes rows of the corridor, which are closed after the test."""

    def make_envs(num_envs=3, env_id=CORRIDOR, **keywords):
        return closes(cartwheel.NativeVectorEnv(env_id, num_envs, **keywords))

    return make_envs


def positions(observations):
    return observations["position"][:, 0].tolist()


# Making


@MAKE
@ID
def test_every_make_function_makes_it(make, env_id):
    envs = make(env_id, 3, autoreset_mode="SameStep", length=4, executor="inline")
    assert type(envs) is cartwheel.NativeVectorEnv
    assert (envs.env_id, envs.spec.id, envs.executor) == (CORRIDOR, CORRIDOR, "inline")
    shown = "num_envs=3, autoreset_mode='same_step', executor='inline'"
    assert repr(envs) == f"NativeVectorEnv({CORRIDOR!r}, {shown})"
    observations, infos = envs.reset(options={"position": 3})
    assert positions(observations) == [3] * 3
    assert infos["steps"].tolist() == [0] * 3
    observations, rewards, terminations, truncations, infos = envs.step(np.array([0, 1, 0]))
    assert rewards.tolist() == [0, 1, 0]
    assert terminations.tolist() == [False, True, False]
    assert not truncations.any()
    assert infos["final_obs"][1]["position"].tolist() == [4, 4]
    assert infos["final_info"]["steps"][1] == 1
    envs.close()


@ID
def test_a_single_environment_is_made_by_id(env_id):
    env = gym.make(env_id, length=3)
    assert isinstance(env.unwrapped, cartwheel.NativeEnv)
    observation, info = env.reset(seed=1, options={"position": 0})
    assert info == {"steps": 0, "place": "wall"}
    assert observation in env.observation_space
    assert env.step(1)[1:] == (0.0, False, False, {"steps": 1})
    assert (env.unwrapped.length, env.unwrapped.position) == (3, 1)
    env.unwrapped.position = 2
    assert env.step(1)[1:3] == (1.0, True)
    with pytest.raises(gym.error.ResetNeeded):
        env.step(1)
    env.close()


def test_a_vector_environment_of_single_ones_gives_the_same(make_envs):
    rows = cartwheel.make_vec(CORRIDOR, 3, vectorization_mode="sync")
    envs = make_envs()
    assert type(rows) is cartwheel.VectorEnv
    assert_identical(rows.reset(seed=2), envs.reset(seed=2))
    for _ in range(40):
        actions = np.array([1, 0, 1])
        assert_identical(rows.step(actions), envs.step(actions))
    rows.close()


def test_the_default_options_of_an_id_can_be_overridden(make_envs):
    assert make_envs(env_id="test_plugin/LongCorridor-v0").get_attr("length") == (100,) * 3
    envs = make_envs(env_id="test_plugin/LongCorridor-v0", length=7)
    assert envs.get_attr("length") == (7,) * 3


def test_the_step_limit_of_an_id_can_be_overridden(make_envs):
    for keywords, limit in (({}, 20), ({"max_episode_steps": 5}, 5)):
        envs = make_envs(length=100, **keywords)
        envs.reset(seed=1)
        for step in range(1, limit + 1):
            assert envs.step(np.zeros(3, int))[3].tolist() == [step == limit] * 3


# Specs


@MAKE
def test_a_spec_rebuilds_it(make):
    envs = make(CORRIDOR, 3, length=4, max_episode_steps=7)
    for spec in (envs.spec, copy.deepcopy(envs.spec), pickle.loads(pickle.dumps(envs.spec))):
        for rebuild in (cartwheel.make_vec, gym.make_vec):
            again = rebuild(spec)
            assert type(again) is cartwheel.NativeVectorEnv
            assert (again.spec, again.num_envs) == (envs.spec, 3)
            assert_identical(again.reset(seed=1), envs.reset(seed=1))
            again.close()
    envs.close()


def test_another_process_makes_it_from_a_pickled_spec(run_fresh, tmp_path):
    """The spec names the module that registers the environment."""
    (tmp_path / "spec").write_bytes(pickle.dumps(gym.spec(CORRIDOR)))
    program = """
        import pickle, sys, pathlib, cartwheel, gymnasium
        spec = pickle.loads(pathlib.Path(sys.argv[1]).read_bytes())
        for make in (cartwheel.make_vec, gymnasium.make_vec, cartwheel.NativeVectorEnv):
            envs = make(spec, 2)
            print(type(envs).__name__, envs.env_id)
            envs.close()
    """
    assert run_fresh(program, tmp_path / "spec") == f"NativeVectorEnv {CORRIDOR}\n" * 3


def test_worker_processes_that_start_afresh_make_it(run_fresh, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import cartwheel, test_plugin\n"
        "if __name__ == '__main__':\n"
        f"    envs = cartwheel.make_vec({CORRIDOR!r}, 2, vectorization_mode='async', "
        "context='spawn')\n"
        "    print(envs.reset(seed=1, options={'position': 2})[0]['position'].tolist())\n"
        "    envs.close()\n"
    )
    assert run_fresh(None, script) == "[[2.0, 5.0], [2.0, 5.0]]\n"


def test_a_new_interpreter_imports_the_module_that_an_id_names(run_fresh):
    kinds = {
        "cartwheel.NativeEnv({})": "NativeEnv",
        "cartwheel.NativeVectorEnv({}, 2)": "NativeVectorEnv",
        "cartwheel.make_vec({}, 2)": "NativeVectorEnv",
        "cartwheel.envpool.make({})": "GymnasiumEnvPool",
        "gymnasium.make({}).unwrapped": "NativeEnv",
        "gymnasium.make_vec({}, 2)": "NativeVectorEnv",
    }
    makes = [make.format(repr(f"test_plugin:{CORRIDOR}")) for make in kinds]
    program = f"""
import os, sys, cartwheel, gymnasium
for make in {makes}:
    child = os.fork()  # the module is not imported in it
    if child == 0:
        assert "test_plugin" not in sys.modules
        print(type(eval(make)).__name__, flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""
    assert run_fresh(program).split() == list(kinds.values())


# Keywords, parameters, options of resets


@pytest.mark.parametrize(
    ("keywords", "error", "text"),
    [
        ({"lenght": 4}, TypeError, f"`lenght` is not a keyword of {CORRIDOR}: did you mean `lengt"),
        ({"num_worker": 4}, TypeError, "did you mean `num_workers`?"),
        ({"position": 4}, TypeError, f"`position` of {CORRIDOR} is an attribute, not a keyword"),
        ({"seed": 4}, TypeError, r"pass it to `reset\(seed=4\)`"),
        ({"color": 4}, TypeError, "which has `length`, `reward`, nor of NativeVectorEnv"),
        ({"length": "x"}, ValueError, f"^{CORRIDOR}: `length` must be a whole number, got 'x'"),
        ({"length": 2}, ValueError, f"^{CORRIDOR}: length must be at least 3, got 2"),
        ({"reward": float("nan")}, ValueError, "`reward` cannot be passed to a native environment"),
        ({"reward": "\ud800"}, ValueError, "`reward` cannot be passed to a native environment"),
        ({"worker": 4}, ValueError, "`worker` of native environments must be None"),
    ],
    ids=str,
)
def test_bad_keywords_are_refused(make_envs, keywords, error, text):
    with pytest.raises(error, match=text):
        make_envs(**keywords)


def test_parameters_are_read_and_set(make_envs):
    envs = make_envs()
    envs.reset(seed=1, options={"position": 1})
    assert envs.parameters == ["length", "reward", "position"]
    assert envs.get_attr("position") == envs.call("position") == (1, 1, 1)
    envs.set_attr("reward", [1, 2.5, 3])
    envs.set_attr("position", 4)
    assert envs.step(np.ones(3, int))[1].tolist() == [1, 2.5, 3]
    with pytest.raises(AttributeError, match=f"^{CORRIDOR} has no parameter 'postion'; did you m"):
        envs.get_attr("postion")
    with pytest.raises(ValueError, match=r"^`reward` of row 1 must be a number, got 'x'\.$"):
        envs.set_attr("reward", [7, "x", 7])
    assert envs.get_attr("reward") == (1, 2.5, 3)


def test_integers_of_64_bits_are_read_and_set(make_envs):
    envs = make_envs(env_id="test_plugin/Teller-v0")
    for value in (0, 2**63 - 1, 2**63, 2**64 - 1):
        envs.set_attr("salt", value)
        assert envs.get_attr("salt") == (value,) * 3
        envs.set_attr("salt", list(envs.get_attr("salt")))
    with pytest.raises(OverflowError, match="`salt` is too large for 64 bits: 184467440737095516"):
        envs.set_attr("salt", 2**64)
    assert envs.get_attr("salt") == (2**64 - 1,) * 3


def test_options_of_a_reset_reach_only_that_reset(make_envs):
    envs = make_envs()
    mask = np.array([True, False, True])
    plain = positions(envs.reset(seed=5)[0])
    assert positions(envs.reset(seed=5, options={"position": 4})[0]) == [4] * 3
    observations, _ = envs.reset(seed=5, options={"position": 3, "reset_mask": mask})
    assert positions(observations) == [3, 4, 3]
    assert positions(envs.reset(seed=5)[0]) == plain


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"positon": 1}, f"{CORRIDOR} has no option 'positon' of a reset: did you mean 'position'"),
        ({"mask": [1, 0, 0]}, "did you mean 'reset_mask'?"),
        ({"speed": 1}, "only 'position'; 'reset_mask' and 'env_index' select rows"),
        ({"position": "x"}, "`position` must be a whole number, got 'x'"),
        ({"position": object()}, "`position` cannot be passed to a native environment"),
    ],
    ids=["near miss", "rows", "unknown", "type", "no JSON"],
)
def test_bad_options_of_a_reset_are_refused_before_any_row_is_reset(make_envs, options, text):
    envs = make_envs()
    envs.reset(seed=5, options={"position": 1})
    with pytest.raises(ValueError, match=text):
        envs.reset(options=options)
    assert positions(envs.step(np.ones(3, int))[0]) == [2] * 3


def test_a_single_environment_ignores_options_that_it_does_not_have():
    env = cartwheel.NativeEnv(CORRIDOR)
    observation, _ = env.reset(options={"level": 3, "position": 2})
    assert observation["position"].tolist() == [2, 5]
    env.close()


# Random numbers, send and receive, modes


def test_the_rows_draw_from_their_seeds(make_envs):
    envs = make_envs(64)
    first = positions(envs.reset(seed=3)[0])
    assert first == [np.random.Generator(np.random.PCG64(3 + i)).integers(3) for i in range(64)]
    assert envs.np_random_seed == tuple(range(3, 67))
    generators = copy.deepcopy(envs.np_random)
    second = positions(envs.reset()[0])
    assert second == [generator.integers(3) for generator in generators]


@MODE
@pytest.mark.parametrize("workers", [1, 7])
def test_results_do_not_depend_on_threads_and_rows_can_be_sent(make_envs, mode, workers):
    keywords = {"autoreset_mode": mode, "on_done": "freeze", "max_episode_steps": 6}
    envs = make_envs(9, num_workers=workers, batch_size=4, **keywords)
    oracle = make_envs(9, executor="inline", **keywords)
    envs.send_reset(seed=4)
    expected = [oracle.reset(seed=4)[0]] + [oracle.step(np.ones(9, int))[0] for _ in range(15)]
    turns = np.zeros(9, int)
    while turns.min() < 15:
        observations, *_, infos = envs.recv()
        rows = infos["env_index"]
        for place, row in enumerate(rows):
            seen, wanted = observations["position"][place], expected[turns[row]]["position"][row]
            assert seen.tolist() == wanted.tolist()
        turns[rows] += 1
        more = rows[turns[rows] <= 15]
        if len(more):
            envs.send(np.ones(len(more), int), env_index=more)
        elif turns.min() < 15 and not envs._pool.in_flight():
            break


# Rendering


def test_it_draws_itself(make_envs):
    envs = make_envs(render_mode="rgb_array")
    assert envs.metadata["render_modes"] == ["rgb_array", "ansi"]
    assert envs.metadata["render_fps"] == 12
    assert gym.make(CORRIDOR).metadata["render_fps"] == 12
    with pytest.raises(gym.error.ResetNeeded, match=r"rows \[0, 1, 2\] have not been reset"):
        envs.render()
    envs.reset(options={"position": 2})
    envs.step(np.array([0, 1, 1]))
    frames = envs.render()
    assert [(frame.shape, frame.dtype) for frame in frames] == [((2, 6, 3), np.uint8)] * 3
    assert [np.argwhere(frame).tolist() for frame in frames] == [[[0, at, 0]] for at in (1, 3, 3)]
    assert envs.call("render")[0].tolist() == frames[0].tolist()


@pytest.mark.parametrize("final_obs", ["object", "dense"])
def test_it_draws_terminal_states(make_envs, final_obs):
    keywords = {"autoreset_mode": "same_step", "length": 4, "num_workers": 2}
    for mode, last in (("ansi", "....x"), ("rgb_array", [[0, 4, 0]])):
        envs = make_envs(render_mode=mode, final_obs=final_obs, **keywords)
        twin = make_envs(final_obs=final_obs, **keywords)
        envs.draw_final_frames([2, 1])
        options = {"position": 3}
        assert_identical(envs.reset(seed=1, options=options), twin.reset(seed=1, options=options))
        result, other = envs.step(np.array([1, 0, 1])), twin.step(np.array([1, 0, 1]))
        frames = result[4].pop("final_frame")
        assert result[4].pop("_final_frame").tolist() == [False, False, True]
        assert_identical(result, other)
        assert [frame is None for frame in frames] == [True, True, False]
        assert (frames[2] if mode == "ansi" else np.argwhere(frames[2]).tolist()) == last


def test_it_draws_some_rows(make_envs):
    envs = make_envs(render_mode="ansi", num_workers=3)
    envs.reset(options={"position": 2})
    envs.step(np.array([0, 1, 0]))
    assert envs.render([2, 1]) == (".x....", "...x..")


def test_it_draws_text_and_single_environments(make_envs):
    envs = make_envs(render_mode="ansi", num_workers=2)
    envs.reset(options={"position": 2})
    assert envs.render() == ("..x...",) * 3
    for mode, frame in (("ansi", "x....."), ("rgb_array", (2, 6, 3))):
        env = gym.make(CORRIDOR, render_mode=mode)
        env.reset(options={"position": 0})
        shown = env.render()
        assert (shown if mode == "ansi" else shown.shape) == frame
        env.close()


def test_gymnasium_shows_its_pixels_in_a_window(monkeypatch):
    pygame = pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    pygame.display.quit()
    with pytest.warns(UserWarning, match="'human' rendering"):
        env = gym.make(CORRIDOR, render_mode="human")
    drawn = cartwheel.NativeEnv(CORRIDOR, render_mode="rgb_array")
    for each in (env, drawn):
        each.reset(options={"position": 0})
    for _ in range(3):
        screen = pygame.surfarray.array3d(pygame.display.get_surface())
        assert_identical(screen.transpose(1, 0, 2), drawn.render())
        for each in (env, drawn):
            each.step(1)
    for each in (env, drawn):
        each.close()
    pygame.quit()


def test_without_a_render_mode_it_warns_and_draws_nothing(make_envs):
    envs = make_envs()
    envs.reset()
    with pytest.warns(UserWarning, match=r"render\(\) of test_plugin/Corridor-v0 does nothing"):
        assert envs.render() == (None,) * 3


@pytest.mark.parametrize("mode", ["human", "rgb"])
def test_other_render_modes_are_refused(make_envs, mode):
    text = f"`render_mode` of {CORRIDOR} must be one of None, 'rgb_array', 'ansi', got {mode!r}"
    with pytest.raises(ValueError, match=text):
        make_envs(render_mode=mode)


# EnvPool's interface


def test_envpool_makes_it():
    for env_type in ("gymnasium", "gym", "dm"):
        pool = envpool.make(CORRIDOR, env_type, num_envs=3, length=4, seed=1)
        pool.reset()
        pool.step(np.ones(3, np.int32))
        pool.close()
    pool = envpool.make(f"test_plugin:{CORRIDOR}", num_envs=4, batch_size=2, seed=1)
    pool.async_reset()
    observations, _, _, _, infos = pool.recv()
    assert observations["position"].shape == (2, 2)
    assert set(infos["env_id"]) <= set(range(4))
    pool.close()
    assert CORRIDOR in envpool.list_all_envs()
    with pytest.raises(TypeError, match="Options of the environment: length, reward"):
        envpool.make(CORRIDOR, lenght=3)


def test_envpool_takes_actions_in_parts(make_envs, closes):
    chase = "test_plugin/Chase-v0"
    envs, pool = make_envs(env_id=chase), closes(envpool.make(chase, num_envs=3, seed=7))
    assert_identical(pool.reset()[0], envs.reset(seed=7)[0])
    envs.action_space.seed(7)
    for actions in [envs.action_space.sample() for _ in range(6)]:
        for rows in (None, [2, 0]):
            part = {key: value[: None if rows is None else 2] for key, value in actions.items()}
            got, expected = pool.step({**part, "env_id": rows}), envs.step(part, rows)
            assert_identical(got[0], expected[0])
            assert_identical(got[1], expected[1].astype(np.float32))
    with pytest.raises(ValueError, match=r"action must be a dictionary with the keys .*hunter"):
        pool.step(np.zeros(3, np.float32))


# The command line


def test_the_command_line_lists_it_and_shows_its_page(run_fresh):
    """Each command runs in a process of its own, which a program forks."""
    program = """
        import json, os, sys
        from cartwheel import __main__ as command
        for arguments in json.loads(sys.argv[1]):
            print(end="\\0", flush=True)
            if os.fork() == 0:
                os.dup2(1, 2)
                sys.argv[1:] = arguments
                sys.exit(command.main())
            os.wait()
    """
    commands = [
        [CORRIDOR],
        ["--import", "test_plugin"],
        [f"test_plugin:{CORRIDOR}"],
        ["--import", "test_plugin", CORRIDOR],
        ["--import", "no_such_game"],
    ]
    printed = run_fresh(program, json.dumps([["envs", *command] for command in commands]))
    _, unknown, listed, page, same_page, missing = printed.split("\0")
    assert f"there is no native environment '{CORRIDOR}'" in unknown
    assert "No module named 'no_such_game'" in missing
    assert same_page == page
    assert f"\n{CORRIDOR}" in listed
    assert "cartwheel/CartPole-v1" in listed
    assert page.startswith(f"{CORRIDOR}\n")
    for text in ("max_episode_steps  20", "'rgb_array', 'ansi'", "position"):
        assert text in page
    lines = [line.split(maxsplit=2) for line in page.splitlines()]
    assert ["length", "5", "Cells of the corridor, at least 3."] in lines
    assert ["position", "–"] in lines, "the plugin does not describe the options of its reset"


@MODE
def test_they_continue_from_a_state(make_envs, mode):
    keywords = {"autoreset_mode": mode, "max_episode_steps": 6, "on_done": "freeze"}
    envs, others = make_envs(**keywords), make_envs(executor="inline", **keywords)
    actions = np.random.default_rng(1).integers(2, size=(20, 3))
    envs.reset(seed=2)
    for action in actions[:5]:
        shown = envs.step(action)[0]
    state = pickle.loads(pickle.dumps(envs.state_dict()))
    expected = [envs.step(action) for action in actions[5:]]
    assert_identical(others.load_state_dict(state), shown)
    assert_identical([others.step(action) for action in actions[5:]], expected)


def with_origin(state, change):
    """A state whose environment says something else of itself, with its hash (FNV-1a)."""
    start = state.index(CORRIDOR.encode())
    stop = start + int.from_bytes(state[start - 4 : start], "little")
    body = state[:start] + change(state[start:stop]) + state[stop:-8]
    value = 0xCBF29CE484222325
    for byte in body:
        value = ((value ^ byte) * 0x100000001B3) % 2**64
    return body + value.to_bytes(8, "little")


def test_a_state_of_an_incompatible_version_is_refused_with_both(make_envs):
    envs = make_envs()
    envs.reset(seed=2)
    states = envs.get_state()
    assert [with_origin(state, lambda origin: origin) for state in states] == states
    others = [with_origin(state, lambda origin: origin[:-1] + b"9") for state in states]
    own = rf"{CORRIDOR} of test-plugin \d[\d.]*"
    with pytest.raises(ValueError, match=rf"row 0: the state is of {own}9, not of {own}$"):
        envs.set_state(None, others)
    saved = envs.state_dict()
    envs.step([1] * 3)
    before = envs.state_dict()
    saved["envs"]["states"][2] = others[2]
    with pytest.raises(ValueError, match="row 2: the state is of"):
        envs.load_state_dict(saved)
    assert envs.state_dict() == before
