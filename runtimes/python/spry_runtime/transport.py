"""Sockets on a `Reactor`. They have the methods of asyncio's transports that `Connection` uses."""

from __future__ import annotations

import _socket as socket
import errno

from .log import log_error
from .reactor import READ, WRITE, Reactor

# Below the size from which malloc maps memory anew for each call.
_RECEIVE_BYTES = 64 * 1024
_HIGH_WATER = 64 * 1024


class Listener:
    """Accepts connections and gives each a new protocol."""

    def __init__(self, reactor: Reactor, listening: socket.socket, protocol_factory) -> None:
        self._reactor = reactor
        self._socket = listening
        self._factory = protocol_factory
        self._closed = False
        self._watch()

    def close(self) -> None:
        """Also of the socket. Those that have connected by now are accepted: closing would reset them."""
        if not self._closed:
            self._closed = True
            self._accept(READ)
            self._reactor.forget(self._socket.fileno())
            self._socket.close()

    def _watch(self) -> None:
        if not self._closed:
            self._reactor.watch(self._socket.fileno(), READ, self._accept)

    def _accept(self, _events: int) -> None:
        for _ in range(64):
            try:
                fd, _ = self._socket._accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    raise
                # Out of descriptors: those who wait in the backlog get their turn when others have left.
                self._reactor.forget(self._socket.fileno())
                self._reactor.call_later(0.1, self._watch)
                return
            accepted = socket.socket(self._socket.family, socket.SOCK_STREAM, 0, fd)
            StreamTransport(self._reactor, accepted, self._factory())


class StreamTransport:
    """A connected TCP socket."""

    __slots__ = (
        "_buffer", "_closing", "_eof_after", "_events", "_fd", "_paused", "_protocol", "_reactor", "_socket",
    )  # fmt: skip

    def __init__(self, reactor: Reactor, connected: socket.socket, protocol) -> None:
        connected.setblocking(False)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reactor = reactor
        self._socket = connected
        self._fd = connected.fileno()
        self._protocol = protocol
        self._buffer = bytearray()
        self._closing = False
        self._eof_after = False
        self._paused = False
        self._events = READ
        protocol.connection_made(self)
        reactor.watch(self._fd, READ, self._ready)

    def get_extra_info(self, name: str):
        if name != "peername":
            return None
        try:
            return self._socket.getpeername()
        except OSError:
            return None

    def write(self, data: bytes) -> None:
        if self._socket is None:
            return
        if not self._buffer:
            try:
                sent = self._socket.send(data)
            except (BlockingIOError, InterruptedError):
                sent = 0
            except OSError as error:
                return self._drop(error)
            if sent == len(data):
                return
            data = data[sent:]
        self._buffer += data
        self._update()
        if len(self._buffer) > _HIGH_WATER:
            self._protocol.pause_writing()

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self._eof_after = True
        if not self._buffer and self._socket is not None:
            self._send_eof()

    def close(self) -> None:
        """Closes after all written data has been sent."""
        self._closing = True
        if not self._buffer:
            self._drop(None)
        else:
            self._update()

    def abort(self) -> None:
        self._drop(None)

    def pause_reading(self) -> None:
        self._paused = True
        self._update()

    def resume_reading(self) -> None:
        self._paused = False
        self._update()

    def _ready(self, events: int) -> None:
        try:
            self._handle(events)
        except Exception as error:  # noqa: BLE001 - a fault in serving one connection must not end the others
            log_error("serving a connection", error)
            self._drop(None)

    def _handle(self, events: int) -> None:
        if events & WRITE and self._buffer:
            self._flush()
        # Errors and hang-ups are found out by reading.
        if events & ~WRITE and self._socket is not None:
            if self._paused or self._closing:
                if events & ~(READ | WRITE):
                    self._drop(None)
            else:
                self._read()

    def _read(self) -> None:
        try:
            data = self._socket.recv(_RECEIVE_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            return self._drop(error)
        if data:
            self._protocol.data_received(data)
        elif self._protocol.eof_received():
            # Stays open for the response, but must not be notified of the end of input again and
            # again.
            self.pause_reading()
        else:
            self.close()

    def _flush(self) -> None:
        try:
            sent = self._socket.send(self._buffer)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            return self._drop(error)
        del self._buffer[:sent]
        if self._buffer:
            return
        self._update()
        if self._eof_after:
            self._send_eof()
        if self._closing:
            self._drop(None)
        elif self._protocol.write_paused:
            self._protocol.resume_writing()

    def _send_eof(self) -> None:
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def _update(self) -> None:
        if self._socket is None:
            return
        events = (0 if self._paused or self._closing else READ) | (WRITE if self._buffer else 0)
        if events != self._events:
            self._events = events
            self._reactor.watch(self._fd, events, self._ready)

    def _drop(self, error: Exception | None) -> None:
        if self._socket is None:
            return
        self._reactor.forget(self._fd)
        self._socket.close()
        self._socket = None
        self._buffer = bytearray()
        protocol, self._protocol = self._protocol, None
        protocol.connection_lost(error)
