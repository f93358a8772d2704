"""The checks of `dyno doctor`, in the order in which their findings are shown."""

from collections.abc import Callable, Iterable, Sequence

from dynolog.cli.doctor import (
    capability_checks,
    daemon_checks,
    gpu_checks,
    ipc_checks,
    kernel_checks,
    place_checks,
    service_checks,
    start_checks,
    trainer_checks,
)
from dynolog.cli.doctor.evidence import Evidence
from dynolog.cli.doctor.finding import Finding, Level, note

Check = Callable[[Evidence], Iterable[Finding]]

# What the daemon tells over the RPC, from any machine.
BY_RPC: Sequence[Check] = (
    daemon_checks.check_answer,
    ipc_checks.check_ipc,
    daemon_checks.check_collectors,
    daemon_checks.check_exporters,
    daemon_checks.check_missing,
    daemon_checks.check_clock_offset,
)
# What this machine shows.
BY_MACHINE: Sequence[Check] = (
    service_checks.check_port,
    service_checks.check_default_socket,
    start_checks.check_unit,
    ipc_checks.check_name,
    ipc_checks.check_socket_directory,
    trainer_checks.check_trainers,
    kernel_checks.check_queue,
    kernel_checks.check_hidden_processes,
    kernel_checks.check_perf,
    kernel_checks.check_ptrace_scope,
    kernel_checks.check_user_namespaces,
    kernel_checks.check_open_files,
    kernel_checks.check_pressure,
    kernel_checks.check_cgroups,
    capability_checks.check_capabilities,
    gpu_checks.check_gpus,
    place_checks.check_places,
    start_checks.check_service,
    start_checks.check_flags,
    service_checks.check_clock,
)
_ORDER = (Level.WRONG, Level.NOTE, Level.OK)


def examine(evidence: Evidence) -> list[Finding]:
    """All findings, the worst first, each level in the order of the checks."""
    checks = [*BY_RPC, *(BY_MACHINE if evidence.is_local else ())]
    found = [finding for check in checks for finding in check(evidence)]
    if not evidence.is_local:
        found.append(
            note(
                "machine",
                "this is what the daemon tells; the rest can be seen on its machine only",
                "run `dyno doctor` there",
            )
        )
    return sorted(dict.fromkeys(found), key=lambda finding: _ORDER.index(finding.level))
