"""Flags that were set and do nothing, because what they belong to is off."""

from dynolog.collectors.registry import COLLECTORS
from dynolog.exporters.log import LOG_FORMAT
from dynolog.exporters.registry import EXPORTERS, SHARED_FLAGS
from dynolog.exporters.selection.rules import FLAG as RULES_FLAG
from dynolog.ipc.listener import IPC_NAME
from dynolog.model.flag import Settings

_IPC = "enable_ipc_monitor"
_DEVICES = ("enable_gpu_monitor", "enable_tpu_monitor")
_PODS = "enable_pod_resources_attribution"
_BY_HAND = {
    "ipc_socket_dir": (_IPC,),
    "ipc_namespaces": (_IPC,),
    "ipc_fabric_name": (_IPC,),
    "env_attribution_mappings_file": _DEVICES,
    _PODS: _DEVICES,
    "pod_resources_socket": (_PODS,),
    "pod_resources_gpu_resource": (_PODS,),
    "pod_resources_tpu_resource": (_PODS,),
}
# Of several exporters, and some of the daemon itself.
_OF_NOBODY = SHARED_FLAGS | {RULES_FLAG, LOG_FORMAT.name}


def idle_flags(settings: Settings) -> tuple[str, ...]:
    """A sentence for each switch that is off while flags were set that do nothing without it."""
    idle: dict[tuple[str, ...], list[str]] = {}
    for name, switches in _switches_of().items():
        if settings.value(name) != settings.flags[name].default and not any(map(settings.on, switches)):
            idle.setdefault(switches, []).append(f"--{name}")
    said = [
        f"{_joined(names, 'and')} {'has' if len(names) == 1 else 'have'} no effect without "
        + _joined([f"--{switch}" for switch in switches], "or")
        for switches, names in idle.items()
    ]
    if fabric := _unreachable_name(settings):
        said.append(fabric)
    return tuple(said)


def _switches_of() -> dict[str, tuple[str, ...]]:
    """The flags that need a switch, each with those of which one is enough."""
    found: dict[str, tuple[str, ...]] = dict(_BY_HAND)
    for collector in COLLECTORS:
        for name in dict.fromkeys((collector.interval_flag, *(flag.name for flag in collector.flags))):
            found[name] = (*found.get(name, ()), collector.enable_flag)
    for exporter in EXPORTERS:
        switch, *others = (flag.name for flag in exporter.flags)
        for name in others:
            if name not in _OF_NOBODY:
                found[name] = (*found.get(name, ()), switch)
    return found


def _unreachable_name(settings: Settings) -> str:
    name = settings.text("ipc_fabric_name")
    if name == IPC_NAME or settings.text("ipc_socket_dir") or not settings.on(_IPC):
        return ""
    return (
        f"--ipc_fabric_name={name}: PyTorch looks for {IPC_NAME}, so no process can register: leave it out, or "
        "add --ipc_socket_dir"
    )


def _joined(names: list[str], last: str) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {last} {names[-1]}"
