"""What dynolog.pyz runs: unpacks itself once for this user, and goes on as the command that was meant.

Compiled modules cannot be loaded out of an archive, and a program that runs from an archive keeps its directory in memory; so it is
unpacked to a directory named after its contents, and the interpreter starts again there (20 ms).
"""

import os
import shutil
import stat
import sys
import tempfile
import zipfile

_NEEDS = (3, 11)


def cache_directory() -> str:
    """Where to unpack: $DYNOLOG_CACHE_DIR, else the user's cache directory, for root the system's."""
    if chosen := os.environ.get("DYNOLOG_CACHE_DIR"):
        return chosen
    if os.geteuid() == 0:
        return "/var/cache/dynolog"
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "dynolog")


def unpacked(archive: str) -> str:
    """The directory with the contents of this archive, made at the first call. Others may not have put anything there."""
    with zipfile.ZipFile(archive) as opened:
        target = os.path.join(cache_directory(), opened.read("BUILD").decode().strip())
        if not os.path.isdir(target):
            os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
            _check_owner(os.path.dirname(target))
            half = tempfile.mkdtemp(prefix=".unpacking-", dir=os.path.dirname(target))
            opened.extractall(half)
            try:
                os.rename(half, target)
            except OSError:  # another process was faster
                shutil.rmtree(half)
    _check_owner(os.path.dirname(target))
    _check_owner(target)
    return target


def _check_owner(directory: str) -> None:
    facts = os.stat(directory)
    if facts.st_uid != os.geteuid() or stat.S_IMODE(facts.st_mode) & 0o022:
        sys.exit(f"dynolog: {directory} may be written by others: name another directory in DYNOLOG_CACHE_DIR")


def main() -> None:
    """Become the command."""
    if sys.version_info < _NEEDS:
        sys.exit(f"dynolog needs Python 3.11 or newer, this is {sys.version.split()[0]}: run it with python3.11")
    try:
        directory = unpacked(sys.argv[0])
    except OSError as error:
        sys.exit(f"dynolog: cannot unpack itself: {error}: name a directory with 60 MB in DYNOLOG_CACHE_DIR")
    program = [sys.executable, "-E", "-s", "-P", os.path.join(directory, "run.py")]
    os.execv(program[0], [*program, os.path.basename(sys.argv[0]), *sys.argv[1:]])  # noqa: S606 - no shell is wanted


main()
