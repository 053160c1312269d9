"""The trace that a request belongs to: read from its headers, written into those of others (W3C Trace Context and B3)."""

from __future__ import annotations

import os

# Compiled (and cached) by `re` when the first request that has a trace asks for it.
_TRACEPARENT = r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?"
_B3_TRACE = r"(?:[0-9a-f]{16}){1,2}"
_B3_SPAN = r"[0-9a-f]{16}"
_NO_TRACE, _NO_SPAN = "0" * 32, "0" * 16


class TraceContext:
    """The span of one invocation, or one that a handler makes. Ids are made when somebody first asks."""

    __slots__ = ("_incoming", "_outgoing", "span", "span_id_of_caller")

    def __init__(self, incoming: dict[str, str]) -> None:
        self._incoming = incoming
        self._outgoing: dict[str, str] | None = None
        self.span_id_of_caller: str | None = None
        self.span = None
        """Of an invocation whose code may add to its span."""

    def identity(self) -> tuple[str, str, str | None, str | None]:
        """Trace, span, the caller's span, and what other vendors have in `tracestate`."""
        if self._outgoing is None and not _is_traced(self._incoming):
            # Of most calls nobody has asked before, and nobody will again.
            digits = os.urandom(24).hex()
            return digits[:32], digits[32:], None, None
        headers = self.headers()
        return headers["x-b3-traceid"], headers["x-b3-spanid"], self.span_id_of_caller, headers.get("tracestate")

    def headers(self) -> dict[str, str]:
        """What outgoing requests are to carry."""
        if self._outgoing is None:
            trace, self.span_id_of_caller, sampled = self._caller() or (os.urandom(16).hex(), None, "1")
            span = os.urandom(8).hex()
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
        if self._outgoing is None and not _is_traced(self._incoming):
            return True
        return self.headers()["x-b3-sampled"] == "1"

    def child(self) -> TraceContext:
        """The context of a span inside this one."""
        child = TraceContext(self._incoming)
        child.span_id_of_caller = self.span_id
        span = os.urandom(8).hex()
        traceparent = f"00-{self.trace_id}-{span}-0{int(self.is_sampled)}"
        child._outgoing = {**self.headers(), "traceparent": traceparent, "x-b3-spanid": span}
        return child

    @property
    def trace_id(self) -> str:
        return self.headers()["x-b3-traceid"]

    @property
    def span_id(self) -> str:
        return self.headers()["x-b3-spanid"]

    def _caller(self) -> tuple[str, str | None, str] | None:
        """Its trace, span and decision ("1" or "0"), if it says them."""
        incoming = self._incoming
        if not _is_traced(incoming):
            return None
        import re

        match = re.fullmatch(_TRACEPARENT, incoming.get("traceparent", ""))
        if match and match[1] != _NO_TRACE and match[2] != _NO_SPAN:
            return match[1], match[2], str(int(match[3], 16) & 1)
        trace, span, flag = _b3_parts(incoming)
        sampled = "0" if flag in ("0", "false") else "1"
        if re.fullmatch(_B3_TRACE, trace) and re.fullmatch(_B3_SPAN, span):
            return trace.rjust(32, "0"), span, sampled
        return os.urandom(16).hex(), None, sampled


def _is_traced(headers: dict[str, str]) -> bool:
    return "traceparent" in headers or "x-b3-sampled" in headers or "x-b3-traceid" in headers or "b3" in headers


def _b3_parts(headers: dict[str, str]) -> tuple[str, str, str]:
    """Trace, span and whether it is sampled, of one header or several; it may be that alone (`b3: 0`)."""
    single = headers.get("b3", "").lower().split("-")
    if len(single) >= 2:
        return single[0], single[1], single[2] if len(single) > 2 else "1"
    flag = headers.get("x-b3-sampled", single[0] or "1").lower()
    return headers.get("x-b3-traceid", "").lower(), headers.get("x-b3-spanid", "").lower(), flag
