# SPDX-License-Identifier: Apache-2.0
"""The kernels whose verdicts are compared: ModelNew files for small KernelBench tasks, most of them
plain PyTorch, so that a verdict takes a fraction of a second on either side.

`right`: the verdict that KernelBench's rule must give. `why`: if KernelPro may disagree under the
same rule, the reason in one sentence; all other verdicts must agree.
"""

import os

HERE = os.path.dirname(os.path.abspath(__file__))

# name -> (file, sizes, constructor's parameters, lines of the constructor, forward's parameters)
TASKS = {
    "relu": ("19_ReLU.py", {"batch_size": 64, "dim": 4099}, "", [], "x"),
    "softmax": ("23_Softmax.py", {"batch_size": 64, "dim": 4099}, "", [], "x"),
    "matmul": ("1_Square_matrix_multiplication_.py", {"N": 512}, "", [], "A, B"),
    "layernorm": ("40_LayerNorm.py", {"batch_size": 4, "features": 8, "dim1": 32, "dim2": 33},
                  "shape", ["self.ln = nn.LayerNorm(normalized_shape=shape)"], "x"),
    "sum": ("47_Sum_reduction_over_a_dimension.py", {"batch_size": 16, "dim1": 128, "dim2": 255},
            "dim", ["self.dim = dim"], "x"),
    "hinge": ("100_HingeLoss.py", {"batch_size": 128, "input_shape": "(128,)"}, "", [],
              "predictions, targets"),
    "argmax": ("51_Argmax_over_a_dimension.py", {"batch_size": 16, "dim1": 128, "dim2": 255},
               "dim", ["self.dim = dim"], "x"),
    "scalar": ("5_Matrix_scalar_multiplication.py", {"M": 256, "N": 1030}, "", [], "A, s"),
    "infinite": (os.path.join(HERE, "tasks", "infinite.py"), {}, "", [], "x"),
    "nan": (os.path.join(HERE, "tasks", "not_a_number.py"), {}, "", [], "x"),
}

# The expression for each task's right result; `r` in the bodies below.
RESULT = {
    "relu": "torch.relu(x)",
    "softmax": "torch.softmax(x, dim=1)",
    "matmul": "torch.matmul(A, B)",
    "layernorm": "self.ln(x)",
    "sum": "torch.sum(x, dim=self.dim, keepdim=True)",
    "hinge": "torch.mean(torch.clamp(1 - predictions * targets, min=0))",
    "argmax": "torch.argmax(x, dim=self.dim)",
    "scalar": "A * s",
    "infinite": "torch.where(x > 0.5, x / 0.0, x)",
    "nan": "torch.sqrt(x - 0.5)",
}


class Kernel:
    def __init__(self, task, name, body, right, why="", precision="fp32", before="", backend="cuda",
                 whole=""):
        self.task, self.name, self.right, self.why = task, name, right, why
        self.precision, self.backend = precision, backend
        self.source = whole or _model_new(task, body, before)


def _model_new(task, body, before):
    _, _, parameters, constructor, arguments = TASKS[task]
    lines = ["import torch", "import torch.nn as nn", before, "", "class ModelNew(nn.Module):",
             f"    def __init__(self{', ' + parameters if parameters else ''}):",
             "        super().__init__()", *(f"        {line}" for line in constructor),
             f"    def forward(self, {arguments}):"]
    for line in body.replace("RESULT", RESULT[task]).splitlines():
        lines.append(f"        {line}")
    return "\n".join(lines) + "\n"


def _off(factor, tolerance):
    """The right result, off by `factor` times the tolerance of torch.allclose at each element."""
    return (f"r = RESULT\nsign = torch.ones_like(r).flatten()\nsign[::2] = -1\n"
            f"return r + {factor} * {tolerance} * (1 + r.abs()) * sign.view(r.shape)")


TRITON = """
import triton
import triton.language as tl

@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n)
    tl.store(y + at, tl.maximum(v, 0.0), mask=at < STOP)
"""


def _triton(stop):
    return ("y = torch.empty_like(x)\nn = x.numel()\n"
            "kernel[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)\nreturn y",
            TRITON.replace("STOP", stop))


