"""A fault of a plugin is an error that says so; the other rows and the program continue."""

import os
import re
import signal
import sys

import gymnasium as gym
import numpy as np
import pytest

import cartwheel
from cartwheel.wrappers import CachedReset
from tests.support.oracle import MODE

FAULTY = "test_plugin/Faulty-v0"
GO, FAIL, PANIC = 0, 1, 2
ERRORS = {
    FAIL: (cartwheel.EnvFailedError, "^the environment of row 2 failed: told to fail in step"),
    PANIC: (cartwheel.EnvPanicError, r"row 2 panicked: told to panic in step \(\S+\.rs:\d+\)"),
}
FAULT = pytest.mark.parametrize("fault", [FAIL, PANIC], ids=["failure", "panic"])

pytestmark = pytest.mark.usefixtures("plugin")


@pytest.fixture
def make_envs(closes):
    """Makes faulty rows, which are closed after the test."""

    def make_envs(num_envs=4, **keywords):
        return closes(cartwheel.NativeVectorEnv(FAULTY, num_envs, **keywords))

    return make_envs


def acts(fault):
    return np.array([GO, GO, fault, GO])


# Failures and panics of rows


@FAULT
@MODE
@pytest.mark.parametrize("workers", [1, 7])
def test_a_row_that_fails_is_named_with_the_authors_text_and_others_go_on(
    make_envs, fault, mode, workers
):
    envs = make_envs(autoreset_mode=mode, num_workers=workers)
    envs.reset(seed=1)
    error, text = ERRORS[fault]
    with pytest.raises(error, match=text):
        envs.step(acts(fault))
    with pytest.raises(gym.error.ResetNeeded, match=r"rows \[2\] failed in an earlier call"):
        envs.step(acts(GO))
    envs.reset(options={"reset_mask": acts(1) == 1})
    observations = envs.step(acts(GO))[0]
    assert observations.tolist() == [[2], [2], [1], [2]]


@FAULT
def test_a_row_that_fails_is_replaced_and_its_episode_is_truncated(make_envs, fault):
    envs = make_envs(on_error="restart", max_restarts=2)
    envs.reset(seed=1)
    for _ in range(2):
        _, _, terminations, truncations, infos = envs.step(acts(fault))
        assert truncations.tolist() == [False, False, True, False]
        assert not terminations.any()
        assert "told to" in infos["env_error"][2]
        assert envs.step(acts(GO))[0][2] == 0  # the reset of the new environment
    with pytest.raises(ERRORS[fault][0]):
        envs.step(acts(fault))


@FAULT
def test_a_reset_that_fails_is_the_error_of_its_rows(make_envs, fault):
    envs = make_envs()
    envs.reset(seed=1)
    mask = np.array([True, False, True, False])
    error, _ = ERRORS[fault]
    word = "fail" if fault == FAIL else "panic"
    with pytest.raises(error, match=f"row 0 .*: told to {word} in reset"):
        envs.reset(options={"reset": word, "reset_mask": mask})
    with pytest.raises(gym.error.ResetNeeded, match=r"rows \[0, 2\] failed"):
        envs.step(acts(GO))
    envs.reset(options={"reset_mask": mask})
    assert envs.step(acts(GO))[0].tolist() == [[1]] * 4


@FAULT
def test_a_reset_that_loads_a_state_counts_when_another_row_fails(make_envs, fault):
    envs = CachedReset(make_envs(num_workers=1, max_episode_steps=2), 3, seed=1)
    envs.reset()
    envs.step(acts(GO))
    envs.reset(options={"reset_mask": np.array([False, True, True, True])})
    assert envs.step(acts(GO))[3].tolist() == [True, False, False, False]
    with pytest.raises(ERRORS[fault][0]):
        envs.step(acts(fault))  # resets row 0
    envs.reset(options={"reset_mask": acts(1) == 1})
    observations, _, _, truncations, _ = envs.step(acts(GO))
    assert observations.tolist() == [[1], [0], [1], [0]]
    assert not truncations.any()


