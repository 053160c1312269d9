"""One request and the answer to it, on a connection."""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .body_budget import HeldBody
    from .connection import Connection
    from .request_head import RequestHead

_REASONS = {
    101: "Switching Protocols",
    200: "OK", 201: "Created", 202: "Accepted", 204: "No Content", 206: "Partial Content",
    301: "Moved Permanently", 302: "Found", 303: "See Other", 304: "Not Modified",
    307: "Temporary Redirect", 308: "Permanent Redirect", 400: "Bad Request", 401: "Unauthorized",
    403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed", 406: "Not Acceptable",
    408: "Request Timeout", 409: "Conflict", 410: "Gone", 412: "Precondition Failed",
    413: "Content Too Large", 415: "Unsupported Media Type", 417: "Expectation Failed",
    422: "Unprocessable Content", 426: "Upgrade Required", 429: "Too Many Requests", 431: "Request Header Fields Too Large",
    500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway",
    503: "Service Unavailable", 504: "Gateway Timeout", 505: "HTTP Version Not Supported",
}  # fmt: skip
_status_lines: dict[int, bytes] = {}

TEXT = b"content-type: text/plain; charset=utf-8\r\n"
ERROR_BODY = b"Internal server error"


class Exchange:
    """What an application answers: `respond` once, or `start`, `write`… and `finish`.

    `fields` are finished header lines (each with its CRLF) without framing: content-length,
    transfer-encoding, connection and date are written here.
    """

    __slots__ = (
        "_waiter", "begun", "body", "connection", "gone", "head", "held", "length", "on_drain", "peer", "started", "state",
    )  # fmt: skip

    def __init__(self, connection: Connection, head: RequestHead, body: bytes, peer: str) -> None:
        self.connection = connection
        self.head = head
        self.body = body
        self.peer = peer
        self.started = time.perf_counter()
        self.gone = False
        """The client has hung up, or the answer is complete."""
        self.on_drain = None
        """Called when `paused` has become false again."""
        self.state: object = None
        """Whatever the application wants to remember."""
        self.length: int | None = None
        self.held: HeldBody | None = None
        """To be released when the call is over, because the client has disconnected before."""
        self.begun = False
        """`start` has been called."""
        self._waiter = None

    def respond(self, status: int, fields: bytes, body: bytes) -> None:
        if self.gone:
            return
        closing = self.connection.closes_after(self.head)
        if status < 200 or status == 204 or status == 304:
            body = length = b""
        else:
            length = b"content-length: %d\r\n" % len(body)
            if self.head.method == "HEAD":
                body = b""
        answer = b"".join((status_line(status), fields, length, _tail(self.head.http11, closing), body))
        # Not before it is there: what fails until then is still to be answered.
        self.gone = True
        if self._waiter is not None:
            self.wake()
        self.connection.answered(answer, closing)

    def start(self, status: int, fields: bytes, length: int | None) -> None:
        """Begins an answer that comes in pieces; of unknown length if `length` is None."""
        if self.gone:
            return
        self.begun = True
        bodiless = status == 204 or status == 304
        self.length = -1 if self.head.http11 and length is None else length
        if bodiless or self.head.method == "HEAD":
            self.length = -2
        closing = self.connection.closes_after(self.head) or self.length is None
        self.connection.closing = closing
        if bodiless:
            framing = b""
        elif length is not None:
            framing = b"content-length: %d\r\n" % length
        else:
            framing = b"transfer-encoding: chunked\r\n" if self.head.http11 else b""
        self.connection.write(status_line(status) + fields + framing + _tail(self.head.http11, closing))

    def write(self, piece: bytes) -> None:
        if self.gone or not piece or self.length == -2:
            return
        if self.length == -1:
            self.connection.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            return
        if self.length is not None:
            piece = piece[: self.length]
            self.length -= len(piece)
        self.connection.write(piece)

    def finish(self) -> None:
        if self.gone:
            return
        if self.length is not None and self.length > 0:
            return self.break_off()
        self.gone = True
        self.wake()
        self.connection.answered(b"0\r\n\r\n" if self.length == -1 else b"", self.connection.closing)

    def break_off(self) -> None:
        """Ends an answer that has begun but cannot be completed, so that the client notices."""
        if not self.gone:
            self.gone = True
            self.connection.abort()

    async def drained(self) -> None:
        """Waits until the client has read enough, or has disconnected."""
        if not self.paused:
            import asyncio

            # A Function with much to send to a quick client must not occupy the loop, nor miss the
            # end of its client.
            await asyncio.sleep(0)
        while self.paused and not self.gone:
            await self._wait()

    async def ended(self) -> None:
        """Waits until the response is complete, or the client has disconnected."""
        while not self.gone:
            await self._wait()

    def wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def _wait(self) -> None:
        import asyncio

        if self._waiter is None or self._waiter.done():
            self._waiter = asyncio.get_running_loop().create_future()
            self.on_drain = self.wake
        await asyncio.shield(self._waiter)

    @property
    def paused(self) -> bool:
        """The client reads more slowly than it is written to."""
        return self.connection.write_paused


def refusal(status: int, reason: str, fields: bytes = b"") -> bytes:
    """The whole response to a malformed request."""
    body = reason.encode() + b"\n"
    return status_line(status) + TEXT + fields + b"content-length: %d\r\nconnection: close\r\n\r\n" % len(body) + body


def status_line(status: int) -> bytes:
    line = _status_lines.get(status)
    if line is None:
        line = f"HTTP/1.1 {status} {_REASONS.get(status, 'Status')}\r\n".encode()
        if len(_status_lines) < 1000:
            _status_lines[status] = line
    return line


_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_extra = b""


def add_to_answers(line: bytes) -> None:
    """A header line, or nothing, that all answers of this process have from now on."""
    global _extra, _date_second
    _extra = line
    _date_second = 0


_date_second = 0
_date_line = b""


def _tail(http11: bool, closing: bool) -> bytes:
    """Date, connection and the empty line. Written by hand because strftime follows the user's locale."""
    global _date_second, _date_line
    now = int(time.time())
    if now != _date_second:
        t = time.gmtime(now)
        _date_line = (
            f"{_extra.decode()}date: {_DAYS[t[6]]}, {t[2]:02} {_MONTHS[t[1] - 1]} {t[0]} {t[3]:02}:{t[4]:02}:{t[5]:02} GMT\r\n\r\n"
        ).encode()
        _date_second = now
    if closing:
        return b"connection: close\r\n" + _date_line
    return _date_line if http11 else b"connection: keep-alive\r\n" + _date_line
