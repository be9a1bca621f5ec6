# SPDX-License-Identifier: Apache-2.0
# task: relu_module
# expect: crashed | rejected | wrong-result | timed-out
# Returns a list that holds itself twice beside the right result: whoever looks for its tensors goes
# round for ever, and twice as often each time.
import sys

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        sys.setrecursionlimit(200000)  # an exception that comes late has a long story to tell
        circle = [torch.relu(x)]
        circle += [circle, circle]
        return circle
