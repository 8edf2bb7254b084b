"""Symbols that an extension module needs from the system and from Python.

`auditwheel` (PyPA's) checks the symbols of manylinux and musllinux, `abi3audit` (Trail of Bits')
those of Python's stable ABI. LIEF reads what they leave out, and the modules of macOS.
"""

import hashlib
import json
import re
import struct
import subprocess
from itertools import pairwise
from pathlib import Path

import lief
from packaging.version import Version

from release.build import TOOLS
from release.targets import Target

lief.logging.disable()  # of empty strings in signatures

#: The one symbol that Python looks up in the module.
INIT = "PyInit__cartwheel"
#: A symbol of Python's C API. The loader finds it in the interpreter, not in a library.
PYTHON = re.compile("_?Py[A-Z_].*")
#: In a Mach-O file, the number of the library of a symbol that any library may have.
ANY_LIBRARY = -2
#: The magic numbers of a signature and of the list of hashes in it, and of the hash.
SIGNATURE, CODE_DIRECTORY, SHA256 = 0xFADE0CC0, 0xFADE0C02, 2


def outside_the_stable_abi(wheel: Path) -> list[str]:
    """Symbols of Python that CPython 3.10 does not have, or that a later one may lose."""
    command: list[str | Path] = [TOOLS / "abi3audit", "--strict", "--report", wheel]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    return [f"abi3audit: {ran.stdout}{ran.stderr}"] if ran.returncode else []


def of_linux(wheel: Path, module: bytes, target: Target) -> tuple[str, list[str]]:
    """The newest symbol of the C library that the module needs, and what is wrong with it."""
    # Its check of symbols. Of libraries it knows only those that it finds on this machine.
    command: list[str | Path] = [TOOLS / "auditwheel", "show", "--json", "--ldpaths", "/nowhere"]
    ran = subprocess.run([*command, wheel], capture_output=True, text=True, check=False)
    if ran.returncode:
        return "", [f"auditwheel: {ran.stderr}"]
    report = json.loads(ran.stdout)
    binary = lief.ELF.parse(module)
    imported = {str(s.name): s.symbol_version for s in binary.imported_symbols}
    faults = strange_libraries(set(binary.libraries), target)
    exports = [str(symbol.name) for symbol in binary.exported_symbols]
    if exports != [INIT]:  # others could be found by libraries that look for their own
        faults.append(f"exports {exports}, where Python asks for {INIT}")
    if report["sym_tag"] != target.platform_tag:
        faults.append(f"has symbols of {report['sym_tag']}, by auditwheel")
    versions = {name for names in report["versioned_symbols"].values() for name in names}
    if target.triple.endswith("musl"):
        return "musl 1.2", faults  # whose symbols have no versions
    faults += [
        f"the symbol {name} is neither Python's nor of a version of the C library"
        for name, version in imported.items()
        if not version.has_auxiliary_version and not PYTHON.fullmatch(name)
    ]
    newest = max(versions, key=lambda name: Version(name.partition("_")[2]))
    return newest.replace("_", " ").replace("GLIBC", "glibc"), faults


def of_macos(_wheel: Path, module: bytes, target: Target) -> tuple[str, list[str]]:
    """The oldest macOS that loads the module, and what is wrong with it."""
    binary = lief.MachO.parse(list(module)).at(0)
    libraries = {str(library.name) for library in binary.libraries}
    own = {name for name in libraries if name.startswith("@rpath/cartwheel.")}
    faults = strange_libraries(libraries - own, target)
    # zig exports more without LTO. Nothing finds it: a symbol is looked up in the library that it
    # was linked with, by name, but for those of Python.
    if f"_{INIT}" not in {str(symbol.name) for symbol in binary.exported_symbols}:
        faults.append(f"does not export {INIT}")
    faults += [
        f"the symbol {binding.symbol.name} is of no library"
        for binding in binary.bindings
        if binding.library_ordinal == ANY_LIBRARY
        and not PYTHON.fullmatch(str(binding.symbol.name).removeprefix("_"))
    ]
    oldest = ".".join(map(str, binary.build_version.minos[:2]))
    if oldest != target.oldest_macos:
        faults.append(f"needs macOS {oldest}, not {target.oldest_macos}")
    if target.machine == "aarch64":
        signed = binary.has_code_signature and is_signed(module, binary.code_signature.data_offset)
        if not signed:
            faults.append("has no valid signature, and Apple's processors load no module without")
    return f"macOS {oldest}", faults


def is_signed(module: bytes, offset: int) -> bool:
    """Whether the signature at `offset` of a Mach-O file has the hashes of its pages.

    The kernel compares them when it loads a page, and ends the process where they differ; a tool
    that changes a file after the linker has signed it causes that. The structures are those of
    ``cs_blobs.h`` in the sources of Apple's kernel, big-endian.
    """
    magic, _, blobs = struct.unpack_from(">3I", module, offset)
    if magic != SIGNATURE:
        return False
    for blob in range(blobs):
        _, inside = struct.unpack_from(">2I", module, offset + 12 + 8 * blob)
        start = offset + inside
        magic, _, _, _, hashes, _, _, pages, end = struct.unpack_from(">9I", module, start)
        size, kind, _, shift = struct.unpack_from("4B", module, start + 36)
        if magic == CODE_DIRECTORY and kind == SHA256:
            bounds = [*range(0, end, 1 << shift), end]
            found = [hashlib.sha256(module[a:b]).digest()[:size] for a, b in pairwise(bounds)]
            said = module[start + hashes : start + hashes + pages * size]
            return end == offset and b"".join(found) == said
    return False


def strange_libraries(names: set[str], target: Target) -> list[str]:
    """Shared libraries that not every system of the target has."""
    return [f"needs {name}" for name in sorted(names - target.libraries)]
