"""How much of the container's memory the bodies of requests may take."""

from __future__ import annotations

import os

from .request_head import MalformedRequest

_ALWAYS = 8 * 1024 * 1024
_COPIES = 5
"""A body is held four times over while it goes to the process that it is for; the rest is the Function's."""
_LIMIT_FILES = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


class BodyBudget:
    """Of all bodies that have come, in part or whole, and whose requests have not been answered. Without it a few clients
    could fill the memory: who does is killed, with the requests of all others."""

    def __init__(self) -> None:
        self.held = 0
        self._limit: float | None = None

    def has_room(self) -> bool:
        if self.held <= _ALWAYS:
            return True
        if self._limit is None:
            self._limit = max(_ALWAYS, _memory_limit() / _COPIES)
        return self.held <= self._limit


class HeldBody:
    """What one request takes of it, until it is answered."""

    __slots__ = ("_budget", "_count")

    def __init__(self, budget: BodyBudget) -> None:
        self._budget = budget
        self._count = 0

    def add(self, count: int) -> None:
        """Raises `MalformedRequest` when there is no room."""
        self._count += count
        self._budget.held += count
        if not self._budget.has_room():
            if self._budget.held == self._count:
                raise MalformedRequest(413, "request body too large for the Function's memory")
            raise MalformedRequest(503, "the bodies of other requests use up the Function's memory")

    def release(self) -> None:
        self._budget.held -= self._count
        self._count = 0


def _memory_limit() -> float:
    """In bytes; infinite if there is none, or if it is unknown."""
    texts = [os.environ.get("FUNC_MEMORY_LIMIT", "")]
    for name in _LIMIT_FILES:
        try:
            with open(name, encoding="ascii") as file:
                texts.append(file.read().strip())
        except OSError:
            pass  # the other version of cgroups, or none
    limits = [int(text) for text in texts if text.isdigit()]
    return min(limits) if limits else float("inf")
