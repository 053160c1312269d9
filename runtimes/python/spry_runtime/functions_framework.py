"""What `import functions_framework` gives a Function: the registration of Google's package, without its server.

`@http` handlers take the request (Flask's if Flask is among the dependencies), `@cloud_event` handlers the event.
"""

from __future__ import annotations

import os

from .cloud_event import MalformedCloudEvent, read_cloud_event
from .reply import Reply, reply_to

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .request import Request

_registered: dict[str, tuple] = {}
"""Kind and function by name, the last one last."""


def members() -> dict:
    """Of the module that stands in for the package."""

    def http(function):
        _registered[function.__name__] = ("http", function)
        return function

    def cloud_event(function):
        _registered[function.__name__] = ("cloudevent", function)
        return function

    return {"http": http, "cloud_event": cloud_event}


def find_target(module):
    """The handler, to be called with our request, of the function that FUNCTION_TARGET names, registered or not (then
    FUNCTION_SIGNATURE_TYPE says what it is); without FUNCTION_TARGET the one that was registered last. None if there
    is none."""
    target = os.environ.get("FUNCTION_TARGET")
    if target is None:
        kind, function = next(reversed(_registered.values()), (None, None))
    else:
        signature = os.environ.get("FUNCTION_SIGNATURE_TYPE", "http")
        kind, function = _registered.get(target) or (signature, getattr(module, target, None))
    if not callable(function):
        return None
    return _cloud_event_handler(function) if kind == "cloudevent" else function


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


def _cloud_event_handler(function):
    """What it returns means nothing, as in Google's."""

    def main(request: Request) -> Reply:
        attributes = read_cloud_event(request.raw_headers, request.content)
        if attributes is None:
            raise MalformedCloudEvent("the request is no CloudEvent")
        data = attributes.pop("data", None)
        function(CloudEvent({"specversion": "1.0", **attributes}, data))
        return reply_to("OK", True)

    return main
