"""Native environments are found by their ids and rebuilt from their specs."""

import copy
import inspect
import os
import pickle
import subprocess
import sys
from functools import partial
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import cartwheel
from cartwheel.recorder.metadata import env_info
from tests.support.cases import POLE, Case
from tests.support.comparison import assert_identical
from tests.support.oracle import MODE, N, S, assert_like

IDS = [env_id for env_id, *_ in cartwheel._cartwheel.native_envs()]


def with_prefix(make, prefix="cartwheel/"):
    return lambda env_id, *args, **keywords: make(f"{prefix}{env_id}", *args, **keywords)


MAKERS = {
    "cartwheel.make_vec": with_prefix(cartwheel.make_vec),
    "gym.make_vec": with_prefix(gym.make_vec),
    "gym.make_vec with a module": with_prefix(gym.make_vec, "cartwheel:cartwheel/"),
    "cartwheel.make_vec with a module": with_prefix(cartwheel.make_vec, "cartwheel:cartwheel/"),
    "the class": with_prefix(cartwheel.NativeVectorEnv),
}
MAKE = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
BY_ID = pytest.mark.parametrize("make", list(MAKERS.values())[:4], ids=list(MAKERS)[:4])


# Ids


@MAKE
@MODE
def test_every_make_function_gives_the_same_environment(make, mode):
    envs = make("CartPole-v1", 3, autoreset_mode=mode, executor="inline")
    assert type(envs) is cartwheel.NativeVectorEnv
    assert envs.unwrapped is envs
    assert (envs.env_id, envs.executor, envs.num_workers) == ("CartPole-v1", "inline", 1)
    assert_like(envs, [POLE] * 3, mode)


@pytest.mark.filterwarnings("ignore:.*out of date")
@BY_ID
@pytest.mark.parametrize("env_id", IDS)
def test_every_id_is_registered(make, env_id):
    envs = make(env_id, 2)
    assert envs.env_id == env_id
    assert envs.spec.id == f"cartwheel/{env_id}"
    observations, _ = envs.reset(seed=1)
    assert observations in envs.observation_space
    envs.step(envs.action_space.sample())
    envs.close()


@BY_ID
def test_by_default_there_is_one_environment_in_next_step_mode(make):
    envs = make("Pendulum-v1")
    assert envs.num_envs == 1
    assert_like(envs, [Case("Pendulum-v1")], steps=205)


@MAKE
def test_keywords_reach_the_environments_and_the_vector_environment(make):
    keywords = {"is_slippery": False, "map_name": "8x8", "max_episode_steps": 6}
    envs = make("FrozenLake-v1", 3, num_workers=2, autoreset_mode="SameStep", **keywords)
    assert envs.num_workers == 2
    assert_like(envs, [Case("FrozenLake-v1", keywords)] * 3, S)


@BY_ID
def test_the_keywords_of_an_id_are_its_defaults(make):
    for env_id, keywords in {
        "FrozenLake8x8-v1": {},
        "FrozenLake8x8-v1 ": {"map_name": "4x4"},
        "CliffWalkingSlippery-v1": {},
        "CliffWalkingSlippery-v1 ": {"is_slippery": False},
        "Blackjack-v1": {"sab": False, "natural": True},
    }.items():
        env_id = env_id.strip()
        assert_like(make(env_id, 3, **keywords), [Case(env_id, keywords)] * 3)


def ends(envs):
    """The step that first truncates, up to 300, and the limits of which the spec speaks."""
    envs.reset(seed=1)
    actions = np.zeros((2, 1), np.float32)
    end = next((step for step in range(1, 301) if envs.step(actions)[3].any()), None)
    limits = envs.spec.max_episode_steps, envs.spec.kwargs.get("max_episode_steps")
    envs.close()
    return end, {limit for limit in limits if limit is not None}


