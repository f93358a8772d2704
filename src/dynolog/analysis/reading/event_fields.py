"""The fields of an event that become columns, as the decoder builds them; everything else is skipped without being built."""

import msgspec

from dynolog.analysis.reading.categories import Category

# What an integer argument is when the event lacks it: np.iinfo(np.int64).min.
_NONE = -(1 << 63)
Number = int | float | str | None
Key = int | str | float | None


class Arguments(msgspec.Struct, frozen=True, gc=False):
    """`args` of an event, as few as answers need: each field costs every event some ns. Types are loose: an odd value costs its
    column a closer look, not the event."""

    external_id: object = msgspec.field(default=_NONE, name="External id")
    correlation: object = _NONE
    device: object = _NONE
    stream: object = _NONE
    bytes: object = _NONE
    bandwidth_gb_per_s: object = msgspec.field(default=None, name="memory bandwidth (GB/s)")
    copy_kind: object = msgspec.field(default=None, name="kind")
    queued: object = _NONE
    occupancy_pct: object = msgspec.field(default=None, name="est. achieved occupancy %")
    blocks_per_sm: object = msgspec.field(default=None, name="blocks per SM")
    collective: object = msgspec.field(default=None, name="Collective name")
    in_elements: object = msgspec.field(default=_NONE, name="In msg nelems")
    out_elements: object = msgspec.field(default=_NONE, name="Out msg nelems")
    group_size: object = msgspec.field(default=_NONE, name="Group size")
    element_type: object = msgspec.field(default=None, name="dtype")
    group_name: object = msgspec.field(default=None, name="Process Group Name")
    group_description: object = msgspec.field(default=None, name="Process Group Description")
    group_id: object = msgspec.field(default=None, name="Process Group ID")
    group_ranks: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name="Process Group Ranks")
    communicator: object = msgspec.field(default=None, name="Comms Id")
    collective_sequence: object = msgspec.field(default=_NONE, name="Seq")
    input_dims: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name="Input Dims")
    input_types: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name="Input type")
    sequence_number: object = msgspec.field(default=_NONE, name="Sequence number")
    forward_thread: object = msgspec.field(default=_NONE, name="Fwd thread id")
    module: object = msgspec.field(default=None, name="Module Hierarchy")
    python_id: object = msgspec.field(default=_NONE, name="Python id")
    python_parent: object = msgspec.field(default=_NONE, name="Python parent id")
    python_module: object = msgspec.field(default=_NONE, name="Python module id")


class Event(msgspec.Struct, gc=False):
    """An entry of `traceEvents`. `ts` stays text: a float would lose the last digits of absolute times. `dur` is in µs."""

    ph: str = ""
    cat: str = ""
    name: str = ""
    pid: Key = None
    tid: Key = None
    ts: msgspec.Raw = msgspec.Raw(b"")
    dur: Number = None
    id: Key = None
    args: Arguments | None = None


class RawEvent(msgspec.Struct, gc=False):
    """The same with fields of any type and `args` as text: for counters, whose values have names of their own, and for what is damaged."""

    ph: object = ""
    cat: object = ""
    name: object = ""
    pid: object = None
    tid: object = None
    ts: msgspec.Raw = msgspec.Raw(b"")
    dur: object = None
    id: object = None
    args: msgspec.Raw = msgspec.Raw(b"null")

    def typed(self, arguments: Arguments | None) -> Event:
        """As the others are; a field of a type that it cannot have is as if it was missing, a name of another type its text."""
        return Event(
            ph=self.ph if isinstance(self.ph, str) else "",
            cat=self.cat if isinstance(self.cat, str) else "",
            name=self.name if isinstance(self.name, str) else str(self.name),
            pid=_key(self.pid),
            tid=_key(self.tid),
            ts=self.ts,
            dur=self.dur if isinstance(self.dur, (int, float, str)) else None,
            id=_key(self.id),
            args=arguments,
        )


def _key(value: object) -> Key:
    return value if isinstance(value, (int, float, str)) else None


class ArgumentSpec(msgspec.Struct, frozen=True):
    """An argument that becomes a column of `kind`: "int", "float", "label" (interned text) or "json" (interned JSON text)."""

    field: str
    kind: str


def _specs(kind: str, *fields: str) -> tuple[ArgumentSpec, ...]:
    return tuple(ArgumentSpec(field, kind) for field in fields)


_COPY = (*_specs("int", "bytes"), *_specs("float", "bandwidth_gb_per_s"), *_specs("label", "copy_kind"))
# Read only for rows that name a collective: recent versions put these on the kernel, earlier ones on the `record_param_comms` operator.
COMMUNICATION = (
    *_specs("int", "in_elements", "out_elements", "group_size", "collective_sequence"),
    *_specs("label", "collective", "element_type", "group_name", "group_description", "group_id", "communicator"),
    *_specs("json", "group_ranks"),
)
# Which arguments are read for which kind of event.
ARGUMENTS: dict[Category, tuple[ArgumentSpec, ...]] = {
    Category.MEMCPY: _COPY,
    Category.MEMSET: _COPY,
    Category.KERNEL: (*_specs("int", "queued"), *_specs("float", "occupancy_pct", "blocks_per_sm")),
    Category.CPU_OP: (*_specs("int", "sequence_number", "forward_thread"), *_specs("label", "module")),
    # `gloo:all_reduce` tells the size of what it moves only by the shapes of its inputs.
    Category.USER_ANNOTATION: _specs("json", "input_dims", "input_types"),
    Category.PYTHON_FUNCTION: _specs("int", "python_id", "python_parent", "python_module"),
}
