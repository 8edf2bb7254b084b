"""``python -m cartwheel new``: writes the crate of an environment in Rust, with tests.

The template is in the folder ``template``. Its names ``my-env``, ``my_env`` and ``MyEnv`` become
those of the new crate.
"""

from __future__ import annotations

import keyword
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

DESCRIPTION = """\
Writes the crate of an environment in Rust: a small environment that works, its tests in Rust and in
Python, and the package that Python imports. The last part of FOLDER is the name."""

#: The clone that this file is in, unless cartwheel was installed from a wheel.
_CLONE = Path(__file__).parents[3]
_TEMPLATE = Path(__file__).with_name("template")
#: Rust's keywords, and names of crates that the compiler or Cargo uses itself.
_RUST_NAME = re.compile(
    "abstract|alloc|as|async|await|become|box|break|build|const|continue|core|crate|deps|do|dyn|"
    "else|enum|examples|extern|false|final|fn|for|gen|if|impl|in|incremental|let|loop|macro|match|"
    "mod|move|mut|override|priv|proc_macro|pub|ref|return|self|static|std|struct|super|test|trait|"
    "true|try|type|typeof|union|unsafe|unsized|use|virtual|where|while|yield"
)
#: Types that ``src/lib.rs`` has besides the environment.
_TYPE = re.compile("Arc|Env|Error|Failure|NoOptions|Options|Result|Rng|Spaces?|Transition")
#: Packages that the new one imports, directly or not.
_IMPORTED = frozenset({"cartwheel", "cloudpickle", "gymnasium", "numpy", "typing_extensions"})
_NAME = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*")
_MAX_NAME = 64


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the subcommand ``new`` to a parser's commands."""
    parser = commands.add_parser(
        "new", help="write the crate of an environment in Rust", description=DESCRIPTION
    )
    parser.add_argument(
        "folder", type=Path, metavar="FOLDER", help="a new folder, such as my-env or code/my-env"
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--path",
        type=Path,
        metavar="CLONE",
        help="a clone of cartwheel's repository, whose crate the new one uses; without --path and "
        "--git, the clone that this cartwheel is imported from",
    )
    source.add_argument(
        "--git", metavar="URL", help="the address of cartwheel's repository, which Cargo fetches"
    )
    parser.add_argument("--rev", metavar="COMMIT", help="the commit of --git")
    parser.set_defaults(run=run, parser=parser)


