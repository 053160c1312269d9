"""Which neighbour's a handler is, by how it calls its parameters: in Nuclio's the context comes first."""

from __future__ import annotations


def takes_context_first(names: tuple[str, ...]) -> bool:
    """`(context, event)`, in these words or their usual short forms."""
    if len(names) < 2:
        return False
    first, second = (name.strip("_").lower() for name in names[:2])
    return first in _CONTEXT or second in _EVENT and first not in _EVENT


_CONTEXT = ("context", "ctx")
_EVENT = ("event", "evt", "ev")
