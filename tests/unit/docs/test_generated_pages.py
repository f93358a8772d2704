"""docs/flags.md and docs/metrics.md are what the code says."""

import subprocess
import sys
from pathlib import Path


def test_the_generated_pages_are_current() -> None:
    script = Path(__file__).resolve().parents[3] / "tools" / "make_docs.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