@MAKE
def test_none_means_the_limit_of_the_registry_as_in_gymnasium(make):
    """So a configuration with ``max_episode_steps: null`` changes nothing."""
    assert ends(make("Pendulum-v1", 2, max_episode_steps=None)) == (200, {200})
    for mode in ("sync", "async"):
        twin = cartwheel.make_vec(
            "cartwheel/Pendulum-v1", 2, max_episode_steps=None, vectorization_mode=mode
        )
        assert ends(twin)[0] == 200


@pytest.mark.parametrize(("given", "end"), [(None, 7), (-1, None), (9, 9)])
def test_none_means_the_limit_of_a_spec(given, end):
    spec = gym.make("cartwheel/Pendulum-v1", max_episode_steps=7).spec
    for make in (cartwheel.NativeVectorEnv, cartwheel.make_vec):
        assert ends(make(spec, 2, max_episode_steps=given))[0] == end
    no_limit = gym.make("cartwheel/Pendulum-v1", max_episode_steps=-1).spec
    end = None if given in (None, -1) else given
    assert ends(cartwheel.NativeVectorEnv(no_limit, 2, max_episode_steps=given))[0] == end


@pytest.mark.parametrize(("given", "mode"), [(None, "ansi"), ("ansi", "ansi"), ("rgb_array",) * 2])
def test_the_render_mode_of_a_spec_is_the_default(given, mode):
    spec = gym.make("cartwheel/FrozenLake-v1", render_mode="ansi").spec
    with cartwheel.NativeVectorEnv(spec, 2, render_mode=given) as envs:
        assert envs.render_mode == mode


@MAKE
def test_minus_one_means_no_limit_as_in_gymnasium(make):
    envs = make("Pendulum-v1", 2, max_episode_steps=-1)
    assert env_info(envs)["max_episode_steps"] is None, "recordings say so, too"
    assert_like(envs, [Case("Pendulum-v1", {"max_episode_steps": -1})] * 2, steps=220)


def test_a_single_environment_without_a_limit_equals_gymnasiums():
    env, twin = (
        gym.make(env_id, max_episode_steps=-1)
        for env_id in ("cartwheel/Pendulum-v1", "Pendulum-v1")
    )
    assert_identical(env.reset(seed=1), twin.reset(seed=1))
    action = np.ones(1, np.float32)
    for _ in range(220):
        result = env.step(action)
        assert_identical(result, twin.step(action))
        assert not result[3]
    env.close()


@MAKE
def test_keywords_of_other_vector_environments_are_accepted(make):
    """All those of `VectorEnv`; keywords about processes, copies and states have no effect."""
    parameters = inspect.signature(cartwheel.VectorEnv).parameters.values()
    keywords = {each.name: each.default for each in parameters if each.name != "env_fns"}
    keywords |= {"shared_memory": False, "copy": False, "context": "spawn", "daemon": False}
    keywords |= {"states": "pickle", "num_workers": 3, "max_concurrency": 2}
    envs = make("CartPole-v1", 3, **keywords)
    assert envs.num_workers == 2
    assert_like(envs, [POLE] * 3)


@BY_ID
def test_bad_ids_and_keywords_are_refused(make):
    with pytest.raises(gym.error.NameNotFound, match="`Nowhere` doesn't exist in namespace cartw"):
        make("Nowhere-v0", 2)
    with pytest.raises(gym.error.VersionNotFound, match="version `v9` for environment `cartwheel"):
        make("CartPole-v9", 2)
    with pytest.raises(TypeError, match=r"`color` .* which has `sutton_barto_reward`, nor of"):
        make("CartPole-v1", 2, color=1)
    with pytest.raises(ValueError, match="`num_envs` must be a positive integer"):
        make("CartPole-v1", 0)
    with pytest.raises(ValueError, match=r"^Invalid vectorization mode: 'fast', valid modes: "):
        make("CartPole-v1", 2, vectorization_mode="fast")
    with pytest.raises(gym.error.Error, match=r"cannot be wrapped|wrappers argument"):
        make("CartPole-v1", 2, wrappers=[lambda env: env])


