"""What the C library keeps of the memory that Python has given back."""

from __future__ import annotations

_M_ARENA_MAX = -8
_ARENAS = 2


def limit_arenas() -> None:
    """glibc gives each thread an arena, up to eight for each core, and every one of them keeps what its largest body has
    needed: with 50 threads a worker grows for hours, to several times what it uses. Python's lock lets one thread
    allocate at a time anyway."""
    try:
        import ctypes

        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS)
    except (ImportError, OSError, AttributeError):
        pass  # another C library
