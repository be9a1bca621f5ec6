# SPDX-License-Identifier: Apache-2.0
"""A search that is going on: `optimize` and `resume`."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import tempfile
import threading
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Callable, Iterator, Sequence

from .errors import KernelProError, MachineError, error_of
from .program import Option, arguments_of, environment, path_argument, program
from .tasks import TaskLike, task_path
from .values import Event, RunLike, RunResult, read_event, read_result, run_directory

_ENDS = (0, 7, 130, 143)  # done, nothing achieved, interrupted: the result says which


class LiveRun:
    """A run in a process of its own. Iterate for its events, as they come; `result()` waits for the
    end. It goes on while nobody looks. As a context manager it is stopped when the block is left
    early. For one thread."""

    directory: Path  # the run's folder, which `kernelpro.load` can read at any time
    notes: tuple[str, ...] = ()  # what was changed to make the task fit

    def __init__(self, arguments: Sequence[str], directory: str | None = None,
                 on_event: Callable[[Event], object] | None = None) -> None:
        self._on_event = on_event
        self._result: RunResult | None = None
        self._error: KernelProError | None = None
        self._ended = self._stopping = False
        self._waiting: list[Event] = []
        self._said = tempfile.TemporaryFile()
        try:
            self._process = subprocess.Popen(
                [str(program()), *arguments, "--json"], stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=self._said, env=environment())
        except OSError as error:
            raise MachineError(f"kernelpro cannot be started: {error.strerror}",
                               "install KernelPro again") from error
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        assert self._process.stdout is not None
        threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True).start()
        first = self._pull()
        if first is not None and first["event"] == "started":
            directory, self.notes = first["run"], tuple(first["notes"])
        if self._error is not None:
            raise self._error
        self.directory = Path(os.path.abspath(directory or "."))

    def _read(self, out: IO[bytes]) -> None:
        with out:
            for line in out:
                if line.endswith(b"\n"):  # else the program was killed while it wrote
                    self._lines.put(line)
        self._lines.put(None)

    def _pull(self) -> dict[str, Any] | None:
        """Waits for the next line and keeps what it says; None: there is none, the run is over."""
        text = self._lines.get()
        if text is None:
            self._end()
            return None
        line: dict[str, Any] = json.loads(text)
        if line["event"] == "result":
            self._result = read_result(line)
        elif line["event"] not in ("started", "page"):
            self._waiting.append(read_event(line))
        return line

    def _end(self) -> None:
        self._ended = True
        status = self._process.wait()
        with self._said:
            if status not in _ENDS or self._result is None:
                self._said.seek(0)
                self._error = error_of(status, self._said.read().decode("utf-8", "replace"))

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        while not self._waiting:
            if self._error is not None:
                raise self._error
            if self._ended:
                raise StopIteration
            self._pull()
        event = self._waiting.pop(0)
        if self._on_event is not None:
            self._on_event(event)
        return event

    def result(self) -> RunResult:
        """Waits for the end. Events that nobody took go to the callback alone."""
        for _ in self:
            pass
        assert self._result is not None
        return self._result

    def stop(self) -> None:
        """Ends the run after its current step; `resume` can continue it. Does not wait."""
        if not self._stopping and self._process.poll() is None:
            self._stopping = True
            self._process.send_signal(signal.SIGINT)

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def __enter__(self) -> LiveRun:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.stop()
        while not self._ended:
            self._pull()


def optimize(task: TaskLike, *, on_event: Callable[[Event], object] | None = None,
             **options: Option) -> LiveRun:
    """Starts a search for a faster kernel and returns as soon as its run has a folder. `options`
    are those of `kernelpro optimize`, with underscores: evaluations=24, model="anthropic:MODEL",
    max_usd=5, no_record=True. `on_event` is called with each event that is taken by an iteration
    or by `result()`.

        result = kernelpro.optimize("examples/softmax", evaluations=24, on_event=print).result()
    """
    return LiveRun(["optimize", task_path(task), *arguments_of(options)], on_event=on_event)


def resume(run: RunLike, *, on_event: Callable[[Event], object] | None = None,
           **options: Option) -> LiveRun:
    """Continues a run where it stopped, with new limits if `options` give some."""
    directory = path_argument(run_directory(run))
    return LiveRun(["resume", directory, *arguments_of(options)], directory, on_event)
