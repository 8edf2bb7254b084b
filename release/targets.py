"""The machines that a release serves, and the wheels that each of them gets.

Sources: the platform tags are those of PEP 600 (manylinux), PEP 656 (musllinux) and PyPA's
specification "Platform compatibility tags"; Rust's page "Platform Support" says which systems a
target of Rust needs.
"""

import platform
from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """A machine with its C library."""

    #: Rust's name.
    triple: str
    #: maturin's options for the oldest C library; none for macOS, which has `oldest_macos`.
    compatibility: tuple[str, ...]
    #: The tag of the wheel's file name; the last one where maturin writes an older alias before it.
    platform_tag: str
    #: The shared libraries that a wheel may ask for. Each system of this kind has them.
    libraries: frozenset[str]
    #: Of macOS, as in `MACOSX_DEPLOYMENT_TARGET`.
    oldest_macos: str = ""

    @property
    def machine(self) -> str:
        """The processor, as Rust calls it: ``x86_64`` or ``aarch64``."""
        return self.triple.partition("-")[0]

    @property
    def system(self) -> str:
        """``Linux`` or ``Darwin``, as `platform.system` says it."""
        return "Darwin" if self.oldest_macos else "Linux"


#: The tags of the wheel for every CPython from 3.10 on, which the feature ``abi3-py310`` sets.
ABI3 = "cp310-abi3"
#: CPython 3.14 without the GIL. The stable ABI does not exist there before 3.15.
FREE_THREADED = "cp314-cp314t"
ABIS = (ABI3, FREE_THREADED)
#: maturin knows the settings of interpreters that are not installed.
INTERPRETERS = {ABI3: "python3.10", FREE_THREADED: "python3.14t"}


def _glibc(machine: str, loader: str) -> Target:
    # 2.17 (CentOS 7) is the oldest that Rust's std runs on, and nothing else here needs a newer
    # one. NumPy's own wheels for it end with NumPy 2.2, which cartwheel accepts.
    libraries = {loader, "libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1"}
    return Target(
        f"{machine}-unknown-linux-gnu",
        ("--compatibility", "manylinux_2_17"),
        f"manylinux_2_17_{machine}",
        frozenset(libraries),
    )


def _musl(machine: str) -> Target:
    # 1.2 is the musl of Alpine 3.13 and later, and of Rust's own targets.
    return Target(
        f"{machine}-unknown-linux-musl",
        ("--compatibility", "musllinux_1_2"),
        f"musllinux_1_2_{machine}",
        frozenset({"libc.so"}),
    )


def _macos(machine: str, name: str) -> Target:
    # 11.0 is the first macOS on Apple's processors.
    return Target(
        f"{machine}-apple-darwin",
        (),
        f"macosx_11_0_{name}",
        # The last two are what Rust's std is linked with, though it calls neither.
        frozenset(
            f"/usr/lib/{name}.dylib" for name in ("libSystem.B", "libiconv.2", "libcharset.1")
        ),
        oldest_macos="11.0",
    )


TARGETS = (
    _glibc("x86_64", "ld-linux-x86-64.so.2"),
    _glibc("aarch64", "ld-linux-aarch64.so.1"),
    _musl("x86_64"),
    _musl("aarch64"),
    _macos("aarch64", "arm64"),
    _macos("x86_64", "x86_64"),
)


def of_this_machine() -> Target:
    """The target whose wheels can be installed and run here."""
    system = platform.system()
    machine = {"arm64": "aarch64"}.get(platform.machine(), platform.machine())
    libc = "gnu" if platform.libc_ver()[0] == "glibc" else "musl"
    for target in TARGETS:
        if (target.system, target.machine) == (system, machine) and (
            system != "Linux" or target.triple.endswith(libc)
        ):
            return target
    raise SystemExit(f"cartwheel has no wheel for {system} on {machine} ({libc})")
