"""`make_vec` builds registered environments; `patch_gymnasium` lets Gymnasium build cartwheel's."""

import copy
import inspect
import subprocess
import sys
import warnings
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec, VectorizeMode
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import OrderEnforcing, RescaleAction, TimeAwareObservation

import cartwheel
from tests.support.comparison import assert_identical
from tests.support.environments import TranscriptEnv
from tests.support.executors import EXECUTORS
from tests.support.oracle import MODE, assert_like

EXECUTOR = pytest.mark.parametrize("executor", ["inline", "thread", "process"])


def make(*args, **keywords):
    """Like `make_vec`, with two workers."""
    if keywords.get("executor") in ("thread", "process"):
        keywords.setdefault("num_workers", 2)
    return cartwheel.make_vec(*args, **keywords)


class ClosedEnv(TranscriptEnv):
    """Notes that it was closed."""

    def __init__(self, file):
        super().__init__(length=3)
        self.file = file

    def close(self):
        self.file.touch()


def refuse(_):
    raise ValueError("this wrapper refuses the environment")


@EXECUTOR
def test_an_environment_whose_wrapper_raises_is_closed(executor, tmp_path):
    spec = EnvSpec("Closed-v0", entry_point=ClosedEnv, kwargs={"file": tmp_path / "closed"})
    with pytest.raises(ValueError, match="refuses the environment"):
        make(spec, 2, executor=executor, wrappers=[OrderEnforcing, refuse])
    assert (tmp_path / "closed").exists()


@EXECUTOR
@MODE
def test_a_registered_id_is_built_num_envs_times(executor, mode):
    envs = make("CartPole-v1", 3, executor=executor, autoreset_mode=mode)
    assert isinstance(envs, cartwheel.VectorEnv)
    assert envs.metadata["autoreset_mode"] is mode
    shown = f"num_envs=3, autoreset_mode={mode.name.lower()!r}, executor={executor!r}"
    assert repr(envs) == f"VectorEnv('CartPole-v1', {shown})"
    assert_like(envs, [partial(gym.make, "CartPole-v1")] * 3, mode)


def test_by_default_there_is_one_environment_in_next_step_mode():
    envs = cartwheel.make_vec("CartPole-v1")
    assert envs.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    assert_like(envs, [partial(gym.make, "CartPole-v1")])


@EXECUTOR
def test_keywords_go_to_the_environments(executor):
    keywords = {"is_slippery": False, "map_name": "8x8"}
    envs = make("FrozenLake-v1", 3, executor=executor, **keywords)
    assert_like(envs, [partial(gym.make, "FrozenLake-v1", **keywords)] * 3)


@EXECUTOR
def test_the_time_limit_is_honored(executor):
    envs = make("Pendulum-v1", 2, executor=executor, max_episode_steps=4)
    assert_like(envs, [partial(gym.make, "Pendulum-v1", max_episode_steps=4)] * 2, steps=12)


@EXECUTOR
def test_wrappers_are_applied_in_order_in_the_workers(executor):
    wrappers = [
        partial(RescaleAction, min_action=np.float32(-1), max_action=np.float32(1)),
        TimeAwareObservation,
    ]
    envs = make("Pendulum-v1", 2, executor=executor, wrappers=wrappers)
    assert_like(
        envs, [lambda: TimeAwareObservation(wrappers[0](gym.make("Pendulum-v1")))] * 2, steps=12
    )


def test_wrappers_may_be_an_iterator():
    wrappers = [TimeAwareObservation]
    with (
        make("Pendulum-v1", 2, executor="inline", wrappers=wrappers) as envs,
        make("Pendulum-v1", 2, executor="inline", wrappers=iter(wrappers)) as same,
    ):
        assert same.single_observation_space == envs.single_observation_space


class PatientEnv(TranscriptEnv):
    """Has keywords with the same names as keywords of the vector environment."""

    def __init__(self, timeout=1.0, copy=None, worker="me"):
        super().__init__(4)
        self.given = (timeout, copy, worker)


@pytest.fixture
def patient():
    gym.register("Tests/Patient-v0", entry_point=PatientEnv)
    yield "Tests/Patient-v0"
    gym.registry.pop("Tests/Patient-v0")


