"""The thermostat, in C: the same as in Python, and the same compiled as C++."""

import shutil
import subprocess
import sys

import numpy as np
import pytest

import cartwheel

ID = "c_env/Thermostat-v0"


def test_it_is_the_environment_that_its_source_describes():
    envs = cartwheel.make_vec(ID, 1, autoreset_mode="disabled")
    seen, _ = envs.reset(seed=11)
    rng = np.random.default_rng(11)  # the functions of cartwheel_author.h draw as NumPy does
    inside, outside, energy = 15 + 10 * rng.random(), -10 + 20 * rng.random(), 0.0
    for minute in range(240):
        assert seen.tolist() == [[np.float32(inside), np.float32(outside)]]
        heat = int(inside < 21)
        used = 6 / 60 if heat else 0
        outside = np.clip(outside + rng.random() - 0.5, -20, 20)
        inside += 4 * used + 1 / 60 * (outside - inside)
        energy += used
        seen, rewards, terminations, truncations, infos = envs.step(np.array([heat]))
        assert rewards[0] == pytest.approx(-abs(inside - 21) / 10 - used, rel=1e-12)
        assert infos["energy"][0] == pytest.approx(energy, rel=1e-12)
        assert not terminations[0]
        assert truncations[0] == (minute == 239)
    envs.close()


def test_a_cold_room_ends_the_episode():
    envs = cartwheel.make_vec(ID, 8, autoreset_mode="disabled", on_done="freeze")
    envs.reset(seed=1)
    for _ in range(240):
        seen, _, terminations, *_ = envs.step(np.zeros(8, int))
        assert (terminations == (seen[:, 0] < 0)).all()
    envs.close()


def test_the_power_is_a_parameter_with_bounds():
    envs = cartwheel.make_vec(ID, 2)
    envs.set_attr("power", [3, 12.5])
    assert envs.get_attr("power") == (3.0, 12.5)
    for wrong in ([21, 3], ["much", 3]):
        with pytest.raises(ValueError, match="must be a number from 0 to 20"):
            envs.set_attr("power", wrong)
    assert envs.get_attr("power") == (3.0, 12.5)
    envs.close()


def test_it_has_no_options():
    with pytest.raises(ValueError, match="a thermostat has no options, got"):
        cartwheel.make_vec(ID, 1, size=3)


PLAY = f"""
import sys, numpy as np, cartwheel
cartwheel.load_plugin(sys.argv[1])
envs = cartwheel.make_vec({ID!r}, 3)
print(envs.reset(seed=1))
for _ in range(300):
    print(envs.step(np.arange(3) % 2))
"""


def test_compiled_as_cplusplus_it_is_the_same(thermostat):
    if shutil.which("c++") is None:
        pytest.skip("no c++ on PATH: the thermostat was not compiled as C++")

    def play(library):
        command = [sys.executable, "-c", PLAY, str(library)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert play(thermostat) == play(thermostat.with_name("thermostat_cpp.so"))
