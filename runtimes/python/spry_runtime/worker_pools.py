"""One worker with its successors, or, where a worker takes one call at a time, as many of them as calls need and memory holds."""

from __future__ import annotations

import time

from .log import log
from .memory import has_room_for, is_limited
from .processor_demand import ProcessorDemand
from .worker_pool import WorkerPool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .reactor import Reactor
    from .sync_server import SyncServer
    from .worker_process import WorkerProcess

GROW_SECONDS = 0.02
"""As long as a call may wait for others before another process is worth its start."""
HELD_SECONDS = 0.1
"""As long as a call may take before others do not wait for its end, though calls have been quick until then."""
_IDLE_SECONDS = 60.0
_STARTING = 2
"""How many load the code at a time: it takes much of a processor."""
_UNLIMITED = 8
"""How many there are at most where no limit of memory is known."""
_PAUSE_SECONDS = 10.0
"""After a start that has failed."""


class WorkerPools:
    """`first` has loaded the code; `spawn()` forks another worker that begins to."""

    def __init__(self, server: SyncServer, reactor: Reactor, first: WorkerProcess, spawn) -> None:
        self._server = server
        self._reactor = reactor
        self._spawn = spawn
        self._pools = [WorkerPool(server, reactor, first, spawn)]
        """The first stays; those that have been added end when they are idle."""
        self._dismissed: list[WorkerPool] = []
        self._idle: dict[WorkerPool, tuple[int, float]] = {}
        """How many frames its worker had been sent, and for how many seconds it has been so."""
        self._demand = ProcessorDemand()
        self.grows = False
        self._looks = False
        self._not_before = 0.0

    def free(self, limit: int) -> WorkerProcess | None:
        """One with fewer calls than this."""
        for pool in self._pools:
            worker = pool.current
            if worker is not None and len(worker.outstanding) < limit:
                return worker
        return None

    def hold_long(self, seconds: float) -> bool:
        """Whether a worker has had a call for longer than this."""
        due = time.perf_counter() - seconds
        for pool in self._pools:
            if pool.current is not None and any(each.started < due for each in pool.current.outstanding.values()):
                return True
        return False

    def grow_soon(self) -> None:
        """A call waits. Another worker is started if it still does in a moment."""
        if self.grows and not self._looks:
            self._looks = True
            self._reactor.call_later(GROW_SECONDS, self._grow)

    def _grow(self) -> None:
        self._looks = False
        if self._server.draining:
            return
        leaves_one = self._demand.leaves_one(self.processes())
        if leaves_one and self._server.waits_long and self._has_room():
            try:
                pool = WorkerPool(self._server, self._reactor, None, self._spawn)
            except OSError as error:
                log(f"starting another worker process: {error.strerror or error}")
                self._not_before = time.monotonic() + _PAUSE_SECONDS
            else:
                pool.on_load_failed = self._failed
                self._pools.append(pool)
        if self._server.waits:
            self.grow_soon()

    def _has_room(self) -> bool:
        """For one more, next to those that are on their way, and as much again for the calls of all."""
        if time.monotonic() < self._not_before:
            return False
        starting = sum(pool.starting for pool in self._pools)
        most = self._server.settings.threads if is_limited() else _UNLIMITED
        first = self._pools[0].current
        if starting >= _STARTING or len(self._pools) >= most or first is None:
            return False
        return has_room_for(starting + 2, first.pid, self._server.processes())

    def _failed(self, pool: WorkerPool) -> None:
        self._not_before = time.monotonic() + _PAUSE_SECONDS
        self._dismiss(pool)

    def _dismiss(self, pool: WorkerPool) -> None:
        if pool in self._pools:
            self._pools.remove(pool)
            self._dismissed.append(pool)
            pool.dismiss()

    def tick(self, timeout: float, seconds: float) -> None:
        """To be called every so many seconds."""
        for pool in self._pools:
            pool.relieve_stalled(timeout, seconds)
        self._dismissed = [pool for pool in self._dismissed if pool.processes()]
        idle: dict[WorkerPool, tuple[int, float]] = {}
        for pool in self._pools[1:]:
            worker = pool.current
            if worker is None or worker.outstanding:
                continue
            sent, since = self._idle.get(pool, (-1, 0.0))
            idle[pool] = (worker.frames_sent, since + seconds if sent == worker.frames_sent else 0.0)
        self._idle = idle
        for pool, (_, since) in idle.items():
            if since >= _IDLE_SECONDS:
                self._dismiss(pool)

    def reload(self) -> None:
        """New code: the first loads it, and others are added again when they are needed."""
        for pool in self._pools[1:]:
            self._dismiss(pool)
        self._pools[0].reload()

    def children_changed(self) -> None:
        for pool in (*self._pools, *self._dismissed):
            pool.children_changed()

    def processes(self) -> list[int]:
        return [each for pool in (*self._pools, *self._dismissed) for each in pool.processes()]

    @property
    def serves(self) -> bool:
        return any(pool.serves for pool in self._pools)

    @property
    def exit_code(self) -> int:
        return self._pools[0].exit_code

    def close(self, patience: float) -> None:
        """Ends them all; they may take so many seconds, side by side, for what the Function does at its end."""
        until = time.monotonic() + patience
        for pool in self._pools:
            if pool.current is not None:
                pool.current.channel.close()
        for pool in (*self._pools, *self._dismissed):
            pool.close(max(0.0, until - time.monotonic()))
