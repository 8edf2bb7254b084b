"""`call`, `get_attr`, `set_attr`, `render` and `np_random` reach every environment."""

import copy
import pickle
import re
import sys
import threading
import time
import warnings
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv
from gymnasium.wrappers import RecordEpisodeStatistics, TimeLimit

import cartwheel
from tests.support.cases import POLE
from tests.support.comparison import assert_identical, assert_names_row
from tests.support.environments import TranscriptEnv, transcripts, was_asked_for_its_dict
from tests.support.faulty import FaultyEnv
from tests.support.oracle import assert_same_reset, assert_same_steps, with_oracle


class AttributedEnv(TranscriptEnv):
    """Has attributes of several kinds, and renders its step count."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 7, "more": [1]}  # noqa: RUF012
    render_mode = "rgb_array"

    def __init__(self, row):
        super().__init__(length=100)
        self.row, self.array = row, np.arange(row + 1)
        self.nested = {"row": row, "list": [row, None, "x"]}
        self.lock = threading.Lock()

    @property
    def doubled(self):
        return 2 * self.row

    def add(self, *values, scale=1):
        return self.row + scale * sum(values)

    def remember(self, value):
        self.remembered = value

    def render(self):
        return np.full((2, 3, 3), 10 * self.row + self.t, np.uint8)


def build_attributed(build, num_envs=3, wrapper=None, **keywords):
    def build_env(row):
        env = AttributedEnv(row)
        return env if wrapper is None else wrapper(env)

    return build([partial(build_env, row) for row in range(num_envs)], **keywords)


def test_call_gives_a_tuple_of_each_environments_answer(build_everywhere):
    envs = build_attributed(build_everywhere)
    assert_identical(envs.call("add", 1, 2), (3, 4, 5))
    assert_identical(envs.call("add", 1, scale=10), (10, 11, 12))
    assert_identical(envs.call("remember", {"a": [1]}), (None, None, None))
    assert_identical(envs.get_attr("remembered"), ({"a": [1]},) * 3)


def test_call_of_an_attribute_that_is_not_callable_gives_its_value(build):
    envs = build_attributed(build)
    assert_identical(envs.call("doubled"), (0, 2, 4))
    assert_identical(envs.call("row"), (0, 1, 2))


def test_get_attr_gives_values_and_calls_callables(build_everywhere):
    envs = build_attributed(build_everywhere)
    assert_identical(envs.get_attr("row"), (0, 1, 2))
    assert_identical(envs.get_attr("doubled"), (0, 2, 4))
    assert_identical(envs.get_attr("array"), tuple(np.arange(row + 1) for row in range(3)))
    assert_identical(
        envs.get_attr("nested"), tuple({"row": row, "list": [row, None, "x"]} for row in range(3))
    )
    assert_identical(envs.get_attr("add"), (0, 1, 2))


def test_set_attr_takes_a_value_for_each_environment_or_one_for_all(build_everywhere):
    envs = build_attributed(build_everywhere)
    envs.set_attr("row", [7, 8, 9])
    assert_identical(envs.get_attr("row"), (7, 8, 9))
    assert_identical(envs.call("add", 1), (8, 9, 10))
    envs.set_attr("row", (4, 5, 6))
    assert_identical(envs.get_attr("row"), (4, 5, 6))
    envs.set_attr("row", 1)
    assert_identical(envs.get_attr("row"), (1, 1, 1))
    envs.set_attr("row", np.arange(3))
    assert_identical(envs.get_attr("row"), (np.arange(3),) * 3)
    envs.set_attr("row", "abc")
    assert_identical(envs.get_attr("row"), ("abc",) * 3)
    envs.set_attr("brand_new", [None, 1, {"x": 2}])
    assert_identical(envs.get_attr("brand_new"), (None, 1, {"x": 2}))


def test_set_attr_refuses_the_wrong_number_of_values(build_any):
    envs = build_any([POLE] * 3)
    for values in ([1], [1, 2, 3, 4], (), (1, 2)):
        text = (
            "Values must be a list or tuple with length equal to the number of environments. "
            f"Got `{len(values)}` values for 3 environments."
        )
        with pytest.raises(ValueError, match=f"^{re.escape(text)}") as refused:
            envs.set_attr("gravity", values)
        assert str(refused.value) == f"{text} The attribute is `gravity`."
    assert_identical(envs.get_attr("gravity"), (9.8, 9.8, 9.8))


def test_names_reach_through_wrappers(build):
    envs = build_attributed(
        build, wrapper=lambda env: RecordEpisodeStatistics(TimeLimit(env, max_episode_steps=5))
    )
    assert_identical(envs.get_attr("row"), (0, 1, 2))
    assert_identical(envs.call("add", 5), (5, 6, 7))
    assert_identical(envs.get_attr("episode_count"), (0, 0, 0))
    envs.set_attr("_max_episode_steps", 2)
    envs.set_attr("row", [3, 4, 5])
    assert_identical(envs.call("add", 0), (3, 4, 5))
    envs.reset()
    envs.step([1, 1, 1])
    *_, truncations, _infos = envs.step([1, 1, 1])
    assert truncations.tolist() == [True] * 3


def test_a_missing_name_is_an_attribute_error_and_nothing_else_happens(build_any):
    envs, oracle = with_oracle(build_any, POLE, 3)
    for _ in range(2):
        with pytest.raises(AttributeError, match="no_such_thing"):
            envs.get_attr("no_such_thing")
        with pytest.raises(AttributeError, match="no_such_thing"):
            envs.call("no_such_thing")
    assert_identical(envs.get_attr("gravity"), oracle.get_attr("gravity"))
    assert_same_steps(envs, oracle, 5)


def test_an_error_in_a_call_keeps_its_type_and_names_its_row(build):
    envs = build([partial(FaultyEnv, row) for row in range(4)])
    envs.reset(seed=1)
    with pytest.raises(ValueError, match="boom") as failure:
        envs.call("fail_in_row", 2, "value error")
    assert failure.value.args == ("boom", 7)
    assert_names_row(failure.value, 2)
    assert envs.call("fail_in_row", 2, "none") == ("none",) * 4
    oracle = SyncVectorEnv([partial(FaultyEnv, row) for row in range(4)])
    oracle.reset(seed=1)
    assert_identical(envs.step([0] * 4), oracle.step([0] * 4))
    oracle.close()


def test_a_call_with_wrong_arguments_is_a_type_error(build):
    envs = build_attributed(build)
    with pytest.raises(TypeError, match="remember"):
        envs.call("remember")
    assert_identical(envs.get_attr("row"), (0, 1, 2))


def test_processes_refuse_to_call_names_that_have_their_own_method(build_processes):
    envs = build_attributed(build_processes)
    for name in ("reset", "step", "close", "_setattr", "_check_spaces"):
        text = f"Trying to call function `{name}` with `call`, use `{name}` directly instead."
        with pytest.raises(ValueError, match=re.escape(text)):
            envs.call(name)
    assert_identical(envs.get_attr("row"), (0, 1, 2))


def _end_of_file():
    raise EOFError("the code of an object")


class Unloadable:
    """Raises ``EOFError`` when it is loaded: by its own code, or because its pickle ends early."""

    def __init__(self, how):
        self.how = how

    def __reduce__(self):
        return (_end_of_file, ()) if self.how == "code" else (pickle.loads, (b"",))


class UnloadableEnv(TranscriptEnv):
    """Returns what cannot be loaded; ``where`` may be its metadata."""

    def __init__(self, how, where):
        super().__init__(length=100)
        self.how = how
        self.metadata = {"where": Unloadable(how)} if where == "metadata" else {}

    def unloadable(self):
        return Unloadable(self.how)


@pytest.mark.parametrize("how", ["code", "pickle"])
def test_an_end_of_file_while_a_message_is_loaded_is_not_the_death_of_its_worker(
    build_processes, how
):
    envs = build_processes([partial(UnloadableEnv, how, "answer")] * 3)
    envs.reset()
    for _ in range(2):
        with pytest.raises(EOFError) as failure:
            envs.call("unloadable")
        note = "raised while a message of worker 0 (rows 0 to 1) was loaded"
        assert failure.value.__notes__ == [note]
        assert not envs.step([0] * 3)[3].any()
    with pytest.raises(EOFError) as failure:
        build_processes([partial(UnloadableEnv, how, "metadata")] * 3)
    assert failure.value.__notes__ == [note]


def test_values_that_cannot_be_pickled_are_an_error_only_between_processes(build):
    envs = build_attributed(build)
    if build.executor == "process":
        with pytest.raises(Exception, match="pickle") as failure:
            envs.get_attr("lock")
        assert_names_row(failure.value, 0)
        for call, what in (
            (partial(envs.set_attr, "lock"), "a value of 'lock'"),
            (partial(envs.call, "remember"), "an argument of 'remember'"),
        ):
            with pytest.raises(Exception, match="pickle") as failure:
                call(threading.Lock())
            note = f"{what} cannot be sent to the worker processes"
            assert failure.value.__notes__[-1] == note  # Python 3.14 adds where the value is
    else:
        assert [type(lock) for lock in envs.get_attr("lock")] == [type(threading.Lock())] * 3
    assert_identical(envs.get_attr("row"), (0, 1, 2))
    assert envs.reset()[0].tolist() == [[0]] * 3


class ExitsWhenPickled:
    """Raises something that is not an ``Exception``, as a panic in an extension module does."""

    def __reduce__(self):
        raise SystemExit("not me")


def test_an_answer_that_cannot_be_sent_is_an_error_that_says_why(build_processes):
    envs = build_attributed(build_processes)
    envs.set_attr("add", lambda: ExitsWhenPickled())
    with pytest.raises(cartwheel.RemoteEnvError, match="not me"):
        envs.call("add")
    assert_identical(envs.get_attr("row"), (0, 1, 2))


def test_functions_defined_here_can_be_sent(build):
    """Values are pickled by cloudpickle, as environment functions are."""
    envs = build_attributed(build)
    offset = 5
    envs.set_attr("add", lambda value: value + offset)
    assert_identical(envs.call("add", 1), (6, 6, 6))


def test_large_values_can_be_sent(build):
    envs = build_attributed(build, num_envs=2)
    large = np.arange(3_000_000)
    envs.set_attr("large", [large, large + 1])
    assert_identical(envs.get_attr("large"), (large, large + 1))
    envs.set_attr("text", "x" * 5_000_000)
    assert [len(text) for text in envs.get_attr("text")] == [5_000_000] * 2


def test_calls_between_steps_change_no_result(build_any):
    envs, oracle = with_oracle(build_any, POLE, 2)
    for _ in range(10):
        assert_same_steps(envs, oracle, 1)
        assert_identical(envs.get_attr("state"), oracle.get_attr("state"))


def test_render_gives_a_tuple_of_frames(build_everywhere):
    envs = build_attributed(build_everywhere)
    assert envs.render_mode == "rgb_array"
    envs.reset()
    envs.step([1, 1, 1])
    frames = envs.render()
    assert_identical(frames, tuple(np.full((2, 3, 3), 10 * row + 1, np.uint8) for row in range(3)))


def test_environments_that_render_nothing_give_none(build):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the environment warns; forked workers inherit the filter
        envs = build([partial(gym.make, "CartPole-v1")] * 2)
        assert envs.render_mode is None
        envs.reset(seed=1)
        assert envs.render() == (None, None)


class ClaimingEnv(TranscriptEnv):
    """Fails to render while another environment of this process renders."""

    rendering = threading.Lock()

    def render(self):
        assert self.rendering.acquire(blocking=False), "another environment is rendering"
        time.sleep(0.001)  # lets the other threads run
        self.rendering.release()


def test_environments_of_one_process_render_in_turn(build):
    envs = build([partial(ClaimingEnv, length=3)] * 6)
    for _ in range(20):
        assert envs.render() == (None,) * 6


def test_real_frames_equal_the_oracles(build):
    pytest.importorskip("pygame")
    env_fns = [partial(gym.make, "CartPole-v1", render_mode="rgb_array")] * 2
    envs, oracle = build(env_fns), SyncVectorEnv(env_fns)
    envs.reset(seed=1)
    oracle.reset(seed=1)
    for _ in range(3):
        assert_identical(envs.render(), oracle.render())
        assert_identical(envs.step([0, 1]), oracle.step([0, 1]))
    oracle.close()


def test_np_random_is_a_tuple_of_each_environments_generator(build_everywhere):
    envs, oracle = with_oracle(build_everywhere, POLE, 3)
    for seed in (3, [9, None, 1]):
        assert_same_reset(envs, oracle, seed=seed)
        assert_identical(envs.np_random_seed, oracle.np_random_seed)
        assert_identical(envs.np_random, oracle.np_random)


def test_what_workers_have_cannot_be_assigned_here(build_any):
    envs = build_any([POLE] * 2)
    for name in ("np_random", "np_random_seed", "autoreset_mode"):
        with pytest.raises(AttributeError, match=r"no setter|can't set"):
            setattr(envs, name, getattr(envs, name))


def test_metadata_is_a_copy_with_the_mode(build):
    envs = build_attributed(build, autoreset_mode="SameStep")
    assert envs.metadata == {
        **AttributedEnv.metadata,
        "autoreset_mode": gym.vector.AutoresetMode.SAME_STEP,
    }
    assert "autoreset_mode" not in AttributedEnv.metadata
    other = build_attributed(build, autoreset_mode="Disabled")
    assert other.metadata["autoreset_mode"] is gym.vector.AutoresetMode.DISABLED
    assert envs.metadata["autoreset_mode"] is gym.vector.AutoresetMode.SAME_STEP


def test_arguments_of_the_constructor_are_attributes(build):
    env_fns = transcripts(3, 3)
    envs = build(env_fns, copy=False, autoreset_mode="SameStep")
    assert envs.env_fns is env_fns or list(envs.env_fns) == env_fns
    assert envs.copy is False
    assert envs.observation_mode == "same"
    assert envs.autoreset_mode is gym.vector.AutoresetMode.SAME_STEP


@pytest.mark.parametrize("copied", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_copy_is_an_error_that_names_the_way(build, copied):
    envs = build(transcripts(3, 3))
    with pytest.raises(TypeError, match=r"VectorEnv\(num_envs=2.*pass a function that makes one"):
        copied(envs)
    envs.close()


def test_repr_names_the_class_the_number_the_mode_and_the_executor(build):
    envs = build(transcripts(3, 3))
    how = f"executor={envs.executor!r}"
    assert repr(envs) == f"VectorEnv(num_envs=2, autoreset_mode='next_step', {how})"
    envs.close()
    assert repr(envs) == f"VectorEnv(num_envs=2, autoreset_mode='next_step', {how})"
    envs = build(transcripts(3, 3), autoreset_mode="disabled", batch_size=1)
    assert repr(envs) == f"VectorEnv(num_envs=2, batch_size=1, autoreset_mode='disabled', {how})"


class Introspective(TranscriptEnv):
    def __init__(self, config=None):
        super().__init__(3)
        self.config = config

    def was_asked(self):
        return was_asked_for_its_dict(self) or was_asked_for_its_dict(self.config)

    def get_state(self):
        return self.t

    def set_state(self, state):
        self.t = state


class Configuration:
    def __init__(self):
        self.values = [1, "two", {"three": np.zeros(3)}]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="each object has a dictionary")
def test_environments_read_their_own_attributes_as_fast_as_alone(build_everywhere):
    """An object that is asked for its ``__dict__`` takes up to three times as long afterwards."""
    # Others than forked workers unpickle the configurations, which asks them.
    envs = build_everywhere(
        [
            lambda config=config: Introspective(config)
            for config in (Configuration(), Configuration())
        ],
        context="fork",
    )
    envs.reset(seed=1)
    for _ in range(8):
        envs.step([1, 2])
    envs.set_attr("length", [4, 5])
    assert envs.get_attr("length") == (4, 5)
    envs.load_state_dict(envs.state_dict())
    assert envs.call("was_asked") == (False, False)
