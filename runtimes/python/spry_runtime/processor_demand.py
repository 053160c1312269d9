"""How much of the processors the workers want: others of them help calls that wait for something else, not those that compute."""

from __future__ import annotations

import os
import time


class ProcessorDemand:
    """Of the main threads of processes, between one look and the next."""

    def __init__(self) -> None:
        self._nanoseconds: dict[int, int] = {}
        self._at = 0.0

    def leaves_one(self, processes) -> bool:
        """Whether a processor is left by these since the look before, which has not been long ago; False at the first look."""
        now = time.monotonic()
        before, elapsed = self._nanoseconds, now - self._at
        self._nanoseconds = {each: _wanted(each) for each in processes}
        self._at = now
        if elapsed > 1.0 or elapsed <= 0:
            return False
        wanted = sum(max(0, value - before.get(each, value)) for each, value in self._nanoseconds.items())
        return wanted / 1e9 / elapsed < len(os.sched_getaffinity(0)) - 0.5


def _wanted(process: int) -> int:
    """For how many nanoseconds it has run, or waited for a processor."""
    try:
        with open(f"/proc/{process}/schedstat", encoding="ascii") as file:
            run, waited = file.read().split()[:2]
    except (OSError, ValueError):
        return 0  # it has ended, or the kernel does not count
    return int(run) + int(waited)
