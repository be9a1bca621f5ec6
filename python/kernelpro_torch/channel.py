# SPDX-License-Identifier: Apache-2.0
"""Frames over the child's socket at descriptor 3 (src/base/process/channel.h).

A frame is a 4-byte little-endian length and that many bytes, here always JSON; descriptors travel
alongside it (SCM_RIGHTS). The supervisor sends a command, an object with the member "do"; every
command gets exactly one frame in reply, with "ok": true, or "error" with a sentence and optionally
"rule" (the broken rule) or "next" (what to do about it).
"""

import array
import fcntl
import json
import math
import os
import socket
import struct

CHANNEL_FD = 3
MAX_FRAME = 256 << 20
MAX_FDS = 64


class Refusal(Exception):
    """A command cannot be carried out; becomes the answer's "error", "rule" and "next"."""

    def __init__(self, error, rule="", next=""):
        super().__init__(error)
        self.error, self.rule, self.next = error, rule, next


class Command:
    """One command: `verb`, the members as `json`, and the descriptors, which it owns."""

    def __init__(self, values, fds):
        self.json = values
        self.verb = values.get("do", "")
        self.fds = fds

    def get(self, name, otherwise=None):
        return self.json.get(name, otherwise)

    def close(self):
        for fd in self.fds:
            os.close(fd)
        self.fds = []


class Channel:
    """The child's end. Moves descriptor 3 to a high number, out of reach of accidental writes, and
    closes it on exec."""

    def __init__(self, fd=CHANNEL_FD):
        high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 200)
        os.close(fd)
        self._socket = socket.socket(fileno=high)
        self._socket.setblocking(True)

    def next(self):
        """The next command; None, which means exit, if the supervisor is gone or sends garbage."""
        fds = []
        head = self._read(4, fds)
        if head is None:
            return None
        length = struct.unpack("<I", head)[0]
        body = self._read(length, fds) if length <= MAX_FRAME else None
        if body is None:
            return None
        try:
            values = json.loads(body.decode("utf-8"))
        except ValueError:
            return None
        return Command(values, fds) if isinstance(values, dict) else None

    def answer(self, values=None, fds=()):
        self._send({**(values or {}), "ok": True}, fds)

    def refuse(self, error, rule="", next=""):
        values = {"error": error or "no reason was given"}
        if rule:
            values["rule"] = rule
        if next:
            values["next"] = next
        self._send(values, ())

    def serve(self, handlers):
        """Answers commands until the supervisor is gone. `handlers`: verb -> function of the
        Command that returns the answer's members (or None). Descriptors that a handler keeps must
        be duplicated or taken out of Command.fds."""
        while True:
            command = self.next()
            if command is None:
                return
            try:
                handler = handlers.get(command.verb)
                if handler is None:
                    raise Refusal(f"unknown command {command.verb!r}")
                values = handler(command)
            except Refusal as refusal:
                self.refuse(refusal.error, refusal.rule, refusal.next)
            else:
                self.answer(values)
            finally:
                command.close()

    def _read(self, wanted, fds):
        data = bytearray()
        while len(data) < wanted:
            room = socket.CMSG_SPACE(MAX_FDS * array.array("i").itemsize)
            try:
                part, ancillary, _, _ = self._socket.recvmsg(
                    wanted - len(data), room, getattr(socket, "MSG_CMSG_CLOEXEC", 0)
                )
            except OSError:
                return None
            for level, kind, bytes_ in ancillary:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    got = array.array("i")
                    got.frombytes(bytes_[: len(bytes_) - len(bytes_) % got.itemsize])
                    fds.extend(got)
            if not part:
                return None
            data += part
        return bytes(data)

    def _send(self, values, fds):
        body = json.dumps(_plain(values), allow_nan=False).encode("utf-8")
        data = struct.pack("<I", len(body)) + body
        try:
            if fds:
                rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]
                sent = self._socket.sendmsg([data], rights)
                data = data[sent:]
            self._socket.sendall(data)
        except OSError:
            os._exit(0)  # the supervisor is gone


def _plain(value):
    """Replaces NaN and infinities, which JSON lacks, by null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return value
