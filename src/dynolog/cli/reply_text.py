"""The two lines that the public dyno prints of every answer, and answers as JSON."""

import argparse
from typing import Any, TypeVar

from dynolog.cli.printable import printable_json
from dynolog.model.json_text import encode_json
from dynolog.rpc.client import RawReply, Target, call_raw, decode, encode
from dynolog.rpc.messages import Request

T = TypeVar("T")


def ask(target: Target, request: Request) -> RawReply:
    """The reply as it came. Raises what `call` raises, but never RequestError: a refusal is a reply to show."""
    return call_raw(target, encode(target, request))


def print_reply(reply: RawReply) -> None:
    """`response length = N` and `response = {...}`, as scripts made for the public dyno expect them."""
    print(f"response length = {reply.length}")
    print(f"response = {printable_json(reply.text)}")


def show_answer(target: Target, reply: RawReply, arguments: argparse.Namespace, reply_type: type[T]) -> T:
    """The answer itself with --json, else the two lines; then what it means.

    Raises RequestError when it says `failed`, and DynologError when it is none to this question, after it was shown.
    """
    if arguments.json:
        print(printable_json(reply.text))
        arguments.printed = True
    else:
        print_reply(reply)
    return decode(target, reply.text.encode(), reply_type)


def print_json(message: Any) -> None:
    """One JSON object on one line; takes Structs and plain values."""
    print(printable_json(encode_json(message).decode()))
