"""What of the user's module is its handler, and how it is to be called."""

from __future__ import annotations

import os
import sys

from . import named_handler
from .application import LAMBDA, protocol_of
from .callables import argument_count, code_of, is_asynchronous, is_coroutine, names_in, parameters, takes_any_number
from .foreign import refuse_foreign, refuse_foreign_main
from .handler import ASGI, EVENT, REQUEST, WSGI, Handler, LoadError, NoHandler
from .lifecycle import find_hook, in_turn
from .module_applications import APPLICATIONS, application_in, made_application, starts_application

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .settings import Settings
    from .started_servers import ServerStarted

_OF_OPENWHISK = (("args",), ("params",), ("dict",))
"""What actions of OpenWhisk call their only parameter."""


def recognise_handler(module, settings: Settings, started: ServerStarted | None = None) -> Handler:
    """In this order: what a person has named, `main`, what the program has `started` to serve, and what the names and shapes of the
    module's exports say. Raises `LoadError`, which lists what was found, if nothing of it is a handler."""
    handler = _recognise_named(module, settings)
    if handler is None and not (started and started.came_from(getattr(module, "main", None))):
        handler = _recognise_main(module, settings)
    if handler is None:
        handler = _of_server(started, settings) if started else _recognise_shape(module, settings)
    if handler is None:
        raise NoHandler(
            f"it defines neither a function main(event, context) nor an app, and {named_handler.functions_of(module)}: "
            "name the function that handles requests with HANDLER_FUNC_NAME"
        )
    if handler.start is None and settings.handler not in ("start", "stop"):
        handler.start, handler.stop = find_hook(module, "start"), find_hook(module, "stop")
    return handler


def _recognise_named(module, settings: Settings) -> Handler | None:
    """By a variable, by a name that only AWS Lambda's templates have, or by registration with Functions Framework."""
    function = named_handler.named_function(module, settings)
    if settings.dialect == "lambda":
        return _lambda(function or named_handler.lambda_function(module), settings)
    if function is not None:
        target = named_handler.registered_target(module, function)
        if target is not None:
            return _functions_framework_target(target)
        if settings.named_handler == named_handler.LAMBDA_NAME:
            return _lambda(function, settings)
        if settings.named_handler != "main" and _takes_context_first(function):
            return _nuclio(function, module, settings)
        return _recognise(function, settings)
    target = named_handler.registered_target(module)
    if target is not None:
        return _functions_framework_target(target)
    function = getattr(module, named_handler.LAMBDA_NAME, None)
    if not callable(function) or _is_kyma_beside(getattr(module, "main", None), function):
        return None
    return _lambda(function, settings)


def _is_kyma_beside(main, lambda_handler) -> bool:
    """Whether `main` is a handler, too: it takes an event, and Lambda's handler does not call it."""
    from .parameter_order import takes_event

    return callable(main) and takes_event(parameters(main)) and "main" not in names_in(lambda_handler)


def _recognise_main(module, settings: Settings) -> Handler | None:
    main = getattr(module, "main", None)
    if not callable(main) or starts_application(main, module, settings.new_api):
        return None
    refuse_foreign_main(main, module)
    names = parameters(main)
    if names == ("context",) and "parliament" in sys.modules:
        return Handler(sys.modules["parliament"].server.create(module), WSGI, asynchronous=False)
    return _recognise(main, settings)


