"""The layout of the sources: which room may import which, and that no imports run in a circle."""

from pathlib import Path

import pytest

from tests.imports import python_imports, way

ROOT = Path(__file__).parents[1]
#: The rooms of `python/cartwheel`, top to bottom. A room imports from floors below its own only.
PYTHON = (
    ("__main__",),
    ("bench",),
    ("__init__",),
    ("catalogue", "envpool", "registry"),
    ("evaluation", "native", "rollouts"),
    ("vector",),
    ("returns", "worker"),
    ("arguments",),
    ("_cartwheel", "choices", "errors", "log", "policy", "progress", "spaces"),
)


def room(module):
    """A folder of the root, or a module that stands there alone."""
    return module.partition(".")[0]


@pytest.fixture(scope="module")
def python():
    return python_imports(ROOT / "python" / "cartwheel")


def test_every_room_is_on_a_floor(python):
    modules, _ = python
    assert {room(module) for module in modules} == {name for floor in PYTHON for name in floor}


def test_no_room_imports_from_its_own_floor_or_above(python):
    _, imports = python
    floors = {name: floor for floor, names in enumerate(PYTHON) for name in names}
    upwards = [
        f"{found}, which is above"
        for found in imports
        if room(found.source) != room(found.target)
        and floors[room(found.source)] >= floors[room(found.target)]
    ]
    assert not upwards, "\n".join(upwards)


def test_no_file_imports_itself_by_way_of_others(python):
    _, imports = python
    targets = {}
    for found in imports:
        targets.setdefault(found.source, set()).add(found.target)
    ways = [(found, way(targets, found.target, found.source)) for found in imports]
    circles = [f"{found}, a circle: {' → '.join(back)}" for found, back in ways if back]
    assert not circles, "\n".join(circles)
