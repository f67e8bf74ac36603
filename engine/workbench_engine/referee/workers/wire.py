"""Frames between the measuring station and a worker: 4-byte little-endian length, one byte of kind, a payload.

Standard library only and importable by path: it is mounted into cages that hold nothing else of ours.
"""

from __future__ import annotations

import array
import socket
import struct
import time

HEADER = struct.Struct("<IB")
NONCE = 8
CLAIM = struct.Struct(f"<q{NONCE}s")
"""Nanoseconds that the worker claims, and the nonce of the request: an answer written ahead of time cannot know it."""
FRAME_LIMIT = 8 << 20

SETUP, RUN, COLLECT, SET_STATE, RUN64, DESCRIBE, PREPARE, SHIFT = b"SRCWXIPH"
INSTANCE, MODE, CHAIN, GUARD, PROFILE, ESTIMATE = b"TMNGFZ"
OK, DONE, ERROR = b"ODE"

SECOND = 0x8000
"""Set in a slot's number: run it on the second instance of the model."""


class Closed(Exception):
    """The other side is gone."""


def send(channel: socket.socket, kind: int, payload: bytes = b"", fds: tuple[int, ...] = ()) -> None:
    """One frame; descriptors, if any, ride with its first byte. Raises Closed."""
    data = HEADER.pack(len(payload), kind) + payload
    try:
        if fds:
            sent = socket.send_fds(channel, [data], list(fds))
            data = data[sent:]
        if data:
            channel.sendall(data)
    except (BrokenPipeError, ConnectionResetError) as error:
        raise Closed from error


def receive(channel: socket.socket, max_fds: int = 0, until: float | None = None) -> tuple[int, bytes, list[int]]:
    """(kind, payload, descriptors). Raises Closed, ValueError for a frame over the limit, TimeoutError.

    `until`: on the monotonic clock, for the whole frame, however many pieces it comes in.
    """
    fds: list[int] = []
    head = b""
    while len(head) < HEADER.size:
        wait_no_longer(channel, until)
        try:
            if max_fds and not fds:
                part, received, _, _ = socket.recv_fds(channel, HEADER.size - len(head), max_fds)
                fds += received
            else:
                part = channel.recv(HEADER.size - len(head))
        except ConnectionResetError as error:
            raise Closed from error
        if not part:
            raise Closed
        head += part
    length, kind = HEADER.unpack(head)
    if length > FRAME_LIMIT:
        raise ValueError(f"frame of {length} bytes is over the limit of {FRAME_LIMIT}")
    payload = bytearray()
    while len(payload) < length:
        wait_no_longer(channel, until)
        try:
            part = channel.recv(min(1 << 20, length - len(payload)))
        except ConnectionResetError as error:
            raise Closed from error
        if not part:
            raise Closed
        payload += part
    return kind, bytes(payload), fds


def wait_no_longer(channel: socket.socket, until: float | None) -> None:
    """The channel's next wait ends at `until`. Raises TimeoutError when that is past."""
    if until is not None:
        left = until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        channel.settimeout(left)


def pack_slots(slots: list[int]) -> bytes:
    return array.array("H", slots).tobytes()


def unpack_slots(payload: bytes) -> list[int]:
    return array.array("H", payload).tolist()


def unpack_run(payload: bytes) -> tuple[bytes, list[int]]:
    """(nonce to echo, slots) of a RUN request."""
    return payload[:NONCE], unpack_slots(payload[NONCE:])


def error(text: str, finding: str = "") -> bytes:
    """Payload of an ERROR: a finding's code on a line of its own, then the text."""
    return f"{finding}\n{text}".encode() if finding else text.encode()
