"""How many workers help: as many as keep the processors busy while calls wait for something else (a database, another service)."""

from __future__ import annotations

import os
import time

_RECENT_SECONDS = 1.0
"""What was longer ago says nothing."""
_BUSY = 0.75
_CERTAIN = 0.4
_FORGET = 0.8
"""What is left of the sums at each look: calls change."""


class ProcessorDemand:
    """Of the main threads of processes. Where they wait for a processor, which programs of others may have, nothing is said of the calls."""

    def __init__(self) -> None:
        self._counts: dict[int, tuple[int, int]] = {}
        self._total = 0.0
        self._at = 0.0
        self._elapsed = self._in_calls = self._runs = self._waits = 0.0

    def look(self, processes, in_calls: float) -> None:
        """`in_calls`: for how many seconds all calls have been under way until now."""
        before, self._counts = self._counts, {each: _counts(each) for each in processes}
        now = time.monotonic()
        elapsed, self._at = now - self._at, now
        seconds, self._total = in_calls - self._total, in_calls
        if elapsed > _RECENT_SECONDS:
            self._elapsed = self._in_calls = self._runs = self._waits = 0.0
        if elapsed > _RECENT_SECONDS or before.keys() != self._counts.keys():
            return
        spent = [(counts[0] - before[each][0], counts[1] - before[each][1]) for each, counts in self._counts.items()]
        self._elapsed = self._elapsed * _FORGET + elapsed
        self._in_calls = self._in_calls * _FORGET + seconds
        self._runs = self._runs * _FORGET + sum(runs for runs, _ in spent) / 1e9
        self._waits = self._waits * _FORGET + sum(waits for _, waits in spent) / 1e9

    @property
    def _blocked(self) -> float:
        return self._in_calls - self._runs - self._waits

    @property
    def computes(self) -> bool:
        """Whether calls compute more than they wait for something else, or that is not certain."""
        return self._blocked <= max(self._runs, _CERTAIN * self._in_calls)

    def are_busy(self, workers: int) -> bool:
        """Whether so many are nearly always in a call: otherwise what requests wait for is the server."""
        return self._in_calls > _BUSY * workers * self._elapsed

    def most(self) -> float:
        """With so many workers the processors are never idle."""
        processors = len(os.sched_getaffinity(0))
        return processors if self.computes else processors * (1 + self._blocked / max(self._runs, 1e-9))


def _counts(process: int) -> tuple[int, int]:
    """For how many nanoseconds it has run, and waited for a processor."""
    try:
        with open(f"/proc/{process}/schedstat", encoding="ascii") as file:
            run, waited = file.read().split()[:2]
    except (OSError, ValueError):
        return 0, 0  # it has ended, or the kernel does not count
    return int(run), int(waited)