def test_a_name_in_vector_kwargs_and_as_a_keyword_reaches_both(patient):
    envs = make(patient, 2, timeout=7.0, vector_kwargs={"timeout": 3.0}, executor="inline")
    assert envs.get_attr("given") == ((7.0, None, "me"),) * 2
    assert envs._callbacks.timeout == 3.0
    for rebuild in (cartwheel.make_vec, gym.make_vec):
        again = rebuild(envs.spec)
        assert again.spec == envs.spec
        assert again.get_attr("given") == ((7.0, None, "me"),) * 2
        assert again._callbacks.timeout == 3.0
        again.close()
    other = make(envs.spec, timeout=2.0, worker="you", copy=False)
    assert other.get_attr("given") == ((7.0, None, "you"),) * 2
    assert (other._callbacks.timeout, other.copy) == (2.0, False)
    other.close()
    envs.close()


def test_a_name_only_in_vector_kwargs_goes_to_the_vector_environment(patient):
    envs = make(patient, 2, vector_kwargs={"timeout": 3.0, "copy": False, "executor": "inline"})
    assert envs.get_attr("given") == ((1.0, None, "me"),) * 2
    assert (envs._callbacks.timeout, envs.copy, envs.executor) == (3.0, False, "inline")
    envs.close()


@pytest.mark.parametrize("name", ["max_restarts", "on_error", "on_worker_death", "max_batches"])
def test_every_keyword_of_the_vector_environment_is_accepted(name):
    value = {"max_restarts": 3, "max_batches": 4}.get(name, "raise")
    envs = make("CartPole-v1", 2, executor="inline", **{name: value})
    assert envs.spec.kwargs["cartwheel"]["vector_kwargs"] == {"executor": "inline", name: value}
    envs.close()


def test_wrappers_of_a_spec_are_applied():
    env = TimeAwareObservation(gym.make("CartPole-v1", max_episode_steps=9))
    envs = make(env.spec, 2, executor="process")
    assert_like(envs, [partial(gym.make, env.spec)] * 2)


def test_keywords_of_the_vector_environment_reach_it():
    envs = make(
        "CartPole-v1",
        4,
        executor="process",
        num_workers=2,
        context="spawn",
        autoreset_mode="disabled",
        on_done="freeze",
        observation_mode="different",
        copy=False,
    )
    assert envs.observation_mode == "different"
    assert envs.copy is False
    assert envs.autoreset_mode is AutoresetMode.DISABLED
    envs.reset(seed=1)
    for _ in range(60):
        *_, terminations, _truncations, _infos = envs.step([1] * 4)
    assert terminations.all()
    envs.close()


@pytest.mark.parametrize(
    "keywords",
    [
        {},
        {"num_envs": 3},
        {"num_envs": 3, "autoreset_mode": "SameStep"},
        {"num_envs": 2, "executor": "process", "num_workers": 2, "max_episode_steps": 7},
        {"num_envs": 2, "executor": "inline", "wrappers": [TimeAwareObservation]},
        {"num_envs": 2, "executor": "thread", "autoreset_mode": "disabled", "on_done": "freeze"},
    ],
    ids=str,
)
@pytest.mark.parametrize("rebuild", [make, gym.make_vec], ids=["ours", "gymnasium's"])
def test_the_spec_rebuilds_the_same_environments(keywords, rebuild):
    first = make("CartPole-v1", **keywords)
    assert first.spec.id == "CartPole-v1"
    spec_before = copy.deepcopy(first.spec.kwargs)
    second = rebuild(first.spec)
    assert first.spec.kwargs == spec_before
    assert type(second) is type(first)
    assert second.spec == first.spec
    assert repr(second) == repr(first)
    for name in ("num_envs", "metadata", "observation_space", "executor", "on_done"):
        assert getattr(second, name) == getattr(first, name), name
    first.action_space.seed(1)
    assert_identical(first.reset(seed=1), second.reset(seed=1))
    for _ in range(8):
        actions = first.action_space.sample()
        assert_identical(first.step(actions), second.step(actions))
    first.close()
    second.close()


