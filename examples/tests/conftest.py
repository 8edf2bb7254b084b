"""The environments of the examples, installed from wheels, with cartwheel's own wheel.

`make test-examples` builds them all, and runs these tests in an environment of their own.
"""

from pathlib import Path

import my_game
import my_physics
import pytest

import cartwheel

ROOT = Path(__file__).parents[2]
THERMOSTAT = ROOT / "target/examples/thermostat.so"
ENV_IDS = ["my_game/Maze-v0", "my_physics/Push-v0", "c_env/Thermostat-v0"]

cartwheel.load_plugin(THERMOSTAT)


def pytest_report_header():
    """The folder of the installed packages: the virtual environment, not the sources."""
    return [f"{module.__name__}: {module.__file__}" for module in (cartwheel, my_game, my_physics)]


@pytest.fixture
def thermostat():
    """The library that is compiled as C; `thermostat_cpp.so` is compiled as C++."""
    return THERMOSTAT


@pytest.fixture(params=ENV_IDS)
def env_id(request):
    return request.param
