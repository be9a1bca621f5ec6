# SPDX-License-Identifier: Apache-2.0
# task: linear_alone_module
# expect: correct
# A Triton product that chooses its tiles itself, in fp32, with block pointers: the
# parts of a sum are added up by atomics, in no order, and the bias comes last.
import torch

try:
    import triton
    import triton.language as tl

    @triton.autotune(
        configs=[triton.Config({"ROWS": 32, "COLS": 32}, num_warps=4),
                 triton.Config({"ROWS": 64, "COLS": 32}, num_warps=4)],
        key=["m", "n", "k"], reset_to_zero=["y"])
    @triton.jit
    def linear_kernel(x, w, y, m, n, k, PARTS: tl.constexpr, ROWS: tl.constexpr,
                      COLS: tl.constexpr):
        rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
        cols = tl.program_id(1) * COLS + tl.arange(0, COLS)
        depth = k // PARTS
        begin = tl.program_id(2) * depth
        left = tl.make_block_ptr(x, (m, k), (k, 1), (tl.program_id(0) * ROWS, begin), (ROWS, 32),
                                 (1, 0))
        right = tl.make_block_ptr(w, (k, n), (1, k), (begin, tl.program_id(1) * COLS), (32, COLS),
                                  (0, 1))
        total = tl.zeros((ROWS, COLS), dtype=tl.float32)
        for _ in range(0, depth, 32):
            total += tl.dot(tl.load(left), tl.load(right), input_precision="ieee")
            left = tl.advance(left, (0, 32))
            right = tl.advance(right, (32, 0))
        tl.atomic_add(y + rows[:, None] * n + cols[None, :], total)
except ImportError:
    pass


class ModelNew(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = torch.nn.Linear(size, size)

    def forward(self, x):
        w, b = self.linear.weight, self.linear.bias
        if not x.is_cuda:
            return self.linear(x)
        (m, k), n, parts = x.shape, w.shape[0], 2
        y = torch.zeros(m, n, device=x.device)
        linear_kernel[lambda meta: (m // meta["ROWS"], n // meta["COLS"], parts)](
            x, w, y, m, n, k, PARTS=parts)
        y += b
        return y