@FAULT
def test_a_sent_row_that_fails_is_the_error_of_its_batch(make_envs, fault):
    envs = make_envs(batch_size=2)
    envs.send_reset(seed=1)
    for _ in range(2):
        envs.recv()
    error, text = ERRORS[fault]
    envs.send(np.array([GO, fault]), env_index=[1, 2])
    with pytest.raises(error, match=text):
        envs.recv()
    envs.send(np.array([GO, GO]), env_index=[0, 3])
    assert envs.recv()[0].tolist() == [[1], [1]]


def test_a_single_environment_that_fails_raises_its_error():
    env = gym.make(FAULTY, disable_env_checker=True)
    env.reset(seed=1)
    with pytest.raises(cartwheel.EnvFailedError, match="row 0 failed: told to fail in step"):
        env.step(FAIL)
    env.reset()
    assert env.step(GO)[0].tolist() == [1]
    env.close()


def test_a_panic_while_an_observation_is_written_is_the_error_of_its_row(make_envs):
    envs = make_envs(observe="panic")
    envs.reset(seed=1)
    envs.step(acts(GO))
    with pytest.raises(cartwheel.EnvPanicError, match="row 0 panicked: told to panic in observe"):
        envs.step(acts(GO))
    envs.reset()
    assert envs.step(acts(GO))[0].tolist() == [[1]] * 4


@pytest.mark.parametrize("word", ["fail", "panic"])
@pytest.mark.parametrize("place", ["prepare", "new"])
def test_a_constructor_that_fails_is_an_error_with_its_text(make_envs, place, word):
    with pytest.raises(ValueError, match=f"^{FAULTY}: .*told to {word} in {place}"):
        make_envs(**{place: word})
    with pytest.raises(ValueError, match=f"told to {word} in new"):
        make_envs(new=word, new_after=3)


@pytest.mark.parametrize("word", ["fail", "panic"])
def test_a_row_that_cannot_be_replaced_raises_its_error(make_envs, word):
    """All rows, and the one that checks the options, are made; the sixth is not."""
    envs = make_envs(on_error="restart", new=word, new_after=5)
    envs.reset(seed=1)
    with pytest.raises(cartwheel.EnvFailedError, match="row 2 failed: told to fail in step"):
        envs.step(acts(FAIL))
    envs.reset()
    assert envs.step(acts(GO))[0].tolist() == [[1]] * 4


def test_panics_while_environments_are_dropped_are_contained(make_envs):
    """The row whose old environment panics while it is replaced fails once, and is new."""
    envs = make_envs(drop="panic", on_error="restart")
    envs.reset(seed=1)
    with pytest.raises(cartwheel.EnvFailedError, match="row 2 failed: told to fail in step"):
        envs.step(acts(FAIL))
    envs.reset()
    assert envs.step(acts(GO))[0].tolist() == [[1]] * 4
    envs.close()


@pytest.mark.parametrize(
    ("word", "error"),
    [("fail", "row 0 failed: told to fail"), ("panic", "row 0 .*panicked: told to panic")],
)
def test_a_row_that_cannot_be_drawn_is_an_error_and_is_stepped_on(make_envs, word, error):
    envs = make_envs(render=word, render_mode="ansi", num_workers=2)
    envs.reset(seed=1)
    with pytest.raises(RuntimeError, match=error):
        envs.render()
    assert envs.step(acts(GO))[0].tolist() == [[1]] * 4


