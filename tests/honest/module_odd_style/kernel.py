# SPDX-License-Identifier: Apache-2.0
# task: linear_module
# expect: correct
# A module in an unusual style: its class is made at run time by type(), forward is a closure that
# calls a stateless function on a dict of its parameters, vectorised over the rows (vmap), and what is
# returned has passed through an out= argument and a generator.
import functools

import torch
from torch.func import functional_call, vmap


def _forward(self, *tensors):
    def outputs():
        for tensor in tensors:
            parameters = dict(self.linear.named_parameters())
            one = functools.partial(functional_call, self.linear, parameters)
            y = torch.empty(tensor.shape[0], self.linear.out_features, dtype=tensor.dtype,
                            device=tensor.device)
            torch.add(vmap(one)(tensor), 0, out=y)
            yield y

    (result,) = outputs()
    return result


def _init(self, size):
    torch.nn.Module.__init__(self)
    with torch.no_grad():
        self.add_module("linear", torch.nn.Linear(in_features=size, out_features=size))


ModelNew = type("ModelNew", (torch.nn.Module,), {"__init__": _init, "forward": _forward})
