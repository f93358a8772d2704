"""dyno watch."""

import argparse
import os
import sys
import time

from dynolog.cli.exit_codes import DONE
from dynolog.cli.metrics import add_filters, latest, no_values
from dynolog.cli.metrics_table import values_table
from dynolog.cli.option_types import positive, positive_seconds
from dynolog.cli.printable import printable
from dynolog.cli.reply_text import print_json
from dynolog.cli.table import terminal_columns
from dynolog.model.errors import RequestError
from dynolog.rpc.client import CannotReach, NoAnswer, Target

_CLEAR = "\x1b[H\x1b[J"  # cursor home, then clear to the end (console_codes(4))


class Watch:
    """Show the latest values again and again; Ctrl-C ends it.

    Without a terminal each frame is followed by an empty line; with --json each is one line.
    """

    name = "watch"

    def prepare_parser(self, parser: argparse.ArgumentParser) -> None:
        """What to see and how often."""
        add_filters(parser)
        parser.add_argument(
            "--interval", type=positive_seconds, default=2.0, metavar="S", help="seconds between frames (2)"
        )
        parser.add_argument("--count", type=positive, metavar="N", help="end after N frames")

    def run(self, arguments: argparse.Namespace, target: Target) -> int:
        """Draw until told to stop. A daemon that goes away after the first frame is waited for."""
        frames = 0
        try:
            while True:
                _draw(_frame(arguments, target, first=frames == 0), as_json=arguments.json)
                frames += 1
                if frames == arguments.count:
                    return _end()
                time.sleep(arguments.interval)
        except KeyboardInterrupt:
            return _end()


def _end() -> int:
    """The last frame on a terminal has no line end, so that it may fill the screen; what comes after it begins a line."""
    if sys.stdout.isatty():
        print()
    return DONE


def _frame(arguments: argparse.Namespace, target: Target, *, first: bool) -> str:
    try:
        reply = latest(target, arguments)
    except (CannotReach, NoAnswer, RequestError) as error:
        if first:
            raise
        print(f"dyno watch: {printable(str(error))}", file=sys.stderr)
        return ""
    if arguments.json:
        print_json(reply)
        return ""
    return values_table(reply, terminal_columns()) or printable(no_values(arguments))


def _draw(frame: str, *, as_json: bool) -> None:
    if frame and sys.stdout.isatty() and os.environ.get("TERM") != "dumb":
        print(_CLEAR + _fit_height(f"{time.strftime('%H:%M:%S')}  (Ctrl-C ends)\n{frame}"), end="")
    elif frame and not as_json:
        print(frame + "\n")
    sys.stdout.flush()


def _fit_height(frame: str) -> str:
    """As many lines as the terminal shows, so that the head stays in sight."""
    try:
        rows = os.get_terminal_size(sys.stdout.fileno()).lines
    except (OSError, ValueError):
        return frame
    lines = frame.split("\n")
    if rows <= 2 or len(lines) < rows:
        return frame
    hidden = len(lines) - rows + 2
    return "\n".join((*lines[: rows - 2], f"... {hidden} more lines: --filter TEXT shows fewer"))
