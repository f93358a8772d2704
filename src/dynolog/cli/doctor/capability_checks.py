"""Which capabilities the daemon lacks, and what each one would give."""

from collections.abc import Iterator

import msgspec

from dynolog.cli.doctor.evidence import Evidence
from dynolog.cli.doctor.finding import Finding, note, ok, wrong

_AS_ROOT = "systemctl enable --now dynolog (dynolog.service runs as root)"


class _Feature(msgspec.Struct, frozen=True):
    capabilities: tuple[str, ...]
    loss: str
    flag: str = ""  # who sets it has asked for the feature
    fits_user_unit: bool = False  # its sandbox allows the system calls that come with it


_FEATURES = (
    _Feature(
        ("CAP_SYS_PTRACE",),
        "other users' processes are seen from outside only: no rank, job or container of theirs, no traces fetched from containers",
        fits_user_unit=True,
    ),
    _Feature(
        ("CAP_SYS_ADMIN",),
        "processes in other network namespaces (containers) cannot be reached without a shared socket directory",
        "ipc_namespaces",
    ),
    _Feature(
        ("CAP_SYS_CHROOT", "CAP_SETUID", "CAP_SETGID"),
        "whether another user's process may write its trace cannot be looked at before it is asked for",
    ),
    _Feature(
        ("CAP_DAC_READ_SEARCH",),
        "traces that other users wrote cannot be fetched, RAPL energy not read",
        fits_user_unit=True,
    ),
)


def check_capabilities(evidence: Evidence) -> Iterator[Finding]:
    """One finding a feature; hardware counters have a check of their own."""
    rights = evidence.rights
    lacking = [feature for feature in _FEATURES if not all(map(rights.has, feature.capabilities))]
    if not lacking:
        yield ok("capabilities", f"{evidence.who} has all capabilities that it uses")
        return
    user = "root, but without all of its rights" if rights.uid == 0 else f"uid {rights.uid}, not root"
    yield note("capabilities", f"{evidence.who} runs as {user}; what that costs follows", _AS_ROOT)
    for feature in lacking:
        missing = [name for name in feature.capabilities if not rights.has(name)]
        asked = bool(evidence.daemon and feature.flag and evidence.daemon.is_on(feature.flag))
        text = f"without {', '.join(missing)}: {feature.loss}"
        remedy = f"{_in_unit(feature, missing, rights.uid)}; in a container {_options(missing)}"
        yield (
            wrong("capabilities", f"--{feature.flag} is set, but {text}", remedy)
            if asked
            else note("capabilities", text, remedy)
        )


def _in_unit(feature: _Feature, missing: list[str], uid: int) -> str:
    names = " ".join(missing)
    if uid == 0:
        return f"CapabilityBoundingSet={names} in its unit (systemctl edit dynolog)"
    if feature.fits_user_unit:
        return (
            f"CapabilityBoundingSet={names} and AmbientCapabilities={names} in its unit (systemctl edit dynolog-user)"
        )
    return _AS_ROOT


def _options(names: list[str]) -> str:
    return " ".join(f"--cap-add={name.removeprefix('CAP_')}" for name in names)
