"""One HTTP/1.1 connection, without a socket.

It has the methods of an asyncio protocol, and is driven by asyncio or by our own `Reactor` alike. Requests
are answered one after the other; of pipelined ones the next is parsed when the one before is answered.
"""

from __future__ import annotations

import time

from .body_budget import HeldBody
from .chunked_body import ChunkedBody
from .exchange import Exchange, refusal
from .request_head import MalformedRequest, RequestHead, cut_head
from .sized_body import SizedBody

IDLE_SECONDS = 75.0
HEAD_SECONDS = 10.0
BODY_SECONDS = 30.0
BODY_BYTES_PER_SECOND = 1024
WRITE_SECONDS = 120.0
LINGER_SECONDS = 2.0
_PIPELINE_LIMIT = 128 * 1024

_HEAD, _BODY, _ANSWER, _LINGER, _CLOSED, _UPGRADED = range(6)


class Connection:
    """`service.handle(exchange)` is called with each complete request."""

    __slots__ = (
        "_advancing", "_body", "_buffer", "_deadline", "_eof", "_exchange", "_head", "_held",
        "_reading_paused", "_service", "_state", "_transport", "_upgraded", "_write_deadline", "closing", "peer", "write_paused",
    )  # fmt: skip

    def __init__(self, service) -> None:
        self._service = service
        self._transport = None
        self._state = _HEAD
        self._buffer = b""
        self._head: RequestHead | None = None
        self._body: ChunkedBody | SizedBody | None = None
        self._held = HeldBody(service.bodies)
        self._exchange: Exchange | None = None
        self._advancing = False
        self._reading_paused = False
        self._eof = False
        self._upgraded = None
        self._write_deadline = 0.0
        self._deadline = time.monotonic() + HEAD_SECONDS
        self.closing = False
        self.write_paused = False
        self.peer = ""

    # What the event loop calls.

    def connection_made(self, transport) -> None:
        self._transport = transport
        name = transport.get_extra_info("peername")
        self.peer = name[0] if isinstance(name, tuple) else ""
        self._service.connections.add(self)

    def data_received(self, data: bytes) -> None:
        state = self._state
        if state == _BODY:
            self._receive_body(data)
        elif state == _HEAD:
            if not self._buffer:
                self._deadline = time.monotonic() + HEAD_SECONDS
            self._buffer = self._buffer + data if self._buffer else data
            self._advance()
        elif state == _ANSWER:
            self._buffer += data
            if len(self._buffer) > _PIPELINE_LIMIT and not self._reading_paused:
                self._reading_paused = True
                self._transport.pause_reading()
        elif state == _UPGRADED:
            self._upgraded.data_received(data)

    def eof_received(self) -> bool:
        """A client may close its side and still wait for the answer."""
        self._eof = True
        if self._state == _ANSWER:
            return True
        self._state = _CLOSED
        return False

    def connection_lost(self, _error: Exception | None) -> None:
        self._state = _CLOSED
        self._service.connections.discard(self)
        exchange = self._exchange
        if exchange in self._service.pending:
            exchange.held = self._held  # the call goes on, and has the body
        else:
            self._held.release()
        if exchange is not None:
            self._exchange = None
            exchange.gone = True
            self._service.cancelled(exchange)
        if self._upgraded is not None:
            self._upgraded.connection_lost()

    def pause_writing(self) -> None:
        self.write_paused = True
        self._write_deadline = time.monotonic() + WRITE_SECONDS

    def resume_writing(self) -> None:
        self.write_paused = False
        if self._exchange is not None and self._exchange.on_drain is not None:
            self._exchange.on_drain()

    # What an exchange calls.

    def closes_after(self, head: RequestHead) -> bool:
        # Who has closed its side may still wait for the answers to what it has sent by then.
        return not head.keep_alive or self._eof and not self._buffer or self._service.draining

    def write(self, data: bytes) -> None:
        self._transport.write(data)

    def answered(self, data: bytes, closing: bool) -> None:
        """Writes the end of a response, then closes or continues with the next request."""
        if data:
            self._transport.write(data)
        self._exchange = None
        self._held.release()
        if self._state == _CLOSED:
            return
        if closing:
            self._state = _CLOSED
            self._transport.close()
            return
        self._state = _HEAD
        self._deadline = time.monotonic() + IDLE_SECONDS
        if self._reading_paused:
            self._reading_paused = False
            self._transport.resume_reading()
        if self._buffer:
            self._deadline = time.monotonic() + HEAD_SECONDS
            if not self._advancing:
                self._advance()

    def fileno(self) -> int:
        """-1 when it is closed."""
        connected = self._transport.get_extra_info("socket")
        return connected.fileno() if connected is not None else -1

    def abort(self) -> None:
        self._transport.abort()

    def close(self) -> None:
        """When all that was written has left."""
        self._transport.close()

    def upgrade(self, protocol, head: bytes) -> None:
        """Ends HTTP: after this head all bytes are the protocol's, which has `data_received`, `connection_lost`,
        `sweep` and `going_away`."""
        self._state = _UPGRADED
        self._upgraded = protocol
        self._transport.write(head)
        rest, self._buffer = self._buffer, b""
        if self._reading_paused:
            self.resume_reading()
        if rest:
            protocol.data_received(rest)

    def pause_reading(self) -> None:
        self._reading_paused = True
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._reading_paused = False
        self._transport.resume_reading()

    # What the service calls.

    def sweep(self, now: float) -> None:
        """Ends the connection if it has been too slow. Called about once a second."""
        if self.write_paused and now > self._write_deadline:
            # What is buffered is bounded, so this is a client that has all but stopped reading.
            self._transport.abort()
        elif self._state == _UPGRADED:
            self._upgraded.sweep(now)
        elif self._state != _ANSWER and now > self._deadline:
            if self._state == _HEAD and not self._buffer or self._state >= _LINGER:
                self._transport.close() if self._state == _HEAD else self._transport.abort()
                self._state = _CLOSED
            else:
                self._refuse(MalformedRequest(408, "request was sent too slowly"))

    def close_if_idle(self) -> None:
        if self._state == _UPGRADED:
            return self._upgraded.going_away()
        if self._state == _HEAD and not self._buffer:
            self._state = _CLOSED
            self._transport.close()

    # Parsing.

    def _advance(self) -> None:
        """Takes requests from the buffer. A loop, not recursion: an answer may come before `handle` returns."""
        self._advancing = True
        try:
            while self._state == _HEAD and self._buffer and self._take_head():
                pass
        except MalformedRequest as error:
            self._refuse(error)
        finally:
            self._advancing = False

    def _take_head(self) -> bool:
        found = cut_head(self._buffer)
        if found is None:
            return False
        head, self._buffer = found
        if head is None:
            return True
        self._head = head
        if not head.content_length and not head.chunked:
            self._deliver(head, b"")
            return True
        self._begin_body(head, self._buffer)
        return self._state == _HEAD

    def _begin_body(self, head: RequestHead, rest: bytes) -> None:
        limit = self._service.body_limit
        if head.content_length > limit:
            raise MalformedRequest(413, "the request body is larger than its limit (FUNC_BODY_MB_LIMIT)")
        if not head.chunked:
            self._held.announce(head.content_length)
        self._deadline = time.monotonic() + BODY_SECONDS
        self._buffer = b""
        self._body = ChunkedBody(limit) if head.chunked else SizedBody(head.content_length)
        self._state = _BODY
        if rest:
            self._receive_body(rest)
        elif head.expects_continue:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _receive_body(self, data: bytes) -> None:
        body = self._body
        try:
            self._held.add(len(data))
            body.feed(data)
        except MalformedRequest as error:
            return self._refuse(error)
        self._deadline += len(data) / BODY_BYTES_PER_SECOND
        if body.done:
            self._buffer = body.rest
            self._body = None
            self._complete(body.body.take())

    def _complete(self, body: bytes) -> None:
        self._deliver(self._head, body)
        if self._state == _HEAD and self._buffer and not self._advancing:
            self._advance()

    def _deliver(self, head: RequestHead, body: bytes) -> None:
        self._state = _ANSWER
        exchange = self._exchange = Exchange(self, head, body, self.peer)
        self._service.handle(exchange)

    def _refuse(self, error: MalformedRequest) -> None:
        """Answers an error and closes, reading on for a moment: closing on unread bytes would reset the
        connection and destroy the answer on its way."""
        fields = b""
        if error.status == 413 and self._head is not None:
            from .request_log import log_refused

            fields = log_refused(self._head, error.reason)
        elif error.status == 503:
            fields = b"retry-after: 1\r\n"
        self._transport.write(refusal(error.status, error.reason, fields))
        self._buffer = b""
        self._body = None
        self._held.release()
        self._state = _LINGER
        self._deadline = time.monotonic() + LINGER_SECONDS
        try:
            if self._transport.can_write_eof():
                self._transport.write_eof()
        except OSError:
            # The other side has reset the connection a moment ago: no response can be sent.
            self._transport.abort()
