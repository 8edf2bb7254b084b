"""Mounts that only the programs of a test see."""

import shutil
import subprocess

import pytest


@pytest.fixture
def mounted():
    """The start of a command line; its program sees the mounts that a line of shell makes."""

    def mounted(script):
        unshare = shutil.which("unshare")
        inside = [unshare, "-rm", "sh", "-c", f'{script} && exec "$@"', "sh"]
        if unshare is None or subprocess.run([*inside, "true"], check=False).returncode != 0:
            pytest.skip("this system does not allow private mounts")
        return inside

    return mounted
