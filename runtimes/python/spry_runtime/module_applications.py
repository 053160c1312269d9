"""Where a module has its application, and whether its `main` only serves that."""

from __future__ import annotations

from .application import application_protocol, only_application
from .callables import code_of, is_coroutine, names_in, required_count, takes_any_number

APPLICATIONS = ("app", "application", "server")
_FACTORIES = ("create_app", "make_app", "create_application", "get_app", "get_application", "build_app", "app_factory")
_RUNNERS = frozenset(("run", "run_app", "serve", "run_forever"))
"""What a program calls that starts a server of its own."""
_SERVES = frozenset((
    "run_app", "serve_forever", "run_forever", "run_simple", "listen", "start_server", "execute_from_command_line", "uvicorn", "waitress", "hypercorn",
))  # fmt: skip
"""The same, of what nothing else has."""
_FRAMEWORKS = frozenset((*_FACTORIES, "Flask", "FastAPI", "Starlette", "Litestar", "Quart", "Sanic", "Bottle", "Dash", "FastMCP"))


def starts_application(main, module, new_api: bool) -> bool:
    """`def main(): app.run()` next to an application is for the command line. Since python314 Kyma's own `main` has no parameters."""
    if required_count(main) or takes_any_number(main) or code_of(main)[1]:
        return False
    names = names_in(main)
    if names & _SERVES or "run" in names and names & _FRAMEWORKS:
        return True
    if new_api and not names & _RUNNERS:
        return False
    return application_in(module) is not None or next(_factories(module), None) is not None


def application_in(module):
    """What the module calls `app`, `application` or `server`, or the only application that it has by another name; and its protocol."""
    for name in APPLICATIONS:
        found = getattr(module, name, None)
        if callable(found):
            protocol = application_protocol(found, name)
            if protocol is not None:
                return found, protocol
    return only_application(module)


def made_application(module):
    """What a function makes that is called as such functions are."""
    for name, factory in _factories(module):
        made = factory()
        protocol = application_protocol(made, f"what {name}() returns")
        if protocol is not None:
            return made, protocol
    return None


def _factories(module):
    for name in _FACTORIES:
        factory = getattr(module, name, None)
        if callable(factory) and not required_count(factory) and not is_coroutine(factory):
            yield name, factory