@BY_ID
def test_none_means_the_default_of_every_mode(make):
    envs = make("CartPole-v1", 2, autoreset_mode=None, render_mode=None, vectorization_mode=None)
    assert (envs.autoreset_mode, envs.render_mode) == (N, None)
    assert_like(envs, [POLE] * 2)


def test_cartwheels_make_vec_accepts_vector_kwargs():
    envs = cartwheel.make_vec("cartwheel/CartPole-v1", 2, vector_kwargs={"executor": "inline"})
    assert envs.executor == "inline"
    envs.close()
    with pytest.raises(TypeError, match="`executor` is given twice"):
        cartwheel.make_vec(
            "cartwheel/CartPole-v1", 2, vector_kwargs={"executor": "inline"}, executor="thread"
        )
    with pytest.raises(ValueError, match="sometimes"):
        cartwheel.make_vec("cartwheel/CartPole-v1", 2, autoreset_mode="sometimes")


@pytest.mark.filterwarnings("ignore:.*out of date")
def test_registered_specs_equal_gymnasiums():
    for env_id in IDS:
        spec = gym.spec(f"cartwheel/{env_id}")
        assert spec.namespace == "cartwheel"
        if env_id != "Null-v0":
            twin = gym.spec(env_id)
            assert spec.max_episode_steps == twin.max_episode_steps
            assert spec.reward_threshold == twin.reward_threshold
            assert (spec.name, spec.version) == (twin.name, twin.version)


def test_gymnasiums_own_ids_are_not_native():
    envs = cartwheel.make_vec("CartPole-v1", 2, executor="inline")
    assert type(envs) is cartwheel.VectorEnv
    envs.close()


def test_gymnasium_imports_the_module_named_in_an_id():
    program = """
import os, sys, gymnasium as gym
for make in (gym.make, gym.make_vec):
    child = os.fork()  # cartwheel is not imported in it
    if child == 0:
        assert "cartwheel" not in sys.modules
        made = make("cartwheel:cartwheel/CartPole-v1")
        print(type(made.unwrapped).__name__, flush=True)
        made.close()
        sys.exit()
    assert os.waitpid(child, 0)[1] == 0
"""
    folder = str(Path(cartwheel.__file__).parents[1])
    path = os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("NativeEnv\nNativeVectorEnv\n", "")


# Specs


@pytest.mark.parametrize("rebuild", [cartwheel.make_vec, gym.make_vec], ids=["ours", "gymnasium's"])
@MAKE
def test_a_spec_rebuilds_its_vector_environment(make, rebuild):
    keywords = {"is_slippery": False, "max_episode_steps": 7}
    envs = make("FrozenLake-v1", 3, autoreset_mode="SameStep", num_workers=2, **keywords)
    spec = envs.spec
    before = copy.deepcopy(spec)
    shown = "num_envs=3, autoreset_mode='same_step', executor='thread'"
    assert repr(envs) == f"NativeVectorEnv('FrozenLake-v1', {shown})"
    for again in (spec, copy.deepcopy(spec), pickle.loads(pickle.dumps(spec))):
        rebuilt = rebuild(again)
        assert type(rebuilt) is cartwheel.NativeVectorEnv
        assert rebuilt.spec == before
        assert (rebuilt.num_envs, rebuilt.num_workers) == (3, 2)
        assert_like(rebuilt, [Case("FrozenLake-v1", keywords)] * 3, S, steps=20)
    assert spec == before
    assert gym.spec("cartwheel/FrozenLake-v1").kwargs == {"env_id": "FrozenLake-v1"}
    envs.close()


