"""Forbids system calls to this process and its children, as containers do, or as an old kernel.

A filter is a small program over the number and the arguments of each call (``seccomp(2)``,
``linux/filter.h``, ``linux/seccomp.h``).
"""

import ctypes
import os
import platform
import struct

#: Numbers of system calls on the architectures of the tests.
NUMBERS = {
    "x86_64": {"futex": 202, "memfd_create": 319, "pidfd_open": 434},
    "aarch64": {"futex": 98, "memfd_create": 279, "pidfd_open": 434},
}
#: The operations of a futex that processes share; the C library uses other ones.
SHARED_WAIT, SHARED_WAKE = 0, 1

_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS, _MODE_FILTER = 22, 38, 2
#: Instructions: load a word of the description of the call, jump if it is equal, return.
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
#: Where the number of the call and its second argument are.
_NUMBER, _SECOND = 0, 24
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def forbid(names, error):
    """Makes these system calls fail with the number ``error`` from now on."""
    fail = (_RETURN, 0, 0, _FAIL | error)
    instructions = [(_LOAD, 0, 0, _NUMBER)]
    for name in names:
        number = NUMBERS[platform.machine()][name]
        if name == "futex":
            body = [(_LOAD, 0, 0, _SECOND)]
            for operation in (SHARED_WAIT, SHARED_WAKE):
                body += [(_JUMP_IF_EQUAL, 0, 1, operation), fail]
            body.append((_RETURN, 0, 0, _ALLOW))
        else:
            body = [fail]
        instructions += [(_JUMP_IF_EQUAL, 0, len(body), number), *body]
    instructions.append((_RETURN, 0, 0, _ALLOW))
    code = b"".join(struct.pack("HBBI", *instruction) for instruction in instructions)
    program = _Program(len(instructions), code)
    library = ctypes.CDLL(None, use_errno=True)
    calls = (
        (_PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), ctypes.c_ulong(0)),
        (_PR_SET_SECCOMP, ctypes.c_ulong(_MODE_FILTER), ctypes.byref(program)),
    )
    for option, value, more in calls:
        if library.prctl(option, value, more, ctypes.c_ulong(0), ctypes.c_ulong(0)) != 0:
            number = ctypes.get_errno()
            raise OSError(number, f"prctl: {os.strerror(number)}")
