"""Which role each function of the RPC needs: the one place where that stands."""

from collections.abc import Mapping

from dynolog.model.role import Role
from dynolog.rpc.messages import (
    DcgmProfPause,
    DcgmProfResume,
    FetchTrace,
    GetGpus,
    GetHostSamples,
    GetMetrics,
    GetStatus,
    GetTrace,
    GetVersion,
    ListMetrics,
    ListProcesses,
    Reload,
    Request,
    SetKinetOnDemandRequest,
    WaitTrace,
)

# Whose trainers may be traced and fetched is decided beside it, by Caller.may_act_for.
ROLES: Mapping[type, Role] = {
    GetStatus: Role.NONE,  # plain, or with the time; see needed
    GetVersion: Role.NONE,
    ListProcesses: Role.READ,
    GetTrace: Role.READ,
    WaitTrace: Role.READ,
    GetHostSamples: Role.READ,
    GetMetrics: Role.READ,
    ListMetrics: Role.READ,
    GetGpus: Role.READ,
    SetKinetOnDemandRequest: Role.TRACE,
    FetchTrace: Role.TRACE,
    DcgmProfPause: Role.TRACE,
    DcgmProfResume: Role.TRACE,
    Reload: Role.ADMIN,
}


def needed(request: Request) -> Role:
    """The role that a request needs."""
    if isinstance(request, GetStatus) and request.verbose:
        return Role.READ
    return ROLES[type(request)]
