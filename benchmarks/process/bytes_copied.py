"""Counts how often the bytes of an 84×84×4 uint8 observation are copied on their way.

A small library in C counts every call of libc's ``memcpy`` and ``memmove``, in the caller and in
the workers. This script compiles it with ``cc`` and loads it before libc (``LD_PRELOAD``). Copies
of all sizes count, so a copy in pieces is counted too. The script prints the number of bytes copied
per byte of observation, over many steps: 1 in the workers (the environment's array to the slab) and
0 in the caller mean that nothing is copied twice. Gymnasium's ``AsyncVectorEnv`` is measured too.

Limits: copies that do not call these two functions are not counted. These are copies by the kernel
(a pipe) and copies that a compiler inlined, for which it must know the size. The last line of each
table shows that NumPy's copies are counted: its loop copies every batch once more. Linux only.
"""

from __future__ import annotations

import argparse
import functools
import mmap
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, Any

from gymnasium.vector import AsyncVectorEnv

import cartwheel
from benchmarks.harness.workloads import IMAGE, Idle
from cartwheel.bench.machine import machine_line

if TYPE_CHECKING:
    from collections.abc import Callable

COUNTER = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static uint64_t *counts; /* bytes: of the process BYTES_COPIED_PID, of all others */
static pid_t caller;

__attribute__((constructor)) static void open_counts(void) {
    const char *path = getenv("BYTES_COPIED_FILE"), *pid = getenv("BYTES_COPIED_PID");
    int file = path && pid ? open(path, O_RDWR) : -1;
    if (file < 0) return;
    void *shared = mmap(NULL, 16, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    caller = atoi(pid);
    if (shared != MAP_FAILED) counts = shared;
}

void *memmove(void *to, const void *from, size_t size) {
    unsigned char *out = to;
    const unsigned char *in = from;
    if (counts) __atomic_fetch_add(&counts[getpid() != caller], size, __ATOMIC_RELAXED);
    if (out <= in || out >= in + size) while (size--) *out++ = *in++;
    else while (size--) out[size] = in[size];
    return to;
}

void *memcpy(void *restrict to, const void *restrict from, size_t size) {
    return memmove(to, from, size);
}
"""
STEPS = 100


def restart_counting() -> None:
    """Compiles the library and starts this script again with it, in the same process."""
    compiler = shutil.which("cc")
    if compiler is None:
        sys.exit("skipped: there is no C compiler `cc`")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="bytes-copied-"))
    source, library = folder / "counter.c", folder / "counter.so"
    source.write_text(COUNTER)
    # The last option keeps the loops from becoming calls of memcpy.
    flags = ["-O2", "-shared", "-fPIC", "-fno-builtin", "-fno-tree-loop-distribute-patterns"]
    subprocess.run([compiler, *flags, "-o", library, source], check=True)
    counts = folder / "counts"
    counts.write_bytes(bytes(16))
    ours = {
        "LD_PRELOAD": str(library),
        "BYTES_COPIED_FILE": str(counts),
        "BYTES_COPIED_PID": str(os.getpid()),
    }
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, **ours})


def copied(counts: mmap.mmap, envs: Any, steps: int, keep: Callable[[Any], Any]) -> list[float]:
    """Bytes copied per byte of observation: in the caller, in all workers together."""
    try:
        observations, _ = envs.reset(seed=0)
        actions = envs.action_space.sample()
        for _ in range(10):
            keep(envs.step(actions)[0])
        before = struct.unpack("QQ", counts[:16])
        for _ in range(steps):
            keep(envs.step(actions)[0])
        after = struct.unpack("QQ", counts[:16])
    finally:
        envs.close()
    whole = observations.nbytes * steps
    return [(late - early) / whole for early, late in zip(before, after, strict=True)]


def main() -> None:
    """Prints the table."""
    if "BYTES_COPIED_FILE" not in os.environ:
        restart_counting()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--num-envs", type=int, nargs="+", default=[32, 256])
    parser.add_argument("--steps", type=int, default=STEPS)
    arguments = parser.parse_args()
    file = pathlib.Path(os.environ["BYTES_COPIED_FILE"])
    with file.open("r+b") as opened:
        counts = mmap.mmap(opened.fileno(), 16)
    shutil.rmtree(file.parent)  # the mapped file and the loaded library stay usable

    print(machine_line())
    print("bytes copied per byte of observation\n")
    print(f"{'envs':>4}  {'':40}  {'workers':>8}  {'caller':>8}")
    for num_envs in arguments.num_envs:
        env_fns = [functools.partial(Idle, IMAGE)] * num_envs

        def ours(env_fns: list[Any] = env_fns) -> Any:
            return cartwheel.VectorEnv(env_fns, executor="process")

        def theirs(env_fns: list[Any] = env_fns) -> Any:
            return AsyncVectorEnv(env_fns)

        cases: list[tuple[str, Callable[[], Any], Callable[[Any], Any]]] = [
            ("cartwheel process", ours, id),
            ("gymnasium async", theirs, id),
            ("cartwheel process, and one ndarray.copy", ours, lambda batch: batch.copy()),
        ]
        for name, make, keep in cases:
            caller, workers = copied(counts, make(), arguments.steps, keep)
            print(f"{num_envs:4}  {name:40}  {workers:8.3f}  {caller:8.3f}", flush=True)


if __name__ == "__main__":
    main()
