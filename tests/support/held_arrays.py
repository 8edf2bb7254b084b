"""Ways to hold an array, and changes of an array that a program may make: for tests of reuse."""

import ctypes
import pickle
import sysconfig
import threading

import numpy as np
import pytest

#: Counts of references say who has an array only where one thread at a time changes them.
NEEDS_THE_GIL = pytest.mark.skipif(
    bool(sysconfig.get_config_var("Py_GIL_DISABLED")), reason="nothing is reused without the GIL"
)
#: The maximum number of batches whose arrays a pool keeps.
KEPT = 3


def leaves(value):
    """The arrays of a nested value, in an order that depends on its form alone."""
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, tuple):
        return [leaf for member in value for leaf in leaves(member)]
    return [value] if isinstance(value, np.ndarray) else []


def closed_over(array):
    def read():
        return array

    return read


def generator(array):
    yield
    yield array


def started(array):
    running = generator(array)
    next(running)
    return running


def raised(array):
    def fail(_kept):
        raise ValueError

    try:
        fail(array)
    except ValueError as error:
        return error


def of_frame(error):
    return error.__traceback__.tb_next.tb_frame.f_locals["_kept"]


def in_a_thread(array):
    found, event = [], threading.Event()

    def wait(kept):
        assert event.wait(60)
        found.append(kept.copy())

    thread = threading.Thread(target=wait, args=(array,))
    thread.start()

    def read():
        event.set()
        thread.join(60)
        return found.pop()

    return read


def bytes_of(kept):
    return np.frombuffer(kept, np.uint8)


class Interface:
    """An array for NumPy that has nothing of the first but its memory."""

    def __init__(self, struct):
        self.__array_struct__ = struct


#: Ways to have an array or its memory, and what reads it.
HOLDERS = {
    "the array": (lambda array: array, np.asarray),
    "a dictionary": (lambda array: {"deep": [(array,)]}, lambda kept: kept["deep"][0][0]),
    "a slice": (lambda array: array[1:], np.asarray),
    "one element's view": (lambda array: array[-1:, ...], np.asarray),
    "transposed": (lambda array: array.T, np.asarray),
    "a view of bytes": (lambda array: array.view(np.uint8), np.asarray),
    "a view of a view": (lambda array: array[::-1][1:], np.asarray),
    "a strided view": (np.lib.stride_tricks.as_strided, np.asarray),
    "broadcast": (lambda array: np.broadcast_to(array, (2, *array.shape)), np.asarray),
    "an iterator": (lambda array: array.flat, np.array),
    "memoryview": (memoryview, np.asarray),
    "its part": (lambda array: memoryview(array)[1:], np.asarray),
    "bytes of ctypes": (lambda array: (ctypes.c_char * array.nbytes).from_buffer(array), bytes_of),
    "a buffer of pickle": (pickle.PickleBuffer, bytes_of),
    "DLPack": (np.from_dlpack, np.asarray),
    "an interface": (lambda array: Interface(array.__array_struct__), np.asarray),
    "a closure": (closed_over, lambda read: read()),
    "a generator": (started, next),
    "a frame": (raised, of_frame),
    "a thread": (in_a_thread, lambda read: read()),
}


#: Changes that a program may make to an array.
CHANGES = {
    "shape": lambda array: setattr(array, "shape", (1, *array.shape)),
    "dtype": lambda array: setattr(array, "dtype", f"V{array.itemsize}"),
    "read-only": lambda array: array.setflags(write=False),
    "unaligned": lambda array: array.setflags(align=False),
    "elements": lambda array: array.view(np.uint8).fill(255),
}


def assert_held(kept):
    for held, expected in kept:
        assert np.array_equal(held, expected)
