"""The trace that a request belongs to: read from its headers, written into those of others (W3C Trace Context and B3)."""

from __future__ import annotations

import os

_TRACEPARENT = r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?"
_B3_TRACE = r"(?:[0-9a-f]{16}){1,2}"
_B3_SPAN = r"[0-9a-f]{16}"
_NO_TRACE, _NO_SPAN = "0" * 32, "0" * 16
_FRESH_AT_A_TIME = 64


class TraceContext:
    """The span of one invocation, or one that a handler makes. Ids are made when they are first
    needed.
    """

    __slots__ = ("_ids", "_incoming", "_outgoing", "span", "span_id_of_caller")

    def __init__(self, incoming: dict[str, str]) -> None:
        self._incoming = incoming
        self._ids: tuple[str, str, str] | None = None
        self._outgoing: dict[str, str] | None = None
        self.span_id_of_caller: str | None = None
        self.span = None
        """Of an invocation whose code may add to its span."""

    def identity(self) -> tuple[str, str, str | None, str | None]:
        """Trace, span, the caller's span, and what other vendors have in `tracestate`."""
        trace, span, _ = self._known()
        return trace, span, self.span_id_of_caller, self._incoming.get("tracestate")

    def headers(self) -> dict[str, str]:
        """What outgoing requests are to carry."""
        if self._outgoing is None:
            trace, span, sampled = self._known()
            self._outgoing = {
                "traceparent": f"00-{trace}-{span}-0{sampled}",
                "x-b3-traceid": trace,
                "x-b3-spanid": span,
                "x-b3-sampled": sampled,
            }
            for name in ("tracestate", "baggage"):
                if name in self._incoming:
                    self._outgoing[name] = self._incoming[name]
        return self._outgoing

    @property
    def is_sampled(self) -> bool:
        """As the caller has decided. A trace that begins here is (OpenTelemetry's sampler `parentbased_always_on`)."""
        if self._ids is None and not _is_traced(self._incoming):
            return True  # of most calls nobody asks more before they are done
        return self._known()[2] == "1"

    def child(self) -> TraceContext:
        """The context of a span inside this one."""
        child = TraceContext(self._incoming)
        trace, child.span_id_of_caller, sampled = self._known()
        child._ids = trace, _fresh_digits()[32:], sampled
        return child

    @property
    def trace_id(self) -> str:
        return self._known()[0]

    @property
    def span_id(self) -> str:
        return self._known()[1]

    def _known(self) -> tuple[str, str, str]:
        """Trace, span and decision ("1" or "0")."""
        if self._ids is None:
            digits = _fresh_digits()
            trace, self.span_id_of_caller, sampled = self._caller(digits[:32])
            self._ids = trace, digits[32:], sampled
        return self._ids

    def _caller(self, fresh_trace: str) -> tuple[str, str | None, str]:
        """Its trace, span and decision, as far as it says them."""
        incoming = self._incoming
        if not _is_traced(incoming):
            return fresh_trace, None, "1"
        match = _match(_TRACEPARENT, incoming.get("traceparent", ""))
        if match and match[1] != _NO_TRACE and match[2] != _NO_SPAN:
            return match[1], match[2], "1" if int(match[3], 16) & 1 else "0"
        trace, span, flag = _b3_parts(incoming)
        sampled = "0" if flag in ("0", "false") else "1"
        if _match(_B3_TRACE, trace) and _match(_B3_SPAN, span):
            return trace.rjust(32, "0"), span, sampled
        return fresh_trace, None, sampled


_matchers: dict = {}


def _match(pattern: str, text: str):
    """Compiles when first needed: many Functions never see a trace, and `re` takes long to import."""
    fullmatch = _matchers.get(pattern)
    if fullmatch is None:
        import re

        fullmatch = _matchers[pattern] = re.compile(pattern).fullmatch
    return fullmatch(text)


_fresh: list[str] = []


def _fresh_digits() -> str:
    """32 random hexadecimal digits for a trace and 16 for a span. Asking the system each time costs more than all else."""
    try:
        return _fresh.pop()
    except IndexError:
        digits = os.urandom(24 * _FRESH_AT_A_TIME).hex()
        _fresh.extend(digits[at : at + 48] for at in range(48, len(digits), 48))
        return digits[:48]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_fresh.clear)  # two processes must not give the same ids


def _is_traced(headers: dict[str, str]) -> bool:
    return "traceparent" in headers or "x-b3-sampled" in headers or "x-b3-traceid" in headers or "b3" in headers


def _b3_parts(headers: dict[str, str]) -> tuple[str, str, str]:
    """Trace, span and whether it is sampled, of one header or several; it may be that alone (`b3: 0`)."""
    single = headers.get("b3", "").lower().split("-")
    if len(single) >= 2:
        return single[0], single[1], single[2] if len(single) > 2 else "1"
    flag = headers.get("x-b3-sampled", single[0] or "1").lower()
    return headers.get("x-b3-traceid", "").lower(), headers.get("x-b3-spanid", "").lower(), flag
