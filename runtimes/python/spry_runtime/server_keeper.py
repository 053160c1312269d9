"""Looks after the process that serves on asyncio: starts another when it dies or its loop no longer turns."""

from __future__ import annotations

import _signal as signal
import os
import time

from . import channel
from .log import log
from .memory import has_room_for_another
from .reactor import READ, Reactor
from .worker_process import RECEIVE_BYTES, WorkerProcess

_TICK_SECONDS = 1.0
_STACK_SECONDS = 1.0
"""For a blocked process to write its stacks, on a machine that has much else to do."""
_LOAD_ATTEMPTS = 5
_BLOCKED_SECONDS = 30.0
"""A longer time limit is for calls that let others go on."""


class ServerKeeper:
    """The socket stays open here meanwhile, so clients that come during a replacement wait in its backlog."""

    def __init__(self, settings, _metrics, reactor: Reactor, listening, first: WorkerProcess, spawn) -> None:
        self._blocked_seconds = settings.timeout if settings.inspect else min(settings.timeout, _BLOCKED_SECONDS)
        self._reactor = reactor
        self._listening = listening
        self._spawn = spawn
        self._server = first
        self._coming: WorkerProcess | None = None
        self._retired: set[WorkerProcess] = set()
        self._loaded = True
        self._terminating = False
        self._failed_loads = 0
        self._exit_code = 0
        self._beat = -1
        self._beat_at = time.monotonic()

    def run(self) -> int:
        self._watch(self._server)
        self._reactor.call_later(_TICK_SECONDS, self._tick)
        self._reactor.run()
        return self._exit_code

    def terminate(self) -> None:
        if self._terminating:
            return
        self._terminating = True
        # Clients would wait in vain in the backlog of this copy when the server has closed its own.
        self._listening.close()
        self._drop_coming()
        self._server.signal(signal.SIGTERM)

    def children_changed(self) -> None:
        for server in (self._server, self._coming, *self._retired):
            if server is not None and not server.ended and server.has_exited():
                self._died(server)

    def reload(self) -> None:
        """Files have changed: a process with the new code takes over, if it can be loaded."""
        if self._terminating:
            return
        self._drop_coming()
        self._coming = self._spawn()
        self._watch(self._coming)

    def _drop_coming(self) -> None:
        coming, self._coming = self._coming, None
        if coming is not None and not coming.ended:
            self._reactor.forget(coming.channel.fileno())
            coming.end(patience=0.0)

    def _replace_running(self, server: WorkerProcess) -> None:
        """It serves on until the other one does, if there is memory for both."""
        if server is not self._server or self._coming is not None or self._terminating:
            return
        if not server.retiring:
            server.retiring = True
            log("a thread goes on with a call that is over, replacing the process")
            server.signal(signal.SIGUSR2)  # it writes its stacks to stderr
        if has_room_for_another(server.pid, [os.getpid(), server.pid]):
            self.reload()
        else:
            server.signal(signal.SIGHUP)

    def _take_over(self, server: WorkerProcess) -> None:
        former, self._server, self._coming = self._server, server, None
        self._loaded = True
        if not former.retiring:
            log("reloaded")
        if not former.ended:
            self._retired.add(former)
            former.signal(signal.SIGHUP)  # it accepts no more, and ends when it has answered what it has

    def _not_loaded(self, server: WorkerProcess) -> None:
        self._coming = None
        if self._server.retiring:
            return log("the process that was to replace it cannot be loaded; the former one keeps serving")
        from .hot_reload import error_line

        log("the new code cannot be loaded; the previous version keeps serving")
        try:
            self._server.channel.send(error_line(server.load_error or "the new code ended its process"))
        except OSError:
            pass  # it has just died, which is told elsewhere

    def _watch(self, server: WorkerProcess) -> None:
        self._reactor.watch(server.channel.fileno(), READ, lambda _events: self._receive(server))

    def _receive(self, server: WorkerProcess) -> None:
        try:
            data = server.channel.recv(RECEIVE_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if data:
            server.frames.feed(data)
            while (frame := server.frames.next()) is not None:
                if frame[0] == channel.NOT_LOADED:
                    server.load_error = frame[4].decode()
                    continue
                if frame[0] == channel.REPLACE:
                    self._replace_running(server)
                    continue
                if server is self._coming:
                    self._take_over(server)
                if frame[0] == channel.READY:
                    self._loaded = True
                    if self._terminating:
                        server.signal(signal.SIGTERM)  # it was loading when this was told to end
                self._failed_loads = 0
                self._beat_at = time.monotonic()
        else:
            self._died(server)

    def _died(self, server: WorkerProcess) -> None:
        if server.ended:
            return
        self._reactor.forget(server.channel.fileno())
        # An ordered end runs the user's atexit functions, which may take a moment.
        code = server.end(patience=10.0 if self._terminating else 0.5)
        if server in self._retired:
            return self._retired.discard(server)
        if server is self._coming:
            return self._not_loaded(server)
        if self._terminating:
            return self._reactor.stop()
        if not server.retiring or code:
            log(f"server process ended (exit code {code}), replacing it")
        if not self._loaded:
            self._failed_loads += 1
        if self._failed_loads >= _LOAD_ATTEMPTS:
            log("the function's code can no longer be loaded, giving up")
            self._exit_code = 1
            return self._reactor.stop()
        self._reactor.call_later(0.1 * 2**self._failed_loads - 0.1, self._replace)

    def _replace(self) -> None:
        if self._terminating:
            return self._reactor.stop()
        self._server = self._spawn()
        self._loaded = False
        self._watch(self._server)

    def _tick(self) -> None:
        self._reactor.call_later(_TICK_SECONDS, self._tick)
        beat = self._server.shared.frames_taken
        if beat != self._beat or not self._loaded or self._server.ended:
            self._beat = beat
            self._beat_at = time.monotonic()
        elif time.monotonic() - self._beat_at > self._blocked_seconds + _TICK_SECONDS:
            limit = "FUNC_TIMEOUT" if self._blocked_seconds < _BLOCKED_SECONDS else "the limit"
            log(f"the event loop has been blocked for {limit} ({self._blocked_seconds:g} s), replacing the process")
            server = self._server
            server.signal(signal.SIGUSR2)  # it writes its stacks to stderr
            self._beat_at = time.monotonic() + _STACK_SECONDS
            self._reactor.call_later(_STACK_SECONDS, lambda: server.signal(signal.SIGKILL))
