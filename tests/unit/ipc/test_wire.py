"""Datagrams of trainers are read exactly or refused with a reason."""

import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dynolog.ipc.wire import (
    ACTIVITIES,
    EVENTS,
    MAX_CONFIG_BYTES,
    MAX_DATAGRAM_BYTES,
    MAX_PIDS,
    ConfigRequest,
    ContextMessage,
    parse,
    reply_config,
    reply_context,
)
from dynolog.model.errors import WireError

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
PID = st.integers(1, 2**31 - 1)


def datagram(kind: bytes, payload: bytes, size: int | None = None) -> bytes:
    return struct.pack("=Q32s", len(payload) if size is None else size, kind) + payload


def request(mask: int = 3, count: int | None = None, job_id: int = 0, pids: tuple[int, ...] = (7, 1)) -> bytes:
    head = struct.pack("=iiq", mask, len(pids) if count is None else count, job_id)
    return datagram(b"req", head + struct.pack(f"={len(pids)}i", *pids))


@given(INT32, INT64, PID, st.lists(INT32, max_size=MAX_PIDS - 1))
def test_a_poll_is_read_as_it_was_written(mask: int, job_id: int, pid: int, ancestors: list[int]) -> None:
    pids = (pid, *ancestors)
    assert parse(memoryview(request(mask, None, job_id, pids))) == ConfigRequest(mask, job_id, pids)


@given(INT32, PID, INT64)
def test_a_registration_is_read_as_it_was_written(gpu: int, pid: int, job_id: int) -> None:
    assert parse(datagram(b"ctxt", struct.pack("=iiq", gpu, pid, job_id))) == ContextMessage(gpu, pid, job_id)


def test_the_bytes_of_a_poll() -> None:
    """Written out by hand, little-endian: both bits, no job, three pids."""
    sent = bytes.fromhex(
        "1c00000000000000" + "726571".ljust(64, "0") + "03000000" + "03000000" + "0000000000000000"
        "350b0000" + "2a0b0000" + "01000000"
    )
    assert parse(sent) == ConfigRequest(EVENTS | ACTIVITIES, 0, (2869, 2858, 1))


@given(st.binary(max_size=29))
def test_rubbish_after_the_nul_of_the_type_is_ignored(rest: bytes) -> None:
    assert parse(datagram(b"req\0" + rest[:28], request()[40:])) == ConfigRequest(3, 0, (7, 1))


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"", "0 bytes, where the header"),
        (b"x" * 39, "39 bytes, where the header"),
        (datagram(b"req", b"", size=2**64 - 1), "promises 18446744073709551615 bytes of payload and 0 came"),
        (datagram(b"req", request()[40:], size=23), "promises 23 bytes of payload and 24 came"),
        (datagram(b"req", b"1234567890"), "10 bytes, where its fixed part has 16"),
        (request(count=-1), "counts -1 pids"),
        (request(count=0, pids=()), "counts 0 pids"),
        (request(count=2**31 - 1), "counts 2147483647 pids and carries 8 bytes"),
        (request(count=1), "counts 1 pids and carries 8 bytes"),
        (request(count=3), "counts 3 pids and carries 8 bytes"),
        (request(pids=(0, 1)), "calls itself pid 0"),
        (request(pids=(-5, 1)), "calls itself pid -5"),
        (request(pids=(1,) * (MAX_PIDS + 1)), f"more than the {MAX_DATAGRAM_BYTES} bytes"),
        (datagram(b"ctxt", b"x" * 15), "registration of 15 bytes"),
        (datagram(b"ctxt", b"x" * 17), "registration of 17 bytes"),
        (datagram(b"ctxt", struct.pack("=iiq", 0, 0, 0)), "calls itself pid 0"),
        (datagram(b"reqs", b""), "unknown message type 'reqs'"),
        (datagram(b"", b""), "unknown message type ''"),
        (datagram(b"r" * 32, b""), "'r{32}' does not end with a NUL"),
        (datagram(b"req" + b"\xff" * 29, b""), "does not end with a NUL"),
    ],
)
def test_what_is_wrong_is_said(sent: bytes, reason: str) -> None:
    with pytest.raises(WireError, match=reason):
        parse(sent)


@given(st.binary(max_size=200))
@example(b"\0" * 40)
def test_no_bytes_do_anything_but_parse_or_be_refused(sent: bytes) -> None:
    try:
        parse(sent)
    except WireError as error:
        assert str(error)


@given(st.sampled_from([b"req", b"ctxt"]), st.binary(max_size=120), st.integers(-4, 4))
def test_a_right_type_with_any_payload(kind: bytes, payload: bytes, wrong_by: int) -> None:
    try:
        message = parse(datagram(kind, payload, max(len(payload) + wrong_by, 0)))
    except WireError:
        return
    assert wrong_by == 0 or not payload
    assert isinstance(message, ConfigRequest if kind == b"req" else ContextMessage)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=500))
def test_a_config_travels_whole(text: str) -> None:
    reply = reply_config(text)
    size, kind = struct.unpack_from("=Q32s", reply)
    assert kind == b"req".ljust(32, b"\0")
    assert size == len(reply) - 40
    assert reply[40:].decode() == text


def test_a_path_that_is_not_utf8_keeps_its_bytes() -> None:
    assert reply_config("ACTIVITIES_LOG_FILE=/tmp/\udcff.json").endswith(b"/tmp/\xff.json")


def test_a_config_that_no_socket_takes_is_refused() -> None:
    assert len(reply_config("x" * MAX_CONFIG_BYTES)) == MAX_CONFIG_BYTES + 40
    with pytest.raises(WireError, match="65537 bytes"):
        reply_config("x" * (MAX_CONFIG_BYTES + 1))


@given(INT32)
def test_a_registration_is_answered_with_the_count(count: int) -> None:
    assert reply_context(count) == datagram(b"ctxt", struct.pack("=i", count))
