"""`event` and `context` of the classic handler API."""

from __future__ import annotations

from . import trace
from .body_content import data_of, is_json, media_type
from .cloud_event import (
    BATCH,
    MalformedCloudEvent,
    PublishResponse,
    build_cloud_event,
    read_batch,
    read_cloud_event,
    send_cloud_event,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .request import Request
    from .settings import Settings

_MISSING = object()
_ATTRIBUTES = {
    "type": "ce-type",
    "source": "ce-source",
    "id": "ce-id",
    "time": "ce-time",
    "specversion": "ce-specversion",
    "eventtypeversion": "ce-eventtypeversion",
    "datacontenttype": "ce-datacontenttype",
}


class Event:
    """A mapping: `event["data"]`, `event.get("ce-type")`, `"data" in event`; also `event.data`.

    `data` is the CloudEvent's data (for a batch: the list of its events), else what the body says by its content type. A
    form with files is in `event["extensions"]["request"]`.
    """

    def __init__(self, values: dict, publisher: str) -> None:
        self._values = values
        self._publisher = publisher

    def __getitem__(self, key: str):
        return self._values[key]

    def __setitem__(self, key: str, value) -> None:
        self._values[key] = value

    def __delitem__(self, key: str) -> None:
        del self._values[key]

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __iter__(self):
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: str, default=None):
        return self._values.get(key, default)

    def keys(self):
        return self._values.keys()

    def values(self):
        return self._values.values()

    def items(self):
        return self._values.items()

    @property
    def ceHeaders(self) -> dict:  # noqa: N802 - the name the contract has
        return self._values

    @property
    def data(self):
        return self._values.get("data")

    @property
    def extensions(self) -> dict:
        return self._values["extensions"]

    @property
    def tracer(self):
        return trace.get_tracer()

    def emitCloudEvent(self, type, source, data, optionalCloudEventAttributes=None) -> PublishResponse:  # noqa: A002, N802, N803
        """Publishes a new event, structured, with the trace of this call."""
        event = build_cloud_event(type, source, data, optionalCloudEventAttributes)
        return send_cloud_event(self._publisher, event, trace.outgoing_headers())

    def publishCloudEvent(self, data) -> PublishResponse:  # noqa: N802
        """Publishes a complete event. Deprecated: use `emitCloudEvent`."""
        return send_cloud_event(self._publisher, data, trace.outgoing_headers())

    def buildResponseCloudEvent(self, event_id, event_type, event_data) -> dict:  # noqa: N802
        """An event in answer to this one. Deprecated: use `emitCloudEvent`."""
        return {
            "type": event_type,
            "source": self._values.get("ce-source"),
            "eventtypeversion": self._values.get("ce-eventtypeversion"),
            "specversion": self._values.get("ce-specversion"),
            "id": event_id,
            "data": event_data,
            "datacontenttype": "application/json",
        }


def event_from(request: Request, settings: Settings) -> Event:
    """Raises `MalformedCloudEvent`, `UnknownCharset` and `TooLargeInMemory`; a body that says it is JSON and is not leaves `data` absent, as ever."""
    values: dict = {"extensions": {"request": request}}
    headers = request.raw_headers
    kind = media_type(headers)
    if kind == BATCH:
        values["data"] = read_batch(headers, request.content)
    elif (attributes := read_cloud_event(headers, request.content)) is not None:
        values["data"] = attributes.pop("data")
        values["ce-time"] = None
        for name, value in attributes.items():
            values[_ATTRIBUTES.get(name) or "ce-" + name] = value
    elif request.content and is_json(kind):
        data = request.parse_json(_MISSING)
        if data is not _MISSING:
            values["data"] = data
    elif request.content and not kind.startswith("multipart/"):
        values["data"] = data_of(request.content, headers)
    return Event(values, settings.publisher)


def context_from(settings: Settings, memory_limit: str | None) -> dict:
    return {
        "function-name": settings.function_name,
        "timeout": settings.timeout,
        "runtime": settings.runtime,
        "namespace": settings.namespace,
        "memory-limit": memory_limit,
        "body-size-limit": settings.body_limit / (1024 * 1024),
    }


__all__ = ["Event", "MalformedCloudEvent", "context_from", "event_from"]
