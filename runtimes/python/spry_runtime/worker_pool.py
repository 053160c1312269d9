"""The processes that run a synchronous handler.

Mostly there is one, so a Function's module globals behave as in a single process. It has a thread for each call that
takes long (see `call_loop`). One with a call that is past its time is retired: another is forked and loads the code,
takes over, and the old one is killed as soon as its other calls are done.
"""

from __future__ import annotations

import _signal as signal
import time

from . import channel
from .exchange import add_to_answers
from .log import log
from .memory import has_room_for_another
from .reactor import READ, WRITE, Reactor
from .worker_process import RECEIVE_BYTES, WorkerProcess, describe_exit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .channel import Frame
    from .sync_server import SyncServer

PROMOTE_SECONDS = 0.005
_STALL_SECONDS = 5.0
_STACK_SECONDS = 2.0
"""For a process that is to end to write its stacks, on a machine that has much else to do."""
_LOAD_ATTEMPTS = 5
_BUFFERS = 512
"""Of one system call, which takes up to 1024."""


class WorkerPool:
    """`first` has loaded the code; `spawn()` forks another worker that begins to, and does so at once without `first`. The server
    is notified of what they say (`heard`), that another takes over (`succeeded`), and that one has died (`lost`)."""

    def __init__(self, server: SyncServer, reactor: Reactor, first: WorkerProcess | None, spawn) -> None:
        self._server = server
        self._reactor = reactor
        self._spawn = spawn
        self.current: WorkerProcess | None = first
        """The one that takes new calls."""
        self._coming: WorkerProcess | None = None
        self._retiring: set[WorkerProcess] = set()
        self._failed_loads = 0
        self._reloading = False
        self._closing = False
        self.exit_code = 0
        self.on_load_failed = None  # called instead of another attempt to load the code
        if first is None:
            return self._start_worker()
        first.pool = self
        self._watch(first)

    @property
    def starting(self) -> bool:
        return self._coming is not None

    def dismiss(self) -> None:
        """Its workers end when their calls have, and have no successors."""
        self._closing = True
        if self._coming is not None:
            self._end(self._coming)
            self._coming = None
        worker, self.current = self.current, None
        if worker is not None:
            worker.retiring = worker.shared.closed = True
            self._retiring.add(worker)
            if worker.outstanding:
                time.sleep(0.001)  # as where another takes over
            self._server.succeeded(worker)
            self.end_if_done(worker)

    def close(self, patience: float) -> None:
        """Ends them all; the current one may take so many seconds for what the Function does at its end."""
        self._closing = True
        for worker in (self._coming, *self._retiring):
            if worker is not None:
                self._end(worker)
        if self.current is not None:
            self._end(self.current, patience)

    def children_changed(self) -> None:
        """The end of a worker may not show on its channel: processes that it has started may hold that open."""
        for worker in (self.current, self._coming, *self._retiring):
            if worker is not None and worker.has_exited():
                for _ in range(1000):  # what it had still to say
                    if worker.ended or not self._ready(worker, READ):
                        break
                if not worker.ended:
                    self._died(worker)

    @property
    def serves(self) -> bool:
        """Also while new calls wait for a worker that is to take the place of one that still has some."""
        return self.current is not None or bool(self._retiring)

    def processes(self) -> list[int]:
        return [worker.pid for worker in (self.current, self._coming, *self._retiring) if worker is not None]

    # What is said to them, and what they say.

    def write(self, worker: WorkerProcess, frame: bytes, body: bytes = b"") -> None:
        """Frames of one round of the loop leave in one system call. `body` is the rest of a frame, where it is large."""
        worker.frames_sent += 1
        if not worker.outgoing:
            self._reactor.flush.append(lambda: self._flush(worker))
        worker.outgoing.append(frame)
        if body:
            worker.outgoing.append(memoryview(body))

    def _flush(self, worker: WorkerProcess) -> None:
        if not worker.outgoing or worker.ended:
            return
        outgoing = worker.outgoing
        try:
            sent = worker.channel.send(outgoing[0]) if len(outgoing) == 1 else worker.channel.sendmsg(outgoing[:_BUFFERS])
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError:
            return  # it has died; reading tells
        count = 0
        while count < len(outgoing) and sent >= len(outgoing[count]):
            sent -= len(outgoing[count])
            count += 1
        del outgoing[:count]
        if sent:
            outgoing[0] = memoryview(outgoing[0])[sent:]
        events = READ | WRITE if worker.outgoing else READ
        if events != worker.events:
            worker.events = events
            self._watch(worker)

    def _watch(self, worker: WorkerProcess) -> None:
        self._reactor.watch(worker.channel.fileno(), worker.events, lambda events: self._ready(worker, events))

    def watch_readers(self, worker: WorkerProcess) -> None:
        """Looks again shortly whether all threads that read the channel are held up by their calls."""
        worker.watched = True
        taken_before = worker.shared.frames_taken

        def look() -> None:
            worker.watched = False
            if worker.ended:
                return
            taken = worker.shared.frames_taken
            self._server.taken(worker, taken)
            if taken_before == taken < worker.frames_sent:
                self._server.held_up(worker)
            stuck = worker.shared.busy and taken == taken_before
            if stuck:
                worker.promote(max(1, worker.frames_sent - taken))
            if taken < worker.frames_sent or worker.shared.busy and not stuck:
                self.watch_readers(worker)

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
            self._receive(worker, frame)
        return True

    def _receive(self, worker: WorkerProcess, frame: Frame) -> None:
        if frame[0] == channel.READY:
            self._server.has_routes = bool(frame[1] & channel.HAS_ROUTES)
            self._take_over(worker)
        elif frame[0] == channel.NOT_LOADED:
            worker.load_error = frame[4].decode()
        else:
            self._server.heard(worker, *frame)

    # They come and go.

    def retire(self, worker: WorkerProcess) -> None:
        """It keeps taking calls until its successor has loaded the code."""
        if not worker.retiring:
            worker.retiring = True
            self._retiring.add(worker)
            self._server.metrics.replaced_workers += 1
            worker.signal(signal.SIGUSR2)  # it writes its stacks to stderr
            worker.ends_after = time.monotonic() + _STACK_SECONDS
        if worker is not self.current:
            return self.end_if_done(worker)
        if self._coming is not None:
            return
        if has_room_for_another(worker.pid, self._server.processes()):
            self._start_worker()
        else:
            # There is no memory for both: new calls wait until it has ended.
            self.current = None
            worker.shared.closed = True
            self._server.succeeded(worker)
            self.end_if_done(worker)

    def relieve_stalled(self, timeout: float, seconds: float) -> None:
        """A call that never lets go of the interpreter stops every thread of its worker. Calls that it has not begun are moved to a
        successor, which is started early. Called every so many seconds: by a clock, a frozen container would have stalled."""
        worker = self.current
        if worker is not None and worker.stalls(seconds) > min(_STALL_SECONDS, timeout / 2):
            log("a call blocks all others of its worker process, replacing the process")
            self.retire(worker)

    def _died(self, worker: WorkerProcess) -> None:
        code = self._end(worker, patience=0.2)
        if self.current is worker:
            self.current = None
        self._server.lost(worker, describe_exit(code))
        if worker is self._coming:
            self._load_failed(worker.load_error)
        elif self.current is None and self._coming is None and not self._closing:
            self._server.metrics.replaced_workers += 1
            self._start_worker()

    def reload(self) -> None:
        """Files have changed: a worker with the new code takes over, if it can be loaded."""
        self._reloading = True
        self._failed_loads = 0
        coming, self._coming = self._coming, None
        if coming is not None:
            self._end(coming)
        self._start_worker()

    def _load_failed(self, error: str) -> None:
        self._coming = None
        reloading, self._reloading = self._reloading, False
        if reloading and self.current is not None:
            log("the new code cannot be loaded; the previous version keeps serving")
            from .hot_reload import error_line

            return add_to_answers(error_line(error or "the new code ended its process"))
        if self.on_load_failed is not None:
            return self.on_load_failed(self)
        self._failed_loads += 1
        if self.current is None and self._failed_loads >= _LOAD_ATTEMPTS:
            log("the function's code can no longer be loaded, giving up")
            self.exit_code = 1
            self._reactor.stop()
        else:
            self._reactor.call_later(0.1 * 2**self._failed_loads, self._start_again)

    def _start_again(self) -> None:
        """Unless newer code has taken over meanwhile."""
        if self.current is None or self.current.retiring:
            self._start_worker()

    def _start_worker(self) -> None:
        if self._coming is None:
            self._coming = self._spawn()
            self._coming.pool = self
            self._watch(self._coming)

    def _take_over(self, worker: WorkerProcess) -> None:
        former, self.current, self._coming = self.current, worker, None
        self._failed_loads = 0
        add_to_answers(b"")  # that the code cannot be loaded is over, whyever it has been
        if self._reloading:
            self._reloading = False
            log("reloaded")
            if former is not None:
                former.retiring = True
                self._retiring.add(former)
        if former is not None:
            # It takes no further request once it sees this, which it looks at after it has counted one.
            former.shared.closed = True
            time.sleep(0.001)
        self._server.succeeded(former)
        if former is not None:
            self.end_if_done(former)

    def end_if_done(self, worker: WorkerProcess) -> None:
        if worker is self.current or worker.outstanding:
            return
        left = worker.ends_after - time.monotonic()
        if left > 0:
            self._reactor.call_later(left, lambda: self._end(worker))
        else:
            self._end(worker)

    def _end(self, worker: WorkerProcess, patience: float = 0.0) -> int:
        self._retiring.discard(worker)
        if worker.ended:
            return 0
        self._reactor.forget(worker.channel.fileno())
        code = worker.end(patience)
        if self.current is None and self._coming is None and not self._closing:
            self._start_worker()
        return code
