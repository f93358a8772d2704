"""Who among the trainers only starts others, who works, and who helps one that works (loads its data)."""

from collections.abc import Callable, Sequence

import msgspec

from dynolog.profiling.gpu_holdings import LISTED
from dynolog.profiling.trainer import Trainer


class Roles(msgspec.Struct, frozen=True):
    """Serials of trainers. `guessed` are the launchers of which only the family is known, not what they run: a new look may clear them."""

    launchers: frozenset[int] = frozenset()
    guessed: frozenset[int] = frozenset()
    helpers: frozenset[int] = frozenset()


def roles_of(trainers: Sequence[Trainer], gpu_strength: Callable[[Trainer], int]) -> Roles:
    """The role of each. A launcher runs torchrun or the like, or is the ancestor of another one here and does no work of its own.

    An ancestor works when the driver lists it on a GPU, or it alone holds one, when the other one inherited its rank, or when it uses the
    CPU as no launcher does: then the other one is its helper.
    """
    by_host_pid = {trainer.host_pid: trainer for trainer in trainers if trainer.verified}
    known = {trainer.serial for trainer in trainers if trainer.details and trainer.details.runs_launcher}
    guessed: set[int] = set()
    working_above: list[tuple[int, int]] = []
    for trainer in trainers:
        if trainer.details is None:
            continue
        for pid in trainer.details.host_ancestors:
            ancestor = by_host_pid.get(pid)
            if ancestor is None:
                continue
            if _works(ancestor, trainer, gpu_strength):
                working_above.append((trainer.serial, ancestor.serial))
            else:
                guessed.add(ancestor.serial)
    launchers = known | guessed
    helpers = frozenset(helper for helper, worker in working_above if worker not in launchers)
    return Roles(frozenset(launchers), frozenset(guessed - known), helpers)


def _works(ancestor: Trainer, other: Trainer, gpu_strength: Callable[[Trainer], int]) -> bool:
    above, below = ancestor.details, other.details
    if above is None or below is None or above.runs_launcher:
        return False
    same_rank = above.rank is not None and above.rank == below.rank
    strength = gpu_strength(ancestor)
    return same_rank or ancestor.computes or strength == LISTED or strength > gpu_strength(other)
