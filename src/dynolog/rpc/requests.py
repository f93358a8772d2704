"""From a request's bytes to what is asked, or to a sentence that says what is wrong with it."""

from typing import Any

import msgspec

from dynolog.model.errors import RequestError
from dynolog.rpc.messages import Authenticated, Request

# Commas in a request: each value it holds becomes an object. Enough for MAX_PIDS and the longest config.
MAX_VALUES = 100_000
FUNCTIONS: dict[str, type[msgspec.Struct]] = {str(kind.__struct_config__.tag): kind for kind in Request.__args__}

_decode = msgspec.json.Decoder(Request).decode


class _Function(msgspec.Struct):
    fn: Any = None


def decode(body: bytes) -> Request | Authenticated:
    """The typed request. Raises RequestError that says what is wrong with it."""
    if len(body) > MAX_VALUES and body.count(b",") > MAX_VALUES:
        raise RequestError("bad_request", f"the request holds more than {MAX_VALUES} values")
    try:
        return _decode(body)
    except msgspec.ValidationError as error:
        return _decode_other(body, error)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise RequestError("bad_json", f"the request is not JSON: {error}") from error
    except RecursionError as error:
        raise RequestError("bad_json", "the request is JSON nested too deeply") from error


def _decode_other(body: bytes, invalid: msgspec.ValidationError) -> Authenticated:
    """A signed request, which the union leaves out so that it cannot be nested, or the RequestError for an invalid one."""
    try:
        function = msgspec.json.decode(body, type=_Function).fn
        if function == "authenticated":
            return msgspec.json.decode(body, type=Authenticated)
    except msgspec.ValidationError as error:
        raise RequestError("bad_request", f"the request is not understood: {error}") from error
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise RequestError("bad_json", f"the request is not JSON: {error}") from error
    if not isinstance(function, str):
        raise RequestError("bad_request", 'a request names its function: {"fn":"getStatus"}') from invalid
    if function not in FUNCTIONS:
        raise RequestError(
            "unknown_function", f"there is no function {function[:80]!r}; there are {', '.join(sorted(FUNCTIONS))}"
        ) from invalid
    raise RequestError("bad_request", f"{function} is not understood: {invalid}") from invalid
