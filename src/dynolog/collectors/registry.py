"""Every collector, in the order in which they run in a round; `own` is last, to see what the others did in it."""

from dynolog.collectors import cpu, own
from dynolog.collectors.spec import CollectorSpec

COLLECTORS: tuple[CollectorSpec, ...] = (cpu.SPEC, own.SPEC)
