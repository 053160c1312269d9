"""`lambda_handler(event, context)` of AWS Lambda, with an event of API Gateway, format 2.0. What only format 1.0 has is there too,
for handlers that were written for a REST API."""

from __future__ import annotations

import os
import time

from .reply import Reply, check_status, header_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .request import Request
    from .settings import Settings

_TEXT_ENDS = ("json", "xml", "javascript")
_RESOURCE = "/{proxy+}"
"""The one route there is."""
_FORM = "application/x-www-form-urlencoded"


def lambda_handler(function, settings: Settings):
    """`function` as a handler that takes our request."""

    def main(request: Request) -> Reply:
        request_id = _uuid()
        return _reply(function(_event(request, settings, request_id), LambdaContext(settings, request_id)))

    return main


class LambdaContext:
    """The members of the context object that AWS documents."""

    def __init__(self, settings: Settings, request_id: str) -> None:
        self.function_name = settings.function_name
        self.function_version = "$LATEST"
        self.invoked_function_arn = f"arn:aws:lambda:local:000000000000:function:{settings.function_name}"
        self.memory_limit_in_mb = os.environ.get("FUNC_MEMORY_LIMIT", "")
        self.aws_request_id = request_id
        self.log_group_name = f"/aws/lambda/{settings.function_name}"
        self.log_stream_name = os.environ.get("HOSTNAME", "")
        self.identity = None
        self.client_context = None
        self._end = time.monotonic() + settings.timeout

    def get_remaining_time_in_millis(self) -> int:
        return max(0, int((self._end - time.monotonic()) * 1000))


class _AnyCase(dict):
    """Header fields by lower-case name, found by a name in any case: events of format 1.0 have the client's case."""

    def __missing__(self, name):
        key = name.lower() if isinstance(name, str) else name
        if key == name:
            raise KeyError(name)
        return self[key]

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name.lower() if isinstance(name, str) else name)

    def get(self, name, default=None):
        return self[name] if name in self else default


def _event(request: Request, settings: Settings, request_id: str) -> dict:
    headers = dict(request.raw_headers)
    cookie = headers.pop("cookie", None)
    host = headers.get("host", "")
    now = time.time()
    path = request.full_path.partition("?")[0]
    event = {
        "version": "2.0",
        "resource": _RESOURCE,
        "path": path,
        "httpMethod": request.method,
        "multiValueHeaders": {name: [value] for name, value in request.raw_headers.items()},
        "multiValueQueryStringParameters": None,
        "pathParameters": None if path == "/" else {"proxy": path[1:]},
        "stageVariables": None,
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": request.query_string,
        "headers": _AnyCase(headers),
        "requestContext": {
            "accountId": "anonymous",
            "apiId": settings.function_name,
            "domainName": host,
            "domainPrefix": host.partition(".")[0],
            "http": {
                "method": request.method,
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": request.remote_addr or "",
                "userAgent": headers.get("user-agent", ""),
            },
            "httpMethod": request.method,
            "path": path,
            "resourcePath": _RESOURCE,
            "protocol": "HTTP/1.1",
            "identity": {"sourceIp": request.remote_addr or "", "userAgent": headers.get("user-agent", "")},
            "requestTime": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now)),
            "requestTimeEpoch": int(now * 1000),
            "requestId": request_id,
            "routeKey": "$default",
            "stage": "$default",
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now)),
            "timeEpoch": int(now * 1000),
        },
        "isBase64Encoded": False,
    }
    if cookie is not None:
        event["cookies"] = cookie.replace("; ", ";").split(";")
    if request.query_string:
        query: dict[str, list[str]] = {}
        for name, value in request.query.allitems():
            query.setdefault(name, []).append(value)
        event["multiValueQueryStringParameters"] = query
        event["queryStringParameters"] = {name: ",".join(values) for name, values in query.items()}
    if request.content:
        kind = request.mimetype
        if kind.startswith("text/") or kind.endswith(_TEXT_ENDS) or kind == _FORM:
            event["body"] = request.get_data(as_text=True)
        else:
            import base64

            event["body"] = base64.b64encode(request.content).decode()
            event["isBase64Encoded"] = True
    return event


def _reply(result) -> Reply:
    """Without a status code the result is the body, as JSON."""
    if not isinstance(result, dict) or "statusCode" not in result:
        return Reply(200, b"content-type: application/json\r\n", _text(result))
    pairs = list((result.get("headers") or {}).items())
    for name, values in (result.get("multiValueHeaders") or {}).items():
        pairs += [(name, value) for value in values]
    pairs += [("set-cookie", cookie) for cookie in result.get("cookies") or ()]
    if not any(str(name).lower() == "content-type" for name, _ in pairs):
        pairs.append(("content-type", "application/json"))
    body = result.get("body")
    if result.get("isBase64Encoded"):
        import base64

        content = base64.b64decode(body or "")
    else:
        content = b"" if body is None else _text(body)
    return Reply(check_status(int(result["statusCode"])), header_lines(pairs), content)


def _text(value) -> bytes:
    import json

    return value.encode() if isinstance(value, str) else json.dumps(value).encode()


def _uuid() -> str:
    import uuid

    return str(uuid.uuid4())
