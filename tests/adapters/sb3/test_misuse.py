"""Mistakes are errors that say what to change; nothing stays behind."""

import importlib
import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Tuple

import cartwheel
from cartwheel.wrappers import ClipReward
from tests.support.cases import POLE
from tests.support.environments import TranscriptEnv, samplers, transcripts
from tests.support.faulty import FaultyEnv, fault
from tests.support.vec_envs import INLINE, PROCESS, native

pytestmark = pytest.mark.torch

BOX = Box(-1, 1, (2,))


def make(*args, **keywords):
    return importlib.import_module("cartwheel.sb3").CartwheelVecEnv(*args, **keywords)


@pytest.mark.parametrize("mode", ["next_step", "disabled", gym.vector.AutoresetMode.NEXT_STEP])
def test_other_autoreset_modes_are_refused(mode):
    given = cartwheel.VectorEnv([POLE], autoreset_mode=mode)
    for refused in (
        lambda: make([POLE], autoreset_mode=mode),
        lambda: make("cartwheel/CartPole-v1", autoreset_mode=mode),
        lambda: make(given),
    ):
        with pytest.raises(ValueError, match="autoreset_mode='same_step'"):
            refused()
    given.close()


def test_batches_of_some_rows_are_refused():
    given = cartwheel.VectorEnv([POLE] * 2, batch_size=1, autoreset_mode="same_step")
    for refused in (
        lambda: make([POLE] * 2, batch_size=1),
        lambda: make("cartwheel/CartPole-v1", 2, batch_size=1),
        lambda: make(given),
    ):
        with pytest.raises(ValueError, match="leave `batch_size` out"):
            refused()
    given.close()
    envs = make([POLE] * 2, batch_size=2, executor="inline")
    envs.close()


def test_a_monitor_that_is_no_truth_value_is_refused():
    with pytest.raises(TypeError, match="`monitor` must be True or False, got 'no'"):
        make([POLE], monitor="no")


def test_final_observations_of_whole_batches_are_refused():
    with pytest.raises(ValueError, match="leave `final_obs` out"):
        make("cartwheel/CartPole-v1", 2, final_obs="dense")
    given = cartwheel.VectorEnv([POLE], autoreset_mode="same_step", final_obs="dense")
    with pytest.raises(ValueError, match="leave `final_obs` out"):
        make(given)
    given.close()


@pytest.mark.parametrize(
    "space", [Dict(a=Dict(b=BOX)), Dict(a=Tuple([BOX])), Tuple([BOX, Dict(b=BOX)])], ids=str
)
def test_nested_observations_are_refused_by_name(space):
    for kind in (INLINE, PROCESS):
        with pytest.raises(ValueError, match=r"flatten the part ('a'|1)"):
            kind(samplers(space, 2))


def test_one_environment_for_several_rows_is_refused():
    env = TranscriptEnv(3)
    apart = transcripts(3)
    for kind in (INLINE, PROCESS):
        with pytest.raises(ValueError, match=r"env_fns\[1\] and env_fns\[2\] returned the same"):
            kind([*apart, lambda: env, lambda: env], num_workers=1)


@pytest.mark.parametrize(
    ("arguments", "keywords", "error", "words"),
    [
        ((gym.make("CartPole-v1"),), {}, TypeError, "function"),
        (([gym.make("CartPole-v1")],), {}, TypeError, "function"),
        (([],), {}, IndexError, "at least one"),
        (([POLE],), {"num_envs": 3}, TypeError, "repeat the function"),
        (("cartwheel/CartPole-v1", 0), {}, ValueError, "num_envs"),
        (("cartwheel/CartPoul-v1", 2), {}, gym.error.Error, "CartPole"),
        (("ALE/Pong-v5", 2), {"executor": "ale"}, ValueError, r"make_atari_env\(…, vec_env_cls"),
        (([POLE],), {"executer": "inline"}, TypeError, "executor"),
        (([POLE],), {"start_method": "fork"}, TypeError, "did you mean `context`"),
        (([POLE],), {"monitors": True}, TypeError, "did you mean `monitor`"),
        (("cartwheel/CartPole-v1",), {"n_envs": 2}, TypeError, "did you mean `num_envs`"),
        (([POLE], "fork"), {}, TypeError, "`num_envs`: pass context='fork'"),
        (([POLE],), {"seed": 3}, TypeError, "seed"),
    ],
    ids=str,
)
def test_wrong_arguments_are_refused(arguments, keywords, error, words):
    with pytest.raises(error, match=words):
        make(*arguments, **keywords)


def test_other_vector_environments_are_refused():
    theirs = gym.vector.SyncVectorEnv([POLE], autoreset_mode=gym.vector.AutoresetMode.SAME_STEP)
    ours = cartwheel.NativeVectorEnv("CartPole-v1", 2, autoreset_mode="same_step")
    for envs in (theirs, ClipReward(ours, 0)):
        with pytest.raises(TypeError, match=r"must be a cartwheel\.VectorEnv"):
            make(envs)
    with pytest.raises(TypeError, match="`num_envs`, `executor` cannot be given with"):
        make(ours, 2, executor="inline")
    theirs.close()
    ours.close()


