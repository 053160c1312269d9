"""Programs of other platforms that cannot be served: refused by name, with what to write instead."""

from __future__ import annotations

import sys

from .callables import code_of, parameters
from .handler import LoadError

_PAGE = "docs/handlers.md lists what Spry serves"
_INSTEAD = "write def main(event, context), or an application of WSGI or ASGI named app"
_OF_WORKERS = ("js", "workers", "pyodide")
_OF_OTHERS = {"modal": "Modal", "beam": "Beam", "beta9": "Beam", "gradio": "Gradio"}
"""Packages whose objects only their own platform or server calls."""
_OF_AWS = ("boto3", "botocore", "awslambdaric", "s3transfer", "jmespath")
"""What AWS Lambda's runtime has without a declaration."""


def refuse_foreign_main(main, module) -> None:
    """Raises `LoadError` for a `main` of Azure Functions, and for that of a job."""
    if is_mentioned(module, b"CLOUD_RUN_TASK_INDEX"):
        _refuse("the program is a job of Cloud Run")
    if _takes_azure_request(main):
        _refuse("main takes a request of Azure Functions (func.HttpRequest)")


def refuse_foreign(module) -> None:
    """Raises `LoadError` for what another platform would call in a way that Spry does not."""
    values = vars(module)
    for name in ("handler", "Handler"):
        found = values.get(name)
        if isinstance(found, type) and any(_is_of(kind, "http.server") for kind in found.__mro__):
            _refuse(f"{name} is a class of http.server, as Vercel's functions are")
    for name, value in values.items():
        if type(value).__name__.endswith("FunctionApp") and _is_of(type(value), "azure.functions"):
            _refuse(f"{name} is a {type(value).__name__} of Azure Functions")
    for name, value in values.items():
        platform = _OF_OTHERS.get(type(value).__module__.partition(".")[0])
        if platform is not None:
            _refuse(f"{name} is {_article(type(value).__name__)} of {platform}")
    if "streamlit" in sys.modules:
        _refuse("the program is a page of Streamlit")
    if callable(values.get("on_fetch")) or _is_worker(values.get("Default")):
        _refuse("the program is a Worker of Cloudflare")
    if "fdk" in sys.modules and callable(values.get("handler")) and "data" in parameters(values["handler"]):
        _refuse("handler(ctx, data) is a function of the Fn Project and Oracle Functions")


def _refuse(what: str) -> None:
    raise LoadError(f"{what}, which Spry does not serve: {_INSTEAD} ({_PAGE})")


def is_mentioned(module, text: bytes) -> bool:
    """Whether the module's file has this text."""
    try:
        with open(module.__file__, "rb") as file:
            return text in file.read()
    except (AttributeError, OSError, TypeError):
        return False


def _article(name: str) -> str:
    return f"{'an' if name[:1] in 'AEIOU' else 'a'} {name}"


def _is_of(kind: type, package: str) -> bool:
    return kind.__module__ == package or kind.__module__.startswith(f"{package}.")


def _takes_azure_request(main) -> bool:
    for kind in getattr(code_of(main)[0], "__annotations__", {}).values():
        name = kind if isinstance(kind, str) else f"{getattr(kind, '__module__', '')}.{getattr(kind, '__name__', '')}"
        if name.rpartition(".")[2] in ("HttpRequest", "HttpResponse") and name.startswith(("azure.", "func.", "azf.", "HttpRe")):
            return True
    return False


def _is_worker(found) -> bool:
    return isinstance(found, type) and any(kind.__name__ == "WorkerEntrypoint" for kind in found.__mro__)


def missing_module(error: ModuleNotFoundError) -> str:
    """What a missing module says of the platform that the program was written for; nothing of others."""
    name = (error.name or "").partition(".")[0]
    if name in _OF_WORKERS:
        return f": it is part of Cloudflare's Workers, which Spry does not serve: {_INSTEAD} ({_PAGE})"
    if name in _OF_AWS:
        return f": unlike AWS Lambda's, Spry's runtime has no AWS packages: add {name} to requirements.txt"
    if name in _OF_OTHERS or name == "streamlit":
        return f": it is part of {_OF_OTHERS.get(name, 'Streamlit')}, which Spry does not serve: {_INSTEAD} ({_PAGE})"
    if error.name in ("azure", "azure.functions"):
        return f": it is part of Azure Functions, which Spry does not serve: {_INSTEAD} ({_PAGE})"
    return ""
