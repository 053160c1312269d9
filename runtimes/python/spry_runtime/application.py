"""Which protocol an application object speaks: WSGI, ASGI or AWS Lambda's events."""

from __future__ import annotations

from .callables import argument_count, code_of, is_asynchronous, is_coroutine, parameters, takes_any_number
from .handler import ASGI, WSGI, LoadError
from .parameter_order import takes_event_first

LAMBDA = "AWS Lambda"
_PARAMETERS = (("scope", "receive", "send"), ("environ", "start_response"), ("env", "start_response"))
_DEPTH = 4
"""How many layers of middleware are looked through."""
_OWN_SERVER = {"aiohttp.web_app": "aiohttp", "tornado.web": "Tornado"}
"""Classes of these modules cannot be called as WSGI or ASGI applications: only their own server can call them."""


def protocol_of(found) -> str | None:
    """None for what is not an application. Raises `LoadError` for one that cannot be served."""
    if isinstance(found, type) or not callable(found):
        return None
    _refuse_own_servers(found)
    return _protocol_of(found, _DEPTH)


def application_protocol(found, name: str) -> str | None:
    """The same of what a module calls `app`. Raises `LoadError` for an object that takes any arguments and shows no other trait."""
    protocol = protocol_of(found)
    if protocol is None and takes_any_number(found) and not parameters(found) and code_of(found)[1]:
        kind = type(found).__name__
        raise LoadError(
            f"{name} is an object of the class {kind} that takes any arguments, so it may be a WSGI or an ASGI application: "
            f"define `def application(environ, start_response): return {name}(environ, start_response)` for WSGI, "
            f"or `async def application(scope, receive, send): await {name}(scope, receive, send)` for ASGI, under another name than {name}"
        )
    return protocol


def only_application(module):
    """An object of the module and its protocol, if it is certainly an application and the only one; otherwise None."""
    found = {id(value): value for name, value in vars(module).items() if not name.startswith("_") and _is_certain(value)}
    return next(((each, _protocol_of(each, 0)) for each in found.values()), None) if len(found) == 1 else None


def _is_certain(value) -> bool:
    """An object of a class with the parameters that the protocols name. Only the class is looked at: `flask.current_app` raises
    where it is asked for more than that."""
    kind = type(value)
    code = getattr(getattr(kind, "__call__", None), "__code__", None)
    if code is None or issubclass(kind, type):
        return False
    return hasattr(kind, "wsgi_app") or code.co_varnames[1 : code.co_argcount] in _PARAMETERS


def _protocol_of(found, depth: int) -> str | None:
    if callable(getattr(found, "wsgi_app", None)):
        return WSGI  # Flask
    function, is_object = code_of(found)
    code = getattr(function, "__code__", None)
    if code is None:
        return None
    names = parameters(found)
    if names[:3] == ("scope", "receive", "send") or len(names) == 3 and is_asynchronous(found):
        return ASGI
    if not names and takes_any_number(found):
        return _wrapped_protocol(found, function, depth)
    if argument_count(function) != 2 or is_coroutine(found):
        return None
    if is_object and takes_event_first(names):
        return LAMBDA
    return WSGI if is_object or "start_response" in names else None


def _wrapped_protocol(found, function, depth: int) -> str | None:
    """Of middleware that passes all of its arguments on: that of the application which it holds."""
    if depth == 0:
        return None
    cells = getattr(function, "__closure__", None) or ()
    held = [*getattr(found, "__dict__", {}).values(), *(cell.cell_contents for cell in cells)]
    for each in held:
        if callable(each) and not isinstance(each, type):
            protocol = _protocol_of(each, depth - 1)
            if protocol is not None:
                return protocol
    return None


def _refuse_own_servers(found) -> None:
    for kind in type(found).__mro__:
        framework = _OWN_SERVER.get(kind.__module__)
        if framework is not None and kind.__name__ == "Application":
            raise LoadError(
                f"an application of {framework} can only be called by {framework}'s own server, which Spry does not run: "
                "use an ASGI framework such as Starlette, FastAPI or Quart, or WSGI"
            )
