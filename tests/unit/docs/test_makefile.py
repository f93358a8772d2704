"""Plain `make` starts nothing: it says what there is."""

import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_plain_make_lists_every_target() -> None:
    (names,) = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    # These tests may be run by make, which tells those below it that they are.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(["make"], cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    listed = [word for line in done.stdout.splitlines()[1:-1] for word in line[4:18].split()]
    assert sorted(listed) == sorted(set(names.split()) - {"help"})
