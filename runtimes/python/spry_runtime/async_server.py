"""The server for asynchronous handlers and ASGI applications: they run on the loop that holds the connections.

It also serves synchronous handlers where processes cannot be forked, in threads. A thread cannot be ended,
so there a call that is past its time gets its 408 and runs on.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import time

from .async_calls import AsyncCalls
from .call_threads import CallThreads
from .connection import Connection
from .exchange import TEXT, Exchange, add_to_answers
from .handler import ASGI, LoadError, load_handler
from .lifecycle import call_hook_async
from .log import log, log_error
from .memory_guard import reserve_for
from .metrics import Metrics
from .service import TIMEOUT_BODY, Service

_STARTUP_SECONDS = 120.0
_DRAIN_SECONDS = 0.02


def serve_in_worker(settings, handler, listening, server, shared) -> int:
    """Serves on the inherited socket until the supervisor sends SIGTERM, or has ended."""

    def beat() -> None:
        shared.frames_taken = (shared.frames_taken + 1) & 0xFFFFFFFF

    return _run(_Server(settings, handler, listening, beat), server)


def serve_without_fork(settings, listening, announce) -> int:
    try:
        handler = load_handler(settings)
    except LoadError as error:
        log_error(str(error), error.__cause__) if error.__cause__ else log(str(error))
        return 1
    return _run(_Server(settings, handler, listening, lambda: None, announce))


def _run(server: _Server, supervisor=None) -> int:
    runner = asyncio.Runner(loop_factory=_loop_factory())
    try:
        return runner.run(server.run(supervisor))
    finally:
        # The end of a loop waits for its threads and tasks; that of the process need not.
        if not server.is_abandoned:
            runner.close()


def _loop_factory():
    """uvloop's, if the Function depends on that package."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


