"""Which environment variables become which labels: the default, or the lines of a CSV file."""

import csv
import re
from collections.abc import Mapping

from dynolog.model.errors import FlagError

FLAG = "env_attribution_mappings_file"
DEFAULT_MAP = {
    "SLURM_JOB_ID": "job_id",
    "USER": "username",
    "SLURM_JOB_ACCOUNT": "slurm_account",
    "SLURM_JOB_PARTITION": "slurm_partition",
}
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
# Labels that say which device a record is about: an environment must not be able to speak for another device.
# Nor for a part of it (`reason` of throttling, `link`, `xid`) or another host.
_TAKEN = frozenset(
    (
        *("device", "gpu", "gpu_uuid", "gpu_name", "minor_id", "gpu_instance_id", "compute_instance_id"),
        *("reason", "link", "xid", "hostname", "host_name"),
    )
)
_MOST_LINES = 256
_MOST_WRONG = 10


def read_environment_map(path: str) -> Mapping[str, str]:
    """Labels by variable; the default without a file. Raises FlagError with each bad line's number."""
    if not path:
        return DEFAULT_MAP
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return parse_environment_map(file.read(), path)
    except OSError as error:
        raise FlagError(f"--{FLAG}={path} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise FlagError(f"--{FLAG}={path} is not UTF-8 text") from error


def parse_environment_map(text: str, path: str) -> dict[str, str]:
    """The map in a file's text. Empty lines, and lines that begin with #, say nothing. Raises FlagError."""
    found: dict[str, str] = {}
    wrong: list[str] = []
    lines = [line.strip().removeprefix("\ufeff") for line in text.splitlines()]
    for number, line in enumerate(lines, 1):
        if not line or line.startswith("#"):
            continue
        try:
            fields = [field.strip() for field in next(csv.reader([line]), [])]
        except csv.Error as error:  # quotes, or a field of more than 128 kB
            wrong.append(f"line {number}: {error}")
            continue
        if problem := _problem(fields, found):
            wrong.append(f"line {number}: {problem}")
        else:
            found[fields[0]] = fields[1]
    if len(found) > _MOST_LINES:
        wrong.append(f"{len(found)} variables are too many: at most {_MOST_LINES}")
    if not found and not wrong:
        wrong.append("it maps nothing")
    if len(wrong) > _MOST_WRONG:
        wrong[_MOST_WRONG:] = [f"and {len(wrong) - _MOST_WRONG} more"]
    if wrong:
        raise FlagError(f"--{FLAG}={path}: " + "; ".join(wrong))
    return found


def _problem(fields: list[str], found: Mapping[str, str]) -> str:
    if len(fields) != 2:
        return f"{len(fields)} fields: it must be ENV,label"
    variable, label = fields
    if not _VARIABLE.fullmatch(variable):
        return f"{variable[:80]!r} is no name of an environment variable"
    if not _LABEL.fullmatch(label):
        return f"{label[:80]!r} is no label: letters, digits and _ only"
    if label in _TAKEN or label.startswith("__"):
        return f"the label {label} is taken"
    twice = variable if variable in found else label if label in found.values() else ""
    return f"{twice} stands there twice" if twice else ""
