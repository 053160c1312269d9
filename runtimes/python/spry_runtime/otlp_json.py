"""Spans in OTLP's JSON form (opentelemetry-proto, ExportTraceServiceRequest). Written piece by piece: building its objects
first costs three times as much."""

from __future__ import annotations

from json.encoder import encode_basestring_ascii as quote

from .request_log import given_id

_SERVER = 2


def request_of(spans: list[str], service: str) -> bytes:
    """The body of a request with finished spans."""
    resource = f'{{"attributes":{_key_values({"service.name": service})}}}'
    scope = '{"name":"io.kyma-project.serverless"}'
    return (
        f'{{"resourceSpans":[{{"resource":{resource},"scopeSpans":[{{"scope":{scope},"spans":[{",".join(spans)}]}}]}}]}}'
    ).encode()


def span_of_call(context, head, status: int, began: int, ended: int) -> str:
    """The span of an invocation."""
    key = head.method, head.raw_path, status
    parts = _parts_of_calls.get(key)
    if parts is None:
        parts = _parts_of_call(*key)
        if len(_parts_of_calls) < _REMEMBERED and len(key[1]) < _REMEMBERED_LENGTH:
            _parts_of_calls[key] = parts
    request_id = given_id(head.headers) if "x-request-id" in head.headers else None
    # Of its characters none has to be escaped.
    attribute = _REQUEST_ID % request_id if request_id is not None else ""
    return f'{_identity(context, None)}{parts[0]}{began}","endTimeUnixNano":"{ended}{parts[1]}{attribute}{parts[2]}'


_REMEMBERED, _REMEMBERED_LENGTH = 256, 200
_parts_of_calls: dict[tuple[str, str, int], tuple[str, str, str]] = {}
_REQUEST_ID = '{"key":"http.request.header.x-request-id","value":{"arrayValue":{"values":[{"stringValue":"%s"}]}}},'


def _parts_of_call(method: str, path: str, status: int) -> tuple[str, str, str]:
    """What is the same of all calls that these are the same of: up to the time of the beginning, after that of the end, and
    after the request's id."""
    return (
        f',"name":{quote(method)},"kind":{_SERVER},"startTimeUnixNano":"',
        '","attributes":[',
        f'{{"key":"http.request.method","value":{{"stringValue":{quote(method)}}}}},'
        f'{{"key":"url.path","value":{{"stringValue":{quote(path)}}}}},'
        f'{{"key":"http.response.status_code","value":{{"intValue":"{status}"}}}}],'
        f'"status":{_status(2 if status >= 500 else 0)}}}',
    )


def span_of(name, kind, context, parent_id, started, ended, attributes, events, status, message) -> str:
    """A span that a handler has made; `kind` and `status` are OTLP's numbers, times nanoseconds since 1970."""
    text = (
        f'{_identity(context, parent_id)},"name":{quote(str(name))},"kind":{kind},'
        f'"startTimeUnixNano":"{started}","endTimeUnixNano":"{ended}",'
        f'"attributes":{_key_values(attributes)},"status":{_status(status, message)}'
    )
    if events:
        all_events = (
            f'{{"name":{quote(str(name))},"timeUnixNano":"{at}","attributes":{_key_values(values)}}}'
            for name, at, values in events
        )
        text += f',"events":[{",".join(all_events)}]'
    return text + "}"


def _identity(context, parent_id: str | None) -> str:
    trace, span, caller, tracestate = context.identity()
    text = f'{{"traceId":"{trace}","spanId":"{span}"'
    if parent_id or caller:
        text += f',"parentSpanId":"{parent_id or caller}"'
    if tracestate is not None:
        text += f',"traceState":{quote(tracestate)}'
    return text


def _status(code: int, message: str = "") -> str:
    if not code:
        return "{}"
    return f'{{"code":{code},"message":{quote(str(message))}}}' if message else f'{{"code":{code}}}'


def _key_values(attributes: dict) -> str:
    pairs = (f'{{"key":{quote(str(key))},"value":{_any_value(value)}}}' for key, value in attributes.items())
    return f"[{','.join(pairs)}]"


def _any_value(value) -> str:
    if isinstance(value, bool):
        return f'{{"boolValue":{"true" if value else "false"}}}'
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        # As text: numbers of JSON are not exact so far.
        return f'{{"intValue":"{int(value)}"}}'
    if isinstance(value, float) and abs(value) < float("inf"):
        return f'{{"doubleValue":{float(value)!r}}}'
    if isinstance(value, (list, tuple)):
        return f'{{"arrayValue":{{"values":[{",".join(map(_any_value, value))}]}}}}'
    return f'{{"stringValue":{quote(str(value))}}}'
