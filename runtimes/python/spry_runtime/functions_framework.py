"""What `import functions_framework` gives a Function: the registration of Google's package, without its server.

`@http` handlers take the request (Flask's if Flask is among the dependencies), `@cloud_event` handlers the event, `@typed` ones an
object made of the body, and those of FUNCTION_SIGNATURE_TYPE=event data and context. `functions_framework_aio` has the rest.
"""

from __future__ import annotations

import os

from . import google_events
from .cloud_event import MalformedCloudEvent, parse_json, read_cloud_event
from .reply import Reply, reply_to

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .request import Request

HTTP, CLOUD_EVENT, EVENT, TYPED = "http", "cloudevent", "event", "typed"

_registered: dict[str, Target] = {}
"""By name, the last one last."""
_input_types: dict[str, type] = {}


_error_handlers: dict[type, object] = {}
"""By the class of the error that they answer."""


class Target:
    """A function and what it takes. `is_aio`: it was registered by `functions_framework.aio`."""

    __slots__ = ("function", "is_aio", "kind")

    def __init__(self, kind: str, function, is_aio: bool = False) -> None:
        self.kind = kind
        self.function = function
        self.is_aio = is_aio


def members() -> dict:
    """Of the module that stands in for the package."""

    def typed(argument):
        def register(function):
            _input_types[function.__name__] = argument
            return _register(TYPED, function)

        if isinstance(argument, type):
            return register
        annotations = getattr(argument, "__annotations__", {})
        _input_types[argument.__name__] = next((each for name, each in annotations.items() if name != "return"), None)
        return _register(TYPED, argument)

    return {
        "__path__": [],
        "http": lambda function: _register(HTTP, function),
        "cloud_event": lambda function: _register(CLOUD_EVENT, function),
        "typed": typed,
        "errorhandler": _errorhandler,
    }


def aio_members() -> dict:
    """Of `functions_framework.aio`."""
    return {
        "http": lambda function: _register(HTTP, function, True),
        "cloud_event": lambda function: _register(CLOUD_EVENT, function, True),
    }


def _register(kind: str, function, is_aio: bool = False):
    _registered[function.__name__] = Target(kind, function, is_aio)
    return function


def _errorhandler(kind: type):
    def register(function):
        _error_handlers[kind] = function
        return function

    return register


def handling_errors(function, asynchronous: bool):
    """`function`, whose errors become the answers of those that were registered for them."""
    if not _error_handlers:
        return function

    def answer(error: Exception):
        handler = next((_error_handlers[kind] for kind in type(error).__mro__ if kind in _error_handlers), None)
        if handler is None:
            raise error
        return handler(error)

    def main(request):
        try:
            return function(request)
        except Exception as error:  # noqa: BLE001 - whichever there is a handler for
            return answer(error)

    async def async_main(request):
        try:
            return await function(request)
        except Exception as error:  # noqa: BLE001
            return answer(error)

    return async_main if asynchronous else main


def find_target(module) -> Target | None:
    """The function that FUNCTION_TARGET names, registered or not (then FUNCTION_SIGNATURE_TYPE says what it is); without
    FUNCTION_TARGET the one that was registered last."""
    name = os.environ.get("FUNCTION_TARGET")
    if name is None:
        return next(reversed(_registered.values()), None)
    signature = os.environ.get("FUNCTION_SIGNATURE_TYPE", HTTP)
    target = _registered.get(name) or Target(signature, getattr(module, name, None))
    return target if callable(target.function) else None


def target_of(function) -> Target | None:
    """What a function was registered as."""
    return next((target for target in _registered.values() if target.function is function), None)


def handler_of(target: Target):
    """To be called with our request: of a target that is neither of HTTP nor of `aio`."""
    function = target.function
    if target.kind == CLOUD_EVENT:
        return lambda request: _answer_event(function, request)
    if target.kind == TYPED:
        return lambda request: _answer_typed(function, request)
    return lambda request: _answer_background_event(function, request)


class CloudEvent:
    """As in the package `cloudevents`: attributes by `event["type"]` and `event.get`, `event.data`."""

    def __init__(self, attributes: dict, data) -> None:
        self._attributes = attributes
        self.data = data

    def __getitem__(self, name: str):
        return self._attributes[name]

    def __contains__(self, name: object) -> bool:
        return name in self._attributes

    def __iter__(self):
        return iter(self._attributes)

    def __len__(self) -> int:
        return len(self._attributes)

    def get(self, name: str, default=None):
        return self._attributes.get(name, default)

    def get_attributes(self) -> dict:
        return dict(self._attributes)

    def get_data(self):
        return self.data


class Context:
    """Of a background event, as in `google.cloud.functions.context`."""

    def __init__(self, eventId="", timestamp="", eventType="", resource="") -> None:  # noqa: N803
        self.event_id = eventId
        self.timestamp = timestamp
        self.event_type = eventType
        self.resource = resource

    def __str__(self) -> str:
        fields = ", ".join(f"{name}: {value}" for name, value in vars(self).items())
        return f"{{{fields}}}"


def read_event(headers: dict[str, str], body: bytes, path: str = "") -> CloudEvent:
    """Also of a background event, or of what Pub/Sub pushes, if it has a form as a CloudEvent."""
    attributes = read_cloud_event(headers, body)
    if attributes is None:
        if not body:
            raise MalformedCloudEvent("the request is not a CloudEvent")
        attributes = google_events.to_cloud_event(parse_json(body, headers), path)
    data = attributes.pop("data", None)
    return CloudEvent({"specversion": "1.0", **attributes}, data)


def _answer_event(function, request: Request) -> Reply:
    """What the function returns means nothing, as in Google's."""
    function(read_event(request.raw_headers, request.content, request.path))
    return reply_to("OK", True)


def _answer_background_event(function, request: Request) -> Reply:
    """`{"context": {…}, "data": …}`, the same with the context's fields next to `data`, what Pub/Sub pushes, or a CloudEvent."""
    event = read_cloud_event(request.raw_headers, request.content)
    if event is None:
        data, context = google_events.background_fields(parse_json(request.content, request.raw_headers), request.path)
    elif google_events.is_convertible(event):
        data, context = google_events.to_background(event)
    else:
        data = event["data"]
        context = {"eventId": event["id"], "timestamp": event.get("time", ""), "eventType": event["type"], "resource": event["source"]}
    function(data, Context(**context))
    return reply_to("OK", True)


def _answer_typed(function, request: Request) -> Reply:
    kind = _input_types.get(function.__name__)
    if kind is None or not hasattr(kind, "from_dict"):
        raise TypeError(f"{function.__name__}: the type of its argument has no from_dict")
    value = function(kind.from_dict(parse_json(request.content, request.raw_headers)))
    if hasattr(value, "to_dict"):
        value = value.to_dict()
    return reply_to("" if value is None else value, True)
