"""One worker with its successors, or, where a worker takes one call at a time, as many of them as calls need and memory holds."""

from __future__ import annotations

import time

from .log import log
from .memory import has_room_for
from .processor_demand import ProcessorDemand
from .worker_pool import PROMOTE_SECONDS, WorkerPool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .reactor import Reactor
    from .sync_server import SyncServer
    from .worker_process import WorkerProcess

GROW_SECONDS = 0.02
"""As long as a call may wait for others before another process is worth its start."""
HELD_SECONDS = 1.0
"""As long as a call may take before others do not wait for its end, even if it computes and all processors are busy."""
_SEEN_SECONDS = 0.001
"""Until a worker has seen that it is to take no more, or has been seen to have taken one before."""
_IDLE_SECONDS = 60.0
_STARTING = 2
"""How many load the code at a time: it takes much of a processor."""
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
        """One with fewer calls than this. Where each has one at a time, it may not be held up by that."""
        for pool in self._pools:
            worker = pool.current
            if worker is None or len(worker.outstanding) >= limit:
                continue
            if not self.grows or not (worker.streams or worker.retiring or worker.shared.closed):
                return worker
        return None

    def _hold_long(self, seconds: float) -> bool:
        """Whether a worker has had a call for longer than this."""
        due = time.perf_counter() - seconds
        return any(began < due for began in self._begun())

    def _begun(self):
        """When the calls began that are under way."""
        for pool in self._pools:
            if pool.current is not None:
                taken = pool.current.shared.frames_taken
                for each in pool.current.outstanding.values():
                    if each.state.frame <= taken:
                        yield each.state.began

    # What a worker was sent ahead.

    def held_up(self, worker: WorkerProcess) -> None:
        """Where each has one call at a time: those behind the one that takes long are to be others'."""
        if self.grows and worker.pool.current is worker and len(worker.outstanding) > 1 and not worker.shared.closed:
            worker.shared.closed = True
            self._reactor.call_later(_SEEN_SECONDS, lambda: self._recall(worker))

    def _recall(self, worker: WorkerProcess) -> None:
        taken = worker.shared.frames_taken
        recalled = {number: each for number, each in worker.outstanding.items() if each.state.frame > taken}
        for number, exchange in recalled.items():
            del worker.outstanding[number]
            exchange.state = None
        worker.recalled.update(recalled)
        self._open_again(worker)
        self._server.give_back(list(recalled.values()))

    def declined(self, worker: WorkerProcess, exchange_id: int) -> None:
        """It has come to a request that has been recalled."""
        worker.recalled.discard(exchange_id)
        self._open_again(worker)
        self._server.give_back([])

    @staticmethod
    def _open_again(worker: WorkerProcess) -> None:
        if not worker.recalled and worker.pool.current is worker:
            worker.shared.closed = False

    # How many there are.

    def grow_soon(self) -> None:
        """A call waits. Another worker is started if it still does in a moment."""
        if self.grows and not self._looks:
            self._looks = True
            self._reactor.call_later(GROW_SECONDS, self._grow)

    def _grow(self) -> None:
        self._looks = False
        if self._server.draining:
            return
        now = time.perf_counter()
        workers = [pool.current.pid for pool in self._pools if pool.current is not None]
        self._demand.look(workers, self._server.call_seconds + sum(now - began for began in self._begun()))
        if self._would_help() and self._has_room():
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

    def _would_help(self) -> bool:
        """Whether a request has waited for more than an instant, and not for the server or the processors."""
        waits = self._server.wait_seconds()
        if self._demand.computes:
            helps = waits >= GROW_SECONDS and self._demand.are_busy(len(self._pools))
        else:
            helps = waits >= min(GROW_SECONDS, self._server.typical_seconds / 8)
        return helps and len(self._pools) < self._demand.most() or waits >= GROW_SECONDS and self._hold_long(HELD_SECONDS)

    def _has_room(self) -> bool:
        """For one more, next to those that are on their way, and as much again for the calls of all."""
        if time.monotonic() < self._not_before:
            return False
        starting = sum(pool.starting for pool in self._pools)
        first = self._pools[0].current
        if starting >= _STARTING or len(self._pools) >= self._server.settings.threads or first is None:
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
