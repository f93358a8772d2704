"""Every collector, in the order in which they run in a round."""

from dynolog.collectors import cpu
from dynolog.collectors.spec import CollectorSpec

COLLECTORS: tuple[CollectorSpec, ...] = (cpu.SPEC,)
