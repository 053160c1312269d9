"""The threads that calls of an asynchronous handler start on its loop (`asyncio.to_thread`, `run_in_executor`): whose they are, and
whether they still run. A thread cannot be ended."""

from __future__ import annotations

import asyncio
import concurrent.futures


class CallThreads(concurrent.futures.ThreadPoolExecutor):
    """The loop's executor, as asyncio would make it itself."""

    def __init__(self) -> None:
        super().__init__(thread_name_prefix="asyncio")
        self._futures: dict[asyncio.Task, set[concurrent.futures.Future]] = {}

    def submit(self, fn, /, *args, **kwargs) -> concurrent.futures.Future:
        future = super().submit(fn, *args, **kwargs)
        try:
            task = asyncio.current_task()
        except RuntimeError:
            task = None  # from another thread
        if task is not None:
            futures = self._futures.get(task)
            if futures is None:
                futures = self._futures[task] = set()
                task.add_done_callback(self._forget)
            futures.add(future)
            future.add_done_callback(futures.discard)
        return future

    def run_for(self, task: asyncio.Task) -> list[concurrent.futures.Future]:
        """Those that cannot be taken back any more."""
        return [each for each in self._futures.get(task, ()) if each.running()]

    def _forget(self, task: asyncio.Task) -> None:
        self._futures.pop(task, None)
