"""What of the user's module is its handler, and how it is to be called."""

from __future__ import annotations

import os
import sys

from .handler import ASGI, EVENT, REQUEST, WSGI, Handler
from .lifecycle import find_hook, in_turn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .settings import Settings

_COROUTINE = 0x80  # code flags; the inspect module would take longer to import than most handlers
_VARARGS = 0x04
_ASYNC_GENERATOR = 0x200


def recognise_handler(module, settings: Settings) -> Handler | None:
    """`main`, else an application object, else what the neighbours' conventions say; None if there is none of them."""
    # A name that only AWS Lambda's templates have says what it is.
    for name in () if settings.handler == "lambda_handler" else (settings.handler, "app", "application"):
        found = getattr(module, name, None)
        if callable(found):
            is_nuclio = name == settings.handler != "main" and _takes_context_first(found)
            handler = _nuclio(found, module, settings) if is_nuclio else _recognise(found, settings)
            break
    else:
        handler = _recognise_neighbour(module, settings)
    if handler is not None and handler.start is None and settings.handler not in ("start", "stop"):
        handler.start, handler.stop = find_hook(module, "start"), find_hook(module, "stop")
    return handler


def _recognise_neighbour(module, settings: Settings) -> Handler | None:
    """Functions Framework; `new()` and `handle` of Knative's func, which are ASGI; OpenFaaS; Nuclio; AWS Lambda."""
    if "functions_framework" in sys.modules or "FUNCTION_TARGET" in os.environ:
        from .functions_framework import find_target

        target = find_target(module)
        if target is not None:
            return _functions_framework_target(target)
    if callable(getattr(module, "new", None)):
        return _func_instance(module.new())
    handle = getattr(module, "handle", None)
    if callable(handle) and len(_parameters(handle)) == 3:
        from .knative_func import application_of

        return Handler(application_of(handle), ASGI, asynchronous=True)
    if callable(handle):
        return _openfaas(handle)
    for name in ("lambda_handler", "handler"):
        found = getattr(module, name, None)
        if callable(found):
            if name == "handler" and (_takes_context_first(found) or hasattr(module, "init_context")):
                return _nuclio(found, module, settings)
            from .lambda_handler import lambda_handler

            return _taking_request(lambda_handler(found, settings))
    return None


def _openfaas(handle) -> Handler:
    from .openfaas_handler import body_handler, event_handler

    call, to_reply = (event_handler if len(_parameters(handle)) == 2 else body_handler)(handle)
    if "flask" in sys.modules:
        from .flask_app import in_context

        call = in_context(call, _is_coroutine(handle)) or call
    return _answering(call, to_reply, handle)


def _nuclio(found, module, settings: Settings) -> Handler:
    from .nuclio_handler import nuclio_handler

    call, to_reply, context = nuclio_handler(found, settings)
    handler = _answering(call, to_reply, found)
    init_context = getattr(module, "init_context", None)
    initialise = (lambda: init_context(context)) if callable(init_context) else None
    handler.start = in_turn(find_hook(module, "start"), initialise)
    handler.stop = in_turn(find_hook(module, "stop"), context.platform.stop)
    return handler


def _answering(call, to_reply, function) -> Handler:
    """Of a neighbour's `function`, which `call` calls with our request and whose result `to_reply` makes a reply of."""
    if not _is_coroutine(function):
        return _taking_request(lambda request: to_reply(call(request)))

    async def main(request):
        return to_reply(await call(request))

    return _taking_request(main)


def _functions_framework_target(target) -> Handler:
    from .functions_framework import HTTP, handler_of, handling_errors

    if target.is_aio:
        from .functions_framework_aio import application_of

        return Handler(application_of(target), ASGI, asynchronous=True)
    if target.kind != HTTP:
        return _taking_request(handler_of(target))
    asynchronous = _is_coroutine(target.function)
    function = handling_errors(target.function, asynchronous)
    return _taking_request(_in_flask(function, asynchronous) or function)


def _taking_request(call) -> Handler:
    handler = Handler(call, REQUEST, _is_coroutine(call))
    handler.takes_request = True
    return handler


def _func_instance(instance) -> Handler:
    """Its `start` gets the environment as its configuration."""
    from .knative_func import application_of

    handler = Handler(application_of(instance.handle, instance), ASGI, asynchronous=True)
    start = getattr(instance, "start", None)
    handler.start = (lambda: start(dict(os.environ))) if callable(start) else (lambda: None)
    handler.stop = getattr(instance, "stop", None)
    return handler


def _recognise(found, settings: Settings) -> Handler:
    if _is_flask(found):
        return Handler(found, WSGI, asynchronous=False)
    function, is_object = _code_of(found)
    code = getattr(function, "__code__", None)
    if code is None:
        return Handler(found, EVENT, asynchronous=False, arguments=0 if settings.new_api else 2)
    arguments = _argument_count(function)
    asynchronous = bool(code.co_flags & (_COROUTINE | _ASYNC_GENERATOR))
    if asynchronous and arguments == 3:
        return Handler(found, ASGI, asynchronous=True)
    if arguments == 1 and not code.co_flags & _VARARGS and _takes_starlette_request(function):
        from .functions_framework import HTTP, Target
        from .functions_framework_aio import application_of

        return Handler(application_of(Target(HTTP, found, True)), ASGI, asynchronous=True)
    if arguments == 2 and (is_object or "start_response" in code.co_varnames[: code.co_argcount]):
        return Handler(found, WSGI, asynchronous=False)
    if code.co_flags & _VARARGS:
        arguments = 0 if settings.new_api else 2
    if settings.new_api and arguments and len(function.__defaults__ or ()) >= arguments:
        arguments = 0
    if arguments == 0:
        in_flask = _in_flask(lambda _request: found(), asynchronous)
        return _taking_request(in_flask) if in_flask else Handler(found, REQUEST, asynchronous)
    return Handler(found, EVENT, asynchronous, min(arguments, 2))


def _code_of(found):
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


def _argument_count(function) -> int:
    return function.__code__.co_argcount - (1 if hasattr(function, "__self__") else 0)


def _parameters(found) -> tuple[str, ...]:
    """How a callable's own code calls what it takes by position; none for what is not written in Python."""
    function = _code_of(found)[0]
    code = getattr(function, "__code__", None)
    return code.co_varnames[code.co_argcount - _argument_count(function) : code.co_argcount] if code else ()


def _takes_context_first(found) -> bool:
    from .parameter_order import takes_context_first

    return takes_context_first(_parameters(found))


def _is_coroutine(found) -> bool:
    code = getattr(_code_of(found)[0], "__code__", None)
    return bool(code and code.co_flags & _COROUTINE)


def _is_flask(found) -> bool:
    return callable(getattr(found, "wsgi_app", None))


def _in_flask(function, asynchronous: bool):
    if "flask" not in sys.modules:
        return None
    from .flask_app import in_flask

    return in_flask(function, asynchronous)


def _takes_starlette_request(function) -> bool:
    """`main(request: Request)`, as in Fission's environment for FastAPI."""
    if "starlette.requests" not in sys.modules:
        return False
    code = function.__code__
    name = code.co_varnames[code.co_argcount - 1]
    kind = getattr(function, "__annotations__", {}).get(name)
    if isinstance(kind, str):
        kind = function.__globals__.get(kind)
    return kind is sys.modules["starlette.requests"].Request
