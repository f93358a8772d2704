"""The shared secret of --rpc_token_file and `dyno --token-file`: reading it, and signing a request with it.

A signed request is `{"fn":"authenticated","time_ms":..,"nonce":"..","mac":"..","request":"<the request as JSON text>"}`. `mac` is
HMAC-SHA256, in hex, over `dynolog-rpc-1\\n<time_ms>\\n<nonce>\\n<request text>`. The secret itself never travels.
"""

import os
import stat

import msgspec

from dynolog.model.errors import DynologError
from dynolog.rpc.messages import Authenticated

MIN_TOKEN_BYTES = 16
MAX_TOKEN_BYTES = 4096


class TokenFileError(DynologError):
    """A token file that cannot be used, with what to do."""


def read_token(path: str) -> bytes:
    """The secret in a file, without white space around it. Raises TokenFileError; a file others can read is no secret."""
    try:
        with open(path, "rb") as file:
            facts = os.fstat(file.fileno())
            token = file.read(MAX_TOKEN_BYTES + 1).strip()
    except OSError as error:
        raise TokenFileError(f"token file {path} cannot be read: {error.strerror}") from error
    if not stat.S_ISREG(facts.st_mode):
        raise TokenFileError(f"token file {path} is not a regular file")
    if facts.st_mode & 0o077:
        raise TokenFileError(f"token file {path} is open to other users: chmod 600 {path}")
    if facts.st_uid not in (0, os.geteuid()):
        raise TokenFileError(f"token file {path} belongs to uid {facts.st_uid}: chown it to uid {os.geteuid()} or root")
    if not MIN_TOKEN_BYTES <= len(token) <= MAX_TOKEN_BYTES:
        raise TokenFileError(
            f"token file {path} holds {len(token)} bytes: a token has {MIN_TOKEN_BYTES} to {MAX_TOKEN_BYTES}"
        )
    return token


def mac_of(token: bytes, time_ms: int, nonce: str, request: str) -> str:
    """The code that proves who wrote this request, when, and that it was not changed."""
    # It loads libcrypto, which most daemons never need.
    import hmac  # noqa: PLC0415

    message = f"dynolog-rpc-1\n{time_ms}\n{nonce}\n{request}".encode("utf-8", "surrogatepass")
    return hmac.new(token, message, "sha256").hexdigest()


def is_signed_with(token: bytes, signed: Authenticated) -> bool:
    """Whether the code in a signed request is right, in a time that tells nothing about it."""
    import hmac  # noqa: PLC0415 - as above

    right = mac_of(token, signed.time_ms, signed.nonce, signed.request)
    return hmac.compare_digest(right.encode(), signed.mac.encode("utf-8", "replace"))


def sign(token: bytes, request: bytes, wall_ns: int) -> bytes:
    """The signed form of an encoded request."""
    text = request.decode()
    time_ms = wall_ns // 1_000_000
    nonce = os.urandom(16).hex()
    signed = Authenticated(time_ms=time_ms, nonce=nonce, mac=mac_of(token, time_ms, nonce, text), request=text)
    return msgspec.json.encode(signed)