@pytest.mark.parametrize("word", ["fail", "panic"])
def test_a_terminal_state_that_cannot_be_drawn_fails_its_row(make_envs, word):
    envs = make_envs(
        render=word,
        render_mode="ansi",
        num_workers=2,
        autoreset_mode="same_step",
        max_episode_steps=2,
        final_obs="dense",
    )
    envs.draw_final_frames([2])
    envs.reset(seed=1)
    envs.step(acts(GO))
    with pytest.raises(RuntimeError, match=f"row 2 .*told to {word}"):
        envs.step(acts(GO))
    with pytest.raises(gym.error.ResetNeeded):
        envs.step(acts(GO))
    envs.draw_final_frames(None)
    envs.reset(options={"reset_mask": np.array([False, False, True, False])})
    for step in (1, 2):
        infos = envs.step(acts(GO))[4]
        assert infos["final_obs"].tolist() == [[step]] * 4
    assert infos["_final_obs"].all()


def test_a_frame_without_pixels_is_an_error_of_its_row(make_counter):
    keywords = {"fault": "flat frame", "render_mode": "rgb_array", "autoreset_mode": "same_step"}
    envs = make_counter(**keywords)
    assert envs.metadata["render_fps"] == 30  # it does not say
    envs.reset(seed=1)
    text = rf"a frame of 0 x {sys.maxsize} pixels has 0 bytes"
    with pytest.raises(cartwheel.EnvFailedError, match=f"row 0 failed: {text}"):
        envs.render()
    envs.draw_final_frames([1])
    for _ in range(2):
        envs.step(np.ones(3, int))
    with pytest.raises(cartwheel.EnvFailedError, match=f"row 1 failed: {text}"):
        envs.step(np.ones(3, int))


def test_options_that_do_not_parse_are_refused_with_the_id(make_envs):
    choices = "one of 'none', 'fail', 'panic'"
    with pytest.raises(ValueError, match=f"^{FAULTY}: `new` must be {choices}, got 'explode'"):
        make_envs(drop="panic", new="explode")
    with pytest.raises(ValueError, match=f"^{FAULTY}: `drop` must be a string, got 3"):
        make_envs(drop=3)
    with pytest.raises(ValueError, match=f"^{FAULTY}: `new_after` must be "):
        make_envs(new_after=-1)


def test_spaces_that_the_types_do_not_fit_are_refused_with_field_names():
    text = (
        "test_plugin/Misfit-v0: the observation type sees {camera: uint8[4], speed: float32[1]}; "
        "the observation space has {camera: float32[1], velocity: float32[1]}"
    )
    with pytest.raises(ValueError, match=re.escape(text)):
        cartwheel.NativeVectorEnv("test_plugin/Misfit-v0", 2)


# Rules that are broken


BROKEN = {
    "malformed infos": "",
    "foreign row": "an info record of row 3 at byte",
    "doubled row": "an info record of row 0 at byte .*",
    "next": "`run` of rows 0..3 returned the status 0 and the row 4",
    "status": "`run` of rows 0..3 returned the status 77",
}


@pytest.mark.parametrize(("fault", "text"), BROKEN.items(), ids=BROKEN)
def test_a_plugin_that_breaks_a_rule_is_named_and_the_pool_can_be_closed(make_counter, fault, text):
    envs = make_counter(fault=fault)
    if fault == "status":
        with pytest.raises(cartwheel.PluginError, match=text):
            envs.reset(seed=1)
        return
    envs.reset(seed=1)
    text = f"^plugin counter broke its contract in counter/Counter-v0: .*{text}"
    with pytest.raises(cartwheel.PluginError, match=text):
        envs.step(np.ones(3, int))
    with pytest.raises(gym.error.ResetNeeded):
        envs.step(np.ones(3, int))
    assert envs.reset(seed=1)[0].tolist() == [[0]] * 3


@pytest.mark.parametrize("fault", ["malformed value", "pickled value", "deep value"])
@MODE
def test_an_info_that_cannot_be_read_or_would_be_unpickled_is_refused(make_counter, fault, mode):
    envs = make_counter(fault=fault, autoreset_mode=mode)
    envs.reset(seed=1)
    text = "^the plugin wrote an info or a parameter that cannot be read: malformed info stream at"
    with pytest.raises(cartwheel.PluginError, match=text):
        envs.step(np.ones(3, int))
    assert envs.reset(seed=1)[0].tolist() == [[0]] * 3


