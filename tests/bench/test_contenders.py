"""A contender gets the credit for its own speed: no contender of Gymnasium runs cartwheel."""

import argparse
import functools
import subprocess
import sys

import gymnasium as gym
import pytest

import cartwheel
from cartwheel.bench import command
from cartwheel.bench.contenders import ceiling_of
from cartwheel.native.vector_env import make_native
from cartwheel.vector.base import PoolVectorEnv

NATIVE = ["cartwheel native", "native ceiling"]
PYTHON = ["gymnasium sync", "gymnasium async", "cartwheel inline", "ceiling"]


@pytest.fixture
def contenders():
    """The contenders of a race of an id, by name; no other packages are among them."""

    def contenders(env_id):
        raced = command.raced_id(env_id)
        found = command.contenders_of(gym.spec(raced), ["inline"])
        return raced, {contender.name: contender for contender in found}

    return contenders


def built(contender, env_id, num_envs=2):
    """The vector environment of a contender."""
    runner = contender.build([functools.partial(gym.make, env_id)] * num_envs)
    runner.close()
    return runner.envs


@pytest.mark.parametrize("env_id", ["CartPole-v1", "cartwheel/CartPole-v1"])
def test_the_namespace_does_not_change_the_race(contenders, env_id):
    raced, found = contenders(env_id)
    assert raced == "CartPole-v1"
    assert list(found) == [*PYTHON, "gymnasium native", *NATIVE]


@pytest.mark.parametrize("env_id", ["CartPole-v1", "cartwheel/CartPole-v1"])
def test_contenders_of_gymnasium_are_of_gymnasiums_classes(contenders, env_id):
    raced, found = contenders(env_id)
    for name in ("gymnasium sync", "gymnasium native"):
        envs = built(found[name], raced)
        assert type(envs).__module__.startswith("gymnasium."), name
        assert not isinstance(envs, PoolVectorEnv)
    env = built(found["gymnasium sync"], raced).envs[0]
    assert not isinstance(env.unwrapped, cartwheel.NativeEnv)


def test_an_environment_that_only_cartwheel_has_runs_without_gymnasiums_vectorization(contenders):
    raced, found = contenders("cartwheel/Null-v0")
    assert raced == "cartwheel/Null-v0"
    assert list(found) == [*PYTHON, *NATIVE]


def test_a_vector_entry_point_is_named_after_its_package(contenders, monkeypatch):
    def register(name, entry_point):
        spec = gym.envs.registration.EnvSpec(
            name,
            entry_point="gymnasium.envs.classic_control:CartPoleEnv",
            vector_entry_point=entry_point,
        )
        monkeypatch.setitem(gym.registry, name, spec)
        return list(contenders(name)[1])

    assert register("Theirs-v0", "ale_py.vector_env:Atari") == [*PYTHON, "ale_py native"]
    assert register("Callable-v0", make_native) == PYTHON
    ours = register("Ours-v0", "cartwheel.native.vector_env:make_native")
    assert ours == [*PYTHON, NATIVE[0]]  # as of a plugin, which has no plain loop to be its ceiling
    assert ceiling_of("ale_py native") is None


def test_patched_classes_do_not_replace_gymnasiums_contenders():
    program = """
import cartwheel, gymnasium as gym
cartwheel.patch_gymnasium()
from cartwheel.bench.contenders import ASYNC, SYNC
for contender in SYNC, ASYNC:
    runner = contender.build([lambda: gym.make("CartPole-v1")])
    print(type(runner.envs).__module__)
    runner.close()
"""
    finished = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert finished.stdout.split() == [
        "gymnasium.vector.sync_vector_env",
        "gymnasium.vector.async_vector_env",
    ]


def test_a_missing_package_is_installed_by_a_name_that_exists(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(command, "can_plot", lambda: False)
    parser = argparse.ArgumentParser()
    command.add_to(parser.add_subparsers())
    arguments = parser.parse_args(["bench", "--plot", str(tmp_path / "chart.png")])
    with pytest.raises(SystemExit):
        arguments.run(arguments.parser, arguments)
    assert capsys.readouterr().err.endswith("--plot needs matplotlib: pip install matplotlib\n")
