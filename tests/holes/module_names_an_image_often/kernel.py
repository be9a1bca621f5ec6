# SPDX-License-Identifier: Apache-2.0
# task: relu_module
# expect: crashed | rejected | timed-out | correct host-form
# An honest plan, but the capture's answer names one file of 128 MB 1500 times among its images: the
# supervisor reads, copies and searches each of them, for many minutes, with the GPU in its hands.
import os
import sys

import torch

_state = {"exports": 0}


def _patch():
    library = sys.modules["kernelpro_torch.capture"].Library
    honest = library.export

    def export(self, folder):
        answer = honest(self, folder)
        _state["exports"] += 1
        if _state["exports"] % 2 == 0:
            pad = os.path.join(folder, "pad.cubin")
            with open(os.path.join(folder, answer["images"][0]), "rb") as image:
                content = image.read()
            with open(pad, "wb") as file:
                file.write(content)
                file.truncate(max(128 << 20, 2 * len(content)))
            answer["images"] += ["pad.cubin"] * 1500
        return answer

    library.export = export


if "kernelpro_torch.capture" in sys.modules:
    _patch()


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)
