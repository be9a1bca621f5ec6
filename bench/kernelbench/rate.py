#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tasks an hour on one GPU and on several: recorded runs of bench/ablation/generations.py, measured again.

    bench/ablation/generations.py recall DIR --archive bench/kernelbench/open.tar.xz
    bench/kernelbench/rate.py DIR --gpus 2 --only 1-18,2-12     # GPU

Replays the start of each task's `diagnosed` run and the kernels that followed it, up to --evaluations, and
confirms the best; no writer is waited for. --each runs at a time on each GPU, first on one GPU, then on all.
"""
import argparse
import copy
import os
import shutil
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "ablation"))
from ablation import call, side_by_side, ROOT  # noqa: E402
from generations import runs  # noqa: E402


def measure(options, items, gpus):
    """Seconds that all items take, with an empty build cache, and what went wrong."""
    options = copy.copy(options)
    options.gpus, wrong = gpus, []
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["KERNELPRO_CACHE"] = os.path.join(scratch, "cache")

        def one(item, gpu):
            name, _, run = item
            _, problem = call(options, "optimize", os.path.join(options.folder, name, "task.py"), "--proposer", "replay",
                              "--from", run, "--run", os.path.join(scratch, name), "--target", "cuda", "--no-record",
                              "--evaluations", str(options.evaluations), "--near-ceiling", "0", *options.extra,
                              gpu=gpu[-1] if gpu else "0", seconds=600)
            if problem:
                wrong.append(f"{name}: {problem}")
        begun = time.monotonic()
        if None in side_by_side(options, lambda item, gpu: one(item, gpu) or True, items, options.each):
            sys.exit("Interrupted.")
        return time.monotonic() - begun, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--only", default="", help="tasks, by their folders' names, separated by commas, in this order")
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--each", type=int, default=2, help="runs at a time on each GPU")
    parser.add_argument("--evaluations", type=int, default=3, help="of each run, with its start")
    parser.add_argument("--extra", action="append", default=[], help="a further option, as --extra=--profile=off")
    parser.add_argument("--kernelpro", default=os.path.join(ROOT, "build/release/bin/kernelpro"))
    options = parser.parse_args()
    options.until = float("inf")
    items = [item for item in runs(options) if item[1] == "diagnosed"]
    if not items or shutil.which(options.kernelpro) is None:
        sys.exit("There is no such run, or no program: --only, --kernelpro.")
    print("| GPUs | tasks | seconds | tasks an hour | of one GPU |\n|---|---|---|---|---|")
    first = 0
    for gpus in sorted({1, options.gpus}):
        seconds, wrong = measure(options, items, gpus)
        if wrong:
            sys.exit("There is no rate, since these failed:\n" + "\n".join(wrong))
        first = first or seconds
        print(f"| {gpus} | {len(items)} | {seconds:.0f} | {3600 * len(items) / seconds:.0f} | {first / seconds:.2f} |", flush=True)


if __name__ == "__main__":
    main()
