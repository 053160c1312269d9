"""WebSockets of ASGI applications (ASGI's WebSocket message format; RFC 6455)."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import time
from collections import deque

from .asgi import scope_of
from .exchange import TEXT as PLAIN
from .exchange import Exchange, status_line
from .reply import header_lines
from .request_head import RequestHead
from .websocket_frames import (
    BINARY,
    CLOSE,
    PING,
    PONG,
    TEXT,
    FrameReader,
    ProtocolError,
    close_frame,
    frame,
    read_close,
    read_text,
)

_ACCEPT_SALT = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_UNREAD_LIMIT = 1024 * 1024
"""Bytes that may wait for the application before the client must."""
_MESSAGE_COST = 1024
"""What each message counts in addition to its bytes."""
_PING_SECONDS, _SILENCE_SECONDS, _CLOSE_SECONDS = 25.0, 60.0, 2.0


def is_websocket(head: RequestHead) -> bool:
    """Whether the client asks to switch to WebSocket."""
    headers = head.headers
    return (
        headers.get("upgrade", "").lower() == "websocket"
        and head.method == "GET"
        and head.http11
        and "upgrade" in headers.get("connection", "").lower()
    )


async def call_asgi_websocket(app, exchange: Exchange, state: dict, limit: int, accepted) -> None:
    """Runs the application for one WebSocket; `accepted()` is called when it has said yes."""
    headers = exchange.head.headers
    if headers.get("sec-websocket-version") != "13":
        return exchange.respond(426, PLAIN + b"sec-websocket-version: 13\r\n", b"want WebSocket version 13\n")
    if not _is_key(headers.get("sec-websocket-key", "")):
        return exchange.respond(400, PLAIN, b"malformed sec-websocket-key\n")
    scope = scope_of(exchange, state)
    scope["type"] = "websocket"
    scope["scheme"] = "wss" if scope["scheme"] in ("https", "wss") else "ws"
    del scope["method"]
    protocols = headers.get("sec-websocket-protocol", "")
    scope["subprotocols"] = [each.strip() for each in protocols.split(",") if each.strip()]
    socket = AsgiWebSocket(exchange, limit, accepted)
    try:
        await app(scope, socket.receive, socket.send)
    except BaseException:
        socket.end(1011)
        raise
    socket.end(1000)


class AsgiWebSocket:
    """Between a `Connection`, which hands over bytes, and an application's `receive` and `send`."""

    def __init__(self, exchange: Exchange, limit: int, accepted) -> None:
        self._exchange = exchange
        self._accepted = accepted
        self._reader = FrameReader(limit)
        self._inbox: deque[tuple[int, dict]] = deque([(0, {"type": "websocket.connect"})])
        self._unread = 0
        self._arrived = asyncio.Event()
        self._open = False
        self._closing = False
        self._lost = False
        self._heard_at = self._pinged_at = time.monotonic()

    # What the connection calls.

    def data_received(self, data: bytes) -> None:
        self._heard_at = time.monotonic()
        if self._lost:
            return
        try:
            for opcode, payload in self._reader.feed(data):
                self._take(opcode, payload)
                if self._lost:
                    return
        except ProtocolError as error:
            self._begin_close(error.code, str(error))
            self._disconnected(error.code, str(error))

    def connection_lost(self) -> None:
        self._disconnected(1006, "")

    def going_away(self) -> None:
        """The server stops."""
        self._begin_close(1001)
        self._disconnected(1001, "")

    def sweep(self, now: float) -> None:
        if now - self._heard_at > _SILENCE_SECONDS:
            self._exchange.connection.abort()
        elif now - self._heard_at > _PING_SECONDS < now - self._pinged_at:
            self._pinged_at = now
            self._write(frame(PING, b""))

    # What the application calls.

    async def receive(self) -> dict:
        while not self._inbox:
            self._arrived.clear()
            await self._arrived.wait()
        cost, message = self._inbox.popleft()
        was_full = self._unread > _UNREAD_LIMIT
        self._unread -= cost
        if was_full and self._unread <= _UNREAD_LIMIT and not self._lost:
            self._exchange.connection.resume_reading()
        if message["type"] == "websocket.disconnect":
            self._put(0, message)  # it is told as often as it asks
        return message

    async def send(self, message: dict) -> None:
        kind = message["type"]
        if kind == "websocket.accept" and not self._open:
            self._accept(message)
        elif kind == "websocket.send" and self._open:
            text, data = message.get("text"), message.get("bytes")
            self._write(frame(BINARY, data) if text is None else frame(TEXT, text.encode()))
            await self._exchange.drained()
        elif kind == "websocket.close":
            if self._open:
                self._begin_close(message.get("code", 1000), message.get("reason") or "")
            else:
                self._exchange.respond(403, PLAIN, b"refused\n")
        else:
            raise RuntimeError(f"ASGI message {kind} is not supported now")

    def end(self, code: int) -> None:
        """The application is done."""
        if self._open:
            self._begin_close(code)
        else:
            # Without effect if it has refused.
            self._exchange.respond(403 if code == 1000 else 500, PLAIN, b"refused\n")

    def _accept(self, message: dict) -> None:
        exchange = self._exchange
        if exchange.gone:
            return
        key = exchange.head.headers["sec-websocket-key"].encode()
        answer = base64.b64encode(hashlib.sha1(key + _ACCEPT_SALT).digest())  # noqa: S324 - as RFC 6455 has it
        fields = header_lines((n.decode("latin-1"), v.decode("latin-1")) for n, v in message.get("headers") or ())
        if message.get("subprotocol"):
            fields += header_lines([("sec-websocket-protocol", message["subprotocol"])])
        self._open = True
        self._heard_at = time.monotonic()
        self._accepted()
        exchange.connection.upgrade(
            self,
            status_line(101)
            + b"upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: "
            + answer
            + b"\r\n"
            + fields
            + b"\r\n",
        )

    def _take(self, opcode: int, payload: bytes) -> None:
        if opcode == PING:
            # Whoever pings without reading the answers must not fill our memory with them.
            if not self._exchange.paused:
                self._write(frame(PONG, payload))
        elif opcode == CLOSE:
            code, reason = read_close(payload)
            if not self._closing:
                self._write(close_frame(1000 if code == 1005 else code))
            self._exchange.connection.close()
            self._disconnected(code, reason)
        elif opcode in (TEXT, BINARY):
            text = read_text(payload) if opcode == TEXT else None
            data = None if opcode == TEXT else payload
            self._put(
                len(payload) + _MESSAGE_COST, {"type": "websocket.receive", "text": text, "bytes": data}
            )

    def _put(self, cost: int, message: dict) -> None:
        self._inbox.append((cost, message))
        self._unread += cost
        self._arrived.set()
        if self._unread > _UNREAD_LIMIT >= self._unread - cost:
            self._exchange.connection.pause_reading()

    def _write(self, data: bytes) -> None:
        if not self._lost and not self._closing:
            self._exchange.connection.write(data)

    def _begin_close(self, code: int, reason: str = "") -> None:
        if self._closing or self._lost:
            return
        self._write(close_frame(code, reason))
        self._closing = True
        asyncio.get_running_loop().call_later(_CLOSE_SECONDS, self._exchange.connection.abort)

    def _disconnected(self, code: int, reason: str) -> None:
        if not self._lost:
            self._lost = True
            self._put(0, {"type": "websocket.disconnect", "code": code, "reason": reason})


def _is_key(key: str) -> bool:
    try:
        return len(base64.b64decode(key, validate=True)) == 16
    except (binascii.Error, ValueError):
        return False
