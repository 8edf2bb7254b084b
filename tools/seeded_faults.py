"""Plants faults in a copy of the sources, and looks which test of `make test` notices each.

``make seeded-faults``. A fault is one operator, or one `true` or `false`, that is another one. The
places are random: ``--count`` of them, a third in the crates that need no Python, a third in the
binding, a third in the package. All faults of Rust are in one build: a function with a fault has
its body twice, and a file chooses one of them. The tests nearest to a place run first, then all
others that `make test` has; a test that fails must fail again. A fault that no test notices is
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
NO_CODE = re.compile(r"\s*(//|#|(pub(\(\w+\))? )?(use|fn)\b|impl|where|const )")
RUST = re.compile(
    r"(?<= )(<=|>=|==|!=|&&|\+=|[<>+-])(?= )|(?<=[\w)\]] )(?<!move )(?<!mut )\|\|(?= )"
    r"|\b(true|false)\b"
)
#: A function of Rust and its body, as rustfmt writes them; none that is constant.
FUNCTION = re.compile(
    r"""^(\ *)(?:pub(?:\(.+?\))?\ )?(?:unsafe\ )?(?:extern\ "C"\ )?fn\ # its name and arguments
        (?:.*[^{;}\n]\n)* .*\{\n (?P<body>(?:.*\n)*?) \1\}\n""",
    re.MULTILINE | re.VERBOSE,
)
#: The file that chooses a fault of Rust while it exists. To look for it allocates no memory, which
#: tests would notice, and programs without environment variables find it, too.
CHOICE = (COPY / "target/fault-%d").as_posix()
SWITCH = f"""{{
    static CHOSEN: std::sync::LazyLock<bool> =
        std::sync::LazyLock::new(|| std::path::Path::new("{CHOICE}").exists());
    *CHOSEN }}"""
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
#: Builds the module and the plugin of the tests, as `make test` does.
BUILD = ("cargo", "build", "--locked", "--quiet", "-p", "cartwheel-python", "-p", "test-plugin")
#: A test alone has 60 s. Only programs that hang take as long as this.
TIMEOUT_S = 3600
#: Parts that other stages test: adapters of trainers and of JAX, and builds for other systems; and
#: models of loom, which are tests.
ELSEWHERE = re.compile(
    r"cartwheel/(ray|rllib|torchrl|_device)/|(sb3|skrl|tianshou|ale|jax|xla)\.py|_cli/template"
    r"|/portable|macos|/failpoint|protocol/(deaths|interleavings)|wake/model"
    r"|python/src/(xla|ffi)/|pool/(buffers|compiled|elements)"
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

    @property
    def crate(self) -> str:
        """The name of its crate, if it is in Rust."""
        return self.file.split("/")[1]

    def __str__(self) -> str:
        """The place, as compilers name it, and what is there."""
        source = (ROOT / self.file).read_text(encoding="utf-8")
        shown, was = source.splitlines()[self.line - 1].strip(), source[self.start : self.end]
        return f"{self.file}:{self.line}: `{was}` is `{self.text}` in `{shown}`"


def bodies(source: str) -> Iterator[tuple[int, int]]:
    """The bodies of functions of Rust that can have a second one: both return the same type."""
    for found in FUNCTION.finditer(source):
        if "-> impl" not in source[found.start() : found.start("body")]:
            yield found.span("body")


def in_rust(source: str) -> Iterator[tuple[int, int]]:
    """Operators in functions of Rust, outside tests, comments and generics."""
    code = re.split(r"\n#\[cfg\((?:all\(\w+, )?test", source)[0]
    for position, end in bodies(code):
        for line in code[position:end].splitlines(keepends=True):
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


def with_switches(source: str, faults: dict[int, Fault]) -> str:
    """A source of Rust whose functions have a body for each fault, and choose one of them."""
    for start, end in reversed([*bodies(source)]):
        body, before = source[start:end], ""
        for number, fault in faults.items():
            if start <= fault.start < end:
                faulty = body[: fault.start - start] + fault.text + body[fault.end - start :]
                before += f"if {SWITCH % number} {{\n{faulty}}} else "
        if before:
            source = f"{source[:start]}{before}{{\n{body}}}\n{source[end:]}"
    return source


def plant(faults: dict[int, Fault]) -> dict[int, str]:
    """Builds the module and the tests of the crates with these faults of Rust.

    Returns the errors of the compiler, by the numbers of the faults that it refuses.
    """
    refused: dict[int, str] = {}
    files = {fault.file for fault in faults.values()}
    sources = {file: (COPY / file).read_text(encoding="utf-8") for file in files}
    crates = {fault.crate for fault in faults.values() if fault.kind == "crates"}
    builds = (BUILD, *([*cargo_test(crate), "--no-run"] for crate in sorted(crates)))
    while True:
        for file, source in sources.items():
            chosen = {
                number: fault
                for number, fault in faults.items()
                if fault.file == file and number not in refused
            }
            (COPY / file).write_text(with_switches(source, chosen), encoding="utf-8")
        ended = [run(*build) for build in builds]
        errors = "\n".join(output for status, output in ended if status)
        if not errors:
            break
        refused |= refused_by(errors) or sys.exit(f"{errors}\nThese errors are of no fault.")
    module = COPY / "python/cartwheel/_cartwheel.abi3.so"
    shutil.copyfile(COPY / "target/debug/lib_cartwheel.so", module)
    return refused


def refused_by(errors: str) -> dict[int, str]:
    """The first error of the compiler in the body of each fault that has one."""
    refused: dict[int, str] = {}
    for error, file, line in re.findall(r"^(error.*)\n +--> (rust/\S+):(\d+):", errors, re.M):
        above = (COPY / file).read_text(encoding="utf-8").splitlines()[: int(line)]
        switches = re.findall(CHOICE.replace("%d", r"(\d+)"), "\n".join(above))
        if switches:
            refused.setdefault(int(switches[-1]), error)
    return refused


def noticed_by(number: int, fault: Fault) -> str | None:
    """Returns the failure of a test that the fault causes, or ``None``."""
    target, text = Path(CHOICE % number), ""
    if fault.kind == "package":
        target = COPY / fault.file
        source = target.read_text(encoding="utf-8")
        text = source[: fault.start] + fault.text + source[fault.end :]
    target.write_text(text, encoding="utf-8")
    try:
        if fault.kind == "crates":
            status, output = run(*cargo_test(fault.crate))
            if status:
                return first_failure(output)
        nearest = [f"tests/{name}" for name in near(fault.file)]
        return test("pytest", "-n", "2", *nearest) or test("tests", "--processes", "3")
    finally:
        if fault.kind == "package":
            target.write_text(source, encoding="utf-8")
        else:
            target.unlink()


def near(file: str) -> list[str]:
    """The folders of tests that are nearest to a file."""
    for pattern, folders in NEAR.items():
        if re.search(pattern, file):
            return folders
    parts = file.removeprefix("python/cartwheel/").split("/")
    return [parts[0]] if (ROOT / "tests" / parts[0]).is_dir() else ["vector"]


def cargo_test(crate: str) -> list[str]:
    """The command that tests a crate as `make test` does."""
    features = ("--features", "failpoints") if crate == "cartwheel-engine" else ()
    return ["cargo", "test", "--locked", "--quiet", "-p", crate, *features]


def test(*words: str) -> str | None:
    """Runs tests that run by default, up to one that fails and fails again.

    On a busy machine a test may fail once, for lack of time. Tests of the repository itself read
    Git's list of files, and notice no fault of behavior.
    """
    options = ("-q", "-x", "--timeout=60", "--deselect=tests/repository")
    for _ in range(3):
        status, output = run(sys.executable, "-m", *words, *options)
        if status in (0, NO_TESTS):
            return None
        failed = first_failure(output)
        status, _ = run(sys.executable, "-m", "pytest", *options, failed)
        if status not in (0, NO_TESTS):
            return failed
    return f"{failed}, which passed when it ran again"


def run(*command: str) -> tuple[int, str]:
    """Runs a command in the copy; returns its status and what it printed."""
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
        return 1, f"no end within {TIMEOUT_S} s"
    return ended.returncode, ended.stdout + ended.stderr


def first_failure(output: str) -> str:
    """The name of the first test that failed, or the end of what was printed."""
    patterns = (r"^(?:FAILED|ERROR) (tests/.+?)(?: - .*)?$", r"^---- (\S+) stdout ----$")
    matches = (re.search(pattern, output, re.MULTILINE) for pattern in patterns)
    return next((found[1] for found in matches if found), output[-200:])


def main() -> int:
    """Plants the chosen faults; returns how many were not noticed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--kinds", nargs="+", choices=PLACES, default=list(PLACES))
    parser.add_argument("--only", type=int, nargs="+", help="numbers of faults of the list")
    parser.add_argument("--list", action="store_true", help="print the places only")
    arguments = parser.parse_args()
    numbered = {
        number: fault
        for number, fault in enumerate(faults(arguments.seed, arguments.count), 1)
        if fault.kind in arguments.kinds and number in (arguments.only or [number])
    }
    if unknown := sorted({*(arguments.only or ())} - numbered.keys()):
        parser.error(f"--only names {unknown}, which --list does not print")
    places = {number: f"{number}: {fault}" for number, fault in numbered.items()}
    if arguments.list:
        print(*places.values(), sep="\n")
        return 0
    for old in COPY.glob("*"):  # what cargo built stays
        if old.is_dir() and old.name != "target":
            shutil.rmtree(old)
        elif not old.is_dir():
            old.unlink()
    keep = shutil.ignore_patterns("target", ".git", ".venv*", ".*_cache", "dist", "_build")
    copy = shutil.copyfile  # newer than what an earlier run built from faults, so cargo builds them
    shutil.copytree(ROOT, COPY, ignore=keep, dirs_exist_ok=True, symlinks=True, copy_function=copy)
    for old in COPY.glob("target/fault-*"):
        old.unlink()
    of_rust = {number: fault for number, fault in numbered.items() if fault.kind != "package"}
    has_module = list((COPY / "python/cartwheel").glob("_cartwheel*.so"))
    refused = plant(of_rust) if of_rust or not has_module else {}
    unnoticed = 0
    for number, fault in numbered.items():
        start = time.monotonic()
        failed = refused.get(number) or noticed_by(number, fault)
        unnoticed += failed is None
        spent = time.monotonic() - start
        print(f"{places[number]}\n    {failed or 'NOT NOTICED'} ({spent:.0f} s)", flush=True)
    print(f"{len(numbered) - unnoticed} of {len(numbered)} faults were noticed")
    return unnoticed


if __name__ == "__main__":
    sys.exit(main())
