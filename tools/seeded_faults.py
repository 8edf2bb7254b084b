"""Plants faults in the sources, one after another, and looks which test of `make test` fails.

``make seeded-faults``. A fault is one operator, or one `true` or `false`, that is another one in a
copy of the sources. The places are random: ``--count`` of them, a third in the crates that need no
Python, a third in the binding, a third in the package. The tests nearest to a place run first, then
all others that `make test` has; a test that fails must fail again. A fault that no test notices is
printed with its line: either it changes nothing that can be observed, or a test is missing.
"""

from __future__ import annotations

import argparse
import io
import os
import random
import re
import shutil
import subprocess
import sys
import time
import tokenize
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

from tests.__main__ import NO_TESTS

ROOT = Path(__file__).parents[1]
COPY = ROOT / "target" / "seeded-faults"
SWAPS = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&",
    "+": "-", "-": "+", "+=": "-=", "true": "false", "false": "true",
    "and": "or", "or": "and", "True": "False", "False": "True",
}  # fmt: skip
NO_CODE = re.compile(
    r"\s*(//|#|(pub(\(\w+\))? )?(use|(unsafe )?trait)\b|impl|where|const .*assert)"
)
RUST = re.compile(
    r"(?<= )(<=|>=|==|!=|&&|\+=|[<>+-])(?= )|(?<=[\w)\]] )(?<!move )\|\|(?= )|\b(true|false)\b"
)
#: Where faults are planted: the crates that need no Python, the binding, and the package.
CRATES = ("core", "engine", "envs", "kernels")
PLACES = {
    "crates": [f"rust/cartwheel-{crate}/src/**/*.rs" for crate in CRATES],
    "binding": ["rust/cartwheel-python/src/**/*.rs"],
    "package": ["python/cartwheel/**/*.py"],
}
#: The folders of tests that are nearest to files of Rust, and to some of Python.
NEAR = {
    r"engine/src/(pool|worker)|python/src/(worker|channel)": ["vector", "workers"],
    r"envs/src|/native/|core/src/(rng|space)": ["native", "internal"],
    r"/returns/": ["returns", "rollouts"],
    r"/(image|wrappers|_device)[/.]|python/src/(array|store)": ["wrappers", "rollouts", "vector"],
    r"cartwheel/_internal/": ["internal", "vector", "make"],
}
#: A test alone has 60 s. Only programs that hang take as long as this.
TIMEOUT_S = 3600
#: Parts that other stages test: adapters of trainers, and builds for other systems.
ELSEWHERE = re.compile(
    r"cartwheel/(ray|rllib|_device)/|(sb3|torchrl|skrl|tianshou|ale)\.py|/portable|macos|_cli/template"
    r"|/failpoint|protocol/deaths"
)


@dataclass(frozen=True)
class Fault:
    """Another text at a place of a file."""

    kind: str
    file: str
    line: int
    start: int
    end: int
    text: str

    def __str__(self) -> str:
        """The place, as compilers name it, and what is there."""
        source = (ROOT / self.file).read_text(encoding="utf-8")
        shown, was = source.splitlines()[self.line - 1].strip(), source[self.start : self.end]
        return f"{self.file}:{self.line}: `{was}` is `{self.text}` in `{shown}`"


def in_rust(source: str) -> Iterator[tuple[int, int]]:
    """Operators of Rust code, outside its tests, comments, attributes and generics."""
    code = re.split(r"\n#\[cfg\((?:all\(\w+, )?test", source)[0]
    position = 0
    for line in code.splitlines(keepends=True):
        if not NO_CODE.match(line):
            for found in RUST.finditer(line.partition("//")[0]):
                if line.count('"', 0, found.start()) % 2 == 0:
                    yield position + found.start(), position + found.end()
        position += len(line)


