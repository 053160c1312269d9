"""How much of the container's memory the bodies of requests may take."""

from __future__ import annotations

import time

from .memory import memory_left, return_memory
from .request_head import MalformedRequest

COPIES = 4
"""Of each body: the server's, which the process that it is for has replaced by its own when the handler begins; what the
handler makes of it; and what the handler answers, as text and as bytes."""
_ALWAYS = 256 * 1024
"""Of all bodies together: too little to look for."""
_LARGE = 256 * 1024
_SECONDS = 0.1
_LOOK_BYTES = 1024 * 1024
"""After so many more a look at the memory is old: bodies can come faster than the time says."""
_MARGIN = 8 * 1024 * 1024
"""What handlers and their answers need is not to be filled with the bodies of the next requests."""
_QUIET_SECONDS = 10.0
"""For so long counts what was left when no other request held anything."""


class BodyBudget:
    """Of all bodies that have come, in part or whole, and whose requests have not been answered. Without it a few clients
    could fill the memory: who does is killed, with the requests of all others. `processes` returns the ids of those that
    share the limit."""

    def __init__(self, processes) -> None:
        self.held = 0
        self._processes = processes
        self._room = self._quiet_room = self._left = 0.0
        self._seen = 0
        self._until = self._quiet_until = 0.0

    def has_room(self, coming: int, alone: bool) -> bool:
        """For so many bytes more than are held."""
        if self.held + coming <= _ALWAYS:
            return True
        now = time.monotonic()
        if now > self._until or self.held + coming - self._seen > _LOOK_BYTES:
            self._until, self._seen = now + _SECONDS, self.held
            self._left = memory_left(self._processes())
            # Of what is held, one copy at least is among what is in use; with no other request that is all of it.
            self._room = self._left + self.held
            if alone:
                self._quiet_room, self._quiet_until = self._room, now + _QUIET_SECONDS
            elif now < self._quiet_until:
                self._room = max(self._room, self._quiet_room)
        if not alone and self.held + coming - self._seen + _MARGIN > self._left:
            # What others have made of their bodies is there now, whatever there was room for while all was quiet.
            return False
        return (self.held + coming) * COPIES <= self._room

    def look_again(self) -> None:
        """Something large has been made since the last look."""
        self._until = 0.0


class HeldBody:
    """What one request takes of it, until it is answered."""

    __slots__ = ("_budget", "_count")

    def __init__(self, budget: BodyBudget) -> None:
        self._budget = budget
        self._count = 0

    def announce(self, count: int) -> None:
        """So much is to come. Only what has come is held: a client may announce much and send little. Raises
        `MalformedRequest` when there is no room."""
        if count >= _LARGE:
            return_memory()
        self._check(count)

    def add(self, count: int) -> None:
        """Counts bytes that have arrived. Raises `MalformedRequest` if the budget has no room."""
        self._count += count
        self._budget.held += count
        self._check(0)

    def release(self) -> None:
        self._budget.held -= self._count
        self._count = 0

    def _check(self, coming: int) -> None:
        alone = self._budget.held == self._count
        if self._budget.has_room(coming, alone):
            return
        if alone:
            raise MalformedRequest(413, "the request body is too large for the memory that the Function has left")
        raise MalformedRequest(503, "the bodies of other requests use up the Function's memory")