def _recognise_shape(module, settings: Settings) -> Handler | None:
    """Applications; `new()` and `handle` of Knative's func, which are ASGI; OpenFaaS; Nuclio; AWS Lambda."""
    from .parameter_order import takes_event_first

    handler = getattr(module, "handler", None)
    application = application_in(module)
    if application is not None:
        # An adapter such as Mangum's, which may change the paths that its application gets.
        if callable(handler) and takes_event_first(parameters(handler)):
            return _lambda(handler, settings)
        return _of_protocol(*application, settings)
    refuse_foreign(module)
    for name in APPLICATIONS[:2]:
        found = getattr(module, name, None)
        if hasattr(found, "__code__"):
            return _recognise(found, settings)
    made = made_application(module)
    if made is not None:
        return _of_protocol(*made, settings)
    if callable(getattr(module, "new", None)):
        return _func_instance(module.new())
    handle = getattr(module, "handle", None)
    if callable(handle) and len(parameters(handle)) == 3:
        from .knative_func import application_of

        return Handler(application_of(handle), ASGI, asynchronous=True)
    if callable(handle):
        return _openfaas(handle)
    if callable(handler):
        if _takes_context_first(handler) or hasattr(module, "init_context"):
            return _nuclio(handler, module, settings)
        return _lambda(handler, settings)
    return None


def _of_server(started: ServerStarted, settings: Settings) -> Handler:
    if not callable(started.application):
        kind = type(started.application).__name__
        raise LoadError(f"it starts a server for an object of the class {kind}, which is neither a WSGI nor an ASGI application")
    return _of_protocol(started.application, protocol_of(started.application) or started.protocol, settings)


def _of_protocol(application, protocol: str, settings: Settings) -> Handler:
    if protocol is LAMBDA:
        from .chalice_app import is_chalice, with_routes

        if is_chalice(application):
            application = with_routes(application)
        return _lambda(application, settings)
    return Handler(application, protocol, asynchronous=protocol is ASGI)


def _lambda(function, settings: Settings) -> Handler:
    from .lambda_handler import lambda_handler

    handler = _taking_request(lambda_handler(function, settings))
    # As on AWS, where neither another event nor another thread sees what a handler keeps in its module.
    handler.one_at_a_time = not settings.threads_given
    return handler


def _openfaas(handle) -> Handler:
    from .openfaas_handler import body_handler, event_handler

    call, to_reply = (event_handler if len(parameters(handle)) == 2 else body_handler)(handle)
    if "flask" in sys.modules:
        from .flask_app import in_context

        call = in_context(call, is_coroutine(handle)) or call
    return _answering(call, to_reply, handle)


def _openwhisk(main) -> Handler:
    from .openwhisk_handler import action_handler

    return _taking_request(action_handler(main))


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
    if not is_coroutine(function):
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
    from .flask_app import load_flask

    load_flask()
    asynchronous = is_coroutine(target.function)
    function = handling_errors(target.function, asynchronous)
    return _taking_request(_in_flask(function, asynchronous) or function)


def _taking_request(call) -> Handler:
    handler = Handler(call, REQUEST, is_coroutine(call))
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
    protocol = protocol_of(found)
    if protocol is not None:
        return _of_protocol(found, protocol, settings)
    function, _ = code_of(found)
    if getattr(function, "__code__", None) is None:
        return Handler(found, EVENT, asynchronous=False, arguments=0 if settings.new_api else 2)
    arguments = argument_count(function)
    asynchronous = is_asynchronous(found)
    if parameters(found) in _OF_OPENWHISK and not takes_any_number(found):
        return _openwhisk(found)
    if arguments == 1 and not takes_any_number(found) and _takes_starlette_request(function):
        from .functions_framework import HTTP, Target
        from .functions_framework_aio import application_of

        return Handler(application_of(Target(HTTP, found, True)), ASGI, asynchronous=True)
    if takes_any_number(found):
        arguments = 0 if settings.new_api else 2
    if settings.new_api and arguments and len(function.__defaults__ or ()) >= arguments:
        arguments = 0
    if arguments == 0:
        in_flask = _in_flask(lambda _request: found(), asynchronous)
        return _taking_request(in_flask) if in_flask else Handler(found, REQUEST, asynchronous)
    return Handler(found, EVENT, asynchronous, min(arguments, 2))


def _takes_context_first(found) -> bool:
    from .parameter_order import takes_context_first

    return takes_context_first(parameters(found))


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
