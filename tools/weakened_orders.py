"""Weakens one memory order after another, and looks whether loom notices.

``make orders``. Processors of x86 do not reorder what ARM reorders, so tests that run on x86 cannot
show that an order is missing. loom can: it carries out the accesses in every order that the memory
model of Rust allows. This program shows that loom's tests would notice: in a copy of the
sources it replaces each ``Release``, ``Acquire``, ``AcqRel`` and fence of the engine by
``Relaxed``, one at a time, and runs loom's tests, one of which must fail.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
COPY = ROOT / "target" / "orders"
ENGINE = "rust/cartwheel-engine/src"
ORDER = re.compile(r"Ordering::(Release|Acquire|AcqRel)\b|fence\(Ordering::SeqCst\);")
LOOM = ("--profile", "loom", "--lib")
#: Seconds for one build and its tests.
LIMIT = 900


@dataclass(frozen=True)
class Order:
    """An order in a file."""

    file: str
    line: int
    text: str
    start: int
    end: int
    weaker: str

    def __str__(self) -> str:
        """The place, as compilers name it."""
        return f"{self.file}:{self.line}: {self.text}"


def files() -> list[str]:
    """The files of the engine: one that gets an order is not left out."""
    paths = sorted((ROOT / ENGINE).rglob("*.rs"))
    return [str(path.relative_to(ROOT / ENGINE)) for path in paths]


def orders(file: str) -> Iterator[Order]:
    """The orders of a file, outside its tests and its prose."""
    source = (
        (ROOT / ENGINE / file).read_text(encoding="utf-8").partition("\n#[cfg(all(loom, test))]")[0]
    )
    if re.search(r"^use loom::", source, re.MULTILINE):
        return  # all of it is tests
    for found in ORDER.finditer(source):
        line = source.count("\n", 0, found.start())
        text = source.splitlines()[line].strip()
        if not text.startswith("//"):
            weaker = "" if found[0].startswith("fence") else "Ordering::Relaxed"
            yield Order(file, line + 1, text, found.start(), found.end(), weaker)


def noticed_by(order: Order) -> str | None:
    """The test that fails when the order is weaker; ``None`` if all pass."""
    target = COPY / ENGINE / order.file
    source = (ROOT / ENGINE / order.file).read_text(encoding="utf-8")
    target.write_text(source[: order.start] + order.weaker + source[order.end :], encoding="utf-8")
    try:
        return _failing_test()
    finally:
        target.write_text(source, encoding="utf-8")


def _failing_test() -> str | None:
    command = ["cargo", "test", "-p", "cartwheel-engine", *LOOM]
    variables = {
        "RUSTC_WORKSPACE_WRAPPER": str(ROOT / "tests/rustc-under-loom"),
        "RUSTFLAGS": "--cap-lints warn",
        "CARGO_TARGET_DIR": str(COPY / "target"),
    }
    try:
        ended = subprocess.run(
            command,
            cwd=COPY,
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no end within {LIMIT} s"
    if not ended.returncode:
        return None
    failed = re.search(r"^test (\S+) \.\.\. FAILED", ended.stdout, re.MULTILINE) or re.search(
        r"^thread '(\S+)' .*panicked at", ended.stderr, re.MULTILINE
    )  # a panic while loom cleans up after a failure ends the process before the test is named
    if failed is None:
        sys.exit(f"the tests were not run:\n{ended.stdout}{ended.stderr}")
    return failed[1].rpartition("::")[2]


def main(chosen: list[str]) -> int:
    """Weakens the orders of the chosen files, or of all."""
    keep = shutil.ignore_patterns("target", ".git", ".venv*", ".*_cache", "dist")
    sources = COPY / "rust"
    shutil.rmtree(sources, ignore_errors=True)
    # Copies are newer than what an earlier run built from weaker orders, so cargo builds them.
    copy = shutil.copyfile
    shutil.copytree(ROOT, COPY, ignore=keep, dirs_exist_ok=True, symlinks=True, copy_function=copy)
    if failed := _failing_test():
        sys.exit(f"{failed} fails without any change")
    bad = 0
    for order in (order for file in chosen or files() for order in orders(file)):
        start = time.monotonic()
        test = noticed_by(order)
        bad += test is None
        print(
            f"{order}\n    {test or 'NOT NOTICED'} ({time.monotonic() - start:.0f} s)", flush=True
        )
    return bad


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
