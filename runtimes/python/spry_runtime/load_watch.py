"""A program that serves by itself while it is loaded is never loaded: that is said soon, whichever server it is."""

from __future__ import annotations

import _signal as signal
import os
import time

from .log import log
from .started_servers import INSTEAD, ServerRefused

_EVERY_SECONDS = 0.5
_IDLE_SECONDS = 0.02
"""As much of a processor may be used between two looks by a process that waits."""
_LOOKS = 3
"""In so many that follow each other it listens and waits."""
_SAID_AFTER = 20
_LISTENING = "0A"


class LoadWatch:
    """Looks at the main thread by a timer's signal, without a thread of its own. The socket of `own` is the runtime's."""

    def __init__(self, name: str, directory: str, own: int, as_main: bool = False) -> None:
        self._name = name
        self._directory = directory
        self._own = own
        self._as_main = as_main
        self._looks = self._waits = 0
        self._used = 0.0

    def __enter__(self) -> None:
        signal.signal(signal.SIGALRM, self._look)
        signal.setitimer(signal.ITIMER_REAL, _EVERY_SECONDS, _EVERY_SECONDS)

    def __exit__(self, *_exception) -> None:
        if signal.getsignal(signal.SIGALRM) == self._look:  # not the program's own
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)

    def _look(self, _signal, frame) -> None:
        self._looks += 1
        before, self._used = self._used, time.process_time()
        waits = self._used - before < _IDLE_SECONDS
        port = _listening_port(self._own) if waits else None
        self._waits = 0 if port is None else self._waits + 1
        if self._waits >= _LOOKS:  # again, where a callback has swallowed it
            raise ServerRefused(f"it serves port {port} by itself while it is loaded, {self._place(frame)}, which Spry does not call: {INSTEAD}")
        if self._looks == _SAID_AFTER or self._as_main and self._looks > _SAID_AFTER:
            taken = f"has taken {_SAID_AFTER * _EVERY_SECONDS:g} s so far, {self._place(frame)}"
            if self._as_main:
                raise ServerRefused(f"it defines no handler, and as the main program it {taken}, without a server: {INSTEAD}")
            log(f"loading {self._name} {taken}")

    def _place(self, frame) -> str:
        while frame is not None and not frame.f_code.co_filename.startswith(self._directory):
            frame = frame.f_back
        return "in a package" if frame is None else f"in line {frame.f_lineno} of {os.path.relpath(frame.f_code.co_filename, self._directory)}"


def _listening_port(own: int) -> int | None:
    """At which the process listens itself."""
    try:
        inodes = {_link(each)[8:-1] for each in os.listdir("/proc/self/fd")}
        inodes.discard(_link(own)[8:-1])
        for table in ("/proc/self/net/tcp", "/proc/self/net/tcp6"):
            with open(table, encoding="ascii") as file:
                for line in file:
                    fields = line.split()
                    if fields[3] == _LISTENING and fields[9] in inodes:
                        return int(fields[1].rpartition(":")[2], 16)
    except OSError:
        pass  # another system
    return None


def _link(descriptor) -> str:
    """`socket:[inode]` of a socket."""
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return ""  # closed meanwhile
