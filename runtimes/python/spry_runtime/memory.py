"""How much memory the container has left, and what the C library keeps of what Python has given back."""

from __future__ import annotations

import os

_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8
_LARGE_BYTES = 256 * 1024
_RESERVE = 6 * 1024 * 1024
"""What the kernel needs for sockets and page tables, which counts as the container's."""
_PART = 4
"""Where no limit is known: a quarter of the machine's memory is a Function's."""
_TREES = "/sys/fs/cgroup"
_NONE = 1 << 60
"""Version 1 of control groups shows this number or a larger one if no limit is set."""
_V2 = ("memory.max", "memory.current", "inactive_file", "active_file")
_V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file", "total_active_file")
_group: tuple | None = None
_returns = False


def return_memory() -> None:
    """glibc gives each thread an arena, up to eight for each core, and each keeps what the largest bodies in it have
    needed: with 50 threads a worker grows for an hour, to several times what it uses. So threads share those that there
    are (Python's lock lets one of them allocate at a time anyway), and large blocks go back to the system at once."""
    global _returns
    if _returns:
        return
    _returns = True
    try:
        import ctypes

        library = ctypes.CDLL(None)
        library.mallopt(_M_ARENA_MAX, 1)
        library.mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
    except (ImportError, OSError, AttributeError):
        pass  # another C library


def memory_left(processes) -> float:
    """In bytes, until a limit ends one of the container's processes; infinite if none is known. `processes` are the ids of
    the runtime's own, which count alone where the limit is not the control group's but `FUNC_MEMORY_LIMIT`."""
    global _group
    if _group is None:
        _group = _find_group()
    directory, names = _group
    left = float("inf")
    limit = _number(directory + names[0])
    if limit is not None and limit < _NONE:
        left = limit - _used(directory, *names[1:])
    given = os.environ.get("FUNC_MEMORY_LIMIT", "")
    if given.isdigit():
        left = min(left, int(given) - _resident(processes))
    return left - _RESERVE


def has_room_for_another(process: int, processes) -> bool:
    """Whether there is memory for one more process such as this one."""
    return has_room_for(1, process, processes)


def has_room_for(count: int, process: int, processes) -> bool:
    """The same for so many more. Where no limit is known, the runtime's processes may have a part of what the machine has left."""
    left = memory_left(processes)
    if left == float("inf"):
        left = _available() / _PART - _resident(processes)
    return left >= count * _resident((process,))


def _find_group() -> tuple:
    """The control group's directory, which a container sees at the root, and the names of its files."""
    own = dict(line.split(":", 2)[1:] for line in _text("/proc/self/cgroup").splitlines() if line.count(":") > 1)
    for controllers, path in own.items():
        if "memory" in controllers.split(","):
            found = _existing((f"{_TREES}/memory{path}/", f"{_TREES}/memory/"), _V1)
            if found:
                return found
    return _existing((f"{_TREES}{own.get('', '/')}/", f"{_TREES}/"), _V2) or ("", _V2)


def _existing(directories: tuple[str, ...], names: tuple) -> tuple | None:
    for each in directories:
        if os.path.exists(each + names[0]):
            return each, names
    return None


def _used(directory: str, usage: str, *caches: str) -> int:
    """Without copies of files, which the kernel drops when there is nothing else."""
    used = _number(directory + usage) or 0
    for line in _text(directory + "memory.stat").splitlines():
        field, _, value = line.partition(" ")
        if field in caches:
            used -= int(value)
    return used


def _resident(processes) -> int:
    """In bytes; of no file."""
    pages = 0
    for each in processes:
        fields = _text(f"/proc/{each}/statm").split()
        if len(fields) > 2:
            pages += int(fields[1]) - int(fields[2])
    return pages * os.sysconf("SC_PAGESIZE")


def _available() -> float:
    """What the machine can give in bytes; infinite where it does not say."""
    for line in _text("/proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return float("inf")


def _number(name: str) -> int | None:
    text = _text(name).strip()
    return int(text) if text.isdigit() else None


def _text(name: str) -> str:
    try:
        with open(name, encoding="ascii") as file:
            return file.read()
    except OSError:
        return ""  # the other version of control groups, or none
