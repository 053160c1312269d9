"""Holds the port that a debugger connects to (`FUNC_INSPECT`) while processes with the user's code come and go.

Each of them has a debugger port of its own, on loopback: while the code is loaded anew there are two, and one that
has died may keep its port for a while. A connection is joined to the newest process; when that ends, so does the connection.
"""

from __future__ import annotations

import _socket as socket

from .reactor import Reactor
from .transport import Listener, StreamTransport
from .worker_process import WorkerProcess

_BACKLOG = 16
_RETRY_SECONDS = 0.05
_PATIENCE_SECONDS = 30.0
"""How long a connection waits for a process that is just starting."""


class DebuggerRelay:
    def __init__(self, reactor: Reactor, listening: socket.socket) -> None:
        self._reactor = reactor
        self._workers: list[WorkerProcess] = []
        listening.listen(_BACKLOG)
        self._listener = Listener(reactor, listening, self._accept)

    def add(self, worker: WorkerProcess) -> None:
        self._workers = [*(each for each in self._workers if not each.ended), worker]

    def _accept(self) -> _Side:
        client = _Side()
        self._reactor.call_later(0, lambda: self._join(client, _PATIENCE_SECONDS))
        return client

    def _join(self, client: _Side, patience: float) -> None:
        if client.transport is None:
            return
        ports = [each.shared.debugger_port for each in self._workers if not each.ended]
        port = next((each for each in reversed(ports) if each), 0)
        if port:
            process = _Side()
            process.other = client
            connected = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            try:
                connected.connect(("127.0.0.1", port))
            except OSError:
                connected.close()
            else:
                StreamTransport(self._reactor, connected, process)
                return client.join(process)
        if patience <= 0:
            return client.transport.abort()
        self._reactor.call_later(_RETRY_SECONDS, lambda: self._join(client, patience - _RETRY_SECONDS))


class _Side:
    """One of two joined connections: what it receives is written to the other."""

    def __init__(self) -> None:
        self.transport: StreamTransport | None = None
        self.other: _Side | None = None
        self.write_paused = False
        self._early = b""

    def join(self, other: _Side) -> None:
        self.other = other
        if self._early:
            early, self._early = self._early, b""
            other.transport.write(early)
            self.transport.resume_reading()

    def connection_made(self, transport: StreamTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if self.other is None:
            self._early = data
            self.transport.pause_reading()
        elif self.other.transport is not None:
            self.other.transport.write(data)

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, _error: Exception | None) -> None:
        self.transport = None
        if self.other is not None and self.other.transport is not None:
            self.other.transport.close()

    def pause_writing(self) -> None:
        self.write_paused = True
        if self.other is not None and self.other.transport is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        self.write_paused = False
        if self.other is not None and self.other.transport is not None:
            self.other.transport.resume_reading()
