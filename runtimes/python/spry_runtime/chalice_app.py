"""Applications of AWS Chalice, which API Gateway calls with the name of the route that it has found."""

from __future__ import annotations

import sys


def is_chalice(application) -> bool:
    chalice = sys.modules.get("chalice")
    return chalice is not None and isinstance(application, getattr(chalice, "Chalice", ()))


def with_routes(application):
    """`application`, called with events that name its routes."""

    def call(event, context):
        found = _match(application.routes, event["rawPath"])
        if found is not None:
            event["resource"], event["pathParameters"] = found
            event["requestContext"]["resourcePath"] = found[0]
        return application(event, context)

    return call


def _match(routes, path: str):
    """The route's name, such as `/users/{name}`, and its parameters; those without parameters come first."""
    pieces = path.split("/")
    for route in sorted(routes, key=lambda each: each.count("{")):
        names = route.split("/")
        if len(names) == len(pieces) and all(name == piece or name[:1] == "{" and piece for name, piece in zip(names, pieces, strict=True)):
            return route, {name[1:-1]: piece for name, piece in zip(names, pieces, strict=True) if name[:1] == "{"} or None
    return None
