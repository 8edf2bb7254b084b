"""Facts that a release states in several places, its crates, and what its packages show."""

import importlib.metadata
import re
import shutil
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
description = importlib.import_module("release.description")  # imports it, too
ready = importlib.import_module("release.ready")
ROOT = Path(__file__).parents[2]
ADDRESS = "https://git.example/cartwheel"


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
    project = toml("pyproject.toml")["project"]
    asked = [*project["dependencies"], *project["optional-dependencies"]["record"]]
    allowed = {
        requirement.name: Version(bound.version)
        for requirement in map(Requirement, asked)
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


def test_the_description_of_the_packages_is_that_of_the_readme():
    shown = description.PAGE.read_text(encoding="utf-8")
    assert shown == description.current(), "python -m release.description"
    readme = toml("pyproject.toml")["project"]["readme"]
    assert (ROOT / readme).samefile(description.PAGE)


@pytest.mark.parametrize("address", ["", ADDRESS])
def test_a_description_has_no_link_or_picture_that_only_the_repository_has(address):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = description.described(readme, address, "v1.2.3")
    targets = re.findall(r"\]\(([^)]*)\)|(?:src|href|srcset)=\"([^\"]*)\"", shown)
    assert all(target.startswith("https://") for pair in targets for target in pair if target)
    wanted = [f"]({ADDRESS}/blob/v1.2.3/docs/start.md)", f"]({ADDRESS}/raw/v1.2.3/docs/pictures/"]
    assert [link in shown for link in wanted] == [bool(address)] * 2
    assert "\npip install cartwheel\n" in shown
    assert "make wheel" not in shown


def test_every_crate_that_is_published_has_what_crates_io_asks_for():
    crates = ready.published_crates()
    dependencies = toml("Cargo.toml")["workspace"]["dependencies"].values()
    local = {Path(each["path"]).name for each in dependencies if "path" in each}
    assert set(crates) == local
    for name, crate in crates.items():
        folder = ROOT / "rust" / name
        assert {"description", "license", "readme", "rust-version"} <= set(crate), name
        assert 1 <= len(crate["keywords"]) <= 5, name
        assert all(re.fullmatch(r"[a-zA-Z][\w+-]{,19}", word) for word in crate["keywords"]), name
        assert crate["categories"], name
        assert "tests" in crate["exclude"], name
        for file in ("LICENSE-MIT", "LICENSE-APACHE"):
            assert (folder / file).read_bytes() == (ROOT / file).read_bytes(), name
        links = re.findall(r"\]\(([^)]*)\)", (folder / crate["readme"]).read_text(encoding="utf-8"))
        assert [link for link in links if not link.startswith("https://")] == [], name


@pytest.fixture
def releasable(tmp_path):
    """A copy of what the check reads, in which nothing speaks against a release."""
    for name in ("Cargo.toml", "CHANGELOG.md", "README.md", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    for manifest in ROOT.glob("rust/*/Cargo.toml"):
        copy = tmp_path / manifest.relative_to(ROOT)
        copy.parent.mkdir(parents=True)
        text = manifest.read_text(encoding="utf-8")
        copy.write_text(text.replace("[package]\n", f'[package]\nrepository = "{ADDRESS}"\n'))
    (tmp_path / "README.md").write_text("# cartwheel\n\n## Install\n\npip\n\n## Use\n")
    project = (tmp_path / "pyproject.toml").read_text(encoding="utf-8")
    urls = f'[project.urls]\nRepository = "{ADDRESS}"\n'
    (tmp_path / "pyproject.toml").write_text(f"{project}\n{urls}")
    version = toml("Cargo.toml")["workspace"]["package"]["version"]
    (tmp_path / "CHANGELOG.md").write_text(f"## [{version}] - 2026-01-31\n")
    (tmp_path / "release").mkdir()
    shown = description.current(tmp_path)
    (tmp_path / "release/description.md").write_text(shown, encoding="utf-8")
    return tmp_path, f"v{version}"


def test_a_commit_that_nothing_speaks_against_is_released(releasable):
    root, tag = releasable
    assert ready.reasons(tag, ADDRESS, root) == []


@pytest.mark.parametrize(
    ("file", "old", "new", "reason"),
    [
        ("CHANGELOG.md", "2026-01-31", "unreleased", r"no section '## \[[\d.]+\] - ' with a date"),
        ("pyproject.toml", ADDRESS, "https://git.example/other", "pyproject.toml names .*/other"),
        ("rust/cartwheel-envs/Cargo.toml", "repository", "homepage", "cartwheel-envs names no"),
        ("README.md", "# cartwheel", "# Cartwheel", "release/description.md is older"),
        ("release/description.md", "cartwheel", "other", "release/description.md is older"),
        ("README.md", "pip", "It is not on a package\nindex yet", "README.md says 'not on a pack"),
    ],
)
def test_each_reason_not_to_release_a_commit_is_named(releasable, file, old, new, reason):
    root, tag = releasable
    text = (root / file).read_text(encoding="utf-8")
    assert old in text
    (root / file).write_text(text.replace(old, new), encoding="utf-8")
    found = ready.reasons(tag, ADDRESS, root)
    assert [each for each in found if re.search(reason, each)], found


def test_a_tag_of_another_version_is_not_released(releasable):
    root, tag = releasable
    assert ready.reasons(f"{tag}1", ADDRESS, root) == [
        f"the tag is {tag}1, and Cargo.toml has the version {tag[1:]}"
    ]
