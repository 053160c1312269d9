"""What the C library keeps of the memory that Python has given back."""

from __future__ import annotations

_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8
_LARGE_BYTES = 256 * 1024


def return_memory() -> None:
    """glibc gives each thread an arena, up to eight for each core, and each keeps what the largest bodies in it have
    needed: with 50 threads a worker grows for an hour, to several times what it uses. So threads share those that there
    are (Python's lock lets one of them allocate at a time anyway), and large blocks go back to the system at once."""
    try:
        import ctypes

        library = ctypes.CDLL(None)
        library.mallopt(_M_ARENA_MAX, 1)
        library.mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
    except (ImportError, OSError, AttributeError):
        pass  # another C library
