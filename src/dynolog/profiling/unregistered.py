"""Why a live process that a request named has not registered, as far as its own environment shows it."""

import asyncio
from collections.abc import Callable

from dynolog.profiling.inspector import Facts
from dynolog.profiling.off_thread import call_off_thread
from dynolog.sources.process import ProcessFacts


class UnregisteredLook:
    """Looks at one process at a time, because reading its environment may hang: one that does costs one thread, and others no time."""

    def __init__(self, reader: Facts, own_net_namespace: int) -> None:
        self._reader = reader
        self._own_net_namespace = own_net_namespace
        self._looking = False

    async def explain(self, pid: int, may_see: Callable[[int], bool], timeout_s: float) -> str:
        """A sentence about `pid`, "" when nothing is known. `may_see` says whether the caller may be told of a process of that uid."""
        if self._looking:
            return ""
        self._looking = True
        try:
            facts = await asyncio.wait_for(call_off_thread(lambda: self._look(pid), discard=_forget), timeout_s)
        except (OSError, ValueError, TimeoutError):
            return ""
        except RuntimeError:  # no thread is to be had
            self._looking = False
            return ""
        return why_unregistered(facts, self._own_net_namespace) if may_see(facts.uid) else ""

    def _look(self, pid: int) -> ProcessFacts:
        try:
            return self._reader.facts(pid)
        finally:
            self._looking = False


def _forget(_: ProcessFacts) -> None:
    """It came too late for whoever asked."""


def why_unregistered(facts: ProcessFacts, own_net_namespace: int) -> str:
    """What keeps this process from registering. libkineto looks only whether KINETO_USE_DAEMON is set, so `0` is on as well."""
    if not facts.environment_is_known:
        return ""
    environment = facts.environment
    if "KINETO_USE_DAEMON" not in environment:
        return "KINETO_USE_DAEMON is not in the environment that it was started with"
    reasons = []
    if delay := environment.get("KINETO_DAEMON_INIT_DELAY_S"):
        reasons.append(f"KINETO_DAEMON_INIT_DELAY_S={delay} makes it wait so many seconds before it registers")
    if directory := environment.get("KINETO_IPC_SOCKET_DIR"):
        reasons.append(
            f"KINETO_IPC_SOCKET_DIR={directory} is where it looks for a daemon: this one must have the same --ipc_socket_dir"
        )
    elif own_net_namespace and facts.net_namespace not in (0, own_net_namespace):
        reasons.append(
            "it has a network namespace of its own, where a daemon of root listens only with --ipc_namespaces (or give both "
            "a KINETO_IPC_SOCKET_DIR)"
        )
    return (
        " and ".join(reasons) or "KINETO_USE_DAEMON is set, so it registers once it has imported PyTorch 2.0 or later"
    )
