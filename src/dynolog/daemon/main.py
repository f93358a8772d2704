"""The `dynolog` command."""

import logging
import os
import sys
from collections.abc import Sequence

from dynolog import __version__
from dynolog.daemon import exit_codes, process_limits
from dynolog.daemon.flag_parser import FlagParser
from dynolog.daemon.flags import declared_flags
from dynolog.daemon.glog import GlogHandler, GlogSink
from dynolog.daemon.log_lines import lines_of
from dynolog.daemon.recent_troubles import RecentTroubles
from dynolog.exporters.log import LOG_FORMAT
from dynolog.model.errors import DynologError, FlagError
from dynolog.model.flag import Flag, Settings

_MB = 1_000_000
# With what life_cycle takes to stop, less than 2 s, also when nobody reads the log.
_LOG_FLUSH_S = 0.5


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the daemon until it is told to stop; returns the exit code (daemon.exit_codes)."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    flags = declared_flags()
    asked = {word.lstrip("-").replace("-", "_") for word in given if word.startswith("-")}
    if asked & {"help", "helpfull", "h"}:
        # Not needed by a daemon that runs.
        from dynolog.daemon.help_text import render_help  # noqa: PLC0415

        return _print(render_help(flags))
    if "version" in asked:
        return _print(f"dynolog {__version__}\n")
    only_check = "check" in asked
    given = [word for word in given if word not in ("--check", "-check")]
    try:
        parsed = FlagParser(flags).parse(given)
        settings = Settings(flags, parsed.given)
        _check_log_file(settings)
        if only_check:
            # Not needed by a daemon that runs: it makes its exporters.
            from dynolog.daemon.check import check_exporters  # noqa: PLC0415
            from dynolog.daemon.idle_flags import idle_flags  # noqa: PLC0415

            remarks = (*idle_flags(settings), *check_exporters(settings))
    except DynologError as error:
        sys.stderr.write(f"dynolog: {error}\n")
        return exit_codes.BAD_FLAG
    said = parsed.warnings + not_built(flags, settings)
    if only_check:
        return _print("".join(f"{sentence}\n" for sentence in (*said, *remarks)) + "the flags are fine\n")
    return _run(settings, flags, given, said)


def _print(text: str) -> int:
    """Write to stdout; returns the exit code. Whoever reads it may have had enough, and its disk may be full."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        code = exit_codes.BROKEN_PIPE
    except OSError as error:
        sys.stderr.write(f"dynolog: the output cannot be written: {error.strerror or error}\n")
        code = exit_codes.FAILED
    else:
        return exit_codes.STOPPED
    # The interpreter flushes stdout once more at its end, which must not complain.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def not_built(flags: Sequence[Flag], settings: Settings) -> tuple[str, ...]:
    """A sentence for each flag that was set and whose part is not in this version."""
    return tuple(flag.not_built for flag in flags if flag.not_built and settings.is_given(flag.name))


def _check_log_file(settings: Settings) -> None:
    path = settings.text("log_file")
    directory = os.path.dirname(os.path.abspath(path))
    if path and not os.path.isdir(directory):
        raise FlagError(f"--log_file={path}: the directory {directory} is not there: make it, or name another file")
    if path and os.path.isdir(path):
        raise FlagError(f"--log_file={path} is a directory: name a file in it")


def _run(settings: Settings, flags: Sequence[Flag], given: list[str], said: tuple[str, ...]) -> int:
    process_limits.keep_malloc_small()
    process_limits.raise_open_files()
    process_limits.shorten_switch_interval()
    process_limits.import_asyncio_without_ssl()
    # Imports asyncio, so it comes after the line before.
    from dynolog.daemon.life_cycle import LifeCycle, exit_code_of  # noqa: PLC0415

    sink = GlogSink(
        settings.text("log_file"),
        int(settings.number("log_rotate_mb") * _MB),
        settings.integer("log_keep"),
        settings.integer("minloglevel"),
        lines_of(settings.text(LOG_FORMAT.name)),
    )
    troubles = RecentTroubles()
    handlers = (GlogHandler(sink), troubles)
    root = logging.getLogger()
    for handler in handlers:
        root.addHandler(handler)
    root.setLevel(logging.INFO)
    code = exit_codes.STOPPED
    try:
        LifeCycle(settings, sink, troubles, lambda: FlagParser(flags).parse(given), said).run()
    except DynologError as error:
        if settings.text("log_file"):  # without one the next line is in the same place
            root.error("dynolog ends: %s", error)
        sink.flush(1)
        sys.stderr.write(f"dynolog: {error}\n")
        code = exit_code_of(error)
    except Exception:
        logging.getLogger(__name__).exception("dynolog ends because of an error of its own")
        code = exit_codes.FAILED
    finally:
        for handler in handlers:
            root.removeHandler(handler)
        sink.close(_LOG_FLUSH_S)
    return code


if __name__ == "__main__":
    sys.exit(main())
