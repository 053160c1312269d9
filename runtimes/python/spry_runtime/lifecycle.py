"""The Function's own `start` and `stop`."""

from __future__ import annotations

def find_hook(module, name: str):
    """The module's function of that name if it can be called without arguments, else None."""
    found = getattr(module, name, None)
    code = getattr(found, "__code__", None)
    if code is None or code.co_argcount > len(found.__defaults__ or ()):
        return None
    return found


def in_turn(*hooks):
    """A hook that calls those of them that there are, one after the other."""
    present = [hook for hook in hooks if hook is not None]

    def call():
        rest = iter(present)
        for hook in rest:
            result = hook()
            if hasattr(result, "__await__"):
                return _finish(result, rest)
        return None

    return call


async def _finish(result, rest) -> None:
    await result
    for hook in rest:
        await call_hook_async(hook)


def call_hook(hook) -> None:
    """Where there is no event loop. What it raises is the caller's to explain."""
    if hook is None:
        return
    result = hook()
    if hasattr(result, "__await__"):
        import asyncio

        asyncio.run(_finish(result, ()))


async def call_hook_async(hook) -> None:
    """As `call_hook`, on the event loop that serves."""
    if hook is None:
        return
    result = hook()
    if hasattr(result, "__await__"):
        await result
