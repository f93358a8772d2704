"""From what the engine said in a round to the message that leaves this process."""

from collections.abc import Callable

from dynolog.model.gpu import GpuReading, GpuSample, ProfilingState
from dynolog.sources.dcgm import fields, structs
from dynolog.sources.dcgm.devices import Identity, Instance, Known
from dynolog.sources.dcgm.field_choice import Choice
from dynolog.sources.dcgm.library import SOURCE
from dynolog.sources.dcgm.reader import Gathered
from dynolog.sources.dcgm.session import Round, Session
from dynolog.sources.dcgm.watchdog import Watchdog
from dynolog.sources.dcgm.xid import XidCounts

_IDENTITY = (fields.UUID, fields.NAME, fields.PCI_BUS_ID, fields.MINOR)
# What a divided GPU cannot say of itself as a whole: absent or 0 whatever its instances do.
_NOT_OF_DIVIDED = (
    "gpu_device_utilization",
    "gpu_memory_utilization",
    "gpu_encoder_utilization",
    "gpu_decoder_utilization",
)
_UTILIZATION = "gpu_device_utilization"
_ACTIVITY = ("graphics_engine_active_ratio", "sm_active_ratio")
# A GPU on which a kernel ran for half of the time is not at 0 % by any other measure.
_BUSY = 50


