"""Messages of ours as JSON, also where names in them hold bytes that are no UTF-8: files, processes and jobs can be called anything."""

from typing import Any

import msgspec

_encode = msgspec.json.Encoder().encode


def encode_json(message: object) -> bytes:
    r"""The message as UTF-8. Bytes that are none (`os.fsdecode`, "surrogateescape") become the text `\udcNN`."""
    try:
        return _encode(message)
    except UnicodeEncodeError:
        return _encode(_readable(msgspec.to_builtins(message)))


def readable(text: str) -> str:
    r"""The text with bytes that are no UTF-8 as `\udcNN`, so that two such names stay two names."""
    return text.encode("utf-8", "backslashreplace").decode()


def _readable(value: Any) -> Any:
    if isinstance(value, str):
        return readable(value)
    if isinstance(value, dict):
        return {_readable(key): _readable(each) for key, each in value.items()}
    return [_readable(each) for each in value] if isinstance(value, list | tuple) else value
