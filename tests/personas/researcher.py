#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A KernelBench researcher on a machine without a GPU: tasks in KernelBench's form, one evaluated,
one optimized, then a suite of both with its table and its runs as text.

    researcher.py KERNELPRO SOURCE_DIR

What the program says without PyTorch is checked first; the rest needs an interpreter that has it.
"""

import json
import re
import sys
from pathlib import Path

from persona import check, model, tell

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from environment import with_torch  # noqa: E402

SCALED = """import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features))

    def forward(self, x):
        return torch.relu(x * self.weight)


batch_size = 128
features = 512


def get_inputs():
    return [torch.randn(batch_size, features)]


def get_init_inputs():
    return [features]
"""
MEAN = """import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.mean(x, dim=1)


rows = 128
cols = 512


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []
"""
KERNELS = {
    "1_Scaled_ReLU": """#include "task.h"
extern "C" void launch(const Args& args) {
  for (int r = 0; r < batch_size; ++r) {
    for (int c = 0; c < features; ++c) {
      const float v = args.x[r * features + c] * args.weight[c];
      args.out[r * features + c] = v > 0 ? v : 0;
    }
  }
}
""",
    "2_Row_mean": """#include "task.h"
extern "C" void launch(const Args& args) {
  for (int r = 0; r < rows; ++r) {
    float sum = 0;
    for (int c = 0; c < cols; ++c) sum += args.x[r * cols + c];
    args.out[r] = sum / cols;
  }
}
""",
}
CANDIDATE = """import torch


class ModelNew(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(features))

    def forward(self, x):
        return (x * self.weight).clamp_min(0)
"""


def write_kernel(prompt):
    """What the model answers: the kernel of the task that the prompt is about."""
    return KERNELS["2_Row_mean" if "Row_mean" in prompt else "1_Scaled_ReLU"]


def without_torch(me, task):
    bare = me.folder / "python3"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')  # without installed packages
    bare.chmod(0o755)
    kernel = me.work / "scaled.cpp"
    kernel.write_text(KERNELS["1_Scaled_ReLU"])
    words = [task, "--target", "cpu", "--python", bare]
    me.run("evaluate", *words, kernel, status=3).refused("no PyTorch", "pip install torch")
    me.run("optimize", *words, "--start", kernel, status=3).refused("no PyTorch")
    me.run("doctor", "--quick", KERNELPRO_PYTHON=str(bare)).says("missing torch")


def one_task(me, task):
    kernel = me.work / "scaled.cpp"
    kernel.write_text(KERNELS["1_Scaled_ReLU"])
    me.run("evaluate", task, kernel, "--target", "cpu", "--baselines").says("correct", "eager")
    kernel.write_text(KERNELS["1_Scaled_ReLU"].replace("v > 0 ? v : 0", "v"))
    wrong = me.run("evaluate", task, kernel, "--target", "cpu", "--json", status=1).json()
    check(wrong["outcome"] == "wrong-result", f"without the ReLU it is wrong: {wrong}")
    (me.work / "new.py").write_text(CANDIDATE)
    me.run("evaluate", task, "new.py", "--target", "cpu", status=(2, 3)).refused("cuda target")
    if not Path("/dev/nvidiactl").exists():
        me.run("optimize", task, "--target", "cuda", status=3).refused("cuda|GPU|driver")
    me.run("optimize", task, "--target", "cpu", status=2).refused("no kernel", "--start|--model")
    me.run("bench", "KernelBench", "--target", "cpu", "--out", "none", status=2).refused("--model")


def suite(me, address, asked):
    words = ["bench", "KernelBench", "--target", "cpu", "--evaluations", "2",
             "--one-call", "--ideas", "1", "--tune", "0", "--model", f"{address}#scripted"]
    whole = [*words, "--levels", "1", "--baselines", "--out", "suite"]
    shown = me.run(*whole).says("2 tasks", "fast_1", "geomean")
    table = (me.work / "suite" / "report.md").read_text()
    for name in KERNELS:
        check(name in table, f"the table should have {name}:\n{table}")
    row = next((line for line in table.splitlines() if re.search(r"\| all +\| eager ", line)), "")
    check("2 (100 %)" in row, f"both should be compared with eager PyTorch:\n{table}")
    check("2200 tokens" in table, f"what the models used:\n{table}")
    check("$0.00" not in shown.text, "bench: tokens without a price have no cost, not one of $0.00")
    report = json.loads((me.work / "suite" / "report.json").read_text())
    check(set(KERNELS) <= set(re.findall(r"\w+", json.dumps(report))), "report.json has both")
    found = list((me.work / "suite" / "kernelbench").rglob("eval_results.json"))
    check(len(found) == 1, f"one eval_results.json for KernelBench's own analysis: {found}")
    before = len(asked)
    check(before >= 2, f"the model should have been asked for each task, not {before} times")
    again = me.run("bench", "--out", "suite", "--json").json()
    check(again == report, "to look at it again should change nothing")
    check(len(asked) == before, "what is finished should not be asked for again")
    me.run(*whole, "--seed", "7", status=2).refused("other settings", "seed")

    # The cpu target starts from nothing: without --baselines there is nothing to compare with.
    alone = me.run(*words, "--tasks", "1/2", "--out", "alone")
    check("Nothing is finished yet" not in alone.text, "bench: what is finished is not told as open")


def runs_as_text(me):
    stores = sorted((me.work / "suite").rglob("store.db"))
    check(len(stores) == 2, f"two runs: {stores}")
    for number, store in enumerate(stores):
        text = me.work / f"{number}.jsonl"
        me.run("trajectories", store.parent, "--output", text)
        lines = [json.loads(line) for line in text.read_text().splitlines()]
        written = [line for line in lines if "evaluation" in line and line.get("reply")]
        check(written, f"a candidate with its reply should be in {text}")
        check(written[0]["evaluation"], "and with its evaluation")
        me.run("show", text).says("1_Scaled_ReLU|2_Row_mean", "cpu")


def researcher(me, source):
    level = me.work / "KernelBench" / "KernelBench" / "level1"
    level.mkdir(parents=True)
    (level / "1_Scaled_ReLU.py").write_text(SCALED)
    (level / "2_Row_mean.py").write_text(MEAN)
    task = level / "1_Scaled_ReLU.py"
    without_torch(me, task)
    python = with_torch()
    if python is None:
        print("no interpreter has PyTorch: only what the program says then was checked")
        return
    me.environment.setdefault("KERNELPRO_PYTHON", python)
    one_task(me, task)
    with model(write_kernel) as server:
        suite(me, server.address, server.asked)
    runs_as_text(me)


if __name__ == "__main__":
    tell(researcher, "KERNELPRO SOURCE_DIR")
