"""Functions registered by `functions_framework.aio`, as an ASGI application: their requests are Starlette's."""

from __future__ import annotations

import asyncio

from .cloud_event import MalformedCloudEvent
from .functions_framework import CLOUD_EVENT, Target, read_event


def application_of(target: Target):
    """Raises ImportError if Starlette is not among the dependencies."""
    from starlette.exceptions import HTTPException
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response

    async def call(argument):
        code = getattr(target.function, "__code__", None)
        if code is not None and code.co_flags & 0x80:
            return await target.function(argument)
        return await asyncio.to_thread(target.function, argument)

    async def answer(request: Request) -> Response:
        if target.kind == CLOUD_EVENT:
            headers = {name.lower(): value for name, value in request.headers.items()}
            await call(read_event(headers, await request.body(), request.url.path))
            return Response("OK")
        content, status = await call(request), 200
        if isinstance(content, tuple) and len(content) == 2:
            content, status = content
        if isinstance(content, dict):
            return JSONResponse(content, status)
        if isinstance(content, (str, bytes)):
            return Response(content, status)
        if not isinstance(content, Response):
            raise TypeError(f"the function returned {type(content).__name__}, which is not a response")
        return content

    async def application(scope, receive, send):
        if scope["type"] == "lifespan":
            raise RuntimeError("lifespan is not supported")
        try:
            response = await answer(Request(scope, receive, send))
        except HTTPException as error:
            response = Response(error.detail, error.status_code, headers=error.headers)
        except MalformedCloudEvent as error:
            response = Response(f"malformed CloudEvent: {error}\n", 400)
        await response(scope, receive, send)

    return application
