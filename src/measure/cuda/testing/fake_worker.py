#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A worker process without a GPU, for crew_test.cc and link_test.cc: says how it was started. With
FAKE_FAILS in its environment it has no context: "always", or where device files are hidden
("hidden"); FAKE_RULE is the rule by which it refuses."""
import json
import os
import socket
import struct
import sys


def frame(channel):
    head = channel.recv(4, socket.MSG_WAITALL)
    if len(head) < 4:
        sys.exit(0)
    return json.loads(channel.recv(struct.unpack("<I", head)[0], socket.MSG_WAITALL))


def main():
    channel = socket.socket(fileno=3)
    fails = os.environ.get("FAKE_FAILS", "")
    hidden = sys.argv[2:]
    while True:
        frame(channel)
        answer = {"ok": True, "role": sys.argv[1], "hidden": hidden, "pid": os.getpid(),
                  "connections": os.environ.get("CUDA_DEVICE_MAX_CONNECTIONS", ""),
                  "visible": os.environ.get("CUDA_VISIBLE_DEVICES", "")}
        if fails == "always" or (fails == "hidden" and hidden):
            answer = {"error": "out of memory", "rule": os.environ.get("FAKE_RULE", ""),
                      "next": "stop the other programs on this GPU"}
        text = json.dumps(answer).encode()
        channel.sendall(struct.pack("<I", len(text)) + text)


if __name__ == "__main__":
    main()
