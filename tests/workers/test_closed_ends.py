"""The ends of channels that are closed, and descriptors that are none."""

import os
import socket
import subprocess
import sys
from textwrap import dedent

import pytest

from cartwheel._cartwheel import Channel, Descriptor
from tests.support.threads import in_thread

#: Sends to an end that is closed, in a program in which SIGPIPE ends the process.
SENDING = dedent("""
    import os, signal, socket
    from cartwheel._cartwheel import Channel, Descriptor
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    null = Descriptor(os.open(os.devnull, os.O_RDONLY))
    for message in (b"x", b"x" * 10_000_000, (b"x", [null])):
        end, other = socket.socketpair()
        channel = Channel(Descriptor(end.detach()), os.getpid())
        other.close()
        channel.post(message)
        try:
            channel.receive_bytes()
        except EOFError:
            print("told")
""")


def test_sending_to_an_end_that_is_closed_raises_and_ends_no_program():
    ended = subprocess.run([sys.executable, "-c", SENDING], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout.split()) == (0, ["told"] * 3), ended.stderr


def test_the_other_end_learns_of_a_close_although_a_fork_has_a_copy_of_the_end():
    end, other = socket.socketpair()
    copy = Descriptor(os.dup(end.fileno()))
    channel = Channel(Descriptor(end.detach()), os.getpid())
    with other:
        channel.post(b"x")
        channel.close()
        received = in_thread(lambda: list(iter(lambda: other.recv(1 << 16), b"")))()
    assert b"".join(received).endswith(b"x")
    del copy


@pytest.mark.parametrize("number", [-1, -2, -(2**31)])
def test_a_negative_number_is_not_a_descriptor(number):
    with pytest.raises(ValueError, match=f"a descriptor is not negative, got {number}"):
        Descriptor(number)


def test_a_descriptor_is_closed_with_its_object():
    end, other = socket.socketpair()
    with other:
        descriptor = Descriptor(end.detach())
        number = descriptor.fileno()
        assert number >= 0
        del descriptor
        assert other.recv(1) == b""
