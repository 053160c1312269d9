"""A worker process as the server sees it."""

from __future__ import annotations

import _signal as signal
import _socket as socket
import mmap
import os
import struct
import time

from .channel import FrameBuffer
from .log import log_error
from .reactor import READ

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .exchange import Exchange
    from .worker_pool import WorkerPool

_COUNT = struct.Struct("<Q")
_COUNT_AT = 8
_HELD_AT = 16
_PORT = struct.Struct("<H")
_PORT_AT = 2

RECEIVE_BYTES = 64 * 1024
"""Below the size from which malloc maps memory anew for each call."""


class SharedState:
    """A few bytes that server and worker both see. They say what a stuck worker can no longer say itself."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 64)

    @property
    def busy(self) -> bool:
        """No thread of the worker reads the channel: all are busy with calls."""
        return self._memory[0] != 0

    @busy.setter
    def busy(self, busy: bool) -> None:
        self._memory[0] = busy

    @property
    def closed(self) -> bool:
        """The worker is to take no further request."""
        return self._memory[1] != 0

    @closed.setter
    def closed(self, closed: bool) -> None:
        self._memory[1] = closed

    @property
    def debugger_port(self) -> int:
        """Where the worker's own debugger listens on loopback; 0 if it does not, or not yet."""
        return _PORT.unpack_from(self._memory, _PORT_AT)[0]

    @debugger_port.setter
    def debugger_port(self, port: int) -> None:
        _PORT.pack_into(self._memory, _PORT_AT, port)

    @property
    def frames_taken(self) -> int:
        """How many frames the worker has read; for a server on asyncio, how often its loop has turned."""
        return _COUNT.unpack_from(self._memory, _COUNT_AT)[0]

    @frames_taken.setter
    def frames_taken(self, count: int) -> None:
        _COUNT.pack_into(self._memory, _COUNT_AT, count)

    @property
    def held(self) -> int:
        """How many bytes the bodies of all requests have, as of the last that the worker was given."""
        return _COUNT.unpack_from(self._memory, _HELD_AT)[0]

    @held.setter
    def held(self, count: int) -> None:
        _COUNT.pack_into(self._memory, _HELD_AT, count)


class WorkerProcess:
    """The handle of a forked process. `outstanding` are the exchanges it has been given, by id."""

    def __init__(self, pid: int, channel: socket.socket, promotions: int, shared: SharedState) -> None:
        self.pid = pid
        self.channel = channel
        self.shared = shared
        self.outstanding: dict[int, Exchange] = {}
        self.frames = FrameBuffer()
        self.frames_sent = 0
        self.outgoing: list[bytes | memoryview] = []
        self.large: list[Exchange] = []
        """Those with bodies of which it has no copy yet."""
        self.events = READ
        self.watched = False
        self.retiring = False
        self.streams = False
        """Of one that has one call at a time: its client reads the answer while it is made."""
        self.recalled: set[int] = set()
        """Exchanges that it has been sent and that are others' now: it declines them when it comes to them."""
        self.ends_after = 0.0
        """By `time.monotonic`: until then it writes its stacks."""
        self.ended = False
        self.load_error = ""
        self.pool: WorkerPool | None = None
        """The one that it belongs to."""
        self.stalled_at: int | None = None
        """How many frames it had read, of more, when it was first seen so; for how long is `stalled_seconds`."""
        self.stalled_seconds = 0.0
        self._promotions = promotions
        self._exit_code: int | None = None

    def promote(self, count: int) -> None:
        """Asks for more threads to read the channel: those that did are busy with calls."""
        try:
            os.write(self._promotions, b"p" * count)
        except OSError:
            pass  # full, so plenty are asked for; or it has just died, which the channel will tell

    def stalls(self, seconds: float) -> float:
        """For how many seconds it has begun none of the calls that it was sent; to be called every `seconds`."""
        taken = self.shared.frames_taken
        waits = taken < self.frames_sent and any(each.state.frame > taken for each in self.outstanding.values())
        if waits and taken == self.stalled_at:
            self.stalled_seconds += seconds
        else:
            self.stalled_at = taken if waits else None
            self.stalled_seconds = 0.0
        return self.stalled_seconds

    def signal(self, number: int) -> None:
        if self._exit_code is None:
            os.kill(self.pid, number)  # not reaped, so the id is still its own

    def end(self, patience: float) -> int:
        """Closes the channel, on which it ends by itself, and kills it if it has not within `patience` seconds.
        Returns the exit code, negative for a signal."""
        self.ended = True
        self.channel.close()
        os.close(self._promotions)
        until = time.monotonic() + patience
        while not self.has_exited() and time.monotonic() < until:
            time.sleep(0.002)
        if self._exit_code is None:
            self.signal(signal.SIGKILL)
            self._exit_code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self._exit_code

    def has_exited(self) -> bool:
        if self._exit_code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._exit_code = os.waitstatus_to_exitcode(status)
        return self._exit_code is not None


def fork_worker(child, keep: set[int]) -> WorkerProcess:
    """Forks; `child(channel, promotions, shared)` runs in the new process and returns its exit code.

    The server has never run user code and has one thread, so a fork of it is clean at any time. Descriptors
    other than `keep` and the standard ones are closed in the child: a client's connection must end when the
    server closes it.
    """
    ours, theirs = socket.socketpair()
    promotions, promote = os.pipe()
    shared = SharedState()
    pid = os.fork()
    if pid:
        theirs.close()
        os.close(promotions)
        ours.setblocking(False)
        os.set_blocking(promote, False)
        return WorkerProcess(pid, ours, promote, shared)
    code = 1
    try:
        _close_all_but({*keep, theirs.fileno(), promotions})
        code = child(theirs, promotions, shared)
    except BaseException as error:  # noqa: BLE001 - nothing else would say it
        log_error(f"running a worker: {error}", error)
    finally:
        os._exit(code)


def _close_all_but(keep: set[int]) -> None:
    start = 3
    for fd in sorted(keep):
        os.closerange(start, fd)
        start = fd + 1
    os.closerange(start, os.sysconf("SC_OPEN_MAX"))


def describe_exit(code: int) -> str:
    """Of an exit code as `WorkerProcess.end` returns it."""
    if code >= 0:
        return f"exit code {code}"
    from signal import Signals

    name = Signals(-code).name
    # It is sent only to a process that was asked to end before.
    return f"signal {name}" + (", as when memory is exhausted" if name == "SIGKILL" else "")
