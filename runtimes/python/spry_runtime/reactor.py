"""An event loop for sockets, as small as the server for synchronous handlers needs it.

asyncio would do, but importing it takes longer than everything else that happens before the first answer.
"""

from __future__ import annotations

import select
import time

from .log import log_error

READ, WRITE = 1, 4  # EPOLLIN and POLLIN, EPOLLOUT and POLLOUT


class Reactor:
    """Calls back for descriptors that are ready and for timers that are due."""

    def __init__(self) -> None:
        if hasattr(select, "epoll"):
            self._poll, self._unit = select.epoll(), 1.0
        else:
            self._poll, self._unit = select.poll(), 1000.0
        self._callbacks: dict = {}
        self._timers: list = []
        """A handful, soonest first."""
        self._running = True
        self.flush: list = []
        """Called once at the end of each round, in which they were appended."""

    def watch(self, fd: int, events: int, callback) -> None:
        """`callback(events)` may see other bits than it registered for: errors and hang-ups are
        always reported.
        """
        if fd in self._callbacks:
            self._poll.modify(fd, events)
        else:
            self._poll.register(fd, events)
        self._callbacks[fd] = callback

    def forget(self, fd: int) -> None:
        if self._callbacks.pop(fd, None) is not None:
            self._poll.unregister(fd)

    def call_later(self, seconds: float, callback) -> None:
        self._timers.append((time.monotonic() + seconds, callback))
        self._timers.sort(key=_due)

    def stop(self) -> None:
        self._running = False

    def resume(self) -> None:
        """Allows `run` again after `stop`."""
        self._running = True

    def run(self) -> None:
        poll, callbacks, timers = self._poll.poll, self._callbacks, self._timers
        while self._running:
            timeout = -1.0
            if timers:
                timeout = max(0.0, timers[0][0] - time.monotonic()) * self._unit
            try:
                for fd, events in poll(timeout):
                    callback = callbacks.get(fd)
                    if callback is not None:
                        callback(events)
            except Exception as error:  # noqa: BLE001 - the others are still ready in the next round
                log_error("serving", error)
            while timers and timers[0][0] <= time.monotonic():
                self._attempt(timers.pop(0)[1])
            while self.flush:
                self._attempt(self.flush.pop())

    @staticmethod
    def _attempt(callback) -> None:
        try:
            callback()
        except Exception as error:  # noqa: BLE001 - no fault in one task may end the server
            log_error("serving", error)


def _due(timer) -> float:
    return timer[0]