class _Server(Service):
    def __init__(self, settings, handler, listening, beat, announce=None) -> None:
        super().__init__(settings, Metrics())
        self._handler = handler
        self.has_routes = handler.has_routes
        self._calls = AsyncCalls(settings, handler, self._settle)
        self._listening = socket.socket(fileno=listening.detach())
        self._beat = beat
        self._announce = announce
        self._started = time.monotonic()
        self._tasks: dict[Exchange, asyncio.Task] = {}
        self._accepting: asyncio.Server | None = None
        self._done = asyncio.Event()
        self._lifespan = None
        self._threads = CallThreads()
        self._supervisor = None
        self._late: list[asyncio.Task] = []
        """Of calls that are over, and were asked to end."""
        self._late_threads: list = []
        reserve_for(lambda: self.bodies.held, self.bodies.look_again)

    async def run(self, supervisor) -> int:
        self._loop = asyncio.get_running_loop()
        self._loop.set_default_executor(self._threads)
        self._supervisor = supervisor
        for number in (signal.SIGTERM, signal.SIGINT):
            try:
                self._loop.add_signal_handler(number, self.terminate)
            except NotImplementedError:
                signal.signal(number, lambda *_: self._loop.call_soon_threadsafe(self.terminate))
        if supervisor is not None:
            self._loop.add_signal_handler(signal.SIGHUP, self._retire)
        if not await self._start_application():
            return 1
        # asyncio makes as many attempts at once, and reports each that fails when there are no
        # descriptors left.
        self._accepting = await self._loop.create_server(lambda: Connection(self), sock=self._listening, backlog=16)
        self._listening.listen(1024)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._leave_connections)
        self.metrics.start_seconds = time.monotonic() - self._started
        if supervisor is not None:
            from . import channel

            supervisor.sendall(channel.encode(channel.READY, 0, 1))
            supervisor.setblocking(False)
            # All that ever comes here is why newer code cannot be loaded, or the supervisor's end.
            self._loop.add_reader(supervisor.fileno(), self._hear, supervisor)
        if self._announce is not None:
            self._announce()
        self._tick()
        await self._done.wait()
        if self._lifespan is not None:
            await self._lifespan.shutdown()
        try:
            await call_hook_async(self._handler.stop)
        except Exception as error:  # noqa: BLE001
            log_error("calling stop", error)
        return 0

    async def _start_application(self) -> bool:
        try:
            await call_hook_async(self._handler.start)
        except Exception as error:  # noqa: BLE001
            log_error(f"loading {self.settings.module}.py: start: {error}", error)
            return False
        if self._handler.kind is not ASGI:
            return True
        from .asgi import Lifespan

        self._lifespan = Lifespan(self._handler.call)
        self._calls.state = self._lifespan.state
        try:
            await asyncio.wait_for(self._lifespan.startup(), _STARTUP_SECONDS)
        except Exception as error:  # noqa: BLE001
            log_error(f"loading {self.settings.module}.py: starting the application: {error}", error)
            return False
        return True

    def _leave_connections(self) -> None:
        """In a process that the handler has forked: a client must see the end of its connection when it ends here. Their
        numbers stay taken, as the objects that will close them are still there."""
        nowhere = os.open(os.devnull, os.O_RDWR)
        for connection in self.connections:
            descriptor = connection.fileno()
            if descriptor >= 0:
                os.dup2(nowhere, descriptor, inheritable=False)
        os.close(nowhere)

    def _hear(self, supervisor) -> None:
        try:
            line = supervisor.recv(4096)
        except OSError:
            line = b""
        if line:
            return add_to_answers(line)
        self._loop.remove_reader(supervisor.fileno())
        self.terminate()

    def terminate(self) -> None:
        if not self.draining:
            self.draining = True
            self._loop.call_later(self.settings.shutdown_delay, self._stop_listening)

    def _retire(self) -> None:
        """Another process serves: with newer code, or because a thread goes on here with a call that is over."""
        self.draining = True
        self._stop_listening()

    def _stop_listening(self) -> None:
        for listening in self._accepting.sockets:
            self._loop.remove_reader(listening.fileno())
        # Whom asyncio has just accepted becomes a connection in the loop's next turn. A server that is closed before that
        # forgets about them: they would be open, and wait in vain.
        self._loop.call_soon(self._close)

    def _close(self) -> None:
        self._accepting.close()
        self.close_idle()
        self._loop.call_later(_DRAIN_SECONDS, self._stop_when_done)

    def _stop_when_done(self) -> None:
        if self.connections:
            self._loop.call_later(_DRAIN_SECONDS, self._stop_when_done)
        else:
            self._done.set()

    def _tick(self) -> None:
        self._loop.call_later(self.sweep_seconds, self._tick)
        self._beat()
        if self._late or self._late_threads:
            self._look_after_late()
        self.sweep()

    def _look_after_late(self) -> None:
        """A call that was ended and goes on all the same, in a thread or because it does not let itself be cancelled, would keep
        processor time and a place among the threads: the process is replaced."""
        if self.is_abandoned and self._supervisor is not None and not self.draining:
            from . import channel

            try:
                self._supervisor.send(channel.encode(channel.REPLACE, 0))
            except OSError:
                pass  # the supervisor has ended; reading tells

    @property
    def is_abandoned(self) -> bool:
        """Whether a thread or a task still runs whose call is over."""
        self._late = [each for each in self._late if not each.done()]
        self._late_threads = [each for each in self._late_threads if not each.done()]
        return bool(self._late or self._late_threads)

    def dispatch(self, exchange: Exchange) -> None:
        if len(self.pending) > self.settings.threads + self.settings.queue:
            return self.overloaded(exchange)
        self._tasks[exchange] = self._loop.create_task(self._calls.call(exchange))

    def timed_out(self, exchange: Exchange) -> None:
        task = self._tasks.pop(exchange, None)
        self.settle(exchange, 408, time.perf_counter() - exchange.started, True)
        from .request_log import log_refused

        field = log_refused(exchange.head, f"no response within FUNC_TIMEOUT ({self.settings.timeout:g} s), ending the call")
        if exchange.length is None and not exchange.begun:
            exchange.respond(408, TEXT + field, TIMEOUT_BODY)
        else:
            exchange.break_off()
        if task is not None:
            self._late_threads += self._threads.run_for(task)
            self._late.append(task)
            task.cancel()

    def cancelled(self, exchange: Exchange) -> None:
        """A stream, or an application, stops when its reader goes; a plain call runs to its end, as ever."""
        exchange.wake()
        if exchange.begun and exchange in self._tasks:
            self._tasks[exchange].cancel()

    def _settle(self, exchange: Exchange, status: int, failed: bool) -> None:
        if self._tasks.pop(exchange, None) is not None:
            self.settle(exchange, status, time.perf_counter() - exchange.started, failed)
