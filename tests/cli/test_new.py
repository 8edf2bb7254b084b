"""``python -m cartwheel new``: a crate that compiles, passes its tests, and has a valid name."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from cartwheel._cli import new

ROOT = Path(__file__).parents[2]
FILES = {
    ".gitignore",
    "Cargo.toml",
    "README.md",
    "pyproject.toml",
    "python/wind_walk/__init__.py",
    "src/lib.rs",
    "tests/check.rs",
    "tests/test_wind_walk.py",
}


@pytest.fixture
def crate(run, tmp_path, monkeypatch):
    """A new crate that uses this clone."""
    monkeypatch.chdir(tmp_path)
    status, _, errors = run("new", "code/wind-walk", "--path", ROOT)
    assert (status, errors) == (0, "")
    return tmp_path / "code/wind-walk"


def test_every_file_has_the_names_of_the_new_crate(crate):
    files = {str(file.relative_to(crate)): file for file in crate.rglob("*") if file.is_file()}
    assert set(files) == FILES
    for file in files.values():
        assert not re.search(r"my.env|@source@", file.read_text("utf-8"), re.IGNORECASE), file
    assert '"wind_walk/WindWalk-v0" => WindWalk' in files["src/lib.rs"].read_text("utf-8")


def test_no_file_of_the_template_is_hidden_from_the_tool_that_packs_wheels():
    template = Path(new.__file__).with_name("template")
    assert [file for file in template.rglob(".*") if file.is_file()] == []


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_new_crate_is_formatted_and_passes_its_tests_and_the_lints(crate):
    shutil.copy(ROOT / "Cargo.lock", crate)  # the versions that are on this machine
    environment = {
        **os.environ,
        # What is compiled for this repository is used again.
        "CARGO_TARGET_DIR": str(ROOT / "target"),
        "CARGO_PROFILE_DEV_DEBUG": "line-tables-only",
        "CARGO_PROFILE_DEV_OPT_LEVEL": "1",
    }
    for command in (
        ["cargo", "fmt", "--check"],
        ["cargo", "test", "--offline", "--quiet"],
        ["cargo", "clippy", "--offline", "--quiet", "--", "-D", "warnings"],
    ):
        done = subprocess.run(
            command, cwd=crate, env=environment, check=False, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
        if command[1] == "test":
            assert "1 passed" in done.stdout


def test_the_next_commands_are_printed_with_the_id(run, tmp_path):
    status, text, _ = run("new", tmp_path / "maze", "--path", ROOT / "rust/cartwheel")
    assert status == 0
    assert text.startswith(f"wrote {tmp_path}/maze: the environment maze/Maze-v0")
    for command in ("cargo test", "maturin develop --release", "envs maze:maze/Maze-v0"):
        assert command in text


def test_the_next_commands_can_be_pasted_wherever_the_folder_is(run, tmp_path):
    folder = tmp_path / "new code" / "wind-walk"
    status, printed, _ = run("new", folder, "--path", ROOT)
    assert status == 0
    (command,) = [line for line in printed.splitlines() if line.startswith("  cd ")]
    shown = subprocess.run(
        ["sh", "-c", f"{command}; pwd"], check=True, capture_output=True, text=True
    )
    assert Path(shown.stdout.strip()) == folder.resolve()


def test_without_a_source_the_clone_of_this_cartwheel_is_used(tmp_path, monkeypatch):
    monkeypatch.setattr(new, "_CLONE", ROOT)
    new.write(tmp_path / "maze", new.path_source(None))
    manifest = (tmp_path / "maze/Cargo.toml").read_text("utf-8")
    assert manifest.count(f'path = "{ROOT}/rust/cartwheel"') == 2


def test_a_repository_can_be_the_source(run, tmp_path):
    git = ("--git", "https://example.org/cartwheel", "--rev", "abc123")
    assert run("new", tmp_path / "maze", *git)[0] == 0
    source = 'cartwheel = { git = "https://example.org/cartwheel", rev = "abc123", default-features'
    assert source in (tmp_path / "maze/Cargo.toml").read_text("utf-8")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("My Env", "lowercase letters, .* did you mean 'my-env'"),
        ("GridWorld", "did you mean 'grid-world'"),
        ("2d-maze", "must begin with a letter .* did you mean 'd-maze'"),
        ("maze--big", "did you mean 'maze-big'"),
        ("é", "such as 'my-env'"),
        ("a" * 65, "at most 64"),
        ("match", "'match' has a meaning in Rust"),
        ("test", "'test' has a meaning in Rust"),
        ("lambda", "'lambda' has a meaning in Python"),
        ("env", "a type `Env`, .* such as 'my-env'"),
        ("no-options", "a type `NoOptions`, which is that of another type of the crate"),
        ("random", "'random' has a meaning in Python"),
        ("numpy", "'numpy' is that of a package which the new one imports"),
        ("cartwheel", "'cartwheel' is that of a package"),
    ],
)
def test_a_name_that_cannot_be_one_is_refused_and_nothing_is_written(tmp_path, name, text):
    with pytest.raises(ValueError, match=text):
        new.write(tmp_path / name, new.path_source(ROOT))
    assert list(tmp_path.iterdir()) == []


def test_no_environment_has_the_name_of_a_type_that_the_template_uses():
    text = (new._TEMPLATE / "src/lib.rs.in").read_text("utf-8")
    imported = " ".join(re.findall(r"^use (.*);$", text, re.MULTILINE))
    types = set(re.findall(r"[A-Z]\w+", imported)) | set(re.findall(r"pub struct (\w+)", text))
    assert {"Env", "Options", "MyEnv"} < types
    assert [name for name in types if not new._TYPE.fullmatch(name)] == ["MyEnv"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["there", "--path", str(ROOT)], "'there' exists: name a new folder, or remove it first"),
        (["Maze", "--path", str(ROOT)], "did you mean 'maze'"),
        (["maze", "--path", "there"], "--path 'there' has no rust/cartwheel: name a clone"),
        (
            ["maze", "--path", str(ROOT / "rust/cartwheel-core")],
            "has no rust/cartwheel: name a clone",
        ),
        (["maze", "--rev", "abc"], "--rev is the commit of --git URL, which is not given"),
        (["maze", "--path", "a", "--git", "b"], "not allowed with argument --path"),
        (["maze", "--git", ""], "--git is empty"),
        (["maze", "--git", "b", "--rev", ""], "--rev is empty"),
        (["maze", "--git", "b\n[c]"], r"'b\n[c]' has characters that Cargo.toml cannot show"),
        (["there/file/maze", "--path", str(ROOT)], "Not a directory"),
    ],
)
def test_wrong_arguments_end_with_status_2_and_nothing_is_written(
    run, tmp_path, monkeypatch, arguments, text
):
    (tmp_path / "there").mkdir()
    (tmp_path / "there/file").touch()
    monkeypatch.chdir(tmp_path)
    status, output, errors = run("new", *arguments)
    assert (status, output) == (2, "")
    assert text in errors
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "there"]


def test_a_cartwheel_that_is_not_in_a_clone_asks_for_one(tmp_path, monkeypatch):
    monkeypatch.setattr(new, "_CLONE", tmp_path)
    with pytest.raises(ValueError, match=r"not published yet: name a clone with --path CLONE"):
        new.path_source(None)
