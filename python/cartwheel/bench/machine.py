"""The machine and the versions of packages, which every result names."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import TYPE_CHECKING

import gymnasium as gym
import numpy as np

from cartwheel._cartwheel import VERSION, usable_cpus

if TYPE_CHECKING:
    from collections.abc import Mapping

PACKAGES = {"cartwheel": VERSION, "gymnasium": gym.__version__, "numpy": np.__version__}


def machine() -> dict[str, str | float]:
    """Returns cores, load, processor, system, and the versions of Python and packages."""
    facts: dict[str, str | float] = {
        "cores": usable_cpus(),
        "load": round(os.getloadavg()[0], 1),  # of the last minute
        "processor": _processor(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }
    return facts | PACKAGES


def machine_line(facts: Mapping[str, str | float] | None = None) -> str:
    """Returns these facts, by default the present ones, in one line."""
    facts = machine() if facts is None else facts
    load = f" (load {facts['load']})"
    packages = ", ".join(f"{package} {facts[package]}" for package in PACKAGES)
    return (
        f"machine: {facts['cores']} cores{load} of {facts['processor']}, {facts['system']}, "
        f"Python {facts['python']}, {packages}"
    )


def _processor() -> str:
    """Returns the model of the processor as Linux names it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "an unnamed processor"