@pytest.mark.parametrize(
    "keywords",
    [
        {},
        {"sutton_barto_reward": True, "max_episode_steps": 9},
        {"max_episode_steps": 12, "render_mode": "rgb_array"},
        {"max_episode_steps": -1, "autoreset_mode": "same_step", "copy": False},
        {"executor": "inline", "batch_size": 2, "on_done": "freeze", "timeout": 3.0},
    ],
    ids=str,
)
@pytest.mark.parametrize("num_envs", [1, 4])
def test_the_class_sets_the_spec_that_gymnasium_sets(keywords, num_envs):
    keywords = dict(keywords)
    if num_envs == 1:
        keywords.pop("batch_size", None)
    limited = gym.make("cartwheel/CartPole-v1", max_episode_steps=7).spec
    for id_or_spec in ("cartwheel/CartPole-v1", limited):
        ours = cartwheel.NativeVectorEnv(id_or_spec, num_envs, **keywords)
        theirs = gym.make_vec(id_or_spec, num_envs, **keywords)
        assert ours.spec == theirs.spec
        again = gym.make_vec(ours.spec)
        assert again.spec == ours.spec
        assert_identical(again.reset(seed=1), ours.reset(seed=1))
        for envs in (ours, theirs, again):
            envs.close()
    assert gym.spec("cartwheel/CartPole-v1").kwargs == {"env_id": "CartPole-v1"}


@pytest.mark.parametrize("env_id", ["CartPole-v1", "FrozenLake-v1", "Taxi-v4"])
def test_a_spec_says_what_that_of_gymnasiums_environment_says(env_id):
    """Only the entry points, and the name that native environments have in ``cartwheel/``, differ.

    Gymnasium's own vector ``CartPole`` has an entry point, too, so even its keywords are compared.
    """
    twin = gym.make_vec(env_id, 3, max_episode_steps=9)
    native = cartwheel.NativeVectorEnv(env_id, 3, max_episode_steps=9)
    python = cartwheel.make_vec(env_id, 3, max_episode_steps=9, executor="inline")
    for envs, name in ((native, f"cartwheel/{env_id}"), (python, env_id)):
        assert envs.spec.id == name
        for field in ("name", "version", "max_episode_steps", "reward_threshold", "order_enforce"):
            assert getattr(envs.spec, field) == getattr(twin.spec, field), field
        for key in ("num_envs", "max_episode_steps"):
            assert envs.spec.kwargs[key] == twin.spec.kwargs[key]
    for envs in (twin, native, python):
        envs.close()


WRAPPERS = gym.wrappers
SUGGESTED = [
    (
        [WRAPPERS.RecordEpisodeStatistics],
        r"Wrap all of them together: gymnasium.wrappers.vector.RecordEpisodeStatistics\(envs\)\.$",
    ),
    (
        [partial(WRAPPERS.ClipReward, min_reward=-1), WRAPPERS.NormalizeReward],
        r"vector.ClipReward\(envs, …\), then gymnasium.wrappers.vector.NormalizeReward\(envs\)\.$",
    ),
    (
        [WRAPPERS.TimeAwareObservation, WRAPPERS.RecordVideo],
        r'vector.RecordVideo\(envs\)\. For TimeAwareObservation, use vectorization_mode="sync" or',
    ),
    (
        [lambda env: env],
        r'one by one\. For <lambda>, use vectorization_mode="sync" or "async", which steps single',
    ),
]


@pytest.mark.parametrize(("wrappers", "message"), SUGGESTED)
def test_wrappers_of_native_rows_are_refused_with_the_vector_wrappers(wrappers, message):
    with pytest.raises(gym.error.Error, match=message):
        cartwheel.make_vec("cartwheel/CartPole-v1", 4, wrappers=wrappers)
    envs = cartwheel.make_vec(
        "cartwheel/CartPole-v1", 2, wrappers=wrappers[:1], vectorization_mode="sync"
    )
    assert type(envs) is cartwheel.VectorEnv
    envs.close()


