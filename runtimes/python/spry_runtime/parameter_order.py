"""Whose a handler is, by what it calls its parameters: in Nuclio's the context comes first, in AWS Lambda's it comes second."""

from __future__ import annotations


def takes_context_first(names: tuple[str, ...]) -> bool:
    """`(context, event)`, in these words or their usual short forms."""
    if len(names) < 2:
        return False
    first, second = _plain(names)
    return first in _CONTEXT or second in _EVENT and first not in _EVENT


def takes_event_first(names: tuple[str, ...]) -> bool:
    """`(event, context)`, in these words or their usual short forms."""
    if len(names) < 2:
        return False
    first, second = _plain(names)
    return second in _CONTEXT or first in _EVENT


def takes_event(names: tuple[str, ...]) -> bool:
    """The same, also of one that takes the event alone."""
    return takes_event_first(names) or bool(names) and names[0].strip("_").lower() in _EVENT


def _plain(names: tuple[str, ...]) -> list[str]:
    return [name.strip("_").lower() for name in names[:2]]


_CONTEXT = ("context", "ctx", "lambda_context")
_EVENT = ("event", "evt", "ev", "lambda_event")
