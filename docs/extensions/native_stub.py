"""Imports cartwheel without its native module: from the sources, and the stub of that module.

So the site needs no build. The stub has the signatures and docstrings of every native class; none
of its functions does anything.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]
NAME = "cartwheel._cartwheel"


def module_of(stub: Path) -> ModuleType:
    """The module that a stub declares. Its constants have no values, and its lists are empty."""
    module = ModuleType(NAME)
    module.__file__ = str(stub)
    source = stub.read_text(encoding="utf-8")
    # Names may be used above their definitions: this module's `annotations` hold there, too.
    exec(compile(source, str(stub), "exec"), vars(module))
    constants = {name: None for name in module.__annotations__ if not hasattr(module, name)}
    # Called while cartwheel is imported.
    vars(module).update(constants, native_envs=list, usable_cpus=lambda: 1)
    return module


def install() -> None:
    """Makes `import cartwheel` find the sources, and the stub where they import native code."""
    sys.path.insert(0, str(ROOT / "python"))
    sys.modules[NAME] = module_of(ROOT / "python/cartwheel/_cartwheel.pyi")
