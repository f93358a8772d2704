"""The subcommands of dyno: one line each, loaded when used."""

from importlib import import_module

import msgspec

from dynolog.cli.command import Command


class Entry(msgspec.Struct, frozen=True):
    """A subcommand's name, and the module and class that it is; the class docstring is its help."""

    name: str
    module: str
    class_name: str

    def load(self) -> Command:
        """Import and make it."""
        command: Command = getattr(import_module(f"dynolog.cli.{self.module}"), self.class_name)()
        return command


COMMANDS = (
    Entry("status", "status", "Status"),
    Entry("version", "version", "Version"),
    Entry("doctor", "doctor.command", "Doctor"),
    Entry("gputrace", "gputrace.command", "Gputrace"),
    Entry("trace", "trace", "Trace"),
    Entry("trace-validate", "trace_files.validate", "TraceValidate"),
    Entry("trace-info", "trace_files.info", "InfoOfTrace"),
    Entry("trace-slice", "trace_files.slice", "TraceSlice"),
    Entry("trace-shrink", "trace_files.shrink", "TraceShrink"),
    Entry("trace-merge", "trace_files.merge", "TraceMerge"),
    Entry("trace-convert", "trace_files.convert", "TraceConvert"),
    Entry("trace-host", "trace_files.host", "TraceHost"),
    Entry("analyze", "analyze.command", "Analyze"),
    Entry("ps", "ps", "Ps"),
    Entry("gpus", "gpus.command", "Gpus"),
    Entry("metrics", "metrics", "Metrics"),
    Entry("watch", "watch", "Watch"),
    Entry("exporters", "exporters", "Exporters"),
    Entry("dcgm-pause", "dcgm", "DcgmPause"),
    Entry("dcgm-resume", "dcgm", "DcgmResume"),
    Entry("reload", "reload", "Reload"),
    Entry("perf", "perf.command", "Perf"),
    Entry("completion", "completion", "Completion"),
)
