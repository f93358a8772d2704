"""A process that gave up its rights has none, and gets none back."""

import os
import subprocess
import sys

import pytest

_SCRIPT = """
import os
from dynolog.sources.own_rights import give_up_capabilities
give_up_capabilities()
print(open("/proc/self/status").read(), flush=True)
os.execv("/bin/cat", ["cat", "/proc/self/status"])
"""


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, which has capabilities to give up")
def test_root_keeps_no_capability_not_even_by_running_a_program() -> None:
    said = subprocess.run([sys.executable, "-c", _SCRIPT], capture_output=True, text=True, check=True).stdout
    assert said.count("CapEff:\t0000000000000000") == 2
    assert said.count("CapPrm:\t0000000000000000") == 2
    assert said.count("Uid:\t0\t") == 2
