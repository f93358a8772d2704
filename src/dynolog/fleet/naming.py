"""Names for the traces of many hosts, such that no two processes write the same file on a shared file system."""

import re

import msgspec

from dynolog.fleet.targets import HostsError

DEFAULT_TEMPLATE = "{dir}/{job}/{host}_rank{rank}_{pid}.json"
WITH_STEM = "{dir}/{job}/{stem}_{host}_rank{rank}_{pid}.json"
FIELDS = ("dir", "stem", "job", "host", "rank", "pid")
_FIELD = re.compile(r"\{([^{}]*)\}")
_UNSAFE = re.compile(r"[^0-9A-Za-z._-]")
_END = "_{pid}.json"


class NameTemplate(msgspec.Struct, frozen=True, kw_only=True):
    """Where each process writes. `directory` and `stem` come from --log-file: `/d/` or `/d` is a directory, `/d/t.json` has a stem.

    What is not known is left out with its separator: `/{job}`, `_rank{rank}`. libkineto itself puts `_<pid>` before `.json`.
    """

    directory: str
    stem: str
    template: str

    def log_file(self, host: str, *, job: str = "", rank: int | None = None, pid: int | None = None) -> str:
        """The ACTIVITIES_LOG_FILE of one process, or with no more than `host` that of a host whose processes are not known."""
        text = self.template
        if text.endswith(_END):
            text = text.removesuffix(_END) + ".json"
        if not job:
            text = text.replace("/{job}", "").replace("{job}_", "")
        if rank is None:
            text = text.replace("_rank{rank}", "").replace("_{rank}", "")
        if pid is None:
            text = text.replace("_{pid}", "")
        values = {"job": job or "none", "host": host, "stem": self.stem}
        values |= {"rank": "none" if rank is None else str(rank), "pid": "none" if pid is None else str(pid)}
        safe = {name: _safe(value) for name, value in values.items()} | {"dir": self.directory}
        return _FIELD.sub(lambda match: safe[match[1]], text)


def name_template(log_file: str, template: str = "") -> NameTemplate:
    """Raises HostsError for a template that cannot be used."""
    directory, _, name = log_file.rpartition("/")
    stem = name.removesuffix(".json")
    if not name.endswith(".json"):
        directory, stem = log_file.rstrip("/"), ""
    chosen = template or (WITH_STEM if stem else DEFAULT_TEMPLATE)
    for field in _FIELD.findall(chosen):
        if field not in FIELDS:
            raise HostsError(f"--name-template has no field {{{field}}}: there are {', '.join(FIELDS)}")
    if "{" in (bare := _FIELD.sub("", chosen)) or "}" in bare:
        raise HostsError("--name-template has a brace without its other")
    if "{host}" not in chosen:
        raise HostsError(
            "--name-template needs {host}: processes of two hosts may have the same pid and write the same file"
        )
    if not chosen.endswith(".json"):
        raise HostsError("--name-template must end in .json: libkineto puts the pid there")
    if not chosen.startswith(("/", "{dir}/")):
        raise HostsError(
            "--name-template must begin with {dir}/ or be absolute: trainers have another working directory"
        )
    if not chosen.isprintable():
        raise HostsError("--name-template holds a character that cannot be printed")
    return NameTemplate(directory=directory, stem=stem, template=chosen)


def _safe(value: str) -> str:
    """Without what a path, libkineto's config or its rule for the pid (the first `.json`) would take for something else."""
    return _UNSAFE.sub("_", value).replace(".json", "_json").lstrip(".") or "_"


def with_host_pid(log_file: str, host_pid: int) -> str:
    """For two processes of one host that know themselves by the same pid, in containers."""
    return f"{log_file.removesuffix('.json')}_h{host_pid}.json"
