"""How a callable's own code takes its arguments. The `inspect` module would take longer to import than most handlers."""

from __future__ import annotations

_VARARGS = 0x04
_COROUTINE = 0x80
_ASYNC_GENERATOR = 0x200


def code_of(found):
    """The function behind a callable, and whether that is an object's `__call__`."""
    for _ in range(20):
        if hasattr(found, "func") and not hasattr(found, "__code__"):
            found = found.func  # functools.partial
        elif hasattr(found, "__wrapped__"):
            found = found.__wrapped__
        else:
            break
    if hasattr(found, "__code__"):
        return found, False
    return type(found).__call__.__get__(found), True


def parameters(found) -> tuple[str, ...]:
    """How a callable's own code calls what it takes by position; none for what is not written in Python."""
    function = code_of(found)[0]
    code = getattr(function, "__code__", None)
    return code.co_varnames[code.co_argcount - argument_count(function) : code.co_argcount] if code else ()


def argument_count(function) -> int:
    """What a function takes by position, without `self`."""
    return function.__code__.co_argcount - (1 if hasattr(function, "__self__") else 0)


def required_count(found) -> int:
    """How many arguments it has to be given. A callable that takes any number of them needs none."""
    function = code_of(found)[0]
    code = getattr(function, "__code__", None)
    return max(0, argument_count(function) - len(function.__defaults__ or ())) if code else 0


def takes_any_number(found) -> bool:
    code = getattr(code_of(found)[0], "__code__", None)
    return bool(code and code.co_flags & _VARARGS)


def is_coroutine(found) -> bool:
    code = getattr(code_of(found)[0], "__code__", None)
    return bool(code and code.co_flags & _COROUTINE)


def is_asynchronous(found) -> bool:
    """A coroutine function or an asynchronous generator."""
    code = getattr(code_of(found)[0], "__code__", None)
    return bool(code and code.co_flags & (_COROUTINE | _ASYNC_GENERATOR))


def names_in(found) -> frozenset[str]:
    """The global names and attributes that a callable's own code uses."""
    code = getattr(code_of(found)[0], "__code__", None)
    return frozenset(code.co_names) if code else frozenset()
