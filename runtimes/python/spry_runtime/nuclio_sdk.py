"""What `import nuclio_sdk` gives a Function that does not depend on the package: the classes that handlers use."""

from __future__ import annotations

import datetime
import logging
import sys

from .lifecycle import in_turn


def members() -> dict:
    """Of the module that stands in for the package."""
    classes = (Context, Event, Logger, Platform, QualifiedOffset, Response, TriggerInfo)
    return {each.__name__: each for each in classes}


def now() -> datetime.datetime:
    """In UTC, and as there without saying so."""
    return datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)


class TriggerInfo:
    def __init__(self, kind: str = "", name: str = "") -> None:
        self.kind = kind
        self.name = name


class Event:
    def __init__(
        self, body=None, content_type=None, trigger=None, fields=None, headers=None, _id=None, method=None, path=None, size=None,
        timestamp=None, url=None, shard_id=None, num_shards=None, _type=None, type_version=None, version=None, last_in_batch=False,
        offset=0, topic=None,
    ) -> None:  # fmt: skip
        self.body = body
        self.content_type = content_type
        self.trigger = trigger or TriggerInfo()
        self.fields = fields or {}
        self.headers = headers or {}
        self.id = _id
        self.method = method
        self.path = path or "/"
        self.size = size
        self.timestamp = timestamp or 0
        self.url = url
        self.shard_id = shard_id
        self.num_shards = num_shards
        self.type = _type
        self.type_version = type_version
        self.version = version
        self.last_in_batch = last_in_batch
        self.offset = offset
        self.topic = topic

    def get_header(self, header_key: str):
        """In any case; None if there is none."""
        wanted = header_key.lower()
        return next((value for name, value in self.headers.items() if name.lower() == wanted), None)

    def to_json(self) -> str:
        import base64
        import json

        values = {**vars(self), "trigger": vars(self.trigger)}
        if isinstance(self.body, bytes):
            values["body"] = base64.b64encode(self.body).decode()
        return json.dumps(values, default=str)


class Response:
    def __init__(self, headers=None, body=None, content_type=None, status_code: int = 200, event_id=None) -> None:
        self.headers = headers or {}
        self.body = body
        self.status_code = status_code
        self.content_type = content_type or "text/plain"
        self.event_id = event_id

    def ensure_no_ack(self) -> None:
        self.headers["x-nuclio-stream-no-ack"] = True


class QualifiedOffset:
    """Of a stream's event; what comes by HTTP has none that means anything."""

    def __init__(self, topic, partition, offset) -> None:
        self.topic = topic
        self.partition = partition
        self.offset = offset

    @staticmethod
    def from_event(event: Event) -> QualifiedOffset:
        return QualifiedOffset(event.topic or event.path, event.shard_id, event.offset)


class Logger:
    """`info("text %s", value)` and `info_with("text", name=value)`, on stdout."""

    def __init__(self, level=logging.DEBUG, name: str = "nuclio_sdk") -> None:
        self._bound: dict = {}
        self._logger = logging.getLogger(name)
        self._logger.setLevel(level)
        self._logger.propagate = False
        if not self._logger.handlers:
            handler = logging.StreamHandler(sys.stdout)
            handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
            self._logger.addHandler(handler)

    def debug(self, message, *args) -> None:
        self._log(logging.DEBUG, message, args, {})

    def info(self, message, *args) -> None:
        self._log(logging.INFO, message, args, {})

    def warn(self, message, *args) -> None:
        self._log(logging.WARNING, message, args, {})

    warning = warn

    def error(self, message, *args) -> None:
        self._log(logging.ERROR, message, args, {})

    def debug_with(self, message, *args, **values) -> None:
        self._log(logging.DEBUG, message, args, values)

    def info_with(self, message, *args, **values) -> None:
        self._log(logging.INFO, message, args, values)

    def warn_with(self, message, *args, **values) -> None:
        self._log(logging.WARNING, message, args, values)

    warning_with = warn_with

    def error_with(self, message, *args, **values) -> None:
        self._log(logging.ERROR, message, args, values)

    def bind(self, **values) -> None:
        self._bound.update(values)

    def _log(self, level: int, message, args: tuple, values: dict) -> None:
        text = str(message)
        try:
            text = text % args if args else text
        except (TypeError, ValueError):
            text = " ".join(map(str, (text, *args)))
        values = {**values, **self._bound}
        self._logger.log(level, "%s", f"{text}: {values}" if values else text)


class Platform:
    """Other Functions, and what is to be done at the end."""

    def __init__(self, namespace: str = "default") -> None:
        self.kind = "kube"
        self.namespace = namespace
        self._at_end: dict = {}

    def set_termination_callback(self, callback) -> None:
        self._at_end["termination"] = callback

    def set_drain_callback(self, callback) -> None:
        self._at_end["drain"] = callback

    def stop(self):
        return in_turn(self._at_end.get("drain"), self._at_end.get("termination"))()

    async def explicit_ack(self, qualified_offset) -> None:
        raise RuntimeError("nothing to acknowledge: events arrive by HTTP, not from a stream")

    def call_function(self, function_name: str, event: Event, node=None, timeout=None, service_name_override=None) -> Response:
        """The answer of another Function of the namespace to this event."""
        import http.client
        import json

        body, content_type = event.body, event.content_type or "text/plain"
        if isinstance(body, dict):
            body, content_type = json.dumps(body), "application/json"
        ours = ("content-length", "content-type", "host", "transfer-encoding")
        headers = {name: str(value) for name, value in (event.headers or {}).items() if name.lower() not in ours}
        host = service_name_override or f"{function_name}.{self.namespace}.svc.cluster.local"
        connection = http.client.HTTPConnection(host, timeout=timeout)
        try:
            connection.request(event.method or "POST", event.path, body=body, headers={**headers, "Content-Type": content_type})
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        fields = {name.lower(): value for name, value in answer.getheaders()}
        kind = fields.get("content-type", "text/plain")
        if kind.partition(";")[0].strip() == "application/json":
            content = json.loads(content)
        return Response(headers=fields, body=content, content_type=kind, status_code=answer.status)


class _UserData:
    """Whatever a Function keeps in it."""


class Context:
    """One for the process, whose calls share it."""

    def __init__(self, platform: Platform | None = None) -> None:
        self.platform = platform or Platform()
        self.logger = Logger()
        self.user_data = _UserData()
        self.Response = Response
        self.worker_id = 0
        self.trigger = TriggerInfo("http", "default-http")
        self.trigger_name = self.trigger.name
