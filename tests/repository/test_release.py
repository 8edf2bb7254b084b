"""Facts that a release states in several places: version, oldest Python, tools, systems."""

import importlib.metadata
import re
import subprocess
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from release.targets import ABI3, INTERPRETERS, of_this_machine
from tools.compare import worse
from tools.instructions import table

tomllib = pytest.importorskip("tomllib")  # in Python from 3.11 on, as `make wheels` needs
ROOT = Path(__file__).parents[2]


def toml(path):
    return tomllib.loads((ROOT / path).read_text(encoding="utf-8"))


def test_every_crate_and_the_package_have_one_version():
    workspace = toml("Cargo.toml")["workspace"]
    stated = {
        name: crate["version"]
        for name, crate in workspace["dependencies"].items()
        if isinstance(crate, dict) and "path" in crate
    }
    for manifest in ROOT.glob("rust/*/Cargo.toml"):
        package = toml(manifest)["package"]
        stated[package["name"]] = package["version"]
    stated["the package"] = importlib.metadata.version("cartwheel")
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    (stated["CITATION.cff"],) = re.findall(r"^version: (.*)$", citation, re.MULTILINE)
    inherited = {"workspace": True}
    version = workspace["package"]["version"]
    assert {name: said for name, said in stated.items() if said not in (version, inherited)} == {}


def test_the_oldest_python_is_the_same_for_pip_the_stable_abi_and_the_wheels_tag():
    asked = SpecifierSet(toml("pyproject.toml")["project"]["requires-python"])
    (feature,) = toml("rust/cartwheel-python/Cargo.toml")["features"]["abi3"]
    minor = int(re.fullmatch(r"pyo3/abi3-py3(\d+)", feature)[1])
    assert f"3.{minor}" in asked
    assert f"3.{minor - 1}" not in asked
    assert f"cp3{minor}-abi3" == ABI3
    assert INTERPRETERS[ABI3] == f"python3.{minor}"


def test_the_pinned_tools_are_versions_that_the_sdist_allows():
    (build,) = map(Requirement, toml("pyproject.toml")["build-system"]["requires"])
    pins = dict(
        line.partition(";")[0].strip().split("==")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line and not line.startswith("#")
    )
    assert pins[build.name] in build.specifier


def test_the_oldest_versions_that_are_tested_are_the_oldest_that_are_allowed():
    allowed = {
        requirement.name: Version(bound.version)
        for requirement in map(Requirement, toml("pyproject.toml")["project"]["dependencies"])
        for bound in requirement.specifier
        if bound.operator == ">="
    }
    pins = (ROOT / "tests/requirements/oldest.txt").read_text(encoding="utf-8").splitlines()
    tested = (line.split("==") for line in pins if not line.startswith("#"))
    assert {name: Version(version) for name, version in tested} == allowed


def test_the_wheel_for_this_machine_is_built_for_the_host_of_rustc():
    said = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
    assert f"host: {of_this_machine().triple}\n" in said


def test_a_step_that_needs_more_instructions_is_named():
    before = {"slower": 1000.0, "as before": 2000.0, "faster": 500.0}
    after = {"slower": 1011.0, "as before": 2010.0, "faster": 400.0, "new": 7.0}
    assert worse(before, after, at_most=1.01) == ["slower"]
    text = table(before, after)
    assert "| slower | 1,000 | 1,011 | 1.011 |" in text
    assert "| new | – | 7 | – |" in text
