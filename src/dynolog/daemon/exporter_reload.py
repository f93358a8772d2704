"""Exporters that come, go and change while the daemon runs: their flags are live, though each needs a new exporter."""

import logging
from functools import partial

import msgspec

from dynolog.exporters.registry import LIVE_FLAGS, SHARED_FLAGS, chosen
from dynolog.exporters.selection.selected_exporter import Selections
from dynolog.exporters.spec import ExporterSpec
from dynolog.model.errors import DynologError
from dynolog.model.flag import Settings
from dynolog.pipeline.fanout import Fanout
from dynolog.profiling.off_thread import call_off_thread

_log = logging.getLogger(__name__)
# An exporter without a queue of its own is given so long to write what it holds.
_LOCAL_S = 1.0


class Replacements(msgspec.Struct, frozen=True):
    """Exporters to end, and exporters to begin; one whose flags changed is in both."""

    leaving: tuple[ExporterSpec, ...]
    coming: tuple[ExporterSpec, ...]


def replacements(old: Settings, new: Settings) -> Replacements:
    """What has to be done for the exporters to follow their flags."""
    changed = {name for name in LIVE_FLAGS if old.value(name) != new.value(name)}
    before, after = chosen(old), chosen(new)

    def stays(spec: ExporterSpec) -> bool:
        own = {flag.name for flag in spec.flags}
        return spec in before and spec in after and not changed & (own | SHARED_FLAGS)

    return Replacements(
        tuple(spec for spec in before if not stays(spec)), tuple(spec for spec in after if not stays(spec))
    )


def check(selections: Selections, wanted: Replacements, new: Settings) -> None:
    """Raise the DynologError of the first exporter that could not be made. Nothing is opened."""
    for spec in wanted.coming:
        selections.check(spec, new)


async def apply(
    selections: Selections, fanout: Fanout, wanted: Replacements, old: Settings, new: Settings
) -> tuple[str, ...]:
    """End and begin the exporters; sentences about those that could not begin.

    One that cannot begin with its new flags (a port that is taken) begins with its old ones again.
    """
    errors: list[str] = []
    timeout_s = new.number("shutdown_timeout_s")
    for spec in wanted.leaving:
        name = spec.name
        finished = await call_off_thread(
            partial(fanout.take_out, name, min(timeout_s, _LOCAL_S), timeout_s), discard=lambda _: None
        )
        if not finished:
            errors.append(f"{name}: not everything that it held could be delivered within --shutdown_timeout_s")
        selections.forget(spec)
    for spec in wanted.coming:
        errors += await _begin(selections, fanout, spec, old if spec in wanted.leaving else None, new)
    for spec in wanted.leaving:
        fanout.forget(spec.name)
    for sentence in errors:
        _log.error("reload: %s", sentence)
    return tuple(errors)


async def _begin(
    selections: Selections, fanout: Fanout, spec: ExporterSpec, old: Settings | None, new: Settings
) -> list[str]:
    tries = [new] if old is None else [new, old]
    errors: list[str] = []
    for settings in tries:
        # A copy: the daemon's own settings may change once more.
        copy = Settings(settings.flags.values(), settings.given)
        try:
            # Off this thread: a spool is read, an address may be looked up.
            made = await call_off_thread(
                partial(selections.make, spec, copy), discard=lambda exporter: exporter.close()
            )
        except (DynologError, OSError) as error:
            errors.append(
                f"{spec.name} could not begin{'' if settings is new else ' with its old flags either'}: {error}"
            )
        else:
            fanout.put_in(spec.name, made)
            if errors:
                errors.append(f"{spec.name} goes on with its old flags")
            break
    return errors