@pytest.mark.parametrize("rebuild", [cartwheel.make_vec, gym.make_vec], ids=["ours", "gymnasium's"])
def test_the_spec_survives_json(rebuild):
    wrapped = TimeAwareObservation(gym.make("CartPole-v1", max_episode_steps=9))
    for id_or_spec in ("CartPole-v1", wrapped.spec):
        first = make(id_or_spec, 2, executor="inline", timeout=3.0, sutton_barto_reward=True)
        spec = EnvSpec.from_json(first.spec.to_json())
        second = rebuild(spec)
        assert type(second) is cartwheel.VectorEnv
        assert (second.executor, second._callbacks.timeout) == ("inline", 3.0)
        first.close()
        env_fn = partial(gym.make, id_or_spec, sutton_barto_reward=True)
        assert_like(second, [env_fn] * 2, steps=20)


def test_keywords_of_gymnasiums_make_vec_go_to_the_environments():
    """Keywords of ``gymnasium.make_vec`` always go to the environments."""
    first = make("CartPole-v1", 2, executor="inline")
    second = gym.make_vec(first.spec, sutton_barto_reward=True, max_episode_steps=5)
    assert second.spec.kwargs["sutton_barto_reward"] is True
    keywords = {"sutton_barto_reward": True, "max_episode_steps": 5}
    assert_like(second, [partial(gym.make, "CartPole-v1", **keywords)] * 2)
    first.close()


def test_the_registered_spec_is_not_changed():
    spec = gym.spec("CartPole-v1")
    before = repr(spec)
    make(spec, 2, max_episode_steps=3, executor="inline").close()
    make("CartPole-v1", 2, max_episode_steps=3, executor="inline").close()
    assert repr(gym.spec("CartPole-v1")) == before


@pytest.fixture
def registered():
    gym.register("Tests/Transcript-v0", entry_point=TranscriptEnv, kwargs={"length": 2})
    gym.register("Tests/OnlyVector-v0", vector_entry_point=lambda **_keywords: None)
    yield
    gym.registry.pop("Tests/Transcript-v0")
    gym.registry.pop("Tests/OnlyVector-v0")


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("context", ["fork", "forkserver", "spawn"])
def test_environments_registered_at_run_time_work_in_every_worker(context):
    envs = make("Tests/Transcript-v0", 3, executor="process", context=context)
    assert_like(envs, [partial(gym.make, "Tests/Transcript-v0")] * 3, steps=6)


@pytest.mark.usefixtures("registered")
def test_an_environment_without_an_entry_point_is_refused_as_in_gymnasium():
    with pytest.raises(gym.error.Error, match="doesn't have an entry point defined"):
        make("Tests/OnlyVector-v0", 2)


def test_a_module_in_the_id_is_imported_first(tmp_path, monkeypatch):
    (tmp_path / "module_that_registers.py").write_text(
        "import gymnasium as gym\n"
        "from tests.support.environments import TranscriptEnv\n"
        "gym.register('Tests/Imported-v0', entry_point=TranscriptEnv, kwargs={'length': 3})\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    envs = make("module_that_registers:Tests/Imported-v0", 2, executor="process")
    assert_like(envs, [partial(gym.make, "Tests/Imported-v0")] * 2, steps=6)
    gym.registry.pop("Tests/Imported-v0")


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ("NoSuchThing-v0", gym.error.NameNotFound),
        ("CartPole-v99", gym.error.VersionNotFound),
        (3, gym.error.Error),
        (None, gym.error.Error),
    ],
    ids=str,
)
def test_an_unknown_id_is_gymnasiums_error(wrong, error):
    with pytest.raises(error):
        make(wrong, 2)


def test_an_unknown_keyword_is_the_environments_error():
    with pytest.raises(TypeError, match="no_such_keyword"):
        make("CartPole-v1", 2, executor="inline", no_such_keyword=1)


@pytest.mark.parametrize("num_envs", [0, -1])
def test_num_envs_must_be_positive(num_envs):
    with pytest.raises((IndexError, ValueError)):
        make("CartPole-v1", num_envs)


@pytest.fixture
def unpatched(monkeypatch):
    """Restores Gymnasium's classes after the test."""
    for module in (gym.vector, gym.vector.async_vector_env):
        monkeypatch.setattr(module, "AsyncVectorEnv", AsyncVectorEnv)
    for module in (gym.vector, gym.vector.sync_vector_env):
        monkeypatch.setattr(module, "SyncVectorEnv", SyncVectorEnv)