def in_python(source: str) -> Iterator[tuple[int, int]]:
    """Operators of Python code; none of annotations and signatures."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.string in SWAPS and token.type in (tokenize.OP, tokenize.NAME):
            start = starts[token.start[0] - 1] + token.start[1]
            if source[start - 1] == " " and not re.match(
                r"\s*(def|from|import)\b|.*->", token.line
            ):
                yield start, start + len(token.string)


def faults(seed: int, count: int) -> list[Fault]:
    """The chosen places, in turn from each kind of source."""
    chosen = random.Random(seed)
    of_kind = {}
    for kind, patterns in PLACES.items():
        found = []
        for path in sorted(path for pattern in patterns for path in ROOT.glob(pattern)):
            file = path.relative_to(ROOT).as_posix()
            if ELSEWHERE.search(file):
                continue
            source = path.read_text(encoding="utf-8")
            for start, end in (in_python if path.suffix == ".py" else in_rust)(source):
                line = source.count("\n", 0, start) + 1
                found.append(Fault(kind, file, line, start, end, SWAPS[source[start:end]]))
        of_kind[kind] = chosen.sample(found, -(-count // len(PLACES)))
    return [fault for row in zip(*of_kind.values(), strict=True) for fault in row][:count]


def noticed_by(fault: Fault) -> str | None:
    """Returns the failure that the fault causes, of the compiler or a test; or ``None``."""
    target = COPY / fault.file
    source = target.read_text(encoding="utf-8")
    target.write_text(source[: fault.start] + fault.text + source[fault.end :], encoding="utf-8")
    try:
        if fault.kind == "crates":
            crate = fault.file.split("/")[1]
            features = ("--features", "failpoints") if crate == "cartwheel-engine" else ()
            if failed := run("cargo", "test", "--locked", "--quiet", "-p", crate, *features):
                return failed
        if fault.kind != "package" and (failed := build()):
            return failed
        nearest = [f"tests/{name}" for name in near(fault.file)]
        return test("pytest", "-n", "2", *nearest) or test("tests", "--processes", "3")
    finally:
        target.write_text(source, encoding="utf-8")


def near(file: str) -> list[str]:
    """The folders of tests that are nearest to a file."""
    for pattern, folders in NEAR.items():
        if re.search(pattern, file):
            return folders
    parts = file.removeprefix("python/cartwheel/").split("/")
    return [parts[0]] if (ROOT / "tests" / parts[0]).is_dir() else ["vector"]


def build() -> str | None:
    """Builds the module and the plugin of the tests, as `make test` does."""
    if failed := run(
        "cargo", "build", "--locked", "--quiet", "-p", "cartwheel-python", "-p", "test-plugin"
    ):
        return failed
    shutil.copyfile(
        COPY / "target/debug/lib_cartwheel.so", COPY / "python/cartwheel/_cartwheel.abi3.so"
    )
    return None


def test(*words: str) -> str | None:
    """Runs tests that run by default, up to one that fails and fails again.

    On a busy machine a test may fail once, for lack of time. Tests of the repository itself read
    Git's list of files, and notice no fault of behavior.
    """
    options = ("-q", "-x", "--timeout=60", "--deselect=tests/repository")
    for _ in range(3):
        failed = run(sys.executable, "-m", *words, *options)
        if not failed or run(sys.executable, "-m", "pytest", *options, failed):
            return failed
    return f"{failed}, which passed when it ran again"


def run(*command: str) -> str | None:
    """Runs a command and returns the text of its first failure, if it fails."""
    environment = {**os.environ, "PYTHONPATH": str(COPY / "python")}
    environment.pop("CARGO_TARGET_DIR", None)
    try:
        ended = subprocess.run(
            command,
            cwd=COPY,
            env=environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no end within {TIMEOUT_S} s"
    if ended.returncode in (0, NO_TESTS):
        return None
    text = ended.stdout + ended.stderr
    patterns = (
        r"^(?:FAILED|ERROR) (tests/.+?)(?: - .*)?$",
        r"^test (\S+) .*FAILED",
        r"^    (\S+)$",
        r"^error.*: (.*)",
    )
    matches = (re.search(pattern, text, re.MULTILINE) for pattern in patterns)
    return next((found[1] for found in matches if found), text[-200:])


def main() -> int:
    """Plants the chosen faults; returns how many were not noticed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--kinds", nargs="+", choices=PLACES, default=list(PLACES))
    parser.add_argument("--only", type=int, nargs="+", help="numbers of faults of the list")
    parser.add_argument("--list", action="store_true", help="print the places only")
    arguments = parser.parse_args()
    planted = faults(arguments.seed, arguments.count)
    # Kind by kind: the faults of the package need a module without faults, and come last.
    chosen = [
        fault
        for kind in PLACES
        if kind in arguments.kinds
        for fault in planted
        if fault.kind == kind
    ]
    numbered = [
        (number, fault)
        for number, fault in enumerate(chosen, 1)
        if not arguments.only or number in arguments.only
    ]
    if arguments.list:
        print(*(f"{number}: {fault}" for number, fault in numbered), sep="\n")
        return 0
    for old in COPY.glob("*"):  # what cargo built stays
        if old.is_dir() and old.name != "target":
            shutil.rmtree(old)
        elif not old.is_dir():
            old.unlink()
    keep = shutil.ignore_patterns("target", ".git", ".venv*", ".*_cache", "dist", "_build")
    copy = shutil.copyfile  # newer than what an earlier run built from faults, so cargo builds them
    shutil.copytree(ROOT, COPY, ignore=keep, dirs_exist_ok=True, symlinks=True, copy_function=copy)
    has_module = list((COPY / "python/cartwheel").glob("_cartwheel*.so"))
    only_python = all(fault.kind == "package" for _, fault in numbered)
    if not (only_python and has_module) and (failed := build()):
        sys.exit(f"{failed}, without any fault")
    bad, previous = 0, "package"
    for number, fault in numbered:
        start = time.monotonic()
        if fault.kind == "package" and previous != "package":
            build()  # the module without the previous fault
        previous = fault.kind
        failed = noticed_by(fault)
        bad += failed is None
        spent = time.monotonic() - start
        print(
            f"{number}/{len(chosen)} {fault}\n    {failed or 'NOT NOTICED'} ({spent:.0f} s)",
            flush=True,
        )
    print(f"{len(numbered) - bad} of {len(numbered)} faults were noticed")
    return bad


if __name__ == "__main__":
    sys.exit(main())
