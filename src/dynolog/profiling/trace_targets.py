"""Who is traced, with what, and into which files; and what a person should be warned of."""

from collections import Counter

import msgspec

from dynolog.profiling.kineto_config import KinetoConfig
from dynolog.profiling.trainer import Trainer


class Targets(msgspec.Struct, frozen=True):
    """Who is traced, with which config, and into which file each (by serial)."""

    trainers: list[Trainer]
    configs: dict[int, KinetoConfig]
    paths: dict[int, str]


def warnings_of(targets: Targets, config: KinetoConfig, daemon_uid: int) -> list[str]:
    """What may go wrong with traces that were asked for, and what to do about it."""
    said = []
    chosen = targets.trainers
    unverified = sum(not trainer.verified for trainer in chosen)
    if unverified:
        said.append(
            f"the pids of {unverified} trainers are only what they say themselves, because the daemon cannot see their pid namespace: "
            "their files cannot be followed; run the daemon in the host's pid namespace"
        )
    paths = Counter(targets.paths[trainer.serial] for trainer in chosen if trainer.verified)
    shared = sorted(path for path, trainers in paths.items() if trainers > 1)
    if shared and not config.one_file_for_all:
        said.append(
            f"several containers write {', '.join(shared[:3])}: if they share that directory, the last one wins"
        )
    users = {trainer.uid for trainer in chosen}
    if daemon_uid != 0 and users - {daemon_uid}:
        said.append(
            f"the daemon runs as uid {daemon_uid}: files of other users' trainers are written, but cannot be followed from here"
        )
    jobs = {trainer.job.text for trainer in chosen}
    if len(users) > 1 and "" not in jobs:
        said.append(
            f"the trainers belong to several users (uids {', '.join(map(str, sorted(users)[:8]))}): "
            "one of them may only say that it is in this job"
        )
    without_gpu = [trainer.pid for trainer in chosen if trainer.details and not trainer.details.holds_gpu]
    if config.memory_snapshot and without_gpu:
        said.append(
            f"pids {', '.join(map(str, without_gpu[:8]))} have no GPU open: without CUDA a snapshot of its allocator never ends, and the "
            "process takes no other trace until it is started again"
        )
    waiting = sum(not trainer.ready for trainer in chosen)
    if waiting:
        said.append(f"{waiting} of {len(chosen)} trainers profile already: the config waits until they are done")
    return said