def test_a_vector_environment_that_is_closed_is_refused():
    given = cartwheel.make_vec("cartwheel/CartPole-v1", 2, autoreset_mode="same_step")
    given.close()
    with pytest.raises(gym.error.ClosedEnvironmentError):
        make(given)


def test_a_seed_that_does_not_fit_is_refused_before_the_next_reset():
    envs = make("cartwheel/CartPole-v1", 2)
    for seed, error in ((-1, gym.error.Error), ("1", TypeError)):
        with pytest.raises(error, match=r"[Ss]eed"):
            envs.seed(seed)
    assert envs.reset().shape == (2, 4)
    assert envs.seed(np.int64(3)) == [3, 4]
    envs.close()


def test_repr_names_the_vector_environment():
    envs = make("cartwheel/CartPole-v1", 2)
    assert repr(envs) == f"CartwheelVecEnv({envs.vector_env!r})"
    envs.close()


def test_what_takes_vector_environments_names_the_one_inside():
    base = importlib.import_module("stable_baselines3.common.vec_env")
    for given in (make("cartwheel/CartPole-v1", 2), base.VecMonitor(make([POLE] * 2))):
        for refused in (
            cartwheel.evaluate,
            cartwheel.Collector,
            lambda envs, _: ClipReward(envs, 0),
        ):
            with pytest.raises(TypeError, match="pass its `vector_env`"):
                refused(given, lambda observations: observations)
        assert given.vector_env.num_envs == 2
        given.close()


def test_a_given_vector_environment_is_closed_with_its_owner():
    for given in (
        cartwheel.VectorEnv([POLE] * 2, autoreset_mode="same_step"),
        cartwheel.NativeVectorEnv("CartPole-v1", 2, autoreset_mode="same_step"),
    ):
        envs = make(given)
        assert envs.reset().shape == (2, 4)
        envs.close()
        envs.close()
        for call in (envs.reset, lambda: envs.step([0, 0]), lambda: given.step([0, 0])):  # noqa: B023
            with pytest.raises(gym.error.ClosedEnvironmentError):
                call()


def test_calls_out_of_order_are_refused(build):
    envs = build(transcripts(3, 3))
    envs.reset()
    with pytest.raises(gym.error.NoAsyncCallError):
        envs.step_wait()
    envs.step_async([0, 0])
    for call in (lambda: envs.step_async([0, 0]), lambda: envs.get_attr("t")):
        with pytest.raises(gym.error.AlreadyPendingCallError):
            call()
    assert envs.step_wait()[0].tolist() == [[1], [1]]


def test_native_rows_must_be_reset_first_and_are_no_objects():
    envs = native(POLE, 2)
    with pytest.raises(AttributeError, match="use get_attr, set_attr and env_method"):
        _ = envs.envs
    with pytest.raises(gym.error.ResetNeeded):
        envs.step([0, 0])
    envs.close()


def test_environments_that_stable_baselines3_refuses_are_closed():
    closed = []

    class Drawn(TranscriptEnv):
        def close(self):
            closed.append(self.render_mode)

    def drawn(render_mode):
        env = Drawn(3)
        env.render_mode = render_mode
        return env

    with pytest.raises(AssertionError, match="should be the same for all environments") as raised:
        make([lambda: drawn("ansi"), lambda: drawn("rgb_array")], executor="inline")
    assert closed == ["ansi", "rgb_array"], raised  # though the error has frames that have them


def test_a_failed_environment_is_replaced_and_its_episode_is_not_reported(build):
    envs = build([FaultyEnv] * 2, on_error="restart", monitor=True)
    envs.reset()
    shown = envs.step([fault("none"), fault("none")])[0]
    _, rewards, dones, infos = envs.step([fault("none"), fault("value error")])
    assert dones.tolist() == [False, True]
    assert rewards[1] == 0
    assert infos[0] == {"steps": 2, "TimeLimit.truncated": False}
    assert infos[1]["env_error"].startswith("ValueError")
    assert infos[1]["TimeLimit.truncated"] is True
    assert np.array_equal(infos[1]["terminal_observation"], shown[1])
    assert "episode" not in infos[1]
    assert envs.reset_infos[1].keys() == {"resets"}


def test_a_dead_worker_is_replaced_and_its_episodes_are_not_reported():
    envs = PROCESS([FaultyEnv] * 4, on_worker_death="restart", monitor=True)
    envs.reset()
    none, kill = fault("none"), fault("kill")
    _, _, dones, infos = envs.step([none, none, none, kill])
    assert dones.tolist() == [False, False, True, True]
    assert [info.get("worker_restarted", False) for info in infos] == dones.tolist()
    assert not any("episode" in info for info in infos)
    assert envs.step([none] * 4)[2].tolist() == [False] * 4
    envs.close()


def test_a_missing_trainer_is_an_import_error_that_names_the_extra(monkeypatch):
    make([POLE], executor="inline").close()
    for name in [name for name in sys.modules if name.startswith("cartwheel.sb3")]:
        monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if name.startswith("stable_baselines3")]:
        monkeypatch.setitem(sys.modules, name, None)
    needs = r"cartwheel.sb3 needs stable_baselines3: pip install 'cartwheel\[sb3\]'"
    with pytest.raises(ImportError, match=needs):
        importlib.import_module("cartwheel.sb3")
