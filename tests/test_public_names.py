"""``import cartwheel`` offers documented names and no default seed."""

import importlib
import importlib.metadata
import inspect
import json
import pydoc
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import gymnasium as gym
import numpy as np
import pytest

import cartwheel
from cartwheel import returns, rollouts, testing, wrappers
from cartwheel._internal import literals


def test_the_version_equals_that_of_the_installed_wheel():
    assert cartwheel.__version__ == importlib.metadata.version("cartwheel")


def test_a_program_without_the_metadata_of_packages_works(tmp_path):
    """As in a zip archive, or what PyInstaller makes."""
    program = f"""
import importlib.metadata
def missing(name):
    raise importlib.metadata.PackageNotFoundError(name)
importlib.metadata.version = importlib.metadata.distribution = missing
import cartwheel
from cartwheel.bench.machine import machine_line
print(cartwheel.__version__)
print(machine_line())
for layout in ("maniskill", "minari"):
    envs = cartwheel.NativeVectorEnv("CartPole-v1", 2, max_episode_steps=3)
    envs = cartwheel.RecordEpisode(envs, {str(tmp_path)!r} + "/" + layout, format=layout)
    envs.reset(seed=1)
    for _ in range(4):
        envs.step(envs.action_space.sample())
    envs.close()
"""
    version = importlib.metadata.version("cartwheel")
    first, second = printed(program).splitlines()
    assert first == version
    assert f"cartwheel {version}, gymnasium {gym.__version__}, numpy {np.__version__}" in second


@pytest.mark.parametrize("name", [name for name in cartwheel.__all__ if name != "__version__"])
def test_every_public_name_is_documented(name):
    assert inspect.getdoc(getattr(cartwheel, name))


def test_completion_shows_the_public_names_only():
    names = {name for name in dir(cartwheel) if not name.startswith("__")}
    assert names == set(cartwheel.__all__) - {"__version__"}
    assert {"__doc__", "__file__", "__name__", "__path__", "__version__"} <= set(dir(cartwheel))


def test_a_star_import_gives_the_public_names():
    namespace = {}
    exec("from cartwheel import *", namespace)
    assert namespace.keys() - {"__builtins__"} == set(cartwheel.__all__)


def test_help_shows_an_example_first_and_no_private_name():
    text = pydoc.plain(pydoc.render_doc(cartwheel))
    assert text.partition("DESCRIPTION")[2].split()[0] == "Example:"
    # Python itself lists the files of a package; nothing else shows modules or private names.
    assert "<module" not in text
    assert "register_native" not in text


def printed(program):
    """The output of a new interpreter."""
    return subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    ).stdout


@pytest.fixture(scope="module")
def loaded_by_name():
    """The modules that `import cartwheel` loads, and each public name and module by itself."""
    pages = (Path(__file__).parents[1] / "docs/reference").glob("*.md")
    named = {name for page in pages for name in re.findall(r"\bcartwheel\.(\w+)", page.read_text())}
    modules = sorted(name for name in named - set(cartwheel.__all__) if name.islower())
    assert {"jax", "multiagent", "recorder", "sb3"} <= set(modules)
    program = f"""
import json, os, sys, gymnasium
before = set(sys.modules)
import cartwheel
print(json.dumps(sorted(set(sys.modules) - before)), flush=True)

def told(name):
    listed = name in dir(cartwheel)  # if not, `help(cartwheel)` does not import it
    try:
        found = getattr(cartwheel, name)
    except ImportError as error:
        return listed, str(error)
    return listed, getattr(found, "__name__", found is not None)

for name in [*cartwheel.__all__, *{modules}]:
    child = os.fork()  # what another name loads is not in it
    if child == 0:
        status = 1
        try:
            print(json.dumps([name, *told(name)]), flush=True)
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0, name
"""
    loaded, *told = map(json.loads, printed(program).splitlines())
    return loaded, {name: rest for name, *rest in told}, modules


def test_importing_cartwheel_does_not_load_what_is_used_later(loaded_by_name):
    loaded, _, _ = loaded_by_name
    assert "cartwheel.vector.vector_env" in loaded
    heavy = ["envpool", "returns", "rollouts", "evaluation", "bench", "_cli", "testing"]
    assert [name for name in heavy if f"cartwheel.{name}" in loaded] == []
    others = ("importlib.metadata", "statistics", "torch", "mujoco")
    assert [name for name in others if name in loaded] == []


def test_every_public_name_loads_by_itself(loaded_by_name):
    _, told, _ = loaded_by_name
    for name in cartwheel.__all__:
        _, found = told[name]
        assert found == getattr(getattr(cartwheel, name), "__name__", True)


