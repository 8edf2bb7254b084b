"""States of MuJoCo's environments have what was set in the rows' own models."""

import pickle
from pathlib import Path

import gymnasium.envs.mujoco
import numpy as np
import pytest

import cartwheel
from tests.support.comparison import assert_identical


def own_models(**keywords):
    return cartwheel.NativeVectorEnv("HalfCheetah-v5", 3, model_per_row=True, **keywords)


def masses(envs):
    return np.array(envs.get_attr("model.body_mass"))


def test_rows_continue_with_what_was_set_in_their_models():
    envs = own_models(autoreset_mode="same_step", max_episode_steps=6)
    envs.reset(seed=3)
    actions = np.random.default_rng(1).uniform(-1, 1, (12, 3, 6)).astype(np.float32)
    original = masses(envs)[0]
    envs.set_attr("model.body_mass", [original * 2, original * 3], env_index=[0, 2])
    envs.set_attr("model.opt.timestep", 0.005, env_index=[1])
    for action in actions[:4]:
        shown = envs.step(action)[0]
    state = pickle.loads(pickle.dumps(envs.state_dict()))
    assert [sorted(model) for model in state["envs"]["models"]] == [
        ["model.body_mass"],
        ["model.opt.timestep"],
        ["model.body_mass"],
    ]
    expected = [envs.step(action) for action in actions[4:]]
    others = own_models(autoreset_mode="same_step", max_episode_steps=6, executor="inline")
    others.reset()
    others.set_attr("model.body_mass", original * 5, env_index=[1])  # is set back
    assert_identical(others.load_state_dict(state), shown)
    assert_identical(masses(others), masses(envs))
    assert_identical([others.step(action) for action in actions[4:]], expected)
    before = others.state_dict()
    states = [*state["envs"]["states"][:2], b"no"]
    with pytest.raises(ValueError, match="not a state"):
        others.load_state_dict({**state, "envs": {**state["envs"], "states": states}})
    models = [{"model.body_mass": np.zeros(3)}] * 3
    with pytest.raises(ValueError, match="must have the shape"):
        others.load_state_dict({**state, "envs": {**state["envs"], "models": models}})
    assert_identical(others.state_dict(), before)
    shared = cartwheel.NativeVectorEnv(
        "HalfCheetah-v5", 3, autoreset_mode="same_step", max_episode_steps=6
    )
    with pytest.raises(ValueError, match="`model_per_row=True`"):
        shared.load_state_dict(state)
    for each in (envs, others, shared):
        each.close()


def test_a_state_of_another_model_is_refused(tmp_path):
    own = Path(gymnasium.envs.mujoco.__file__).parent / "assets" / "half_cheetah.xml"
    file = tmp_path / "heavy.xml"
    file.write_text(own.read_text().replace('gravity="0 0 -9.81"', 'gravity="0 0 -20"'))
    envs = cartwheel.NativeVectorEnv("HalfCheetah-v5", 1)
    other = cartwheel.NativeVectorEnv("HalfCheetah-v5", 1, xml_file=str(file))
    with pytest.raises(ValueError, match="the state is of HalfCheetah-v5 with the options"):
        other.load_state_dict(envs.state_dict())
    envs.close()
    other.close()
