#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cost of the evidence for one kernel, compared with Nsight Compute in the same run: all counters
of `--profile full` against `ncu --set full` and against `ncu` with the same metrics. Then a task
with gigabytes of inputs against one with megabytes.

    bench/evidence.py [--kernelpro PROGRAM] [--kernelbench CHECKOUT] [TASK/KERNEL.cu ...]

Needs a GPU, ncu, and bench_replays and kernelpro-worker next to PROGRAM. Paths are relative to
tests/flaws. "first" is the first kernel of a process, which starts the profiling process; "later"
is the cost of each kernel after it. Disassembly overlaps with verification and timing, so only the
time that an evaluation waits is counted. The table also lists the whole run of `kernelpro
evaluate` (compile, verify, time, evidence, diagnosis).
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import ncu_rules

FLAWS = os.path.join(os.path.dirname(HERE), "tests", "flaws")
KERNELS = ["copy/sound-grid_stride.cu", "transpose/sound-tiled.cu",
           "matmul_fp32/from_global/mended.cu", "swiglu/four_kernels/flawed.cu"]
RELU = os.path.join("KernelBench", "level1", "19_ReLU.py")


def evaluate(program, arguments):
    """(seconds, verdicts)."""
    begin = time.perf_counter()
    done = subprocess.run([program, "evaluate", *arguments, "--target", "cuda", "--no-probes",
                           "--profile", "full", "--json"], capture_output=True, text=True)
    seconds = time.perf_counter() - begin
    try:
        verdicts = json.loads(done.stdout)
    except ValueError:
        sys.exit("evaluate %s: status %d: %s" % (arguments[0], done.returncode, done.stderr))
    return seconds, verdicts if isinstance(verdicts, list) else [verdicts]


def counted(verdict):
    """Names of the hardware counters in the evidence."""
    names = set()
    for kernel in verdict["evidence"].get("kernels", []):
        names |= {n for n, item in kernel["items"].items()
                  if "__" in n and item["source"] in ("cupti", "ncu")}
    return sorted(names)


def ncu(worker, replay, what):
    """(seconds, rows of the CSV)."""
    begin = time.perf_counter()
    done = subprocess.run(["ncu", *what, "--csv", "--clock-control", "none",
                           "--profile-from-start", "off", worker, "cuda-replay", replay],
                          capture_output=True, text=True, timeout=ncu_rules.SECONDS)
    seconds = time.perf_counter() - begin
    rows = [line for line in done.stdout.splitlines() if line.startswith('"')]
    if done.returncode != 0 or len(rows) < 2:
        sys.exit("ncu: status %d: %s%s" % (done.returncode, done.stdout, done.stderr))
    return seconds, len(rows) - 1


def one(program, folder, name):
    kernel = os.path.join(FLAWS, name)
    task = os.path.dirname(kernel)
    while not os.path.exists(os.path.join(task, "task.toml")):
        task = os.path.dirname(task)
    # The same kernel under another name, so that its evidence is gathered again.
    again = []
    for i in range(4):
        again.append(os.path.join(folder, "again%d.cu" % i))
        with open(kernel) as source, open(again[-1], "w") as copy:
            copy.write(source.read() + "\n// %d\n" % i)
    whole_s, verdicts = evaluate(program, [task, *again])
    wrong = [v["reason"] for v in verdicts if v["outcome"] != "correct"]
    if wrong:
        sys.exit("%s: %s" % (name, wrong[0]))
    costs = [v["phases_ms"]["evidence"] for v in verdicts]
    metrics = counted(verdicts[-1])
    beside = os.path.dirname(program)
    subprocess.run([os.path.join(beside, "bench_replays"), task, folder, kernel], check=True)
    replay, worker = os.path.join(folder, "0.json"), os.path.join(beside, "kernelpro-worker")
    full_s, _ = ncu(worker, replay, ["--set", "full"])
    same_s, _ = ncu(worker, replay, ["--metrics", ",".join(metrics)])
    first, later = costs[0], statistics.median(costs[1:])
    print("| %s | %d | %.0f | %.0f | %.2f | %.2f | %.1fx / %.1fx | %.1fx / %.1fx | %.2f |" % (
        name, len(metrics), first, later, full_s, same_s, full_s * 1e3 / first,
        full_s * 1e3 / later, same_s * 1e3 / first, same_s * 1e3 / later, whole_s), flush=True)


def sized(program, kernelbench, columns):
    """ReLU with a number of columns: (GB of tensors, ms of the first evidence, ms of the kernel)."""
    _, verdicts = evaluate(program, [
        os.path.join(kernelbench, RELU), os.path.join(HERE, "kernelbench", "speed", "relu.cu"),
        "--set", "batch_size=4096", "--set", "dim=%d" % columns])
    verdict = verdicts[0]
    if verdict["outcome"] != "correct":
        sys.exit("relu: " + verdict["reason"])
    print("| ReLU, 4096 x %d | %.3f | %d | %.0f | %.2f |" % (
        columns, 2 * 4096 * columns * 4 / 1e9, len(counted(verdict)),
        verdict["phases_ms"]["evidence"], verdict["time_us"] / 1e3), flush=True)
    return verdict["phases_ms"]["evidence"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kernels", nargs="*", default=KERNELS)
    parser.add_argument("--kernelpro", default="build/release/bin/kernelpro")
    parser.add_argument("--kernelbench", help="a checkout; else sizes are not compared")
    arguments = parser.parse_args()
    program = os.path.abspath(arguments.kernelpro)
    print("| kernel | counters | first, ms | later, ms | ncu --set full, s | ncu, same metrics, s "
          "| full / ours (first / later) | same / ours | evaluate x4, s |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    for name in arguments.kernels:
        with tempfile.TemporaryDirectory() as folder:
            one(program, folder, name)
    if arguments.kernelbench:
        print("\n| task | GB | counters | evidence, ms | kernel, ms |\n|---|---|---|---|---|")
        small = sized(program, arguments.kernelbench, 256)
        large = sized(program, arguments.kernelbench, 262144)
        print("\nlarge / small: %.2f" % (large / small))


if __name__ == "__main__":
    main()
