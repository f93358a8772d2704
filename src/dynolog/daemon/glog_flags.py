"""Flags of the library that the original logs with (glog): they parse, so that its command lines and flag files go on working.

The original always logs to stderr, where most of them have no effect either; one that is set says so at start.
"""

from dynolog.model.flag import Flag, FlagValue


def _ignored(name: str, default: FlagValue, instead: str = "") -> Flag:
    return Flag(
        name=name,
        default=default,
        help="accepted for the original's sake and ignored" + (f": {instead}" if instead else ""),
        not_built=f"--{name} has no effect here" + (f": {instead}" if instead else ""),
    )


GLOG_FLAGS = (
    _ignored("log_dir", "", "--log_file names a file"),
    _ignored("max_log_size", 1800, "--log_rotate_mb is the size of a log file"),
    _ignored("stop_logging_if_full_disk", False, "a full disk loses lines, counts them, and stops nothing"),
    _ignored("stderrthreshold", 2, "without --log_file all lines go to stderr"),
    _ignored("colorlogtostderr", False),
    _ignored("logtostdout", False, "the log goes to stderr or to --log_file"),
    _ignored("logbuflevel", 0),
    _ignored("logbufsecs", 30),
    _ignored("log_prefix", True),
    _ignored("log_link", ""),
    _ignored("v", 0, "there are no verbose lines; --minloglevel has fewer"),
    _ignored("vmodule", "", "there are no verbose lines"),
)
