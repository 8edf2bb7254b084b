"""The locks of native code while the program forks: ``python -m tests.programs.locks_at_forks``.

It is a program of its own, because its handler of forks has to come before those of cartwheel: the
C library calls what was registered last first.
"""

import ctypes
import os
import re
import subprocess
from pathlib import Path

from tests.programs.registry import tell

#: Called with nothing, before a fork.
_Handler = ctypes.CFUNCTYPE(None)


class _Locks:
    """The bytes of the static locks of native code."""

    def __init__(self, library):
        symbols = subprocess.run(
            ["nm", "--demangle", "--print-size", library],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        maps = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
        begin = min(int(line.partition("-")[0], 16) for line in maps if line.endswith(library))
        found = re.findall(
            r"^(\w+) (\w+) \w (.*::(?:INSTALLED|POOLS|REGISTRY))$", symbols, re.MULTILINE
        )
        self._places = {name: (begin + int(at, 16), int(size, 16)) for at, size, name in found}

    def read(self):
        with Path("/proc/self/mem").open("rb", buffering=0) as memory:
            return {name: _at(memory, place) for name, place in self._places.items()}


def _at(memory, place):
    memory.seek(place[0])
    return memory.read(place[1])


def _main():
    seen = []
    # Never freed: the C library keeps its address.
    handler = _Handler(lambda: seen.append(locks.read()))
    ctypes.CDLL(None)["__register_atfork"](handler, None, None, None)
    import cartwheel  # after the handler

    locks = _Locks(cartwheel._cartwheel.__file__)
    before = locks.read()
    pid = os.fork()
    are_free = locks.read() == before
    if pid == 0:
        os._exit(0 if are_free else 1)
    _, status = os.waitpid(pid, 0)
    (during,) = seen
    changed = [name for name in before if during[name] != before[name]]
    tell(
        held=sorted(name.rpartition("::")[2] for name in changed),
        free_in_parent=are_free,
        free_in_child=os.waitstatus_to_exitcode(status) == 0,
    )


if __name__ == "__main__":
    _main()
