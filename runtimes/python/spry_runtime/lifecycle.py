"""The Function's own `start` and `stop`."""

from __future__ import annotations

_COROUTINE = 0x80


def find_hook(module, name: str):
    """The module's function of that name if it can be called without arguments, else None."""
    found = getattr(module, name, None)
    code = getattr(found, "__code__", None)
    if code is None or code.co_argcount > len(found.__defaults__ or ()):
        return None
    return found


def call_hook(hook) -> None:
    """Where there is no event loop. What it raises is the caller's to explain."""
    if hook is None:
        return
    if hook.__code__.co_flags & _COROUTINE:
        import asyncio

        asyncio.run(hook())
    else:
        hook()


async def call_hook_async(hook) -> None:
    """As `call_hook`, on the event loop that serves."""
    if hook is None:
        return
    result = hook()
    if hasattr(result, "__await__"):
        await result
