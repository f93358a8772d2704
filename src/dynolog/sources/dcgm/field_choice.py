"""Which fields are read: those of --dcgm_fields, and those of health and identity beside them."""

import re

import msgspec

from dynolog.model.metric import Kind, Metric, Scope
from dynolog.sources.dcgm import fields, structs
from dynolog.sources.dcgm.field_names import number_of
from dynolog.sources.dcgm.fields import Field, Role
from dynolog.sources.dcgm.library import DcgmLibrary

_UNFIT = re.compile(r"[^a-zA-Z0-9_]+")


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """Fields to watch, each once. `fast` and `profiling` come at the interval, `slow` more seldom; `asked` are those that a person named.

    `by_id` says what each becomes, `texts` which are texts. `declared` describes those that the catalogue does not have. `notices` say
    what could not be had.
    """

    fast: tuple[int, ...]
    slow: tuple[int, ...]
    profiling: tuple[int, ...]
    asked: frozenset[int]
    by_id: dict[int, Field]
    texts: frozenset[int]
    declared: tuple[Metric, ...]
    notices: tuple[tuple[str, str], ...]


def choose(library: DcgmLibrary, names: tuple[str, ...]) -> Choice:
    """The fields of `names` (numbers, tags, or names of the header), and the health fields that this version of DCGM has."""
    asked: dict[int, Field] = {}
    declared: list[Metric] = []
    notices: list[tuple[str, str]] = []
    for name in names:
        meta = library.field_meta(number_of(name.strip()))
        if meta is None:
            sentence = f"--dcgm_fields: DCGM {library.version} has no field {name.strip()!r}; the others are read"
            notices.append((f"dcgm_field_{name.strip()}", sentence))
        elif meta.fieldType[0] == structs.TYPE_BINARY:
            sentence = f"--dcgm_fields: {name.strip()} ({_tag(meta)}) is a structure, not a number or text: left out"
            notices.append((f"dcgm_field_{name.strip()}", sentence))
        elif meta.fieldId not in asked:
            asked[meta.fieldId] = fields.KNOWN.get(meta.fieldId) or _described(meta, declared)
    metas = {number: library.field_meta(str(number)) for number in (*fields.FAST, *fields.SLOW, *asked)}
    beside = [number for number in (*fields.FAST, *fields.SLOW) if metas[number] is not None]
    profiling = tuple(number for number in asked if fields.is_profiling(number))
    # What a person asks for comes at the interval, unless it never changes.
    fast = [number for number, field in asked.items() if field.role is not Role.PROPERTY and number not in profiling]
    fast += [number for number in beside if number in fields.FAST and number not in asked]
    slow = [number for number in beside if number in fields.SLOW and number not in fast]
    by_id = {number: fields.KNOWN[number] for number in beside} | asked
    return Choice(
        fast=tuple(fast),
        slow=tuple(slow),
        profiling=profiling,
        asked=frozenset(asked) - {fields.XID},
        by_id=by_id,
        texts=frozenset(number for number, meta in metas.items() if meta and meta.fieldType[0] == structs.TYPE_STRING),
        declared=tuple(declared),
        notices=tuple(notices),
    )


def _tag(meta: "structs.FieldMetaV2 | structs.FieldMetaV3") -> str:
    return str(meta.tag.decode("ascii", "replace"))


def _described(meta: "structs.FieldMetaV2 | structs.FieldMetaV3", declared: list[Metric]) -> Field:
    """A field of which only DCGM knows: a metric `dcgm_TAG` as its metadata describe it."""
    tag = _tag(meta)
    key = "dcgm_" + (_UNFIT.sub("_", tag) or str(meta.fieldId))
    is_text = meta.fieldType[0] == structs.TYPE_STRING
    kind = Kind.LABEL if is_text else fields.kind_of(meta.fieldId)
    shown = meta.valueFormat.contents.unit.decode("ascii", "replace") if meta.valueFormat else ""
    declared.append(
        Metric(
            name=key,
            kind=kind,
            unit="" if is_text else fields.unit_of(shown),
            description=f"field {meta.fieldId} of DCGM, {tag}",
            scope=Scope.GPU,
        )
    )
    return Field(meta.fieldId, key, Role.COUNTER if kind is Kind.DELTA else Role.VALUE)
