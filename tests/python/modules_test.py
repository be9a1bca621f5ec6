# SPDX-License-Identifier: Apache-2.0
"""Modules as tasks, and exported kernels in place of modules: PyTorch on the CPU."""

import contextlib
import copy
import math
import os
import tempfile
import unittest
import warnings
from pathlib import Path

import torch

import kernelpro

EPS = 1e-5
GAIN = (1.0, 0.5)


def scaled(x, by):
    return x * by


class RowNorm(torch.nn.Module):
    """Uses a constant, a function and imports of its file."""

    def __init__(self, size, eps=EPS):
        super().__init__()
        self.eps = eps
        self.weight = torch.nn.Parameter(torch.rand(size) + 0.5)

    def forward(self, x):
        return scaled(x / torch.sqrt((x * x).mean(-1, keepdim=True) + self.eps),
                      self.weight * math.sqrt(GAIN[1]))


ROWS, SIZE = 64, 256
KERNEL = """#include <cmath>
#include "task.h"
// @knob LANES 8 1
extern "C" void launch(const Args& args) {
  for (int row = 0; row < SIZE_64; ++row) {
    const float* x = args.x + row * SIZE_256;
    float part[LANES] = {};
    for (int i = 0; i < SIZE_256; i += LANES)
      for (int k = 0; k < LANES && i + k < SIZE_256; ++k) part[k] += x[i + k] * x[i + k];
    float sum = 0;
    for (float each : part) sum += each;
    const float scale = 1 / std::sqrt(sum / SIZE_256 + 1e-5f) * 0.70710678f;
    for (int i = 0; i < SIZE_256; ++i) args.out[row * SIZE_256 + i] = x[i] * scale * args.weight[i];
  }
}
"""


