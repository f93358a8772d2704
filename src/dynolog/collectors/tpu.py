"""Google's TPUs, as their device plugin for Kubernetes reports them: a record for each chip."""

from dynolog.collectors.spec import CollectorSpec, Context, DeviceReport, DeviceValues, Values
from dynolog.model.errors import SourceUnavailable
from dynolog.model.flag import Flag, Settings
from dynolog.model.metric import Kind, Metric, Scope
from dynolog.sources.metrics_page import MetricsPage
from dynolog.sources.tpu_page import TpuChip, chips, parse_page

URL = Flag(
    name="tpu_device_plugin_url",
    default="http://localhost:2112/metrics",
    help="the metrics page of the TPU device plugin on this host",
    section="gpu",
)
INTERVAL = Flag(
    name="tpu_reporting_interval_s",
    aliases=("tpu_interval_s",),
    default=10.0,
    minimum=0.0,
    maximum=86400.0,
    help="seconds between readings of the TPUs; 0: as often as reports are made",
    section="gpu",
    live=True,
)


def _tpu(name: str, kind: Kind, unit: str, description: str) -> Metric:
    return Metric(name=name, kind=kind, unit=unit, description=description, scope=Scope.GPU)


METRICS = (
    _tpu("accelerator_utilization", Kind.RATIO, "%", "share of time in which the TPU was processing (duty_cycle)"),
    _tpu("memory_utilization", Kind.RATIO, "%", "memory of the TPU that is allocated, of its total"),
    _tpu("accelerator_memory_total_bytes", Kind.GAUGE, "By", "memory of the TPU"),
    _tpu("accelerator_memory_used_bytes", Kind.GAUGE, "By", "memory of the TPU that is allocated"),
    _tpu("tpu_error", Kind.GAUGE, "1", "1 when the TPU device plugin did not answer, or no longer names this TPU"),
    _tpu("accelerator_serial_number", Kind.LABEL, "", "id that all TPUs of a host share"),
    _tpu("accelerator_model", Kind.LABEL, "", "kind of TPU"),
    _tpu("accelerator_vendor", Kind.LABEL, "", "maker, as the device plugin writes it"),
)
_KEY = "tpu"


def page_of(settings: Settings) -> MetricsPage:
    """The page that the flags name. Raises FlagError for a URL that cannot be used, and when a library is missing."""
    return MetricsPage(settings.text(URL.name), f"--{URL.name}")


class TpuCollector:
    """Gauges of the page at the end of the interval. Chips that were seen once and are no longer named are reported with an error."""

    def __init__(self, context: Context) -> None:
        """Raises FlagError as `page_of` does."""
        self._page = page_of(context.settings)
        self._notices = context.notices
        # The newest that was seen of each chip, by number: the plugin tells them apart so.
        self._known: dict[int, TpuChip] = {}

    def read(self) -> tuple[TpuChip, ...]:
        """The chips on the page. Raises SourceUnavailable when there has never been one."""
        try:
            found = self._named()
        except SourceUnavailable as error:
            if not self._known:
                raise
            # The chips are there, so their records say that something is wrong.
            self._notices.say(_KEY, f"TPUs cannot be read: {error}")
            return ()
        self._notices.say(_KEY, "")
        self._known.update((chip.index, chip) for chip in found)
        return found

    def _named(self) -> tuple[TpuChip, ...]:
        found = tuple(chips(parse_page(self._page.read())))
        if not found:
            raise SourceUnavailable(self._page.shown, "no TPU is named there", "see whether it is a TPU device plugin")
        return found

    def compute(self, before: tuple[TpuChip, ...], after: tuple[TpuChip, ...], elapsed_s: float) -> Values:
        """A record for each chip that was ever seen."""
        del before, elapsed_s
        now = {chip.index: chip for chip in after}
        return DeviceReport({}, [_device(chip, now.get(index)) for index, chip in sorted(self._known.items())])


def _device(known: TpuChip, now: TpuChip | None) -> DeviceValues:
    labels = {
        "device": str(known.index),
        "accelerator_serial_number": known.serial,
        "accelerator_model": known.model,
        "accelerator_vendor": known.maker,
    }
    values: Values = {"tpu_error": int(now is None)}
    if now is not None:
        _add_use(values, now)
        if now.owner is not None:
            labels.update(pod_namespace=now.owner.namespace, pod_name=now.owner.pod, container_name=now.owner.container)
    return DeviceValues(
        subject=str(known.index), labels={name: text for name, text in labels.items() if text}, values=values
    )


def _add_use(values: Values, chip: TpuChip) -> None:
    total, used = chip.memory_total_bytes, chip.memory_used_bytes
    if chip.duty_cycle_pct is not None:
        values["accelerator_utilization"] = chip.duty_cycle_pct
    if total is not None:
        values["accelerator_memory_total_bytes"] = round(total)
    if used is not None:
        values["accelerator_memory_used_bytes"] = round(used)
    if total and used is not None and used <= total:
        values["memory_utilization"] = 100 * used / total


SPEC = CollectorSpec(
    name="tpu",
    summary="TPUs: use, memory and the pod on each, from their device plugin",
    needs="the TPU device plugin of Kubernetes",
    factory=TpuCollector,
    metrics=METRICS,
    flags=(URL, INTERVAL),
    on_by_default=False,
    own_enable_flag="enable_tpu_monitor",
    own_interval_flag=INTERVAL.name,
    device_source="tpu",
)


def check_flags(settings: Settings) -> None:
    """Raises FlagError at the start, when TPUs are asked for and the flags or libraries cannot do it."""
    if settings.on(SPEC.enable_flag):
        page_of(settings)
