"""Takes requests from the server and runs the handler on them, in as many threads as are needed.

Threads take turns at the channel. The one that reads a request also runs the handler, with no hand-over; if
that takes long, the server asks ("promotes") for another thread to read on meanwhile. A thread that comes
back from a call reads on only if nobody else does. So quick handlers run one after the other without a
thread switch, and slow ones side by side, up to the limit of threads.
"""

from __future__ import annotations

import _thread
import os
import time

from . import channel
from .channel import Frame, FrameBuffer, encode
from .invocation import Invocation
from .log import log_error
from .reply import Reply, error_reply
from .request_head import parse_head
from .worker_process import RECEIVE_BYTES, SharedState

WHOLE_REPLY_LIMIT = 512 * 1024
STREAM_WINDOW = 1024 * 1024
ORPHAN_SECONDS = 10.0
"""As long as the server lets `stop` and atexit functions take."""


class CallLoop:
    def __init__(
        self, server, promotions: int, shared: SharedState, invocation: Invocation, threads: int
    ) -> None:
        self._server = server
        self._promotions = promotions
        self._shared = shared
        self._invocation = invocation
        self._buffer = FrameBuffer()
        self._frames_taken = 0
        self._reading = _thread.allocate_lock()
        self._writing = _thread.allocate_lock()
        self._counting = _thread.allocate_lock()
        self._readers = 0
        self._parked = 0
        # One more than calls can be under way: there is always a thread to read on.
        self._threads_left = threads + 1
        self._streams: dict[int, _Stream] = {}
        self._closed = False

    def run(self) -> int:
        """Returns when the server closes the channel."""
        self._start_thread()
        self._serve(once=True)
        # Not earlier, because the first answer would wait for it; here, because up to Python 3.12 whichever thread imports
        # it is the main thread to it.
        import threading  # noqa: F401

        from .memory import return_memory

        return_memory()
        self._serve()
        with self._counting:
            self._parked += 1
        self._serve_promoted()
        return 0

    def _start_thread(self) -> None:
        with self._counting:
            if self._parked or not self._threads_left:
                return
            self._threads_left -= 1
            self._parked += 1
        try:
            _thread.start_new_thread(self._live, ())
        except RuntimeError:
            # There may be no more: a limit of processes counts threads too. The next one that comes free tries again.
            with self._counting:
                self._threads_left += 1
                self._parked -= 1

    def _live(self) -> None:
        self._serve_promoted()
        # The server has ended. If it was killed, nothing else will end a call that hangs here.
        time.sleep(ORPHAN_SECONDS)
        os._exit(1)

    def _serve_promoted(self) -> None:
        while True:
            try:
                promoted = os.read(self._promotions, 1)
            except OSError:
                promoted = b""
            if not promoted:
                return self._close()
            with self._counting:
                self._parked -= 1
            self._start_thread()
            self._serve()
            with self._counting:
                self._parked += 1

    def _serve(self, once: bool = False) -> None:
        """Reads and answers until another thread reads, or `once`."""
        shared, counting = self._shared, self._counting
        while not self._closed:
            with counting:
                self._readers += 1
                shared.busy = False
            try:
                frame = self._receive()
            finally:
                with counting:
                    self._readers -= 1
                    alone = self._readers == 0
                    if alone:
                        shared.busy = True
            if frame is None:
                return self._close()
            if frame[0] == channel.REQUEST:
                self._answer(frame)
                frame = None  # a large body must not stay until the next call
                self._invocation.forget()
                if once or self._readers:
                    return
            else:
                stream = self._streams.get(frame[1])
                if stream is not None:
                    stream.credit(frame[5]) if frame[0] == channel.CREDIT else stream.cancel()

    def _receive(self) -> Frame | None:
        with self._reading:
            while not self._closed:
                frame = self._buffer.next()
                if frame is not None:
                    self._frames_taken += 1
                    self._shared.frames_taken = self._frames_taken
                    if frame[0] == channel.REQUEST and self._shared.closed:
                        # The server may take it for begun, as it is counted; or has given it to a successor by itself.
                        self._send(encode(channel.DECLINED, frame[1], body=frame[4]))
                        continue
                    return frame
                try:
                    data = self._server.recv(RECEIVE_BYTES)
                except OSError:
                    data = b""
                if not data:
                    break
                self._buffer.feed(data)
            return None

    def _answer(self, frame: Frame) -> None:
        _, exchange, peer_length, head, body, _ = frame
        began = time.perf_counter()
        try:
            reply = self._invocation.call(parse_head(head[peer_length:]), body, head[:peer_length].decode())
        except BaseException as error:  # noqa: BLE001 - whatever it is, the client gets an answer
            reply = error_reply(error)
        if reply.pieces is None and len(reply.body) > WHOLE_REPLY_LIMIT:
            reply.length = len(reply.body)
            reply.pieces = _slices(reply.body)
        if reply.pieces is None:
            kind = channel.FAILED if reply.failed else channel.REPLY
            seconds = time.perf_counter() - began
            self._send(encode(kind, exchange, reply.status, reply.fields, reply.body, seconds))
        else:
            self._send_stream(exchange, reply, began)

    def _send_stream(self, exchange: int, reply: Reply, began: float) -> None:
        stream = self._streams[exchange] = self._new_stream()
        end = channel.END
        try:
            length = -1.0 if reply.length is None else float(reply.length)
            self._send(encode(channel.START, exchange, reply.status, reply.fields, seconds=length))
            for piece in reply.pieces:
                for part in _slices(piece):
                    if not stream.reserve(len(part)):
                        return
                    self._send(encode(channel.PIECE, exchange, body=part))
        except BaseException as error:  # noqa: BLE001
            log_error("calling the function: its response was interrupted", error)
            end = channel.BROKEN
        finally:
            del self._streams[exchange]
            self._invocation.close(reply)
            if stream.cancelled:
                end = channel.BROKEN
            self._send(encode(end, exchange, seconds=time.perf_counter() - began))

    def _new_stream(self) -> _Stream:
        return _Stream()

    def _send(self, frame: bytes) -> None:
        try:
            with self._writing:
                self._server.sendall(frame)
        except OSError:
            self._close()

    def _close(self) -> None:
        """The server has ended, or wants us to."""
        self._closed = True
        for stream in list(self._streams.values()):
            stream.cancel()


class _Stream:
    """How much of an answer may be under way to its client: a slow reader stops its writer, not the server."""

    def __init__(self) -> None:
        import threading

        self.cancelled = False
        self._free: float = STREAM_WINDOW
        self._changed = threading.Condition()

    def reserve(self, size: int) -> bool:
        """Waits for space. False when the client has disconnected."""
        with self._changed:
            while self._free < size and not self.cancelled:
                self._changed.wait()
            self._free -= size
            return not self.cancelled

    def credit(self, size: float) -> None:
        with self._changed:
            self._free += size
            self._changed.notify()

    def cancel(self) -> None:
        with self._changed:
            self.cancelled = True
            self._changed.notify()


def _slices(data: bytes):
    size = 128 * 1024
    if len(data) <= size:
        return (data,)
    return (data[at : at + size] for at in range(0, len(data), size))
