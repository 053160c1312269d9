"""What is made of a body may not take more memory than there is: JSON can become thirty times as large."""

from __future__ import annotations

import _thread
import os

from .body_budget import COPIES
from .memory import memory_left

_ALONE = "the request body is too large for the memory that the Function has left"
_BUSY = "the bodies of other requests use up the Function's memory"
_SMALL = 64 * 1024
_MARGIN = 8 * 1024 * 1024
"""For what handlers do otherwise: what writes JSON, for example, takes much more for a moment than what it writes."""
_guarding = _thread.allocate_lock()
_held = None
_made = None


class TooLargeInMemory(Exception):
    """A body that was accepted, but not what it says. `status` is 503 where other requests have the memory now."""

    def __init__(self, others: bool) -> None:
        super().__init__(_BUSY if others else _ALONE)
        self.status = 503 if others else 413


class Stopped(Exception):
    """The function has raised StopIteration."""


def reserve_for(held, made=None) -> None:
    """`held()` is how many bytes all bodies have whose requests are in progress: each of them has an answer to come. `made()` is
    called when something large has been made of a body in this process."""
    global _held, _made
    _held, _made = held, made


def check_memory(size: int, needed: int) -> None:
    """Of a body of so many bytes something is made that takes so many. Raises `TooLargeInMemory`."""
    if size >= _SMALL:
        _room_for(size, needed)


def guarded(size: int, function, *arguments):
    """Calls a function of C that makes something of a body of so many bytes. Raises `TooLargeInMemory` when memory would run
    out before, and `Stopped`.

    By a limit of the process' own for that moment, and not longer: libraries reserve far more than they use. No other thread
    of Python's meets that limit, as limit, call and limit are one call, during which this thread is not interrupted.
    """
    room = _room_for(size, size) if size >= _SMALL else float("inf")
    if room == float("inf"):
        return function(*arguments)
    from functools import partial
    from operator import call
    from resource import RLIMIT_DATA, RLIM_INFINITY, getrlimit, setrlimit

    with _guarding:
        before = getrlimit(RLIMIT_DATA)
        limit = _data_bytes() + int(room)
        if before[0] != RLIM_INFINITY and before[0] <= limit:
            return function(*arguments)
        restore = partial(setrlimit, RLIMIT_DATA, before)
        calls = (partial(setrlimit, RLIMIT_DATA, (limit, before[1])), partial(function, *arguments), restore)
        try:
            results = list(map(call, calls))
        except BaseException as error:
            restore()
            if isinstance(error, MemoryError):
                raise TooLargeInMemory(_others(size) > 0) from None
            raise
        if len(results) != len(calls):
            restore()
            raise Stopped
        if _made is not None:
            _made()
        return results[1]


def _room_for(size: int, needed: int) -> float:
    """What there is for more than the answers that are to come, as text and as bytes. This one's comes when what is made of
    the body on the way is no longer there."""
    others = _others(size)
    room = memory_left((os.getpid(), os.getppid())) - (COPIES - 2) * others - size - _MARGIN
    if room < needed:
        raise TooLargeInMemory(others > 0)
    return room


def _others(size: int) -> int:
    return max(0, _held() - size) if _held is not None else 0


def _data_bytes() -> int:
    """Of private memory that can be written, as the limit counts it."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[5]) * os.sysconf("SC_PAGESIZE")
