"""Counts and durations of calls, in the text format that Prometheus reads."""

from __future__ import annotations

import time
from bisect import bisect_left

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))

CONTENT_TYPE = b"content-type: text/plain; version=0.0.4; charset=utf-8\r\n"


class _Series:
    __slots__ = ("buckets", "calls", "failures", "seconds")

    def __init__(self) -> None:
        self.calls = 0
        self.failures = 0
        self.seconds = 0.0
        self.buckets = [0] * (len(_BUCKETS) + 1)


class Metrics:
    def __init__(self) -> None:
        self._series: dict[str, _Series] = {}
        self._started = time.time()
        self.start_seconds = 0.0
        self.replaced_workers = 0

    def record(self, method: str, seconds: float, failed: bool) -> None:
        """Counts one call. Methods are the client's choice of words: unknown ones share a series."""
        series = self._series.get(method)
        if series is None:
            key = method if method in _METHODS else "OTHER"
            series = self._series.setdefault(key, _Series())
        series.calls += 1
        series.seconds += seconds
        series.buckets[bisect_left(_BUCKETS, seconds)] += 1
        if failed:
            series.failures += 1

    def render(self, in_flight: int) -> bytes:
        lines: list[str] = []
        series = sorted(self._series.items())
        _describe(lines, "function_calls_total", "counter", "Number of calls to user function")
        lines += [f'function_calls_total{{method="{m}"}} {s.calls}' for m, s in series]
        _describe(lines, "function_failures_total", "counter", "Number of exceptions in user function")
        lines += [f'function_failures_total{{method="{m}"}} {s.failures}' for m, s in series]
        name = "function_duration_seconds"
        _describe(lines, name, "histogram", "Duration of user function in seconds")
        for method, one in series:
            total = 0
            for bound, count in zip((*_BUCKETS, "+Inf"), one.buckets):
                total += count
                lines.append(f'{name}_bucket{{method="{method}",le="{bound}"}} {total}')
            lines.append(f'{name}_count{{method="{method}"}} {total}')
            lines.append(f'{name}_sum{{method="{method}"}} {one.seconds:.6f}')
        _describe(lines, "function_in_flight_requests", "gauge", "Requests that are waiting or being handled")
        lines.append(f"function_in_flight_requests {in_flight}")
        _describe(lines, "function_start_seconds", "gauge", "Time from process start to ready")
        lines.append(f"function_start_seconds {self.start_seconds:.6f}")
        _describe(lines, "function_workers_replaced_total", "counter", "Worker processes ended and replaced")
        lines.append(f"function_workers_replaced_total {self.replaced_workers}")
        lines += _process(self._started)
        return ("\n".join(lines) + "\n").encode()


def _describe(lines: list[str], name: str, kind: str, text: str) -> None:
    lines.append(f"# HELP {name} {text}")
    lines.append(f"# TYPE {name} {kind}")


def _process(started: float) -> list[str]:
    """The server process itself, by the names Prometheus clients agree on."""
    import platform
    import resource

    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu = sum(one.ru_utime + one.ru_stime for one in usage)
    lines: list[str] = []
    _describe(lines, "process_cpu_seconds_total", "counter", "User and system time of the server process")
    lines.append(f"process_cpu_seconds_total {cpu:.2f}")
    _describe(lines, "process_start_time_seconds", "gauge", "Start time since the epoch")
    lines.append(f"process_start_time_seconds {started:.2f}")
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            pages = int(file.read().split()[1])
        _describe(lines, "process_resident_memory_bytes", "gauge", "Resident memory of the server process")
        lines.append(f"process_resident_memory_bytes {pages * resource.getpagesize()}")
    except OSError:
        pass
    _describe(lines, "python_info", "gauge", "Python platform information")
    version = platform.python_version()
    lines.append(f'python_info{{implementation="{platform.python_implementation()}",version="{version}"}} 1')
    return lines