@pytest.mark.usefixtures("unpatched")
@pytest.mark.parametrize("mode", ["async", "sync"])
def test_gymnasium_builds_ours_while_it_is_patched(mode):
    ours = {"async": cartwheel.AsyncVectorEnv, "sync": cartwheel.SyncVectorEnv}[mode]
    keywords = {
        "num_envs": 2,
        "vectorization_mode": mode,
        "vector_kwargs": {"autoreset_mode": AutoresetMode.SAME_STEP},
        "wrappers": [TimeAwareObservation],
    }
    with cartwheel.patch_gymnasium():
        envs = gym.make_vec("CartPole-v1", **keywords)
        assert isinstance(envs, ours)
        assert envs.spec.id == "CartPole-v1"
        again = gym.make_vec(envs.spec)
        assert isinstance(again, ours)
        assert again.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
        again.close()
        assert issubclass(gym.vector.AsyncVectorEnv, cartwheel.VectorEnv)
    assert gym.vector.AsyncVectorEnv is AsyncVectorEnv
    assert gym.vector.SyncVectorEnv is SyncVectorEnv
    env_fns = [lambda: TimeAwareObservation(gym.make("CartPole-v1"))] * 2
    assert_like(envs, env_fns, AutoresetMode.SAME_STEP)


@pytest.mark.usefixtures("unpatched")
def test_a_plain_call_patches_gymnasium():
    patch = cartwheel.patch_gymnasium()
    assert gym.vector.AsyncVectorEnv is cartwheel.AsyncVectorEnv
    assert gym.vector.SyncVectorEnv is cartwheel.SyncVectorEnv
    # Programs also import them from the modules that define them.
    assert gym.vector.async_vector_env.AsyncVectorEnv is cartwheel.AsyncVectorEnv
    assert gym.vector.sync_vector_env.SyncVectorEnv is cartwheel.SyncVectorEnv
    with patch:
        assert gym.vector.AsyncVectorEnv is cartwheel.AsyncVectorEnv
    assert gym.vector.AsyncVectorEnv is AsyncVectorEnv
    assert gym.vector.SyncVectorEnv is SyncVectorEnv
    assert gym.vector.async_vector_env.AsyncVectorEnv is AsyncVectorEnv
    assert gym.vector.sync_vector_env.SyncVectorEnv is SyncVectorEnv


@pytest.mark.usefixtures("unpatched")
def test_the_patch_ends_if_its_body_raises():
    with pytest.raises(RuntimeError, match="inside"), cartwheel.patch_gymnasium():
        raise RuntimeError("inside")
    assert gym.vector.AsyncVectorEnv is AsyncVectorEnv


@pytest.mark.usefixtures("unpatched")
def test_patches_may_be_nested():
    with cartwheel.patch_gymnasium():
        with cartwheel.patch_gymnasium():
            assert gym.vector.SyncVectorEnv is cartwheel.SyncVectorEnv
        assert gym.vector.SyncVectorEnv is cartwheel.SyncVectorEnv
    assert gym.vector.SyncVectorEnv is SyncVectorEnv


def test_rooms_that_are_loaded_under_the_patch_know_gymnasiums_classes():
    """Otherwise they take our classes for Gymnasium's, and Gymnasium's for a stranger's."""
    program = """
import gymnasium as gym, importlib, pkgutil, cartwheel
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv, VectorEnv

with cartwheel.patch_gymnasium():
    for module in pkgutil.walk_packages(cartwheel.__path__, "cartwheel."):
        try:
            names = vars(importlib.import_module(module.name))
        except ImportError:  # a library is not installed
            continue
        ours = module.name in ("cartwheel.vector.gymnasium_presets", "cartwheel._make")
        for each in (AsyncVectorEnv, SyncVectorEnv):
            if not ours and names.get(each.__name__, each) is not each:
                print(module.name, "has the wrong", each.__name__)
    envs = gym.make_vec("CartPole-v1", 3, vectorization_mode="sync")
    envs = cartwheel.wrappers.RecordEpisodeStatistics(envs)
    envs.reset(seed=1)
    print(envs.reset(options={"env_index": [2]})[1]["env_index"])
real = SyncVectorEnv([lambda: gym.make("CartPole-v1")] * 2)
print("rows" in cartwheel.testing.check_vector_env(real, steps=8).passed)
envs = cartwheel.wrappers.RecordEpisodeStatistics(real)
try:
    envs.reset(options={"env_index": [0]})
except ValueError as error:
    print(error)
"""
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    numbers, rows, refused = ran.stdout.splitlines() or [ran.stderr] * 3
    assert (numbers, rows) == ("[2]", "True")
    assert refused.startswith("SyncVectorEnv of Gymnasium does not know `options[")


