"""The first process: it holds the listening socket, forks the one with the user's code, and outlives its faults."""

from __future__ import annotations

# The C modules behind `signal` and `socket`: the Python ones import enum and a dozen others, which takes as long as
# starting the interpreter. So it is in every module that is needed before the first answer.
import _signal as signal
import _socket as socket
import os
import sys
import time

# Imported before the fork although only needed after it: server and worker then share the memory.
from . import request_head as _shared  # noqa: F401
from .channel import HAS_ROUTES, NOT_LOADED, ONE_AT_A_TIME
from .log import log
from .reactor import READ, Reactor
from .settings import SettingError, Settings
from .worker_process import RECEIVE_BYTES, WorkerProcess, fork_worker

_BACKLOG = 1024


def main(package: str) -> int:
    """Returns the exit code of the runtime."""
    if "SPRY_WARM_FD" not in os.environ:
        return _run(package, None)
    from .warm_process import HandOverError, become_function

    try:
        directory = become_function(_take_descriptor("SPRY_WARM_FD"))
    except HandOverError as error:
        log(str(error))
        return 1
    return 0 if directory is None else _run(package, directory)


def _run(package: str, directory: str | None) -> int:
    started = time.monotonic()
    try:
        settings = Settings(dict(os.environ), package, directory)
        if settings.log_format:
            from .invocation_log import format_logs

            format_logs(settings.log_format)
        listening = _bind(settings.host, settings.port)
        debugger = None
        if settings.inspect and hasattr(os, "fork"):
            from .debugger import place_of

            debugger = _bind(*place_of(settings.inspect))
    except (SettingError, OSError) as error:
        log(str(error))
        return 1
    ready_fd = _take_descriptor("SPRY_READY_FD")
    if not hasattr(os, "fork"):
        from .async_server import serve_without_fork

        return serve_without_fork(settings, listening, lambda: _announce(None, ready_fd))
    return _Supervisor(settings, listening, ready_fd, started).run(debugger)


def _bind(host: str, port: int) -> socket.socket:
    """Bound at once, so that a taken port is reported at once; listening only when there is code to
    respond.
    """
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        raise OSError(f"listening on {host}:{port}: {error.strerror or error}") from error
    listening.setblocking(False)
    return listening


def _take_descriptor(name: str) -> int | None:
    """It is for us alone: user code does not get to hear of it."""
    value = os.environ.pop(name, "")
    return int(value) if value.isdigit() else None


def _announce(listening: socket.socket | None, ready_fd: int | None) -> None:
    if listening is not None:
        listening.listen(_BACKLOG)
    if ready_fd is None:
        return
    try:
        os.write(ready_fd, b"ready\n")
        os.close(ready_fd)
    except OSError as error:
        log(f"reporting readiness to descriptor {ready_fd}: {error}")


class _Supervisor:
    """Waits for the first process to load the code; what that says decides who serves."""

    def __init__(self, settings: Settings, listening: socket.socket, ready_fd: int | None, started: float) -> None:
        self._settings = settings
        self._started = started
        self._listening = listening
        self._ready_fd = ready_fd
        self._reactor = Reactor()
        self._terminated = False
        self._keeper = None
        self._first: WorkerProcess | None = None
        self._relay = None

    def run(self, debugger: socket.socket | None) -> int:
        """`debugger` is bound to where a debugger is expected."""
        wake = _wake_on_signals(self._terminate)
        self._reactor.watch(wake.fileno(), READ, lambda _events: wake.recv(64) and self._notice())
        if self._settings.hot_reload:
            # Two versions of a file may have the same size and second, which is all that caches look at.
            sys.dont_write_bytecode = True
        if debugger is not None:
            from .debugger_relay import DebuggerRelay

            self._relay = DebuggerRelay(self._reactor, debugger)
        first = self._first = self._spawn()
        # Most handlers are synchronous: what serves them is imported while the child loads the code.
        from .metrics import Metrics
        from .sync_server import SyncServer

        frame = self._await_load(first)
        if frame is not None and frame[0] == NOT_LOADED and frame[2] == 1:
            self._settings.as_main = True
            first.end(patience=1.0)
            first = self._first = self._spawn()
            frame = self._await_load(first)
        if frame is None or frame[0] == NOT_LOADED:
            code = first.end(patience=0.0 if self._terminated else 1.0)
            return 0 if self._terminated else code if code > 0 else 1
        metrics = Metrics()
        metrics.start_seconds = time.monotonic() - self._started
        serve = SyncServer
        if frame[2] != 0:
            from .server_keeper import ServerKeeper

            serve = ServerKeeper
        self._keeper = serve(self._settings, metrics, self._reactor, self._listening, first, self._spawn)
        self._keeper.has_routes = bool(frame[1] & HAS_ROUTES)
        if frame[1] & ONE_AT_A_TIME:
            self._keeper.one_at_a_time()
        if self._settings.hot_reload:
            from .hot_reload import watch_files

            watch_files(self._reactor, self._settings.directory, self._keeper.reload)
        _announce(self._listening, self._ready_fd)
        self._ready_fd = None
        return self._keeper.run()

    def _spawn(self) -> WorkerProcess:
        def child(theirs, promotions, shared) -> int:
            signal.set_wakeup_fd(-1)
            from .worker import run_worker

            return run_worker(self._settings, self._listening, theirs, promotions, shared)

        worker = fork_worker(child, {self._listening.fileno()})
        if self._relay is not None:
            self._relay.add(worker)
        return worker

    def _await_load(self, first: WorkerProcess):
        frames = []

        def receive(_events: int) -> None:
            try:
                data = first.channel.recv(RECEIVE_BYTES)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                data = b""
            first.frames.feed(data)
            frames.append(first.frames.next())
            self._reactor.stop()

        self._reactor.watch(first.channel.fileno(), READ, receive)
        self._reactor.run()
        self._reactor.resume()
        self._reactor.forget(first.channel.fileno())
        if self._terminated or not frames or frames[0] is None:
            return None
        return frames[0]

    def _terminate(self) -> None:
        self._terminated = True

    def _notice(self) -> None:
        if self._keeper is not None:
            self._keeper.children_changed()
            if self._terminated:
                self._keeper.terminate()
        elif self._terminated or self._first.has_exited():
            self._reactor.stop()


def _wake_on_signals(terminate) -> socket.socket:
    """A signal writes a byte, which ends the wait for events."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    signal.set_wakeup_fd(theirs.detach(), warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: terminate())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return ours


if sys.version_info < (3, 11):
    sys.exit(f"the runtime needs Python 3.11 or newer, this is {sys.version.split()[0]}")