def test_gymnasium_refuses_wrappers_and_vector_keywords_for_every_vector_entry_point():
    """For its own ``CartPole`` in NumPy, too."""
    for env_id in ("CartPole-v1", "cartwheel/CartPole-v1"):
        with pytest.raises(gym.error.Error, match="with the wrappers argument"):
            gym.make_vec(env_id, 4, wrappers=[WRAPPERS.RecordEpisodeStatistics])
        with pytest.raises(gym.error.Error, match="only through kwargs"):
            gym.make_vec(env_id, 4, vector_kwargs={"autoreset_mode": "same_step"})
    envs = gym.make_vec("cartwheel/CartPole-v1", 4, executor="inline")
    assert envs.executor == "inline"
    envs.close()


def test_specs_of_wrapped_native_environments_are_refused_with_the_vector_wrappers():
    message = r"vector.RescaleAction\(envs, …\)\. For TimeAwareObservation, use vectorization_mode"
    env = WRAPPERS.RescaleAction(gym.make("cartwheel/Pendulum-v1"), np.float32(-1), np.float32(1))
    env = WRAPPERS.TimeAwareObservation(env)
    with pytest.raises(gym.error.Error, match=message):
        cartwheel.make_vec(env.spec, 4)
    with pytest.raises(TypeError, match=message):
        cartwheel.NativeVectorEnv(env.spec, 4)
    env.close()


def test_a_registered_spec_makes_num_envs_environments():
    for make in (cartwheel.make_vec, gym.make_vec):
        envs = make(gym.spec("cartwheel/Taxi-v4"), 3)
        assert_like(envs, [Case("Taxi-v4")] * 3, steps=20)


def test_the_class_accepts_a_spec_instead_of_an_id():
    for spec, limit in (
        (gym.spec("cartwheel/FrozenLake8x8-v1"), 200),
        (gym.make("cartwheel/FrozenLake8x8-v1", max_episode_steps=7).spec, 7),
    ):
        before = copy.deepcopy(spec)
        envs = cartwheel.NativeVectorEnv(spec, 3, autoreset_mode="SameStep")
        assert spec == before
        case = Case("FrozenLake8x8-v1", {"max_episode_steps": limit})
        assert_like(envs, [case] * 3, S, steps=20)
    spec = gym.make(
        "cartwheel/FrozenLake-v1", is_slippery=False, render_mode="ansi", max_episode_steps=-1
    ).spec
    envs = cartwheel.NativeVectorEnv(spec, 2, max_episode_steps=5, map_name="8x8")
    assert envs.render_mode == "ansi"
    keywords = {"is_slippery": False, "map_name": "8x8", "max_episode_steps": 5}
    assert_like(envs, [Case("FrozenLake-v1", keywords)] * 2, steps=20)


def test_the_class_refuses_other_specs():
    vector = cartwheel.make_vec("cartwheel/CartPole-v1", 2)
    wrapped = gym.wrappers.TimeAwareObservation(gym.make("cartwheel/CartPole-v1"))
    for spec, text in (
        (
            gym.spec("CartPole-v1"),
            r"^CartPole-v1 is not native: use cartwheel.make_vec\(spec, num_",
        ),
        (vector.spec, r"spec of a vector environment, which cartwheel.make_vec\(spec\) rebuilds"),
        (wrapped.spec, r"wrapped by TimeAwareObservation, .*For TimeAwareObservation, use vectori"),
    ):
        with pytest.raises(TypeError, match=text):
            cartwheel.NativeVectorEnv(spec, 2)
    vector.close()
    wrapped.close()


def test_a_spec_survives_json():
    """Like a spec of Gymnasium's own vector environments."""
    envs = gym.make_vec("cartwheel/CartPole-v1", 3, max_episode_steps=7)
    spec = type(envs.spec).from_json(envs.spec.to_json())
    envs.close()
    assert_like(gym.make_vec(spec), [Case("CartPole-v1", {"max_episode_steps": 7})] * 3)
