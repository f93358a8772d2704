"""Where a manifest goes: beside the traces, and never over that of another trace."""

import os

from dynolog.fleet.manifest import Manifest, read_manifest
from dynolog.fleet.targets import HostsError

NAME = "manifest.json"


def manifest_path(manifest: Manifest, wanted: str, fetch_directory: str, trace_directory: str) -> str:
    """The path that was asked for; else in the directory that traces are fetched into, or written into if that is here, or here.

    Raises HostsError when a directory to fetch into cannot be made.
    """
    if wanted:
        return wanted
    directory = "."
    if fetch_directory:
        try:
            os.makedirs(fetch_directory, exist_ok=True)
        except OSError as error:
            raise HostsError(f"--fetch {fetch_directory}: {error.strerror}") from error
        directory = fetch_directory
    elif os.path.isdir(trace_directory) and os.access(trace_directory, os.W_OK | os.X_OK):
        directory = trace_directory
    path = os.path.join(directory, NAME)
    if not os.path.lexists(path) or _is_of(path, manifest.group_id):
        return path
    return os.path.join(directory, f"manifest-{manifest.group_id}.json")


def _is_of(path: str, group_id: str) -> bool:
    try:
        return read_manifest(path).group_id == group_id
    except HostsError:
        return False
