"""GPUs: drivers, libraries, device files."""

import os
from collections.abc import Iterator

from dynolog.cli.doctor.evidence import Evidence
from dynolog.cli.doctor.finding import Finding, note, ok, wrong
from dynolog.sources.gpu_presence import NVIDIA, vendors
from dynolog.sources.nvidia_version import driver_version, find_library, library_version

_AMD, _INTEL = "0x1002", "0x8086"
_DRIVERS = {_AMD: ("AMD", ("amdgpu",)), _INTEL: ("Intel", ("i915", "xe"))}
_CONTAINER = "in a container: the NVIDIA runtime (docker --gpus=all)"


def check_gpus(evidence: Evidence) -> Iterator[Finding]:
    """Each maker that PCI shows, and whether the daemon looks at all."""
    makers = vendors(evidence.host)
    if not makers:
        yield ok("gpu", "no GPU is in this machine")
        return
    if NVIDIA in makers:
        yield from _nvidia(evidence)
    for maker, (name, drivers) in _DRIVERS.items():
        if maker in makers:
            yield from _by_driver(evidence, name, drivers, is_note=maker == _INTEL)
    yield from _files(evidence)
    is_off = evidence.status is not None and (evidence.status.gpu is None or not evidence.status.gpu.enabled)
    if is_off and (NVIDIA in makers or _AMD in makers):
        yield note("gpu", "GPUs are here, and the daemon does not look at them", "start it with --enable_gpu_monitor")


def _nvidia(evidence: Evidence) -> Iterator[Finding]:
    host = evidence.host
    driver = driver_version(host)
    if driver is None:
        yield wrong(
            "gpu", "an NVIDIA GPU is here, and its kernel driver is not loaded", f"modprobe nvidia; {_CONTAINER}"
        )
        return
    nvml = find_library(host, "libnvidia-ml.so.1")
    if not nvml:
        yield wrong(
            "gpu",
            f"NVIDIA's driver {driver} is loaded, and libnvidia-ml.so.1 was found in no library directory: no GPU metrics by NVML",
            f"install the driver's user libraries of the same version (Debian: libnvidia-ml1); {_CONTAINER}",
        )
    elif driver and (version := library_version(nvml)) and version != driver:
        yield wrong(
            "gpu",
            f"NVIDIA's kernel driver is {driver} and its library {nvml} is {version}: every call fails until both are the same",
            "reboot (or unload and load the nvidia modules while nothing uses them)",
        )
    else:
        yield ok("gpu", f"NVIDIA driver {driver}, {nvml}")
    dcgm = find_library(host, "libdcgm.so")
    if not dcgm:
        yield note(
            "gpu",
            "libdcgm was not found: GPUs are read by NVML, which has no profiling counters before Hopper",
            "install datacenter-gpu-manager, if these are missed",
        )
    elif not evidence.survey.has_host_engine:
        yield note("gpu", f"{dcgm} is here and nv-hostengine does not run: the engine runs inside dynolog then")
    else:
        yield ok("gpu", f"{dcgm}, and nv-hostengine runs")


def _by_driver(evidence: Evidence, name: str, drivers: tuple[str, ...], *, is_note: bool) -> Iterator[Finding]:
    loaded = [driver for driver in drivers if evidence.host.list(f"sys/module/{driver}")]
    if loaded:
        yield ok("gpu", f"{name} GPU with the driver {loaded[0]}")
        return
    # A server's or a laptop's own graphics without a driver is no fault.
    say = note if is_note else wrong
    yield say("gpu", f"a GPU of {name} is here without its driver ({' or '.join(drivers)})", f"modprobe {drivers[-1]}")


def _files(evidence: Evidence) -> Iterator[Finding]:
    """Device files that the daemon's user may not open."""
    names = [f"dev/{name}" for name in evidence.host.list("dev") if name == "kfd" or name.startswith("nvidia")]
    names += [f"dev/dri/{name}" for name in evidence.host.list("dev/dri") if name.startswith("renderD")]
    closed = []
    for path in map(evidence.host.path, names):
        try:
            info = os.stat(path)
        except OSError:  # gone meanwhile
            continue
        if not os.path.isdir(path) and not evidence.rights.may(info, os.R_OK | os.W_OK):
            closed.append(path)
    if closed:
        yield wrong(
            "gpu",
            f"{evidence.who} (uid {evidence.rights.uid}) may not open {', '.join(closed)}",
            "add its user to the group of these files (usermod -aG video,render USER; ls -l shows which), then restart it",
        )