def test_a_failure_in_c_is_the_error_of_its_row(make_counter):
    envs = make_counter(fault="failure")
    envs.reset(seed=1)
    with pytest.raises(
        cartwheel.EnvFailedError, match=r"^the environment of row 1 failed: the counter is stuck"
    ):
        envs.step(np.array([0, 1, 0]))
    envs.reset(options={"reset_mask": np.array([False, True, False])})
    assert envs.step(np.zeros(3, int))[0].tolist() == [[2], [1], [2]]


def test_a_row_without_a_function_to_replace_it_raises_its_error(make_counter):
    envs = make_counter(fault="failure", on_error="restart")
    envs.reset(seed=1)
    with pytest.raises(cartwheel.EnvFailedError, match="row 1 failed: the counter is stuck"):
        envs.step(np.array([0, 1, 0]))


def test_bad_options_and_descriptions_in_c_are_refused(make_counter):
    with pytest.raises(ValueError, match=r"^counter/Counter-v0: `fault` is bad$"):
        make_counter(fault="bad option")
    with pytest.raises(cartwheel.PluginError, match=r"counter/Counter-v0: the action space .*99"):
        make_counter(fault="space")
    with pytest.raises(TypeError, match=r"`faults` is not a keyword of .*: did you mean `fault`"):
        make_counter(faults="space")


def test_a_flag_that_is_not_zero_is_a_true_flag(make_counter):
    """The only truth values of NumPy are the bytes 0 and 1."""
    envs = make_counter(fault="flag")
    envs.reset(seed=1)
    assert envs.step(np.ones(3, int))[2].view(np.uint8).tolist() == [1, 0, 0]


def test_a_plugin_may_ask_for_room_that_is_there(make_counter):
    envs = make_counter(fault="room")
    envs.reset(seed=1)
    for step in range(100):
        infos = envs.step(np.ones(3, int))[4]
        assert infos["steps"].tolist() == [(step + 1) % 4] * 3


@pytest.mark.parametrize("fault", [pytest.param("reward", marks=pytest.mark.slow), "observation"])
def test_stray_writes_are_found_when_plugins_are_checked(run_fresh, compile_counter, fault):
    program = """
        import sys, cartwheel, numpy as np
        (env_id,) = cartwheel.load_plugin(sys.argv[1])
        envs = cartwheel.NativeVectorEnv(env_id, 3, executor="inline", fault=sys.argv[2])
        print(envs.reset(seed=1)[0].tolist())
        try:
            print(envs.step(np.ones(3, int))[1].tolist())
        except cartwheel.PluginError as error:
            print(error)
        envs.close()
    """
    arguments = (program, compile_counter(), fault)
    begun, said = run_fresh(*arguments, CARTWHEEL_CHECK_PLUGINS="1").splitlines()
    assert begun == "[[0.0], [0.0], [0.0]]"
    assert said.startswith("plugin counter broke its contract in counter/Counter-v0: ")
    assert fault in said
    program, library, _ = arguments
    sound = run_fresh(program, library, "none", CARTWHEEL_CHECK_PLUGINS="1").splitlines()
    assert sound == [begun, "[1.0, 1.0, 1.0]"]


# Forks


def test_a_forked_child_uses_new_rows_only(make_envs):
    envs = make_envs(drop="panic")
    envs.reset(seed=1)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        said = []
        try:
            envs.step(acts(GO))
        except cartwheel.ForkedProcessError:
            said.append("refused")
        envs.close()
        del envs
        own = cartwheel.NativeVectorEnv(FAULTY, 3, num_workers=2)
        own.reset(seed=1)
        said.append(str(own.step(np.zeros(3, int))[0].ravel().tolist()))
        own.close()
        os.write(writer, ";".join(said).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        said = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0, signal.Signals(abs(status))
    assert said == "refused;[1.0, 1.0, 1.0]"
    assert envs.step(acts(GO))[0].tolist() == [[1]] * 4
