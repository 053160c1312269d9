"""Modules that Functions have always been able to import without declaring them: `sdk`, and the parts of
`bottle`, `flask` and `requests` that handlers use. A package of that name among the dependencies wins: it is found first.
"""

from __future__ import annotations

import contextvars
import sys

from . import trace

request_variable: contextvars.ContextVar = contextvars.ContextVar("request", default=None)


class _Finder:
    """A place in which Python looks for modules: `builders` make what is in them."""

    def __init__(self, builders: dict) -> None:
        self._builders = builders

    def find_spec(self, name, path=None, target=None):
        if name in self._builders:
            from importlib.machinery import ModuleSpec

            return ModuleSpec(name, self)
        return None

    def create_module(self, spec):
        module = type(sys)(spec.name, "A stand-in by the runtime.")
        module.__dict__.update(self._builders[spec.name]())
        return module

    def exec_module(self, module) -> None:
        pass


class FunctionFinder:
    def __init__(self, directory: str) -> None:
        self._directory = directory

    def find_spec(self, name, path=None, target=None):
        if name != "function":
            return None
        from .function_package import spec_of

        return spec_of(self._directory)


def install(settings) -> None:
    builders = {"sdk": lambda: _sdk(settings), "bottle": _bottle, "flask": _flask}
    for parent in ("opentelemetry", "opentelemetry.instrumentation"):
        builders[parent] = lambda: {"__path__": []}
    builders["opentelemetry.instrumentation.requests"] = _instrumentation
    builders |= {"requests": _requests, "requests.exceptions": _requests_exceptions, "nuclio_sdk": _nuclio_sdk}
    sys.meta_path += [_Finder(builders), FunctionFinder(settings.directory)]
    # Before the package itself, which would bring a server.
    sys.meta_path.insert(
        0, _Finder({"functions_framework": _functions_framework, "functions_framework.aio": _functions_framework_aio})
    )


class CurrentRequest:
    """`from bottle import request`: whichever request is being answered."""

    def __getattr__(self, name: str):
        request = request_variable.get()
        if request is None:
            raise RuntimeError("request is only available while a request is being handled")
        return getattr(request, name)

    def __getitem__(self, name: str):
        return self.__getattr__("environ")[name]


def _sdk(settings) -> dict:
    from .cloud_event import MalformedCloudEvent, ReceivedEvent, build_cloud_event, read_cloud_event, send_cloud_event

    def get_cloud_event(request=None) -> ReceivedEvent | None:
        """The CloudEvent of the request; None if it carries none or a malformed one."""
        try:
            if request is None or isinstance(request, CurrentRequest):
                current = request_variable.get()
                if current is None:
                    return None
                event = read_cloud_event(current.raw_headers, current.content)
            else:
                headers = {name.lower(): value for name, value in request.headers.items()}
                event = read_cloud_event(headers, request.get_data())
            return None if event is None else ReceivedEvent(event)
        except MalformedCloudEvent:
            return None

    def emit_cloud_event(type, source, data, optional_cloud_event_attributes=None):  # noqa: A002
        """Publishes a new event, structured, with the trace of this call. Returns the publisher's response."""
        event = build_cloud_event(type, source, data, optional_cloud_event_attributes)
        return send_cloud_event(settings.publisher, event, trace.outgoing_headers())

    return {
        "get_tracer": trace.get_tracer,
        "get_trace_headers": trace.outgoing_headers,
        "get_cloud_event": get_cloud_event,
        "emit_cloud_event": emit_cloud_event,
        "get_function_name": lambda: settings.function_name,
        "get_namespace": lambda: settings.namespace,
        "get_runtime": lambda: settings.runtime,
        "get_timeout": lambda: settings.timeout,
        "get_body_size_limit": lambda: settings.body_limit / (1024 * 1024),
    }


def _requests() -> dict:
    from .requests_stand_in import members

    return members()


def _requests_exceptions() -> dict:
    from .requests_stand_in import error_members

    return error_members()


def _nuclio_sdk() -> dict:
    from .nuclio_sdk import members

    return members()


def _functions_framework() -> dict:
    from .functions_framework import members

    return members()


def _functions_framework_aio() -> dict:
    from .functions_framework import aio_members

    return aio_members()


def _bottle() -> dict:
    from . import response

    return {
        "request": CurrentRequest(),
        "HTTPResponse": response.HTTPResponse,
        "HTTPError": response.HTTPError,
        "abort": response.abort,
        "redirect": response.redirect,
    }


def _flask() -> dict:
    from .flask_stand_in import members

    return members()


def _instrumentation() -> dict:
    """What it would do is done anyway: requests carry the trace. `opentelemetry-instrumentation-requests` was there, undeclared."""

    class RequestsInstrumentor:
        def instrument(self, **_options) -> None:
            pass

        uninstrument = instrument

    return {"RequestsInstrumentor": RequestsInstrumentor}