def test_importing_cartwheel_patches_nothing():
    assert gym.vector.AsyncVectorEnv is AsyncVectorEnv
    assert not issubclass(AsyncVectorEnv, cartwheel.VectorEnv)
    assert not issubclass(SyncVectorEnv, cartwheel.VectorEnv)


def test_the_presets_are_subclasses_of_vector_env():
    for preset, executor in (
        (cartwheel.AsyncVectorEnv, "process"),
        (cartwheel.SyncVectorEnv, "inline"),
    ):
        assert issubclass(preset, cartwheel.VectorEnv)
        envs = partial(preset, autoreset_mode="SameStep")([partial(TranscriptEnv, 2)] * 2)
        assert envs.executor == executor
        assert envs.autoreset_mode is AutoresetMode.SAME_STEP
        shown = f"num_envs=2, autoreset_mode='same_step', executor={executor!r}"
        assert repr(envs) == f"{preset.__name__}({shown})"
        envs.close()


def test_make_vec_gives_the_same_results_on_every_executor():
    runs = []
    for executor in EXECUTORS:
        envs = make("CartPole-v1", 4, executor=executor.name)
        run = [envs.reset(seed=2)]
        run += [envs.step(np.array([0, 1, 0, 1])) for _ in range(50)]
        runs.append(run)
        envs.close()
    assert_identical(runs[1], runs[0])
    assert_identical(runs[2], runs[0])


@pytest.mark.parametrize(("mode", "executor"), [("sync", "inline"), ("async", "process")])
def test_gymnasiums_vectorization_modes_choose_the_executor(mode, executor):
    for chosen in (mode, VectorizeMode(mode)):
        envs = cartwheel.make_vec("CartPole-v1", 2, vectorization_mode=chosen)
        assert envs.executor == executor
        envs.close()
    envs = cartwheel.make_vec("CartPole-v1", 2, vectorization_mode=mode, executor="thread")
    assert envs.executor == "thread"
    envs.close()


def test_the_arguments_are_those_of_gymnasiums_make_vec_in_its_order():
    ours, theirs = (
        [one.name for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD]
        for make_vec in (cartwheel.make_vec, gym.make_vec)
        for parameters in [inspect.signature(make_vec).parameters.values()]
    )
    assert ours == theirs
    given = ("CartPole-v1", 2, "sync", {"copy": False}, [TimeAwareObservation])
    envs, oracle = cartwheel.make_vec(*given), gym.make_vec(*given)
    assert (envs.executor, envs.copy) == ("inline", False)
    assert_identical(envs.reset(seed=1), oracle.reset(seed=1))
    for rebuild, spec in ((cartwheel.make_vec, envs.spec), (gym.make_vec, oracle.spec)):
        again = rebuild(spec, 7)
        assert again.num_envs == 2  # that of the spec
        again.close()
    envs.close()
    oracle.close()


def test_vector_entry_points_of_others_are_refused():
    with pytest.raises(gym.error.Error, match=r"of CartPole-v1 is not cartwheel's: use gymnasium"):
        cartwheel.make_vec("CartPole-v1", 2, vectorization_mode="vector_entry_point")
    envs = cartwheel.make_vec(gym.make_vec("CartPole-v1", 2).spec, executor="inline")
    assert (type(envs), envs.num_envs) == (cartwheel.VectorEnv, 2)
    envs.close()


@pytest.mark.parametrize("env_id", ["CartPole", "FrozenLake", "cartwheel/CartPole", "CartPole-v0"])
def test_an_id_without_a_version_or_with_an_old_one_acts_as_in_gymnasium(env_id):
    with warnings.catch_warnings(record=True) as expected:
        warnings.simplefilter("always")
        single = gym.make(env_id)
    with warnings.catch_warnings(record=True) as got:
        warnings.simplefilter("always")
        envs = cartwheel.make_vec(env_id, 2, executor="inline")
    assert [(each.category, str(each.message)) for each in got] == [
        (each.category, str(each.message)) for each in expected
    ]
    assert expected
    assert envs.spec.id == single.spec.id
    envs.close()
    single.close()
