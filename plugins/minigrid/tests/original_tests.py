"""Runs MiniGrid's own tests, with native environments instead of the package's.

``python original_tests.py FOLDER``: the folder is the unpacked source distribution of ``minigrid``,
whose tests are not in this repository. Its ids make native environments, and its wrappers of
observations are replaced by the keyword ``observation``. ``NOT_OURS`` has the tests that ask for
more, with the reasons. Other arguments are pytest's.
"""

import os
import pathlib
import re
import sys
import types

import cartwheel_minigrid  # registers the ids
import gymnasium as gym
import numpy as np
import pytest
from comparison import IDS, WRAPPERS
from minigrid import wrappers

CLASS = "it derives a class of its own from the package's `EmptyEnv`"
BOT = "BabyAI's bot plans in the package's grid; `comparison.py` lets it play the original"
PROGRAMS = "`minigrid.benchmark` and `minigrid.manual_control` are programs of the package"
GRID = "it reads `env.unwrapped.grid`, objects of the package's classes"
PICKLE = "a single native environment is not pickled, and says what to do instead"
THREE_ACTIONS = "the test's action 4 is none of the level's, which the package takes as 0"
MISSIONS = "it is about the package's class `MissionSpace`; ours is `gymnasium.spaces.Text`"
#: Tests that do not run here, by the beginning of their names.
NOT_OURS = {
    "test_agent_sees_method[MiniGrid": GRID,
    "test_agent_sees_method[": CLASS,
    "test_mission_space": MISSIONS,
    "test_pprint_grid": "it is about `pprint_grid`, a text of the package's grid",
    "test_direction_obs_wrapper": GRID,
    "test_no_death_wrapper": GRID,
    "test_pickle_env": PICKLE,
    "test_max_steps_argument[MiniGrid-Dynamic-Obstacles": THREE_ACTIONS,
    "test_symbolic_obs_wrapper[": "it reads `env.unwrapped.goal_pos` of the package's class",
}
#: Files that do not run here.
FILES_NOT_OURS = {
    "test_scripts.py": PROGRAMS,
    "test_baby_ai_bot.py": BOT,
    "test_obstructed_maze.py": GRID,
}


def _native_spec(env_id):
    """Returns the spec of our environment under the id of the package."""
    ours = gym.registry[f"cartwheel_minigrid/{env_id}"]
    return gym.envs.registration.EnvSpec(
        env_id, entry_point=ours.entry_point, kwargs=dict(ours.kwargs)
    )


def _native_wrapper(name):
    """Returns a function that makes an environment with the keyword, called as the wrapper is."""

    def wrap(env, **keywords):
        names = {"tile_size": "observation_tile_size"}
        kwargs = {names.get(key, key): value for key, value in keywords.items()}
        observation = [*env.spec.kwargs.get("observation", []), name]
        return gym.make(env.spec.id, **{**env.spec.kwargs, "observation": observation, **kwargs})

    wrap.__name__ = WRAPPERS[name].__name__
    return wrap


def _view_size_wrapper(env, agent_view_size=7):
    """``ViewSizeWrapper`` is a keyword of levels."""
    return gym.make(env.spec.id, **{**env.spec.kwargs, "agent_view_size": agent_view_size})


def _assert_equals(one, other, prefix=""):
    """Compares two results, and their types."""
    assert type(one) is type(other), f"{prefix}{one} and {other}"
    if isinstance(one, dict):
        assert one.keys() == other.keys(), prefix
        for key in one:
            _assert_equals(one[key], other[key], prefix)
    elif isinstance(one, tuple):
        assert len(one) == len(other), prefix
        for pair in zip(one, other, strict=True):
            _assert_equals(*pair, prefix)
    else:
        np.testing.assert_array_equal(one, other, err_msg=prefix)


def pytest_configure():
    """Puts our environments in place."""
    specs = {env_id: _native_spec(env_id) for env_id in IDS}
    for env_id in list(gym.registry):
        if env_id.startswith(("MiniGrid-", "BabyAI-")):
            del gym.registry[env_id]
    gym.registry.update(specs)
    for name, wrapper in WRAPPERS.items():
        setattr(wrappers, wrapper.__name__, _native_wrapper(name))
    wrappers.ViewSizeWrapper = _view_size_wrapper
    # It is in the package's repository, and not in its distribution.
    utilities = types.ModuleType("tests.utils")
    utilities.all_testing_env_specs = list(specs.values())
    utilities.minigrid_testing_env_specs = [
        spec for spec in specs.values() if spec.id.startswith("MiniGrid-")
    ]
    utilities.assert_equals = _assert_equals
    sys.modules["tests"] = types.ModuleType("tests")
    sys.modules["tests.utils"] = utilities


def pytest_ignore_collect(collection_path):
    """Leaves files out."""
    return True if collection_path.name in FILES_NOT_OURS else None


def pytest_collection_modifyitems(config, items):
    """Leaves tests out."""
    refused = [item for item in items if any(map(item.name.startswith, NOT_OURS))]
    config.hook.pytest_deselected(items=refused)
    items[:] = [item for item in items if item not in refused]


def pytest_terminal_summary(terminalreporter):
    """Lists what was left out."""
    terminalreporter.section("tests that do not run with native environments")
    for name, why in (FILES_NOT_OURS | NOT_OURS).items():
        terminalreporter.line(f"{name}: {why}")


def main(folder):
    """Runs the tests in a folder, whose version must be that of the plugin."""
    version = re.search(r"^Version: (\S+)", (folder / "PKG-INFO").read_text(), re.MULTILINE)[1]
    assert version == "3.2.0", version
    options = ["-q", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", str(folder)]
    # Processes of pytest-xdist import the plugin, too.
    here = str(pathlib.Path(__file__).parent)
    os.environ["PYTHONPATH"] = os.pathsep.join([here, os.environ.get("PYTHONPATH", "")])
    return pytest.main([*options, "-p", "original_tests", *sys.argv[2:], str(folder / "tests")])


if __name__ == "__main__":
    print(f"{cartwheel_minigrid.__name__} in {sys.argv[1]}")
    raise SystemExit(main(pathlib.Path(sys.argv[1]).resolve()))
