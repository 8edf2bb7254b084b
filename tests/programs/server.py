"""Forks programs from a process that has imported everything that they need."""

import json
import os
import socket
import sys


def serve(descriptor):
    """Forks a process for each request, and reports its number and its exit code.

    Ends with the other end of the socket.

    Returns in the forked process: the words of its program.
    """
    requests = socket.socket(fileno=descriptor)
    while True:
        message, outputs, _, _ = socket.recv_fds(requests, 1 << 20, 2)
        if not message:
            requests.close()
            sys.exit()
        pid = os.fork()
        if pid == 0:
            requests.close()
            return _begin(json.loads(message), outputs)
        for output in outputs:
            os.close(output)
        requests.send(str(pid).encode())
        _, status = os.waitpid(pid, 0)
        requests.send(str(os.waitstatus_to_exitcode(status)).encode())


def _begin(request, outputs):
    """Makes this process what a process of its own would be."""
    os.setsid()
    for output, number in zip(outputs, (1, 2), strict=True):
        os.dup2(output, number)
        os.close(output)
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv[1:] = request["words"]
    return request["words"]
