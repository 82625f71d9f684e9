"""Length-prefixed messages over a socket, between the pool and its workers."""

import socket
import struct

HEADER = struct.Struct("!I")
LONGEST_MESSAGE = 4 * 1024 * 1024


def receive(channel: socket.socket) -> bytes | None:
    """Read one length-prefixed message; None when the other side is gone."""
    head = _exactly(channel, HEADER.size)
    if head is None:
        return None
    (size,) = HEADER.unpack(head)
    return _exactly(channel, size) if size <= LONGEST_MESSAGE else None


def send(channel: socket.socket, message: bytes) -> None:
    """Write one length-prefixed message."""
    channel.sendall(HEADER.pack(len(message)) + message)


def _exactly(channel: socket.socket, size: int) -> bytes | None:
    pieces = bytearray()
    while len(pieces) < size:
        piece = channel.recv(size - len(pieces))
        if not piece:
            return None
        pieces += piece
    return bytes(pieces)
