# SPDX-License-Identifier: Apache-2.0
"""An exported CUDA kernel in place of a module, on a GPU with PyTorch (scripts/gpu python)."""

import os
import tempfile
import unittest
from pathlib import Path

import torch

import kernelpro

ROWS, SIZE = 4096, 1024
KERNEL = """#include "task.h"
// @knob THREADS 128 256
__global__ void norm(const float* x, const float* weight, float* out) {
  x += 1ll * blockIdx.x * SIZE_1024;
  out += 1ll * blockIdx.x * SIZE_1024;
  __shared__ float parts[THREADS];
  float sum = 0;
  for (int i = threadIdx.x; i < SIZE_1024; i += THREADS) sum += x[i] * x[i];
  parts[threadIdx.x] = sum;
  __syncthreads();
  for (int n = THREADS / 2; n > 0; n /= 2) {
    if (threadIdx.x < n) parts[threadIdx.x] += parts[threadIdx.x + n];
    __syncthreads();
  }
  const float scale = rsqrtf(parts[0] / SIZE_1024 + 1e-5f);
  for (int i = threadIdx.x; i < SIZE_1024; i += THREADS) out[i] = x[i] * scale * weight[i];
}
KP_LAUNCH(norm, kp::dim(SIZE_4096), kp::dim(THREADS), 0, arg::x, arg::weight, arg::out)
"""


class RowNorm(torch.nn.Module):
    def __init__(self, size, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = torch.nn.Parameter(torch.rand(size) + 0.5)

    def forward(self, x):
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + self.eps) * self.weight


class OnAGpu(unittest.TestCase):
    def test_from_a_module_to_its_replacement(self):
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            self.addCleanup(os.chdir, "/")
            Path("kernel.cu").write_text(KERNEL)
            task = kernelpro.module_task(RowNorm, [torch.empty(ROWS, SIZE)], [SIZE])
            verdict = kernelpro.evaluate(task, KERNEL, target="cuda")
            self.assertTrue(verdict.correct, verdict.reason)
            result = kernelpro.optimize(task, start="kernel.cu", target="cuda", evaluations=2,
                                        near_ceiling=10, no_record=True).result()
            module = kernelpro.accelerate(RowNorm(SIZE).cuda().eval(), result)
            x = torch.randn(ROWS, SIZE, device="cuda")
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.no_grad():
                expected = RowNorm.forward(module, x)
                for _ in range(3):
                    self.assertTrue(torch.allclose(module(x), expected, atol=1e-5))
                self.assertEqual(kernelpro.explain(module, x), "")
                with torch.cuda.stream(side):
                    out = module(x * 2)
                side.synchronize()
                self.assertTrue(torch.allclose(out, expected, atol=1e-3))
                self.assertIn("not (5, 1024)", kernelpro.explain(module, x[:5]))
                self.assertTrue(torch.equal(module(x[:5]), RowNorm.forward(module, x[:5])))
                module.cpu()
                self.assertIn("GPU", kernelpro.explain(module, x.cpu()))
                module(x.cpu())


if __name__ == "__main__":
    unittest.main()
