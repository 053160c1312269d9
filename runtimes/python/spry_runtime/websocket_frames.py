"""Frames of the WebSocket protocol, RFC 6455 section 5, without extensions."""

from __future__ import annotations

import struct

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
_CONTROL_LIMIT = 125
_SENDABLE_CODES = frozenset((1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014))


class ProtocolError(Exception):
    """What the connection ends with: `code` as in RFC 6455 section 7.4."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class FrameReader:
    """Makes messages of a client's bytes. A message is as large as `limit` at most."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._buffer = bytearray()
        self._opcode = 0
        self._pieces: list[bytes] = []
        self._held = 0

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        """The messages and control frames that are complete now: opcode and payload. Raises `ProtocolError`."""
        self._buffer += data
        found = []
        while (frame := self._take_frame()) is not None:
            final, opcode, payload = frame
            message = (opcode, payload) if opcode >= CLOSE else self._join(final, opcode, payload)
            if message is not None:
                found.append(message)
        return found

    def _take_frame(self) -> tuple[bool, int, bytes] | None:
        buffer = self._buffer
        if len(buffer) < 2:
            return None
        first, second = buffer[0], buffer[1]
        opcode, length, at = first & 0x0F, second & 0x7F, 2
        self._check(first, second, opcode, length)
        if length >= 126:
            size = 2 if length == 126 else 8
            if len(buffer) < 2 + size:
                return None
            length, at = int.from_bytes(buffer[2 : 2 + size], "big"), 2 + size
        if opcode < CLOSE and self._held + length > self._limit:
            raise ProtocolError(1009, "message too large")
        end = at + 4 + length
        if len(buffer) < end:
            return None
        payload = _unmask(bytes(buffer[at + 4 : end]), bytes(buffer[at : at + 4]))
        del buffer[:end]
        return bool(first & 0x80), opcode, payload

    @staticmethod
    def _check(first: int, second: int, opcode: int, length: int) -> None:
        if first & 0x70:
            raise ProtocolError(1002, "reserved bits are set")
        if opcode not in (CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG):
            raise ProtocolError(1002, "unknown opcode")
        if not second & 0x80:
            raise ProtocolError(1002, "frame is not masked")
        if opcode >= CLOSE and (length > _CONTROL_LIMIT or not first & 0x80):
            raise ProtocolError(1002, "control frame is too long or in pieces")

    def _join(self, final: bool, opcode: int, payload: bytes) -> tuple[int, bytes] | None:
        if (opcode == CONTINUATION) != bool(self._opcode):
            raise ProtocolError(1002, "unexpected continuation frame")
        self._opcode = opcode or self._opcode
        # An empty piece adds nothing but memory.
        if payload:
            self._pieces.append(payload)
            self._held += len(payload)
        if not final:
            return None
        message = self._opcode, b"".join(self._pieces)
        self._opcode, self._pieces, self._held = 0, [], 0
        return message


def frame(opcode: int, payload: bytes) -> bytes:
    """One that a server sends: whole and not masked."""
    length = len(payload)
    if length < 126:
        head = bytes((0x80 | opcode, length))
    elif length < 65536:
        head = struct.pack(">BBH", 0x80 | opcode, 126, length)
    else:
        head = struct.pack(">BBQ", 0x80 | opcode, 127, length)
    return head + payload


def close_frame(code: int, reason: str = "") -> bytes:
    text = reason.encode()[: _CONTROL_LIMIT - 2].decode(errors="ignore").encode()
    return frame(CLOSE, struct.pack(">H", code if is_close_code(code) else 1011) + text)


def read_close(payload: bytes) -> tuple[int, str]:
    """Code and reason; 1005 stands for none. Raises `ProtocolError`."""
    if not payload:
        return 1005, ""
    code = int.from_bytes(payload[:2], "big")
    if len(payload) == 1 or not is_close_code(code):
        raise ProtocolError(1002, "malformed close frame")
    return code, read_text(payload[2:])


def read_text(payload: bytes) -> str:
    try:
        return payload.decode()
    except UnicodeDecodeError:
        raise ProtocolError(1007, "text is not UTF-8") from None


def is_close_code(code: int) -> bool:
    return code in _SENDABLE_CODES or 3000 <= code <= 4999


def _unmask(payload: bytes, key: bytes) -> bytes:
    length = len(payload)
    mask = (key * (length // 4 + 1))[:length]
    return (int.from_bytes(payload, "big") ^ int.from_bytes(mask, "big")).to_bytes(length, "big")
