#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Evaluation time from process start with empty build caches: KernelBench's
eval_kernel_against_ref (5 correctness trials, 100 timed calls) against `kernelpro evaluate`, on the
same CUDA kernels. KernelBench runs the ModelNew that `kernelpro export` writes. Needs a GPU.

    bench/kernelbench/speed.py --kernelbench CHECKOUT [--kernelpro PROGRAM] [--only relu:small,...]

bench_evaluation measures an evaluation inside a running search.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True

import harness

# name -> (task, {size: values set in the file}); {} is the task's own size.
TASKS = {
    "relu": ("19_ReLU.py", {"small": {"batch_size": 4096, "dim": 1024}, "full": {}}),
    "softmax": ("23_Softmax.py", {"small": {"batch_size": 4096, "dim": 1024}, "full": {}}),
    "matmul": ("1_Square_matrix_multiplication_.py", {"small": {"N": 1024}, "full": {}}),
}


def kernelbench(arguments):
    """Runs in a separate process: evaluates, and prints the result as JSON in the last line."""
    checkout, task, module = arguments
    begin = time.perf_counter()
    evaluation, stubbed = harness.load(checkout)
    import torch

    imported = time.perf_counter()
    with open(task) as file, open(module) as other:
        result = evaluation.eval_kernel_against_ref(
            file.read(), other.read(), num_correct_trials=5, num_perf_trials=100,
            measure_performance=True, backend="cuda", precision=torch.float32,
            device=torch.device("cuda:0"), build_dir=os.environ["TORCH_EXTENSIONS_DIR"])
    print("\n" + json.dumps({"correct": bool(result and result.correctness),
                             "us": result.runtime * 1e3 if result else -1,
                             "import_s": imported - begin, "stubbed": stubbed}))


def run(command, folder, cache):
    """(seconds from process start to end, standard output, exit status)."""
    os.makedirs(cache, exist_ok=True)
    environment = {**os.environ, "KERNELPRO_CACHE": cache, "TORCH_EXTENSIONS_DIR": cache,
                   "TRITON_CACHE_DIR": cache}
    begin = time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    return time.perf_counter() - begin, done.stdout, done


def measure(options, name, size):
    task_name, sizes = TASKS[name]
    with tempfile.TemporaryDirectory() as folder:
        task = os.path.join(folder, task_name)
        with open(task, "w") as file:
            file.write(harness.task_source(options.kernelbench, task_name, sizes[size]))
        kernel = shutil.copy(os.path.join(HERE, "speed", f"{name}.cu"), folder)
        # A separate cache, so that the export does not warm the measured one.
        exported = run([options.kernelpro, "export", task, "--kernel", kernel, "--output",
                        os.path.join(folder, "export"), "--no-build"], folder,
                       os.path.join(folder, "cache0"))[2]
        if exported.returncode != 0:
            raise SystemExit(f"export of {name} failed:\n{exported.stderr}")
        theirs_s, out, done = run([sys.executable, os.path.abspath(__file__), "--inside",
                                   options.kernelbench, task,
                                   os.path.join(folder, "export", "model_new.py")], folder,
                                  os.path.join(folder, "cache1"))
        try:
            theirs = json.loads(out.strip().splitlines()[-1])
        except (ValueError, IndexError):
            theirs = {"correct": False, "us": -1, "stubbed": [], "said": done.stderr[-400:]}
        ours_s, out, done = run([options.kernelpro, "evaluate", task, kernel, "--target", "cuda",
                                 "--json"], folder, os.path.join(folder, "cache2"))
        try:
            ours = json.loads(out)
        except ValueError:
            ours = {"outcome": "error", "said": done.stderr[-400:]}
        again_s = None
        if options.again:
            again_s = run([options.kernelpro, "evaluate", task, kernel, "--target", "cuda", "--json"],
                          folder, os.path.join(folder, "cache2"))[0]
    return theirs_s, theirs, ours_s, ours, again_s


def phases(ours):
    known = ours.get("phases_ms") or ours.get("phases") or {}
    parts = sorted(known.items(), key=lambda item: -item[1] if isinstance(item[1], (int, float))
                   else 0)
    return ", ".join(f"{k} {v / 1e3:.2f} s" for k, v in parts[:6] if isinstance(v, (int, float)))


def main():
    if sys.argv[1:2] == ["--inside"]:
        return kernelbench(sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernelbench", required=True, help="a checkout")
    parser.add_argument("--kernelpro", default="kernelpro", help="the program")
    everything = ",".join(f"{n}:{s}" for n, (_, sizes) in TASKS.items() for s in sizes)
    parser.add_argument("--only", default=everything, help="task:size, some of them")
    parser.add_argument("--again", action="store_true", help="KernelPro once more, caches filled")
    options = parser.parse_args()
    options.kernelbench = os.path.abspath(options.kernelbench)
    if os.path.exists(options.kernelpro):
        options.kernelpro = os.path.abspath(options.kernelpro)

    stubbed = []
    print(f"{'task':14} {'KernelBench':>12} {'KernelPro':>10} {'ratio':>7}  "
          "kernel's time there / here")
    for each in options.only.split(","):
        name, size = each.split(":")
        theirs_s, theirs, ours_s, ours, again_s = measure(options, name, size)
        verdicts = "" if theirs["correct"] and ours.get("outcome") == "correct" else (
            f"  NOT CORRECT: {theirs.get('said') or theirs['correct']} / "
            f"{ours.get('said') or ours.get('outcome')}: {ours.get('reason', '')}")
        print(f"{each:14} {theirs_s:10.1f} s {ours_s:8.2f} s {theirs_s / ours_s:6.1f}x  "
              f"{theirs['us']:.1f} us / {ours.get('time_us', -1):.1f} us"
              f"{verdicts}")
        again = "" if again_s is None else f"; with its caches filled {again_s:.2f} s"
        print(f"{'':14} KernelPro: {phases(ours)}{again}", flush=True)
        stubbed = theirs["stubbed"] or stubbed
    if stubbed:
        print("not installed, and replaced by empty modules for KernelBench's imports: "
              + ", ".join(stubbed))


if __name__ == "__main__":
    sys.exit(main())
