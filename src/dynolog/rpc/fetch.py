"""Streaming a written trace to a client, without holding more of it than one chunk."""

import asyncio
import os
from collections.abc import Awaitable, Callable

from dynolog.model.json_text import encode_json
from dynolog.rpc.answers import Fetch, failed
from dynolog.rpc.file_threads import FileThreads
from dynolog.rpc.framing import LENGTH, frame
from dynolog.rpc.messages import FetchReply

CHUNK_BYTES = 256 << 10
# A disk that does not answer for so long is dead as far as this client is concerned.
READ_TIMEOUT_S = 30.0

Send = Callable[[bytes], Awaitable[None]]


async def send_trace(fetch: Fetch, send: Send, threads: FileThreads) -> None:
    """Send the reply, the chunks and the closing frame of length 0.

    A file that became shorter meanwhile ends the stream without that frame, so that the client knows. Raises OSError when the
    client is gone or the file cannot be read.
    """
    trace = fetch.trace
    if fetch.offset > trace.size_bytes:
        await send(frame(failed("bad_request", f"the offset is {fetch.offset}: the file has {trace.size_bytes} bytes")))
        return
    reply = FetchReply(
        capture_id=trace.capture.id,
        name=os.path.basename(trace.capture.path),
        size_bytes=trace.size_bytes,
        sha256=trace.sha256,
        offset=fetch.offset,
        chunk_bytes=CHUNK_BYTES,
    )
    await send(frame(encode_json(reply)))
    position = fetch.offset
    while position < trace.size_bytes:
        wanted = min(CHUNK_BYTES, trace.size_bytes - position)
        async with asyncio.timeout(READ_TIMEOUT_S):
            chunk = await threads.run(os.pread, trace.fd, wanted, position)
        if not chunk:
            return
        await send(frame(chunk))
        position += len(chunk)
    await send(LENGTH.pack(0))
