"""The process with the user's code."""

from __future__ import annotations

import _signal as signal
import sys

from . import channel, trace
from .channel import encode
from .handler import LoadError, OnlyAsMain, load_handler
from .lifecycle import call_hook
from .log import log, log_error
from .worker_process import SharedState


def run_worker(
    settings, listening, server, promotions: int, shared: SharedState
) -> int:
    """Runs in a freshly forked process. Returns its exit code when the server closes the channel."""
    _restore_process()
    try:
        handler = load_handler(settings, listening.fileno(), lambda port: setattr(shared, "debugger_port", port))
    except OnlyAsMain as error:
        server.sendall(encode(channel.NOT_LOADED, 0, 1, body=str(error).encode()))
        return 1
    except LoadError as error:
        log_error(str(error), error.__cause__) if error.__cause__ else log(str(error))
        server.sendall(encode(channel.NOT_LOADED, 0, body=str(error).encode()))
        return 1
    if handler.asynchronous:
        from .async_server import serve_in_worker

        code = serve_in_worker(settings, handler, listening, server, shared)
    else:
        try:
            call_hook(handler.start)
        except BaseException as error:  # noqa: BLE001 - also sys.exit() must be explained
            log_error(f"loading {settings.module}.py: start: {error}", error)
            return 1
        listening.close()
        traits = channel.HAS_ROUTES * handler.has_routes | channel.ONE_AT_A_TIME * handler.one_at_a_time
        server.sendall(encode(channel.READY, traits, 0))
        # The server reports readiness while the rest is imported here.
        from .call_loop import CallLoop
        from .invocation import Invocation
        from .memory_guard import reserve_for

        reserve_for(lambda: shared.held)

        invocation = Invocation(settings, handler)
        if handler.one_at_a_time:
            from .main_thread_loop import MainThreadLoop

            code = MainThreadLoop(server, promotions, shared, invocation).run()
        else:
            code = CallLoop(server, promotions, shared, invocation, settings.threads).run()
        try:
            call_hook(handler.stop)
        except BaseException as error:  # noqa: BLE001
            log_error("calling stop", error)
    _leave()
    return code


def _restore_process() -> None:
    """The server alone decides when to end, so signals meant for the group are ignored; by a handler, because
    SIG_IGN would be inherited by programs that the user's code starts."""
    import faulthandler

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    faulthandler.register(signal.SIGUSR2, all_threads=True)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True, write_through=True)


def _leave() -> None:
    """The user's atexit functions run as at a normal end of the interpreter; the last spans are sent."""
    import atexit

    atexit._run_exitfuncs()
    if trace.exporter is not None:
        trace.exporter.stop()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass
