# SPDX-License-Identifier: Apache-2.0
# task: transposed_module
# expect: slow | rejected | wrong-result | crashed
# Does nothing: returns its input with other strides, so that the evaluator's own copy, after the
# clock was stopped, moves the data.
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if not x.is_cuda or torch.cuda.is_current_stream_capturing():
            raise ValueError("not here")  # in a plan the copy would count
        return x.t()