def run(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> int:
    """Writes the crate and prints what to do next."""
    folder: Path = arguments.folder
    if arguments.rev is not None and arguments.git is None:
        parser.error("--rev is the commit of --git URL, which is not given")
    for option in ("git", "rev"):  # such as a variable of the shell that is not set
        if getattr(arguments, option) == "":
            parser.error(f"--{option} is empty")
    try:
        if arguments.git is not None:
            source = git_source(arguments.git, arguments.rev)
        else:
            source = path_source(arguments.path)
        write(folder, source)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    print(next_steps(folder))
    return 0


def write(folder: Path, source: str) -> None:
    """Writes the crate into a new folder, whose name is that of the crate.

    Args:
        folder: The folder. It must not exist.
        source: The place of the crate ``cartwheel``, in the words of Cargo: ``path = "…"``.

    Raises:
        ValueError: The name is not one of a crate and of a Python package.
        FileExistsError: The folder exists.
        OSError: It cannot be written.
    """
    name = folder.absolute().name
    check_name(name)
    files = render(name, source)
    if folder.exists():
        raise FileExistsError(f"{str(folder)!r} exists: name a new folder, or remove it first")
    for path, text in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def render(name: str, source: str) -> dict[str, str]:
    """Returns the text of each file of a crate, by its path within the folder."""
    names = {
        "my-env": name,
        "my_env": name.replace("-", "_"),
        "MyEnv": _type_of(name),
        "@source@": source,
        "dot-gitignore": ".gitignore",  # maturin leaves hidden files out of packages
    }
    placeholder = re.compile("|".join(map(re.escape, names)))

    def named(text: str) -> str:
        return placeholder.sub(lambda found: names[found.group()], text)

    paths = {file: str(file.relative_to(_TEMPLATE)) for file in sorted(_TEMPLATE.rglob("*.in"))}
    return {
        named(path.removesuffix(".in")): named(file.read_text(encoding="utf-8"))
        for file, path in paths.items()
    }


def check_name(name: str) -> None:
    """Checks that a name can be that of a crate and of a Python package.

    Raises:
        ValueError: It cannot, with the reason.
    """
    if not _NAME.fullmatch(name) or len(name) > _MAX_NAME:
        words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()
        meant = re.sub(r"[^a-z0-9]+", "-", words).strip("-0123456789")[:_MAX_NAME].strip("-")
        hint = f": did you mean {meant!r}?" if _NAME.fullmatch(meant) else ", such as 'my-env'"
        raise ValueError(
            f"the name {name!r} must begin with a letter and consist of at most {_MAX_NAME} "
            f"lowercase letters, digits, and single hyphens or underscores between them{hint}"
        )
    module = name.replace("-", "_")
    if _RUST_NAME.fullmatch(module):
        raise ValueError(f"the name {name!r} has a meaning in Rust: choose another one")
    if keyword.iskeyword(module) or module in sys.stdlib_module_names:
        raise ValueError(f"the name {name!r} has a meaning in Python: choose another one")
    if _TYPE.fullmatch(_type_of(name)):
        raise ValueError(
            f"the name {name!r} makes the environment a type `{_type_of(name)}`, which is that of "
            f"another type of the crate: choose another one, such as 'my-{name}'"
        )
    if module in _IMPORTED:
        raise ValueError(
            f"the name {name!r} is that of a package which the new one imports: choose another one"
        )


def _type_of(name: str) -> str:
    """Returns the name of the environment's type in Rust."""
    return "".join(part.capitalize() for part in name.replace("-", "_").split("_"))


def git_source(url: str, commit: str | None) -> str:
    """Returns the place of the crate in a repository, in the words of Cargo."""
    return f"git = {_toml(url)}" + (f", rev = {_toml(commit)}" if commit is not None else "")


def path_source(clone: Path | None) -> str:
    """Returns the place of the crate in a clone, in the words of Cargo.

    Raises:
        ValueError: The crate is not there, or there is no clone to look in.
    """
    given = clone if clone is not None else _CLONE
    for crate in (given / "rust/cartwheel", given):
        if _is_crate(crate / "Cargo.toml"):
            return f"path = {_toml(str(crate.resolve()))}"
    if clone is not None:
        raise ValueError(f"--path {str(clone)!r} has no rust/cartwheel: name a clone of cartwheel")
    raise ValueError(
        "this cartwheel is not imported from a clone of its repository, and its crate is not "
        "published yet: name a clone with --path CLONE, or the repository with --git URL"
    )


def _is_crate(manifest: Path) -> bool:
    return manifest.is_file() and '\nname = "cartwheel"\n' in manifest.read_text(encoding="utf-8")


def _toml(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    if not escaped.isprintable():
        raise ValueError(f"{text!r} has characters that Cargo.toml cannot show")
    return f'"{escaped}"'


def next_steps(folder: Path) -> str:
    """Returns the commands that test, build and show the environment."""
    name = folder.absolute().name
    module = name.replace("-", "_")
    env_id = f"{module}/{_type_of(name)}-v0"
    return (
        f"wrote {folder}: the environment {env_id}, in src/lib.rs\n"
        f"  cd {shlex.quote(str(folder))}\n"
        "  cargo test                  # plays it in every way, without Python\n"
        "  pip install maturin pytest\n"
        "  maturin develop --release   # builds it into the active virtual environment\n"
        "  pytest                      # plays it from Python\n"
        f"  python -m cartwheel envs {module}:{env_id}"
    )
