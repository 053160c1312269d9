"""The server for synchronous handlers: it holds the connections, a worker process runs the handler.

Mostly there is one worker, so a Function's module globals behave as in a single process. It has a thread
for each call that takes long (see `call_loop`). A worker with a call that is past its time is retired:
another is forked and loads the code, takes over, and the old one is killed as soon as its other calls are
done. A worker that dies takes only the calls that it has begun with it.
"""

from __future__ import annotations

import _signal as signal
import time
from _collections import deque

from . import channel
from .channel import FrameBuffer, encode
from .exchange import ERROR_BODY, TEXT, Exchange, add_to_answers
from .connection import Connection
from .log import log
from .reactor import READ, WRITE, Listener, Reactor
from .service import TIMEOUT_BODY, Service
from .worker_process import RECEIVE_BYTES, WorkerProcess

PROMOTE_SECONDS = 0.005
STALL_SECONDS = 5.0
_LOAD_ATTEMPTS = 5
_STOP_SECONDS = 10.0


class WorkerPool(Service):
    """`first` has loaded the code; `spawn()` forks another worker that begins to."""

    def __init__(self, settings, metrics, reactor: Reactor, listening, first: WorkerProcess, spawn) -> None:
        super().__init__(settings, metrics)
        self._reactor = reactor
        self._listening = listening
        self._listener = Listener(reactor, listening, lambda: Connection(self))
        self._spawn = spawn
        self._worker: WorkerProcess | None = first
        """The one that takes new calls."""
        self._coming: WorkerProcess | None = None
        self._retiring: set[WorkerProcess] = set()
        self._waiting: deque[Exchange] = deque()
        self._next_id = 0
        self._failed_loads = 0
        self._exit_code = 0
        self._reloading = False
        self._typical_seconds = 0.0

    # Life.

    def run(self) -> int:
        self._watch(self._worker)
        self._reactor.call_later(self.sweep_seconds, self._tick)
        self._reactor.run()
        for worker in (self._coming, *self._retiring):
            if worker is not None:
                self._end(worker)
        if self._worker is not None:
            self._end(self._worker, patience=_STOP_SECONDS)
        return self._exit_code

    def terminate(self) -> None:
        """Goes on answering for a moment, with connection: close; then drains."""
        if self.draining:
            return
        self.draining = True
        self._reactor.call_later(self.settings.shutdown_delay, self._stop_listening)

    def children_changed(self) -> None:
        """The end of a worker may not show on its channel: processes that it has started may hold that open."""
        for worker in (self._worker, self._coming, *self._retiring):
            if worker is not None and worker.has_exited():
                for _ in range(1000):  # what it had still to say
                    if worker.ended or not self._ready(worker, READ):
                        break
                if not worker.ended:
                    self._died(worker)

    def _stop_listening(self) -> None:
        self._listener.close()
        self._listening.close()
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
        self._relieve_stalled()

    @property
    def healthy(self) -> bool:
        return self._worker is not None

    # Calls.

    def dispatch(self, exchange: Exchange) -> None:
        worker = self._worker
        if worker is not None and len(worker.outstanding) < self.settings.threads:
            self._send(worker, exchange)
        elif len(self._waiting) < self.settings.queue:
            self._waiting.append(exchange)
        else:
            self.overloaded(exchange)

    def _send(self, worker: WorkerProcess, exchange: Exchange) -> None:
        self._next_id = exchange_id = (self._next_id + 1) & 0xFFFFFFFF
        worker.outstanding[exchange_id] = exchange
        peer = exchange.peer.encode()
        exchange.state = _Call(worker, exchange_id, worker.frames_sent + 1)
        self._write(
            worker, encode(channel.REQUEST, exchange_id, len(peer), peer + exchange.head.raw, exchange.body)
        )
        if self._typical_seconds > PROMOTE_SECONDS and len(worker.outstanding) > 1:
            worker.promote(1)
        if not worker.watched:
            self._watch_readers(worker)

    def _write(self, worker: WorkerProcess, frame: bytes) -> None:
        """Frames of one round of the loop leave in one system call."""
        worker.frames_sent += 1
        if not worker.outgoing:
            self._reactor.flush.append(lambda: self._flush(worker))
        worker.outgoing += frame

    def _flush(self, worker: WorkerProcess) -> None:
        if not worker.outgoing or worker.ended:
            return
        try:
            sent = worker.channel.send(worker.outgoing)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError:
            return  # it has died; reading tells
        del worker.outgoing[:sent]
        events = READ | WRITE if worker.outgoing else READ
        if events != worker.events:
            worker.events = events
            self._watch(worker)

    def _watch(self, worker: WorkerProcess) -> None:
        self._reactor.watch(worker.channel.fileno(), worker.events, lambda events: self._ready(worker, events))

    def _watch_readers(self, worker: WorkerProcess) -> None:
        """Looks again shortly whether all threads that read the channel are held up by their calls."""
        worker.watched = True
        taken_before = worker.shared.frames_taken

        def look() -> None:
            worker.watched = False
            if worker.ended:
                return
            taken = worker.shared.frames_taken
            stuck = worker.shared.busy and taken == taken_before
            if stuck:
                worker.promote(max(1, worker.frames_sent - taken))
            if taken < worker.frames_sent or worker.shared.busy and not stuck:
                self._watch_readers(worker)

        self._reactor.call_later(PROMOTE_SECONDS, look)

    def _ready(self, worker: WorkerProcess, events: int) -> bool:
        """Writes and reads once. False if there was nothing to read."""
        if events & WRITE and worker.outgoing:
            self._flush(worker)
        if not events & ~WRITE:
            return False
        try:
            data = worker.channel.recv(RECEIVE_BYTES)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            data = b""
        if not data:
            self._died(worker)
            return False
        frames = worker.frames
        frames.feed(data)
        while (frame := frames.next()) is not None:
            self._receive(worker, *frame)
        return True

    def _receive(
        self, worker: WorkerProcess, kind: int, exchange_id: int, number: int, head: bytes, body: bytes, seconds: float
    ) -> None:
        if kind == channel.READY:
            return self._take_over(worker)
        if kind == channel.NOT_LOADED:
            worker.load_error = body.decode()
            return None
        exchange = worker.outstanding.get(exchange_id)
        if exchange is None:
            return
        if kind == channel.REPLY or kind == channel.FAILED:
            exchange.respond(number, head, body)
            self._finish(worker, exchange_id, exchange, number, seconds, kind == channel.FAILED)
        elif kind == channel.START:
            call = exchange.state
            call.status = number
            exchange.on_drain = lambda: self._credit(worker, exchange_id, exchange)
            exchange.start(number, head, None if seconds < 0 else int(seconds))
        elif kind == channel.PIECE:
            exchange.write(body)
            exchange.state.owed += len(body)
            if not exchange.paused:
                self._credit(worker, exchange_id, exchange)
        elif kind == channel.DECLINED:
            self._take_back(worker, exchange_id, exchange)
        else:
            exchange.finish() if kind == channel.END else exchange.break_off()
            self._finish(worker, exchange_id, exchange, exchange.state.status, seconds, kind == channel.BROKEN)

    def _finish(
        self, worker: WorkerProcess, exchange_id: int, exchange: Exchange, status: int, seconds: float, failed: bool
    ) -> None:
        del worker.outstanding[exchange_id]
        exchange.state = exchange.on_drain = None
        self._typical_seconds += (seconds - self._typical_seconds) * 0.1
        self.settle(exchange, status, seconds, failed)
        if worker.retiring:
            self._end_if_done(worker)
        if self._waiting:
            self._send_waiting()

    def _take_back(self, worker: WorkerProcess, exchange_id: int, exchange: Exchange) -> None:
        del worker.outstanding[exchange_id]
        exchange.state = None
        self._waiting.appendleft(exchange)
        self._end_if_done(worker)
        self._send_waiting()

    def _send_waiting(self) -> None:
        worker = self._worker
        while self._waiting and worker is not None and len(worker.outstanding) < self.settings.threads:
            exchange = self._waiting.popleft()
            if exchange in self.pending:
                self._send(worker, exchange)

    def _credit(self, worker: WorkerProcess, exchange_id: int, exchange: Exchange) -> None:
        call = exchange.state
        if call is not None and call.owed and not worker.ended:
            self._write(worker, encode(channel.CREDIT, exchange_id, seconds=call.owed))
            call.owed = 0

    # What goes wrong.

    def cancelled(self, exchange: Exchange) -> None:
        call = exchange.state
        if call is not None and call.status:
            self._write(call.worker, encode(channel.CANCEL, call.id))

    def timed_out(self, exchange: Exchange) -> None:
        call = exchange.state
        seconds = time.perf_counter() - exchange.started
        if call is None or call.status == 0:
            exchange.respond(408, TEXT, TIMEOUT_BODY)
        else:
            exchange.break_off()
        self.settle(exchange, 408, seconds, True)
        if call is None:
            return  # it was still waiting
        worker = call.worker
        del worker.outstanding[call.id]
        exchange.state = None
        if call.frame <= worker.shared.frames_taken:
            head = exchange.head
            log(f"{head.method} {head.raw_path}: no answer within FUNC_TIMEOUT ({self.settings.timeout:g} s), ending it")
            self._retire(worker)

    def _retire(self, worker: WorkerProcess) -> None:
        """It keeps taking calls until its successor has loaded the code."""
        if not worker.retiring:
            worker.retiring = True
            self._retiring.add(worker)
            self.metrics.replaced_workers += 1
            worker.signal(signal.SIGUSR2)  # it writes its stacks to stderr
        if worker is self._worker:
            if self._coming is None:
                self._start_worker()
        else:
            self._end_if_done(worker)

    def _relieve_stalled(self) -> None:
        """A call that never lets go of the interpreter stops every thread of its worker. Calls that it has not
        begun are moved to a successor, which is started early; those it has begun stay until their time is up."""
        worker = self._worker
        if worker is None or not worker.outstanding:
            return
        taken = worker.shared.frames_taken
        if taken < worker.frames_sent and taken == worker.stalled_at:
            if time.monotonic() - worker.stalled_since > min(STALL_SECONDS, self.settings.timeout / 2):
                log("a call blocks all others of its worker process, replacing the process")
                self._retire(worker)
        else:
            worker.stalled_at = taken
            worker.stalled_since = time.monotonic()

    def _died(self, worker: WorkerProcess) -> None:
        code = self._end(worker, patience=0.2)
        begun, untouched = self._split(worker)
        if self._worker is worker:
            self._worker = None
        if begun or not worker.retiring:
            log(f"worker process ended ({_describe_exit(code)}) during {len(begun)} call(s)")
        worker.outstanding.clear()
        for exchange in begun:
            status = exchange.state.status
            exchange.state = None
            exchange.respond(500, TEXT, ERROR_BODY) if not status else exchange.break_off()
            self.settle(exchange, status or 500, time.perf_counter() - exchange.started, True)
        self._waiting.extendleft(reversed(untouched))
        if worker is self._coming:
            self._load_failed(worker.load_error)
        elif self._worker is None and self._coming is None:
            self.metrics.replaced_workers += 1
            self._start_worker()

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

    def reload(self) -> None:
        """Files have changed: a worker with the new code takes over, if it can be loaded."""
        self._reloading = True
        coming, self._coming = self._coming, None
        if coming is not None:
            self._end(coming)
        self._start_worker()

    def _load_failed(self, error: str) -> None:
        self._coming = None
        if self._reloading and self._worker is not None:
            log("the new code cannot be loaded; the last that could goes on serving")
            from .hot_reload import error_line

            return add_to_answers(error_line(error or "the new code ended its process"))
        self._failed_loads += 1
        if self._worker is None and self._failed_loads >= _LOAD_ATTEMPTS:
            log("the function's code cannot be loaded any more, giving up")
            self._exit_code = 1
            self._reactor.stop()
        else:
            self._reactor.call_later(0.1 * 2**self._failed_loads, self._start_worker)

    # Workers come and go.

    def _start_worker(self) -> None:
        if self._coming is None:
            self._coming = self._spawn()
            self._watch(self._coming)

    def _take_over(self, worker: WorkerProcess) -> None:
        former, self._worker, self._coming = self._worker, worker, None
        self._failed_loads = 0
        if self._reloading:
            self._reloading = False
            add_to_answers(b"")
            log("reloaded")
            if former is not None:
                former.retiring = True
                self._retiring.add(former)
        if former is not None:
            # It takes no further request once it sees this, which it looks at after it has counted one.
            former.shared.closed = True
            time.sleep(0.001)
            _, untouched = self._split(former)
            self._waiting.extendleft(reversed(untouched))
            self._end_if_done(former)
        self._send_waiting()

    def _end_if_done(self, worker: WorkerProcess) -> None:
        if worker is not self._worker and not worker.outstanding:
            self._end(worker)

    def _end(self, worker: WorkerProcess, patience: float = 0.0) -> int:
        self._retiring.discard(worker)
        if worker.ended:
            return 0
        self._reactor.forget(worker.channel.fileno())
        return worker.end(patience)


class _Call:
    """What the pool remembers of an exchange that a worker has."""

    __slots__ = ("frame", "id", "owed", "status", "worker")

    def __init__(self, worker: WorkerProcess, exchange_id: int, frame: int) -> None:
        self.worker = worker
        self.id = exchange_id
        self.frame = frame
        """Its request was the worker's n-th frame."""
        self.owed = 0
        self.status = 0
        """Set when a streamed answer has begun."""


def _describe_exit(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    from signal import Signals

    return f"signal {Signals(-code).name}"