def test_a_module_of_the_reference_that_is_not_listed_loads_as_an_attribute(loaded_by_name):
    _, told, modules = loaded_by_name
    for module in modules:
        listed, found = told[module]
        assert not listed
        assert found == f"cartwheel.{module}" or {"pip", "install"} <= set(found.split())


def test_an_unknown_name_is_an_error_with_a_suggestion():
    """Python suggests names from what the error has."""
    with pytest.raises(AttributeError) as failure:
        _ = cartwheel.VectorEnvs
    error = failure.value
    assert (error.name, error.obj) == ("VectorEnvs", cartwheel)
    assert str(error) == "module 'cartwheel' has no attribute 'VectorEnvs'"
    assert not hasattr(cartwheel, "wrappers_that_do_not_exist")


@pytest.mark.parametrize(
    ("module", "name", "advice"),
    [
        ("cartwheel", "make", "`cartwheel.make_vec(id, num_envs)` makes a vector environment"),
        ("cartwheel.vector", "AsyncVectorEnv", "it is `cartwheel.AsyncVectorEnv`"),
        ("cartwheel.vector", "make_vec", "it is `cartwheel.make_vec`"),
        ("cartwheel.wrappers", "VectorEnv", "it is `cartwheel.VectorEnv`"),
    ],
)
def test_a_name_that_is_elsewhere_is_an_error_that_says_where(module, name, advice):
    """Also from ``from … import``, which would replace the text of an ``AttributeError``."""
    owner = importlib.import_module(module)
    with pytest.raises(AttributeError, match=re.escape(advice)):
        getattr(owner, name)
    assert not hasattr(owner, name)
    with pytest.raises(ImportError, match=re.escape(advice)):
        exec(f"from {module} import {name}")


def test_help_on_vector_env_begins_with_an_example():
    doc = inspect.getdoc(cartwheel.VectorEnv)
    assert doc.split("\n\n")[1].startswith("Example:")


def test_every_vector_environment_has_the_same_base_class():
    for each in (cartwheel.VectorEnv, cartwheel.NativeVectorEnv, cartwheel.AsyncVectorEnv):
        assert issubclass(each, cartwheel.PoolVectorEnv)


def test_the_default_seed_is_none():
    for function in (cartwheel.evaluate, cartwheel.Collector, cartwheel.VectorEnv.reset):
        assert inspect.signature(function).parameters["seed"].default is None


@pytest.mark.parametrize("name", get_args(literals.ModeName))
def test_every_mode_name_in_the_types_is_accepted(name):
    envs = cartwheel.NativeVectorEnv("CartPole-v1", 2, autoreset_mode=name)
    assert name.lower().replace("_", "") == envs.autoreset_mode.value.lower()
    envs.close()


def public_signatures():
    """Name and parameters of each public function and method, without EnvPool's interface."""
    for module in (cartwheel, wrappers, rollouts, returns, testing):
        for name in set(module.__all__) - {"__version__", "envpool"}:
            kind = getattr(module, name)
            for member in dir(kind) if inspect.isclass(kind) else [""]:
                function = inspect.getattr_static(kind, member) if member else kind
                function = getattr(function, "__func__", function)
                is_public = not member.startswith("_") or member == "__init__"
                if is_public and inspect.isfunction(function):
                    yield f"{name}.{member}", set(inspect.signature(function).parameters)


def test_errors_about_calls_name_public_classes():
    """Python takes ``PoolVectorEnv.reset()`` of "takes 1 positional argument" from the method."""
    named = {name: getattr(cartwheel, name) for name in cartwheel.__all__}
    public = {name: kind for name, kind in named.items() if inspect.isclass(kind)}
    public["VectorWrapper"] = wrappers.VectorWrapper
    owners = set()
    for kind in public.values():
        for member in dir(kind):
            method = inspect.unwrap(inspect.getattr_static(kind, member))
            if inspect.isfunction(method) and not member.startswith("_"):
                owners.add((method.__module__.partition(".")[0], method.__qualname__))
    ours = {name for package, name in owners if package == "cartwheel"}
    assert {"PoolVectorEnv.reset", "Rollout.gae", "VectorWrapper.frozen"} <= ours
    assert [name for name in sorted(ours) if name.partition(".")[0] not in public] == []


def test_rows_and_autoreset_modes_have_one_name_each():
    synonyms = {"mode", "rows", "row", "env_ids", "env_indices", "indices", "done", "dones"}
    found = {name: names & synonyms for name, names in public_signatures()}
    assert len(found) > 200
    assert {name: names for name, names in found.items() if names} == {}


def test_a_value_outside_the_types_is_refused_with_the_allowed_values():
    with pytest.raises(ValueError, match="must be one of 'raise', 'freeze', got 'wait'"):
        cartwheel.NativeVectorEnv("CartPole-v1", 2, on_done="wait")