class Readings:
    """Keeps what one round needs to know of earlier ones: identities, slow values, blank rounds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.xids = XidCounts()
        self._known = Known()
        self._watchdog = Watchdog(clock)
        self._choice: Choice | None = None
        self._version = ""
        self._slow: dict[int, Gathered] = {}
        self._unsupported: dict[int, set[int]] = {}
        self._profiling_keys: frozenset[str] = frozenset()

    def start(self, choice: Choice, version: str) -> None:
        """A new session has begun: nothing of the old one's values is true any more."""
        self._choice, self._version = choice, version
        self._slow.clear()
        self._unsupported.clear()
        self._watchdog = Watchdog(self._clock)
        self._profiling_keys = frozenset(choice.by_id[number].key for number in choice.profiling)

    def sample(self, session: Session, found: Round, now_us: int, pci_gpus: int) -> GpuSample:
        """The message of this round."""
        assert self._choice is not None
        readings = [self._of_gpu(session, found, gpu) for gpu in found.gpus]
        up = {int(reading.device) for reading in readings if reading.is_up}
        missing = self._known.missing(found.gpus)  # now that those that are there have said who they are
        readings += [self._lost(gpu, "DCGM no longer lists it: it fell off the bus or was reset") for gpu in missing]
        readings += [self._of_instance(session, found, instance) for instance in found.instances if instance.gpu in up]
        repaired = self._mend(session)
        times = [gathered.oldest_us for gathered in found.fast.values() if gathered.oldest_us]
        return GpuSample(
            backend=SOURCE,
            readings=tuple(readings),
            expected=max(self._known.most, pci_gpus),
            seen=len(up),
            driver_version=session.reader.driver_version or self._driver_version(),
            library_version=self._version,
            profiling=session.profiling.state,
            profiling_why=session.profiling.why,
            blank_values=sum(int(reading.values.get("gpu_blank_values", 0)) for reading in readings),
            declared=self._choice.declared,
            notices=(*self._choice.notices, *self._notices(session), *repaired),
            age_s=max(0.0, (now_us - min(times)) / 1e6) if times else 0.0,
        )

    def _driver_version(self) -> str:
        """Where the engine gives it as a property of a GPU: it belongs to none."""
        said = (slow.properties.get(fields.DRIVER_VERSION) for slow in self._slow.values())
        return next((version for version in said if isinstance(version, str)), "")

    # --- one device ---------------------------------------------------------------------------------------------------

    def _of_gpu(self, session: Session, found: Round, gpu: int) -> GpuReading:
        entity = (structs.ENTITY_GPU, gpu)
        gathered = found.fast.get(entity) or Gathered()
        slow = found.slow.get(entity) if found.slow is not None else None
        if slow is not None:
            self._slow[gpu] = slow
            slow.finish()
            _drop_totals(slow)
        slow = self._slow.get(gpu) or Gathered()
        uuid_before = self._known.of(gpu).uuid
        identity = self._known.learn(gpu, slow.properties, _IDENTITY)
        if uuid_before not in ("", identity.uuid):  # an engine that was restarted numbers them anew
            self.xids.forget(gpu)
        gathered.finish()
        error = found.refused.get(gpu) or gathered.error or slow.error
        if not error and not gathered.answered and not slow.answered:
            error = "no field of it has a value"
        if error:
            self._slow.pop(gpu, None)
            return self._lost(gpu, error)
        values = slow.values | gathered.values
        counters = slow.counters | gathered.counters
        is_divided = slow.properties.get(fields.MIG_MODE) == 1 or any(part.gpu == gpu for part in found.instances)
        if is_divided:
            for key in _NOT_OF_DIVIDED:
                values.pop(key, None)
        self._judge_profiling(session, gpu, gathered, values, is_divided=is_divided)
        self._note_blanks(gathered.blank | slow.blank, session.profiling.is_settling, values)
        self._unsupported[gpu] = gathered.unsupported | slow.unsupported
        self.xids.put(gpu, values, counters)
        return _reading(gpu, identity, values, counters)

    def _judge_profiling(
        self, session: Session, gpu: int, gathered: Gathered, values: dict[str, int | float | str], *, is_divided: bool
    ) -> None:
        """Profiling counters that are blank for long, or read 0 for long on a busy GPU, are mended.

        The two main ones are given as they are: whoever gets the reading judges them, of every backend alike.
        """
        wanted = () if session.profiling.is_paused else session.profiling.fields_of.get(gpu, ())
        if not wanted:
            return
        use = values.get(_UTILIZATION, 0)
        activity = [values[key] for key in _ACTIVITY if key in values]
        is_contradicted = bool(activity) and not any(activity) and isinstance(use, int | float) and use >= _BUSY
        if is_contradicted:
            self._watchdog.answered(gpu)
            for key in self._profiling_keys.difference(_ACTIVITY):
                values.pop(key, None)
        has_values = not is_contradicted and any(number in gathered.answered for number in wanted)
        is_fine = any(number not in wanted for number in gathered.answered)
        self._watchdog.look(gpu, has_values=has_values, is_fine_otherwise=is_fine, is_divided=is_divided)

    def _note_blanks(self, blank: set[int], is_settling: bool, values: dict[str, int | float | str]) -> None:
        assert self._choice is not None
        if is_settling:
            blank = {number for number in blank if not fields.is_profiling(number)}
        values["gpu_blank_values"] = len(blank)
        values["dcgm_error"] = int(bool(blank & self._choice.asked))

    def _of_instance(self, session: Session, found: Round, instance: Instance) -> GpuReading:
        gathered = found.fast.get(instance.entity) or Gathered()
        gathered.finish()
        values = gathered.values
        self._note_blanks(gathered.blank, session.profiling.is_settling, values)
        return _reading(
            instance.gpu,
            self._known.of(instance.gpu),
            values,
            gathered.counters,
            instance=instance,
            error=gathered.error,
        )

    def _lost(self, gpu: int, error: str) -> GpuReading:
        """Of a GPU that does not answer nothing is known but its errors, which may say why."""
        values: dict[str, int | float | str] = {}
        counters: dict[str, int | float] = {}
        self.xids.put(gpu, values, counters)
        return _reading(gpu, self._known.of(gpu), values, counters, error=error)

    # --- what a person should know ------------------------------------------------------------------------------------

    def _mend(self, session: Session) -> list[tuple[str, str]]:
        if session.profiling.state is not ProfilingState.ON:
            return []
        gpus = self._watchdog.due()
        still = self._watchdog.still_blank()
        said = []
        if never := self._watchdog.never_answered():
            sentence = (
                f"profiling counters of GPU {_list(never)} have had no value since the start: if they were paused (dcgmi profile"
                " --pause, or a daemon that was killed while it had paused them), `dyno dcgm-resume` brings them back"
            )
            said.append(("dcgm_profiling_never", sentence))
        if still:
            sentence = (
                f"profiling counters of GPU {_list(still)} stay blank after a pause and resume: restart the host engine"
                " or reset the GPU"
            )
            said.append(("dcgm_profiling_blank", sentence))
        if gpus:
            session.profiling.renew()
            self._watchdog.renewed(gpus)
            sentence = f"profiling counters of GPU {_list(gpus)} went blank: profiling was paused and resumed once"
            said.append(("dcgm_profiling_renewed", sentence))
        return said

    def _notices(self, session: Session) -> list[tuple[str, str]]:
        """What cannot be had, and why: a series that is gone after an update of DCGM is explained."""
        assert self._choice is not None
        said = []
        profiling = session.profiling
        if profiling.state is ProfilingState.TAKEN:
            said.append(("dcgm_profiling", f"profiling fields are not read: {profiling.why}"))
        if profiling.without:
            reasons = sorted(set(profiling.without.values()))
            sentence = f"GPU {_list(profiling.without)} has no profiling fields: {'; '.join(reasons)}"
            said.append(("dcgm_profiling_without", sentence))
        if profiling.left_out:
            sentence = (
                f"fields {_list(profiling.left_out)} cannot be counted at the same time as the others and are left out"
            )
            said.append(("dcgm_profiling_passes", sentence))
        if refused := session.refused_fields:
            said.append(("dcgm_refused", f"DCGM {self._version} does not watch field {_list(refused)}"))
        said += self._gone()
        return said

    def _gone(self) -> list[tuple[str, str]]:
        """The fields that GPUs do not have, each kind of GPU once; of links only that the card has fewer, which is no news."""
        assert self._choice is not None
        alike: dict[tuple[int, ...], list[int]] = {}
        for gpu, numbers in self._unsupported.items():
            gone = tuple(sorted(numbers - fields.OF_LINKS))
            if gone:
                alike.setdefault(gone, []).append(gpu)
        said = []
        for gone, gpus in alike.items():
            words = ", ".join(f"{number} {self._choice.by_id[number].key}".strip() for number in gone)
            sentence = f"GPU {_list(gpus)} with DCGM {self._version}: fields that are not supported: {words}"
            said.append((f"dcgm_unsupported_{gpus[0]}", sentence))
        return said


def _reading(
    gpu: int,
    identity: Identity,
    values: dict[str, int | float | str],
    counters: dict[str, int | float],
    *,
    instance: Instance | None = None,
    error: str = "",
) -> GpuReading:
    return GpuReading(
        device=str(gpu),
        uuid=identity.uuid,
        name=identity.name,
        pci_bus_id=identity.pci_bus_id,
        minor=identity.minor,
        gpu_instance_id=instance.gpu_instance_id if instance else None,
        compute_instance_id=instance.compute_instance_id if instance else None,
        is_up=not error,
        error=error,
        values=values,
        counters=counters,
    )


def _drop_totals(gathered: Gathered) -> None:
    """The sum of all links, where the links themselves are told: both would count twice."""
    for field in fields.KNOWN.values():
        if field.total_of and f"{field.total_of}.0" in gathered.counters:
            gathered.counters.pop(field.key, None)


def _list(numbers: "set[int] | frozenset[int] | dict[int, str] | dict[int, int] | list[int] | tuple[int, ...]") -> str:
    return ", ".join(map(str, sorted(numbers)))
