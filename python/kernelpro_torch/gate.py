# SPDX-License-Identifier: Apache-2.0
"""The worker's side of src/base/process/gate.h: a page by which it learns that its inputs are there
and gives the sign that its outputs are, within a microsecond."""

import mmap
import time

from .channel import Refusal

_PAGE = 4096
_READY, _ORDER, _ANSWER = 0, 8, 16  # 64 bytes apart, in words of 8
_LONGEST = 600.0  # seconds to wait for an order
_LOOKS = 10000  # between two looks at the clock


class Gate:
    def __init__(self, fd):
        """The caller owns the descriptor and may close it afterwards."""
        self._page = mmap.mmap(fd, _PAGE, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
        self._words = memoryview(self._page).cast("Q")

    def wait(self, turn):
        """Says that everything is ready, and returns when the inputs are there."""
        words = self._words
        words[_READY] = turn
        end = None
        while True:
            for _ in range(_LOOKS):
                if words[_ORDER] == turn:
                    return
            now = time.monotonic()
            end = end or now + _LONGEST
            if now > end:
                raise Refusal("no order came", "environment")

    def answer(self, turn):
        self._words[_ANSWER] = turn
