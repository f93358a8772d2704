"""The subcommands of dyno: one line each, loaded when used."""

from enum import Enum
from importlib import import_module

import msgspec

from dynolog.cli.command import Command


class Asks(Enum):
    """How many daemons a subcommand talks to: none (it works on files or on this machine), one, or as many as are named."""

    NONE = "none"
    ONE = "one"
    MANY = "many"


class Entry(msgspec.Struct, frozen=True):
    """A subcommand's name of one or two words, and the module and class that it is; the class docstring is its help."""

    name: str
    module: str
    class_name: str
    asks: Asks

    def load(self) -> Command:
        """Import and make it."""
        command: Command = getattr(import_module(f"dynolog.cli.{self.module}"), self.class_name)()
        return command


COMMANDS = (
    Entry("status", "status", "Status", Asks.MANY),
    Entry("version", "version", "Version", Asks.MANY),
    Entry("doctor", "doctor.command", "Doctor", Asks.MANY),
    Entry("gputrace", "gputrace.command", "Gputrace", Asks.MANY),
    Entry("trace", "trace", "Trace", Asks.ONE),
    Entry("trace validate", "trace_files.validate", "TraceValidate", Asks.NONE),
    Entry("trace info", "trace_files.info", "InfoOfTrace", Asks.NONE),
    Entry("trace slice", "trace_files.slice", "TraceSlice", Asks.NONE),
    Entry("trace shrink", "trace_files.shrink", "TraceShrink", Asks.NONE),
    Entry("trace merge", "trace_files.merge", "TraceMerge", Asks.NONE),
    Entry("trace convert", "trace_files.convert", "TraceConvert", Asks.NONE),
    Entry("trace host", "trace_files.host", "TraceHost", Asks.ONE),
    Entry("analyze", "analyze.command", "Analyze", Asks.NONE),
    Entry("ps", "ps", "Ps", Asks.MANY),
    Entry("gpus", "gpus.command", "Gpus", Asks.MANY),
    Entry("metrics", "metrics", "Metrics", Asks.MANY),
    Entry("watch", "watch", "Watch", Asks.ONE),
    Entry("exporters", "exporters", "Exporters", Asks.MANY),
    Entry("dcgm-pause", "dcgm", "DcgmPause", Asks.MANY),
    Entry("dcgm-resume", "dcgm", "DcgmResume", Asks.MANY),
    Entry("reload", "reload", "Reload", Asks.MANY),
    Entry("perf", "perf.command", "Perf", Asks.NONE),
    Entry("completion", "completion", "Completion", Asks.NONE),
)