def all_kernels():
    kernels = []

    def add(task, name, body, right, why="", **more):
        kernels.append(Kernel(task, name, body, right, why, **more))

    for task in TASKS:
        # NaN equals nothing for torch.allclose: the module itself fails.
        add(task, "as it is", "return RESULT", task != "nan")
    for task in ("relu", "softmax", "matmul", "layernorm", "sum", "scalar"):
        for factor, right in ((0.5, True), (2.0, False)):
            add(task, f"off by {factor} tolerance", _off(factor, 1e-4), right)
    for task in ("relu", "matmul"):
        add(task, "as it is, fp16", "return RESULT", True, precision="fp16")
        for factor, right in ((0.5, True), (2.0, False)):
            add(task, f"off by {factor} tolerance, fp16", _off(factor, 1e-2), right,
                precision="fp16")
    for value in ("nan", "inf", "-inf"):
        add("relu", f"one {value}", f"r = RESULT\nr[5, 7] = float('{value}')\nreturn r", False)
        add("infinite", f"one {value} more",
            f"r = RESULT\nr[5, 7] = float('{value}') if '{value}' != 'inf' else -r[5, 7]\nreturn r",
            False)
    add("infinite", "largest number for infinity",
        "r = RESULT\nreturn torch.where(torch.isinf(r), torch.full_like(r, 3.4e38), r)", False)

    add("relu", "flat shape", "return (RESULT).reshape(-1)", False)
    add("sum", "without the kept dimension", "return torch.sum(x, dim=self.dim)", False)
    add("hinge", "one element instead of none", "return (RESULT).reshape(1)", False)
    add("relu", "float64 result", "return (RESULT).double()", False)
    add("relu", "half result", "return (RESULT).half()", False)
    add("argmax", "int32 result", "return (RESULT).int()", False)
    add("relu", "a number", "return 0.0", False)
    add("relu", "None", "return None", False)

    add("relu", "nothing", "return torch.empty_like(x)", False)
    add("relu", "zeros", "return torch.zeros_like(x)", False)
    add("relu", "last row left out", "r = RESULT\nr[-1] = 0\nreturn r", False)
    add("relu", "last element wrong", "r = RESULT\nr[-1, -1] += 1\nreturn r", False)
    add("relu", "every 1000th wrong", "r = RESULT\nr.view(-1)[::1000] += 1\nreturn r", False)
    add("softmax", "along the columns", "return torch.softmax(x, dim=0)", False)
    add("softmax", "without the division", "return torch.exp(x)", False)
    add("softmax", "of half precision", "return torch.softmax(x.half(), dim=1).float()", True)
    add("matmul", "transposed", "return torch.matmul(A, B).t().contiguous()", False)
    add("matmul", "B transposed", "return torch.matmul(A, B.t())", False)
    add("matmul", "half precision products",
        "return torch.matmul(A.half(), B.half()).float()", False)
    add("layernorm", "without the small constant", "d = (1, 2, 3)\n"
        "return (x - x.mean(d, keepdim=True)) / x.std(d, keepdim=True, unbiased=False)", True)
    add("layernorm", "divides by the variance", "d = (1, 2, 3)\n"
        "return (x - x.mean(d, keepdim=True)) / x.var(d, keepdim=True, unbiased=False)", False)
    add("sum", "mean instead", "return torch.mean(x, dim=self.dim, keepdim=True)", False)
    add("sum", "in float64", "return torch.sum(x.double(), dim=self.dim, keepdim=True).float()",
        True)
    add("hinge", "sum instead of mean",
        "return torch.sum(torch.clamp(1 - predictions * targets, min=0))", False)
    add("argmax", "argmin", "return torch.argmin(x, dim=self.dim)", False)
    add("scalar", "another number", "return A * 3.1415", False)

    add("relu", "the input itself, right for inputs in [0, 1)", "return x.clone()", True)
    add("layernorm", "ignores weight and bias, right for ones and zeros",
        "return torch.nn.functional.layer_norm(x, self.ln.normalized_shape)", True)
    add("relu", "keeps the first result",
        "if not hasattr(self, 'r'): self.r = RESULT\nreturn self.r", False)
    add("relu", "changes its input", "x.sub_(1)\nreturn torch.relu(x + 1)", True,
        why="the boundary: inputs are only read (KernelBench's own result was computed before)")
    add("relu", "random", "return torch.rand_like(x)", False)
    add("relu", "raises", "raise RuntimeError('no')", False)
    add("relu", "does not parse", "return RESULT +", False)
    add("relu", "constructor raises", "", False, whole=(
        "import torch\nclass ModelNew(torch.nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        raise RuntimeError('no')\n"
        "    def forward(self, x):\n        return x\n"))
    add("relu", "defines no ModelNew", "", False, whole="import torch\nclass Other:\n    pass\n")
    body, before = _triton("n")
    add("relu", "Triton", body, True, before=before, backend="triton")
    body, before = _triton("n - 3")
    add("relu", "Triton, tail left out", body, False, before=before, backend="triton")
    return kernels