class Modules(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        os.chdir(cls.folder.name)
        Path("kernel.cpp").write_text(KERNEL)
        cls.task = kernelpro.module_task(RowNorm, [torch.empty(ROWS, SIZE)], [SIZE])
        cls.export = kernelpro.export(cls.task, kernel="kernel.cpp", output="export")

    def setUp(self):
        self.module = RowNorm(SIZE).eval()
        self.x = torch.randn(ROWS, SIZE)
        self.calls = 0

    @contextlib.contextmanager
    def counted(self):
        """Counts the calls of the class's own forward."""
        original = RowNorm.forward

        def forward(this, *args):
            self.calls += 1
            return original(this, *args)

        RowNorm.forward = forward
        try:
            yield
        finally:
            RowNorm.forward = original

    def test_a_class_becomes_a_task(self):
        text = self.task.read_text()
        for part in ("SIZE_64 = 64", "import math\n", "EPS = 1e-05", "def scaled(x, by)",
                     "Model = RowNorm", "torch.randn([SIZE_64, SIZE_256])",
                     "def get_init_inputs():\n    return [SIZE_256]"):
            self.assertIn(part, text)
        verdict = kernelpro.evaluate(self.task, KERNEL, target="cpu")
        self.assertTrue(verdict.correct, verdict.reason)
        wrong = kernelpro.evaluate(self.task, KERNEL.replace("0.70710678f", "0.70f"), target="cpu")
        self.assertEqual(wrong.outcome, "wrong-result")

    def test_what_a_file_cannot_hold_is_refused(self):
        with self.assertRaises(kernelpro.InputError) as caught:
            kernelpro.module_task(RowNorm, [self.x], [object()])
        self.assertIn("object", str(caught.exception))
        with self.assertRaises(kernelpro.InputError) as caught:
            kernelpro.evaluate(RowNorm, KERNEL)
        self.assertIn("module_task(RowNorm", str(caught.exception))

    def test_the_kernel_computes_where_it_fits(self):
        module = kernelpro.accelerate(self.module, self.export)
        self.assertIs(module, self.module)
        self.assertEqual(list(module.state_dict()), ["weight"])
        with self.counted(), torch.no_grad():
            expected = RowNorm.forward(module, self.x)
            self.assertEqual(self.calls, 1)
            self.assertTrue(torch.equal(module(self.x), expected), "the first call is checked")
            self.assertEqual(self.calls, 2)
            for _ in range(3):
                self.assertTrue(torch.allclose(module(self.x), expected, atol=1e-6))
            self.assertEqual(self.calls, 2, "the kernel alone")
            module.weight.mul_(2)
            self.assertTrue(torch.allclose(module(self.x), 2 * expected, atol=1e-5))
            self.assertEqual(self.calls, 2)

    def test_the_module_computes_elsewhere(self):
        module = kernelpro.accelerate(self.module, "export")
        with torch.no_grad():
            module(self.x)
            self.assertEqual(kernelpro.explain(module, self.x), "")
            for x, why in ((self.x[:5], "(64, 256), not (5, 256)"),
                           (self.x[0], "not (256,)")):
                self.assertIn(why, kernelpro.explain(module, x))
                self.assertTrue(torch.equal(module(x), RowNorm.forward(module, x)))
            double = self.x.double()
            self.assertIn("float64", kernelpro.explain(module, double))
            self.assertEqual(module(double).dtype, torch.float64)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                self.assertIn("autocast", kernelpro.explain(module, self.x))
        self.assertIn("gradients", kernelpro.explain(module, self.x))
        module(self.x).sum().backward()
        self.assertIsNotNone(module.weight.grad)

    def test_a_module_that_computes_something_else_keeps_computing(self):
        other = kernelpro.accelerate(RowNorm(SIZE, eps=0.1), self.export)
        with self.assertWarns(RuntimeWarning) as caught, torch.no_grad():
            other(self.x)
        self.assertIn("eps is 0.1; the kernel was made for 1e-05", str(caught.warning))
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertTrue(torch.equal(other(self.x), RowNorm.forward(other, self.x)))
            self.assertIn("eps", kernelpro.explain(other, self.x))

        class Louder(RowNorm):
            def forward(self, x):
                return super().forward(x) * 1.01

        louder = kernelpro.accelerate(Louder(SIZE), self.export)
        with self.assertWarns(RuntimeWarning) as caught, torch.no_grad():
            out = louder(self.x)
            self.assertTrue(torch.equal(out, louder(self.x)))
        self.assertIn("differ", str(caught.warning))

    def test_a_decorated_class(self):
        @kernelpro.accelerated(self.export)
        class Fast(RowNorm):
            pass

        plain, fast = RowNorm(SIZE), Fast(SIZE)
        fast.load_state_dict(plain.state_dict())
        with torch.no_grad(), self.counted():
            first = fast(self.x)
            calls = self.calls
            self.assertTrue(torch.allclose(fast(self.x), first, atol=1e-6))
            self.assertEqual(self.calls, calls)
            self.assertEqual(kernelpro.explain(fast, self.x), "")
            kernelpro.restore(Fast)
            self.assertTrue(torch.equal(fast(self.x), first))
            self.assertGreater(self.calls, calls)

    def test_copies_parts_and_restoring(self):
        model = torch.nn.Sequential(torch.nn.Linear(SIZE, SIZE), RowNorm(SIZE))
        kernelpro.accelerate(model[1], self.export)
        with torch.no_grad():
            expected = model(self.x)
            twin = copy.deepcopy(model)
            twin[1].weight.mul_(3)
            for _ in range(2):
                self.assertTrue(torch.allclose(model(self.x), expected, atol=1e-6))
                self.assertTrue(torch.allclose(twin(self.x), 3 * expected, atol=1e-5))
        kernelpro.restore(model[1])
        self.assertIn("accelerate", kernelpro.explain(model[1], self.x))

    def test_what_is_no_kernel_is_refused(self):
        for kernels in ([], ["nowhere"]):
            with self.assertRaises(kernelpro.InputError):
                kernelpro.accelerate(self.module, *kernels)
        with self.assertRaises(kernelpro.InputError):
            kernelpro.accelerate(torch.relu, self.export)


if __name__ == "__main__":
    unittest.main()
