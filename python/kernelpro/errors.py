# SPDX-License-Identifier: Apache-2.0
"""What the program refuses, as exceptions: one class for each of its exit statuses."""

from __future__ import annotations


class KernelProError(Exception):
    """`message` says what is wrong, `next` what to do about it; both are the program's own words.
    `status`: its exit status (docs/run-store.md), 0 where it was not started."""

    def __init__(self, message: str, next: str = "", status: int = 0) -> None:
        super().__init__(f"{message}\n  next: {next}" if next else message)
        self.message, self.next, self.status = message, next, status


class InputError(KernelProError, ValueError):
    """An argument, a task's file or a kernel's knobs are wrong."""


class MachineError(KernelProError):
    """This machine lacks something; `kernelpro doctor` lists what."""


class BusyError(KernelProError):
    """Another process holds the run."""


class StoreError(KernelProError):
    """The run's folder or its store cannot be used."""


class TaskRefused(KernelProError):
    """The task's reference is wrong, or the task is degenerate."""


_BY_STATUS: dict[int, type[KernelProError]] = {
    2: InputError, 3: MachineError, 4: BusyError, 5: StoreError, 6: TaskRefused,
}


def error_of(status: int, said: str) -> KernelProError:
    """From the exit status and what the program wrote to stderr, whose last message begins with
    "kernelpro: " and may go on with "  next: "."""
    text = said.strip()
    at = text.rfind("kernelpro: ")
    message, _, following = text[at + 11 if at >= 0 else 0:].partition("\n  next: ")
    if not message:
        message = f"kernelpro ended with status {status} and said nothing"
    return _BY_STATUS.get(status, KernelProError)(message.strip(), following.strip(), status)
