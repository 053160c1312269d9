"""The handler that a person has named, by an environment variable, by AWS Lambda's own name or by registering it."""

from __future__ import annotations

import os
import sys

from .handler import LoadError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .functions_framework import Target
    from .settings import Settings

LAMBDA_NAME = "lambda_handler"
_SHOWN = 10


def named_function(module, settings: Settings):
    """What `HANDLER_FUNC_NAME` names; None if it names nothing. Raises `LoadError` if the module does not have it."""
    name = settings.named_handler
    return None if name is None else _callable_of(module, name, "HANDLER_FUNC_NAME")


def lambda_function(module):
    """Of a module whose handler is AWS Lambda's and has not been named. Raises `LoadError` if it has none of the usual names."""
    for name in (LAMBDA_NAME, "handler", "main"):
        found = getattr(module, name, None)
        if callable(found):
            return found
    raise LoadError(f"it defines neither lambda_handler nor handler, and {functions_of(module)}: name the function after the file's name")


def registered_target(module, function=None) -> Target | None:
    """Of Functions Framework: what `FUNCTION_TARGET` names or the code has registered; with `function`, that one if it is registered."""
    if "functions_framework" not in sys.modules and "FUNCTION_TARGET" not in os.environ:
        return None
    from .functions_framework import find_target, target_of

    if function is not None:
        return target_of(function)
    target = find_target(module)
    if target is None and os.environ.get("FUNCTION_TARGET"):
        _callable_of(module, os.environ["FUNCTION_TARGET"], "FUNCTION_TARGET")
    return target


def _callable_of(module, name: str, variable: str):
    missing = object()
    found = getattr(module, name, missing)
    if callable(found):
        return found
    file = module.__name__.replace(".", "/") + ".py"
    problem = "does not define that name" if found is missing else f"defines it as {type(found).__name__}, which cannot be called"
    raise LoadError(f"{variable} is {name!r}, and {file} {problem}; {functions_of(module)}")


def functions_of(module) -> str:
    """The functions that a module defines itself, in words."""
    own = [
        name
        for name, value in vars(module).items()
        if callable(value) and not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]
    if not own:
        return "it defines no functions"
    more = f" and {len(own) - _SHOWN} more" if len(own) > _SHOWN else ""
    return f"it defines {', '.join(own[:_SHOWN])}{more}"
