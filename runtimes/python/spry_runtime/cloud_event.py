"""CloudEvents 1.0 over HTTP: read in structured, binary and batch mode, built, and sent."""

from __future__ import annotations

from .body_content import UnknownCharset, data_of, is_json, json_of, media_type

STRUCTURED = "application/cloudevents+json"
BATCH = "application/cloudevents-batch+json"
_REQUIRED = ("id", "source", "type")
_SEND_SECONDS = 30.0


class MalformedCloudEvent(Exception):
    """The request says it is a CloudEvent and is not."""


class ReceivedEvent(dict):
    """Attributes by name, and by the getters of the package `cloudevents` from its version 2."""

    def get_id(self) -> str:
        return self["id"]

    def get_source(self) -> str:
        return self["source"]

    def get_type(self) -> str:
        return self["type"]

    def get_specversion(self) -> str:
        return self.get("specversion", "1.0")

    def get_datacontenttype(self) -> str | None:
        return self.get("datacontenttype")

    def get_dataschema(self) -> str | None:
        return self.get("dataschema")

    def get_subject(self) -> str | None:
        return self.get("subject")

    def get_time(self):
        """As a datetime; None if it says none, or no RFC 3339."""
        import datetime

        try:
            return datetime.datetime.fromisoformat(self["time"])
        except (KeyError, TypeError, ValueError):
            return None

    def get_extension(self, extension_name: str):
        return self.get(extension_name)

    def get_data(self):
        return self.get("data")

    def get_attributes(self) -> dict:
        return {name: value for name, value in self.items() if name != "data"}


def read_cloud_event(headers: dict[str, str], body: bytes) -> dict | None:
    """The event's attributes and `data`; None if the request carries no event. Not for batches."""
    if media_type(headers) == STRUCTURED:
        return _checked(_structured(parse_json(body, headers)))
    if "ce-specversion" in headers or "ce-type" in headers and "ce-source" in headers:
        return _checked(_binary(headers, body))
    return None


def read_batch(headers: dict[str, str], body: bytes) -> list[dict]:
    events = parse_json(body, headers)
    if not isinstance(events, list):
        raise MalformedCloudEvent("a batch is a JSON array of events")
    return [_checked(_structured(event)) for event in events]


def parse_json(body: bytes, headers: dict[str, str]):
    """Raises `MalformedCloudEvent`, and what `json_of` raises for other reasons than that it is not JSON."""
    try:
        return json_of(body, headers)
    except UnknownCharset:
        raise
    except ValueError as error:
        raise MalformedCloudEvent(f"body is not JSON: {error}") from error


def _structured(event) -> dict:
    if not isinstance(event, dict):
        raise MalformedCloudEvent("an event is a JSON object")
    attributes = dict(event)
    encoded = attributes.pop("data_base64", None)
    if encoded is not None:
        import base64

        try:
            attributes["data"] = base64.b64decode(encoded, validate=True)
        except (TypeError, ValueError) as error:
            raise MalformedCloudEvent("data_base64 is not base64") from error
    attributes.setdefault("data", None)
    return attributes


def _binary(headers: dict[str, str], body: bytes) -> dict:
    import urllib.parse

    attributes: dict = {
        name[3:]: urllib.parse.unquote(value, errors="replace")
        for name, value in headers.items()
        if name.startswith("ce-") and len(name) > 3
    }
    if "content-type" in headers:
        attributes["datacontenttype"] = headers["content-type"]
    attributes["data"] = _data(headers, body)
    return attributes


def _data(headers: dict[str, str], body: bytes):
    """Without a type it is JSON, as in structured events, if it is; else the bytes."""
    if not body:
        return None
    kind = media_type(headers)
    if is_json(kind):
        return parse_json(body, headers)
    if kind:
        return data_of(body, headers)
    try:
        return json_of(body, headers)
    except ValueError:
        return body


def _checked(attributes: dict) -> dict:
    if attributes.get("specversion", "1.0") not in ("0.3", "1.0"):
        raise MalformedCloudEvent("specversion is not 1.0 or 0.3")
    for name in _REQUIRED:
        if not isinstance(attributes.get(name), str) or not attributes[name]:
            raise MalformedCloudEvent(f"attribute {name} is missing")
    return attributes


def build_cloud_event(kind: str, source: str, data, attributes: dict | None = None) -> dict:
    """A structured event. `datacontenttype` follows the data if it is not given."""
    import datetime
    import uuid

    now = datetime.datetime.now(datetime.timezone.utc)
    event = {
        "specversion": "1.0",
        "id": str(uuid.uuid4()),
        "source": source,
        "type": kind,
        "time": now.isoformat().replace("+00:00", "Z"),
        "datacontenttype": "text/plain" if isinstance(data, str) else "application/json",
        **(attributes or {}),
    }
    if isinstance(data, (bytes, bytearray)):
        import base64

        event["datacontenttype"] = (attributes or {}).get("datacontenttype", "application/octet-stream")
        event["data_base64"] = base64.b64encode(data).decode()
    elif data is not None:
        event["data"] = data
    return event


def send_cloud_event(publisher: str, event: dict, headers: dict[str, str]) -> PublishResponse:
    """Posts a structured event. A refusal is returned like any response; no connection raises OSError."""
    import json
    import urllib.error
    import urllib.request

    if not publisher.startswith(("http://", "https://")):
        raise ValueError("publishing an event: PUBLISHER_PROXY_ADDRESS is not an http address")
    request = urllib.request.Request(
        publisher,
        data=json.dumps(event).encode(),
        headers={"content-type": STRUCTURED, **headers},
        method="POST",
    )
    try:
        with urllib.request.urlopen(request, timeout=_SEND_SECONDS) as response:
            return PublishResponse(response.status, response.read(1024 * 1024))
    except urllib.error.HTTPError as error:
        with error:
            return PublishResponse(error.code, error.read(1024 * 1024))


class PublishResponse:
    """What `requests` would have returned, as far as publishers look at it."""

    def __init__(self, status_code: int, content: bytes) -> None:
        self.status_code = status_code
        self.content = content

    @property
    def ok(self) -> bool:
        return self.status_code < 400

    @property
    def text(self) -> str:
        return self.content.decode("utf-8", "replace")

    def raise_for_status(self) -> None:
        if not self.ok:
            raise OSError(f"publishing an event: the publisher responded with status {self.status_code}")
