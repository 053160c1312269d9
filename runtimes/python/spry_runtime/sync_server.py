"""The server for synchronous handlers: it holds the connections, and hands each call to a worker process.

A worker that dies takes only the calls that it has begun with it; what it had not begun is its successor's.
"""

from __future__ import annotations

import os
import time
from _collections import deque

from . import channel
from .channel import begin_frame, encode
from .connection import Connection
from .exchange import ERROR_BODY, TEXT, Exchange
from .log import log
from .reactor import Reactor
from .service import TIMEOUT_BODY, Service
from .transport import Listener
from .worker_pool import PROMOTE_SECONDS
from .worker_pools import WorkerPools
from .worker_process import WorkerProcess

_STOP_SECONDS = 10.0
_AHEAD = 4
"""How many requests a worker may have that answers one at a time, as long as its calls are quick."""
_LARGE = 64 * 1024


class SyncServer(Service):
    """`first` has loaded the code; `spawn()` forks another worker that begins to."""

    def __init__(self, settings, metrics, reactor: Reactor, listening, first: WorkerProcess, spawn) -> None:
        super().__init__(settings, metrics)
        self._reactor = reactor
        self._listener = Listener(reactor, listening, lambda: Connection(self))
        self._pools = WorkerPools(self, reactor, first, spawn)
        self._limit = settings.threads
        """How many calls a worker may have."""
        self._waiting: deque[Exchange] = deque()
        self._next_id = 0
        self.typical_seconds = 0.0
        self.call_seconds = 0.0
        """How long all calls have taken that have ended, in sum."""

    # Life.

    def run(self) -> int:
        self._reactor.call_later(self.sweep_seconds, self._tick)
        self._reactor.run()
        self._pools.close(patience=_STOP_SECONDS)
        return self._pools.exit_code

    def one_at_a_time(self) -> None:
        """A worker gets a request when it has answered the one before; several take turns."""
        self._limit = 1
        self._pools.grows = not self.settings.inspect

    def terminate(self) -> None:
        """Goes on answering for a moment, with connection: close; then drains."""
        if self.draining:
            return
        self.draining = True
        self._reactor.call_later(self.settings.shutdown_delay, self._stop_listening)

    def processes(self) -> list[int]:
        return [os.getpid(), *self._pools.processes()]

    def children_changed(self) -> None:
        self._pools.children_changed()

    def reload(self) -> None:
        self._pools.reload()

    def _stop_listening(self) -> None:
        self._listener.close()
        self.close_idle()
        self._stop_when_done()

    def _stop_when_done(self) -> None:
        """Connections close with their last answer, or when a limit of time ends them."""
        if self.connections:
            self._reactor.call_later(0.02, self._stop_when_done)
        else:
            self._reactor.stop()

    def _tick(self) -> None:
        self._reactor.call_later(self.sweep_seconds, self._tick)
        self.sweep()
        self._pools.tick(self.settings.timeout, self.sweep_seconds)

    @property
    def healthy(self) -> bool:
        return self._pools.serves

    # Calls.

    def dispatch(self, exchange: Exchange) -> None:
        worker = self._worker_for(exchange)
        if worker is not None:
            self._send(worker, exchange)
        elif len(self._waiting) < self.settings.queue:
            self._waiting.append(exchange)
            self._pools.grow_soon()
        else:
            self.overloaded(exchange)

    def _worker_for(self, exchange: Exchange) -> WorkerProcess | None:
        worker = self._pools.free(self._limit)
        if worker is None and self._pools.grows and self.typical_seconds < PROMOTE_SECONDS and len(exchange.body) < _LARGE:
            worker = self._pools.free(_AHEAD)
        return worker

    def _send(self, worker: WorkerProcess, exchange: Exchange) -> None:
        self._next_id = exchange_id = (self._next_id + 1) & 0xFFFFFFFF
        worker.outstanding[exchange_id] = exchange
        peer = exchange.peer.encode()
        exchange.state = _Call(worker, exchange_id, worker.frames_sent + 1)
        head, body = peer + exchange.head.raw, exchange.body
        if body:
            worker.shared.held = self.bodies.held
        if len(body) < _LARGE:
            worker.pool.write(worker, encode(channel.REQUEST, exchange_id, len(peer), head, body))
        else:
            worker.pool.write(worker, begin_frame(channel.REQUEST, exchange_id, len(peer), head, len(body)), body)
            worker.large.append(exchange)
        if self.typical_seconds > PROMOTE_SECONDS and len(worker.outstanding) > 1:
            worker.promote(1)
        if not worker.watched:
            worker.pool.watch_readers(worker)

    def taken(self, worker: WorkerProcess, count: int) -> None:
        """So many frames are the worker's now: the bodies in them need no other copy."""
        if worker.large:
            rest = []
            for exchange in worker.large:
                if exchange.state is None or exchange.state.worker is not worker:
                    continue
                if exchange.state.frame > count:
                    rest.append(exchange)
                else:
                    exchange.body = b""
            worker.large = rest

    def heard(
        self, worker: WorkerProcess, kind: int, exchange_id: int, number: int, head: bytes, body: bytes, seconds: float
    ) -> None:
        """A worker says something about an exchange."""
        exchange = worker.outstanding.get(exchange_id)
        if exchange is None:
            if kind == channel.DECLINED:
                self._pools.declined(worker, exchange_id)
            return
        if kind == channel.REPLY or kind == channel.FAILED:
            exchange.respond(number, head, body)
            self._finish(worker, exchange_id, exchange, number, seconds, kind == channel.FAILED)
        elif kind == channel.START:
            call = exchange.state
            call.status = number
            worker.streams = True
            exchange.on_drain = lambda: self._credit(worker, exchange_id, exchange)
            exchange.start(number, head, None if seconds < 0 else int(seconds))
        elif kind == channel.PIECE:
            exchange.write(body)
            exchange.state.owed += len(body)
            if not exchange.paused:
                self._credit(worker, exchange_id, exchange)
        elif kind == channel.DECLINED:
            self._take_back(worker, exchange_id, exchange, body)
        else:
            exchange.finish() if kind == channel.END else exchange.break_off()
            self._finish(worker, exchange_id, exchange, exchange.state.status, seconds, kind == channel.BROKEN)

    def _finish(
        self, worker: WorkerProcess, exchange_id: int, exchange: Exchange, status: int, seconds: float, failed: bool
    ) -> None:
        del worker.outstanding[exchange_id]
        exchange.state = exchange.on_drain = None
        worker.streams = False
        self.typical_seconds += (seconds - self.typical_seconds) * 0.1
        self.call_seconds += seconds
        self.settle(exchange, status, seconds, failed)
        if worker.retiring:
            worker.pool.end_if_done(worker)
        if self._waiting:
            self._send_waiting()

    def _take_back(self, worker: WorkerProcess, exchange_id: int, exchange: Exchange, body: bytes) -> None:
        del worker.outstanding[exchange_id]
        exchange.state = None
        exchange.body = body
        self._waiting.appendleft(exchange)
        worker.pool.end_if_done(worker)
        self._send_waiting()

    def _send_waiting(self) -> None:
        while self._waiting:
            if self._waiting[0] not in self.pending:
                self._waiting.popleft()
            elif (worker := self._worker_for(self._waiting[0])) is not None:
                self._send(worker, self._waiting.popleft())
            else:
                return

    def held_up(self, worker: WorkerProcess) -> None:
        """It has begun no call for a while, though it has some."""
        self._pools.held_up(worker)

    def give_back(self, exchanges: list[Exchange]) -> None:
        """These are no longer their worker's, or it takes requests again."""
        self._waiting.extendleft(reversed(exchanges))
        self._send_waiting()
        if self._waiting:
            self._pools.grow_soon()

    def _credit(self, worker: WorkerProcess, exchange_id: int, exchange: Exchange) -> None:
        call = exchange.state
        if call is not None and call.owed and not worker.ended:
            worker.pool.write(worker, encode(channel.CREDIT, exchange_id, seconds=call.owed))
            call.owed = 0

    def cancelled(self, exchange: Exchange) -> None:
        call = exchange.state
        if call is not None and call.status:
            call.worker.pool.write(call.worker, encode(channel.CANCEL, call.id))

    def timed_out(self, exchange: Exchange) -> None:
        call = exchange.state
        seconds = time.perf_counter() - exchange.started
        unread = exchange.paused
        limit = f"FUNC_TIMEOUT ({self.settings.timeout:g} s)"
        from .request_log import log_refused

        if unread:
            # It waits for its client, which has disconnected: not a fault of the process.
            why = f"the client did not read the response within {limit}, closing its connection"
        elif call is None or call.frame > call.worker.shared.frames_taken:
            why = f"no response within {limit}; others were called until then"
        else:
            why = f"no response within {limit}, ending the call"
        field = log_refused(exchange.head, why)
        if call is None or call.status == 0:
            exchange.respond(408, TEXT + field, TIMEOUT_BODY)
        else:
            exchange.break_off()
            if call.status and unread:
                self.cancelled(exchange)
        self.settle(exchange, 408, seconds, True)
        if call is None:
            return  # it was still waiting
        worker = call.worker
        del worker.outstanding[call.id]
        exchange.state = None
        worker.streams = False
        if call.frame <= worker.shared.frames_taken and not unread:
            worker.pool.retire(worker)

    @property
    def waits(self) -> bool:
        return bool(self._waiting)

    def wait_seconds(self) -> float:
        """For how long the next request has waited for others."""
        while self._waiting and self._waiting[0] not in self.pending:
            self._waiting.popleft()
        return time.perf_counter() - self._waiting[0].started if self._waiting else 0.0

    # What becomes of a worker's calls.

    def succeeded(self, former: WorkerProcess | None) -> None:
        """The current worker is another now: what the former has not begun is its successor's."""
        if former is not None:
            self._waiting.extendleft(reversed(self._split(former)[1]))
        self._send_waiting()

    def lost(self, worker: WorkerProcess, how: str) -> None:
        """A worker has ended by itself."""
        begun, untouched = self._split(worker)
        if begun or not worker.retiring:
            log(f"worker process ended ({how}) during {len(begun)} call(s)")
        worker.outstanding.clear()
        from .request_log import log_refused

        for exchange in begun:
            status = exchange.state.status
            exchange.state = None
            field = log_refused(exchange.head, f"the process that was handling it ended ({how})")
            exchange.respond(500, TEXT + field, ERROR_BODY) if not status else exchange.break_off()
            self.settle(exchange, status or 500, time.perf_counter() - exchange.started, True)
        self._waiting.extendleft(reversed(untouched))
        self._send_waiting()

    def _split(self, worker: WorkerProcess) -> tuple[list[Exchange], list[Exchange]]:
        """Its calls that have begun, and those that have not and are now no longer its own."""
        taken = worker.shared.frames_taken
        begun, untouched = [], []
        for exchange_id, exchange in list(worker.outstanding.items()):
            if exchange.state.frame <= taken:
                begun.append(exchange)
            else:
                del worker.outstanding[exchange_id]
                exchange.state = None
                untouched.append(exchange)
        return begun, untouched


class _Call:
    """What is remembered of an exchange that a worker has."""

    __slots__ = ("began", "frame", "id", "owed", "status", "worker")

    def __init__(self, worker: WorkerProcess, exchange_id: int, frame: int) -> None:
        self.worker = worker
        self.id = exchange_id
        self.began = time.perf_counter()
        self.frame = frame
        """Its request was the worker's n-th frame."""
        self.owed = 0
        self.status = 0
        """Set when a streamed answer has begun."""
