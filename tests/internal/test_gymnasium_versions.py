"""Differences between the versions of Gymnasium, tested with the installed one."""

import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import gymnasium as gym
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.envs.toy_text.taxi import TaxiEnv
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import ClipReward

import cartwheel
import cartwheel.wrappers
from cartwheel._internal.versions import OLDEST, autoreset_mode_of, check_version
from cartwheel.wrappers import AutoresetAdapter
from tests.support.cases import POLE

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("version", [OLDEST, gym.__version__, "1.3.0a1", "1.10", "2.0.0"])
def test_a_version_that_is_new_enough_is_accepted(version):
    check_version(version)


@pytest.mark.parametrize("version", ["0.29.1", "1.0.0", "1.1", "1.2.1", "1.2.1.post2"])
def test_the_error_says_what_is_installed_and_what_is_needed(version):
    needed = f"cartwheel needs Gymnasium {OLDEST} or newer, but {version} is installed"
    with pytest.raises(ImportError, match=re.escape(needed)):
        check_version(version)


def test_an_old_version_is_refused_before_anything_of_it_is_used():
    program = "import gymnasium; gymnasium.__version__ = '1.0.0'; import cartwheel"
    died = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=False
    )
    last = died.stderr.strip().splitlines()[-1]
    assert last == (
        f"ImportError: cartwheel needs Gymnasium {OLDEST} or newer, but 1.0.0 is installed: "
        f"pip install 'gymnasium>={OLDEST}'"
    )


def test_the_package_requires_the_version_that_the_error_names():
    assert f'"gymnasium>={OLDEST},<2"' in (ROOT / "pyproject.toml").read_text()


def test_the_matrix_begins_with_the_oldest_version():
    assert f"\nGYMNASIUMS := {OLDEST} " in (ROOT / "tests/Makefile").read_text()


@pytest.mark.parametrize("make", [SyncVectorEnv, partial(AsyncVectorEnv, shared_memory=False)])
def test_the_mode_of_gymnasiums_vector_environments_is_their_own(make):
    """Before 1.4, all vector environments of a class share one dictionary of metadata."""
    modes = list(AutoresetMode)
    made = [make([POLE] * 2, autoreset_mode=mode) for mode in modes]
    wrapped = [cartwheel.wrappers.ClipReward(envs, 0, 1) for envs in made]
    assert [envs.autoreset_mode for envs in wrapped] == modes
    assert [autoreset_mode_of(envs) for envs in map(ClipReward, made, [0] * 3, [1] * 3)] == modes
    for envs in made:
        envs.close()


def test_the_mode_that_a_wrapper_names_counts():
    envs = AutoresetAdapter(cartwheel.SyncVectorEnv([POLE], autoreset_mode="disabled"), "same_step")
    assert autoreset_mode_of(envs) is AutoresetMode.SAME_STEP
    envs.close()


class TaxiBefore(TaxiEnv):
    """``Taxi-v3`` of Gymnasium 1.2: without the keywords that came with ``Taxi-v4``."""

    def __init__(self, render_mode=None, is_rainy=False, fickle_passenger=False):
        super().__init__(render_mode, is_rainy, fickle_passenger)


def drawn():
    """Frames of native taxis on their way."""
    keywords = {"is_rainy": True, "rainy_probability": 0.6, "fickle_probability": 0.5}
    envs = cartwheel.NativeVectorEnv("Taxi-v4", 3, render_mode="ansi", **keywords)
    envs.reset(seed=3)
    envs.step([0, 1, 4])
    frames = envs.render()
    envs.close()
    return frames


def test_the_taxi_before_draws_native_taxis_where_there_is_no_other(monkeypatch):
    expected = drawn()
    assert len(set(expected)) == 3
    monkeypatch.delitem(gym.registry, "Taxi-v4")
    monkeypatch.setitem(gym.registry, "Taxi-v3", EnvSpec("Taxi-v3", entry_point=TaxiBefore))
    assert drawn() == expected


def test_without_a_taxi_there_are_no_frames(monkeypatch):
    monkeypatch.delitem(gym.registry, "Taxi-v4")
    monkeypatch.delitem(gym.registry, "Taxi-v3", raising=False)
    with pytest.raises(ValueError, match="of Taxi-v4 must be None, got 'ansi'"):
        drawn()
