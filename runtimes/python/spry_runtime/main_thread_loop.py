"""Takes one request after the other from the server and runs the handler on them in the main thread, as AWS Lambda does."""

from __future__ import annotations

import _thread
import os
import time

from . import channel
from .call_loop import ORPHAN_SECONDS, STREAM_WINDOW, CallLoop
from .channel import encode


class MainThreadLoop(CallLoop):
    """Nothing is read while a call is made: what the server has sent ahead it recalls if that takes long."""

    def __init__(self, server, promotions: int, shared, invocation) -> None:
        super().__init__(server, promotions, shared, invocation, threads=1)

    def run(self) -> int:
        """Returns when the server closes the channel."""
        self._serve_in_turn(once=True)
        # As in CallLoop: the first answer does not wait for these.
        import threading  # noqa: F401

        from .memory import return_memory

        return_memory()
        _thread.start_new_thread(self._live, ())  # ends a call that hangs when the server has ended
        self._serve_in_turn()
        return 0

    def _live(self) -> None:
        while self._is_open():
            pass
        time.sleep(ORPHAN_SECONDS)
        os._exit(1)

    def _is_open(self) -> bool:
        try:
            return bool(os.read(self._promotions, 1))
        except OSError:
            return False

    def _serve_in_turn(self, once: bool = False) -> None:
        while not self._closed:
            frame = self._receive()
            if frame is None:
                return self._close()
            if frame[0] == channel.REQUEST:
                self._answer(frame)
                frame = None  # a large body must not stay until the next call
                self._invocation.forget()
                if once:
                    return

    def _new_stream(self) -> _Stream:
        return _Stream(self._read_for)

    def _read_for(self, stream: _Stream) -> None:
        frame = self._receive()
        if frame is None:
            self._close()
            stream.cancelled = True
        elif frame[0] == channel.REQUEST:
            self._send(encode(channel.DECLINED, frame[1], body=frame[4]))
        elif self._streams.get(frame[1]) is stream:
            stream.credit(frame[5]) if frame[0] == channel.CREDIT else stream.cancel()


class _Stream:
    """How much of an answer may be under way to its client. The thread that writes also reads what the server says of it."""

    def __init__(self, read) -> None:
        self._read = read
        self._free: float = STREAM_WINDOW
        self.cancelled = False

    def reserve(self, size: int) -> bool:
        """Reads until there is space. False when the client has disconnected."""
        while self._free < size and not self.cancelled:
            self._read(self)
        self._free -= size
        return not self.cancelled

    def credit(self, size: float) -> None:
        self._free += size

    def cancel(self) -> None:
        self.cancelled = True
