"""Build dist/dynolog-VERSION-MACHINE.pyz: everything in one file that any Python 3.11 to 3.14 runs. `make onefile`."""

import argparse
import hashlib
import os
import platform
import shutil
import stat
import zipfile
from pathlib import Path

from tools.build_packages import MACHINES, PACKAGING, ROOT, build_site, version

RUN = """import sys

sys.path.insert(0, __file__.rpartition("/")[0])
# The name under which the file was called: a link called dyno is dyno.
del sys.argv[0]

from dynolog.commands import main

sys.exit(main())
"""
# Any fixed time: the same contents make the same file.
_TIME = (1980, 1, 1, 0, 0, 0)


def build(machine: str, dist: Path) -> Path:
    """The file for one machine; its path."""
    site = ROOT / "build" / "onefile" / machine
    shutil.rmtree(site, ignore_errors=True)
    build_site(machine, site, ROOT / "build" / "wheels")
    (site / "run.py").write_text(RUN)
    files = sorted(path for path in site.rglob("*") if path.is_file())
    digest = hashlib.sha256()
    for path in files:
        digest.update(str(path.relative_to(site)).encode() + b"\0" + path.read_bytes())
    dist.mkdir(parents=True, exist_ok=True)
    target = dist / f"dynolog-{version()}-{machine}.pyz"
    with target.open("wb") as file:
        file.write(b"#!/usr/bin/env python3\n")
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            _add(archive, "BUILD", f"{version()}-{digest.hexdigest()[:16]}".encode())
            _add(archive, "__main__.py", (PACKAGING / "onefile" / "__main__.py").read_bytes())
            for path in files:
                _add(archive, str(path.relative_to(site)), path.read_bytes())
    target.chmod(target.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return target


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, _TIME)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    archive.writestr(entry, content)


def main() -> None:
    """Build what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--machine", action="append", choices=tuple(MACHINES.values()), help=f"({platform.machine()})")
    parser.add_argument("--dist", type=Path, default=ROOT / "dist")
    arguments = parser.parse_args()
    for machine in arguments.machine or [platform.machine()]:
        target = build(machine, arguments.dist)
        print(f"{os.path.relpath(target, ROOT)}: {target.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
