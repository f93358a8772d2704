"""Writing of the generated tree."""

from pathlib import Path


def write(root: Path, path: str, text: str) -> None:
    """Write a file that changes from step to step; the inode stays, as in procfs."""
    file = root / path
    if not file.parent.is_dir():
        file.parent.mkdir(parents=True)
    file.write_bytes(text.encode())


def write_once(root: Path, path: str, text: str) -> None:
    """Write a file that is the same at each step."""
    if not (root / path).exists():
        write(root, path, text)
