"""`lambda_handler(event, context)` of AWS Lambda, with an event of API Gateway, format 2.0. What only format 1.0 has is there too,
for handlers that were written for a REST API."""

from __future__ import annotations

import _thread
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
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_own = _thread._local()
_REST_MEMBERS = ("body", "queryStringParameters")
"""Absent from events of format 2.0 and None in those of format 1.0 where a request has none."""


def lambda_handler(function, settings: Settings):
    """`function` as a handler that takes our request."""

    set_environment(settings)

    def main(request: Request) -> Reply:
        request_id = _uuid()
        result = function(_event(request, settings, request_id), LambdaContext(settings, request_id))
        return _reply(_awaited(result) if hasattr(result, "__await__") else result)

    return main


def _awaited(result):
    """Of `async def`, which AWS would answer with an error at each call. A thread has one loop for all calls, so that what the Function
    keeps between them (connections, locks) goes on working."""
    import asyncio

    loop = getattr(_own, "loop", None)
    if loop is None:
        loop = _own.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)

    async def main():
        return await result

    return loop.run_until_complete(main())


class LambdaContext:
    """The members of the context object that AWS documents."""

    def __init__(self, settings: Settings, request_id: str) -> None:
        self.function_name = settings.function_name
        self.function_version = "$LATEST"
        self.invoked_function_arn = f"arn:aws:lambda:local:000000000000:function:{settings.function_name}"
        limit = os.environ.get("FUNC_MEMORY_LIMIT", "")
        self.memory_limit_in_mb = str(int(limit) // 2**20) if limit.isdigit() else ""
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


class _Event(dict):
    """`event["body"]` is None where `event.get("body", "")` is `""`: handlers for either format find what they expect."""

    def __missing__(self, name):
        if name in _REST_MEMBERS:
            return None
        raise KeyError(name)


def _clock(seconds: float) -> str:
    """As in `12/Mar/2020:19:03:58 +0000`, whatever the locale."""
    at = time.gmtime(seconds)
    return f"{at[2]:02}/{_MONTHS[at[1] - 1]}/{at[0]}:{at[3]:02}:{at[4]:02}:{at[5]:02} +0000"


def set_environment(settings: Settings, module: str | None = None) -> None:
    """What AWS's runtime has, unless the user has set it. The region is for the user to name. `module`: unless it is the settings'."""
    values = {
        "AWS_LAMBDA_FUNCTION_NAME": settings.function_name,
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "LAMBDA_TASK_ROOT": settings.directory,
        "_HANDLER": f"{module or settings.module}.{settings.named_handler or 'lambda_handler'}",
    }
    for name, value in values.items():
        os.environ.setdefault(name, value)


def _event(request: Request, settings: Settings, request_id: str) -> dict:
    headers = dict(request.raw_headers)
    cookie = headers.pop("cookie", None)
    host = headers.get("host", "")
    now = time.time()
    path = request.full_path.partition("?")[0]
    event = _Event({
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
            "requestTime": _clock(now),
            "requestTimeEpoch": int(now * 1000),
            "requestId": request_id,
            "routeKey": "$default",
            "stage": "$default",
            "time": _clock(now),
            "timeEpoch": int(now * 1000),
        },
        "isBase64Encoded": False,
    })  # fmt: skip
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
        if kind.startswith("text/") or kind.endswith(_TEXT_ENDS):
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
