#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Verdicts side by side: KernelBench's eval_kernel_against_ref (5 correctness trials) and
`kernelpro evaluate --policy kernelbench` on the kernels of verdicts/kernels.py. Needs a GPU.

    bench/kernelbench/verdicts.py --kernelbench CHECKOUT [--kernelpro PROGRAM] [--tasks relu,sum]

Prints a table and exits 1 on a disagreement without a reason in the table, or when KernelBench's
verdict is not the one that kernels.py expects.
"""

import argparse
import collections
import concurrent.futures
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "verdicts")]
sys.dont_write_bytecode = True

import harness
import kernels as table


PART = 6  # kernels of one task per program


def kernelpro_verdicts(options, checkout, groups):
    """(task, precision) -> [verdict of each kernel]. Several programs run at once: most of their time
    is the import of PyTorch, and the GPU has one user at a time anyway."""
    parts = [(key, kernels[i:i + PART]) for key, kernels in groups.items()
             for i in range(0, len(kernels), PART)]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        verdicts = list(pool.map(lambda part: kernelpro_part(options, checkout, *part), parts))
    found = {key: [] for key in groups}
    for (key, _), some in zip(parts, verdicts):
        found[key] += some
    return found


def kernelpro_part(options, checkout, key, kernels):
    task, precision = key
    with tempfile.TemporaryDirectory() as folder:
        path = write(folder, f"{task}.py", source_of(checkout, task))
        files = [write(folder, f"kernel{i}.py", k.source) for i, k in enumerate(kernels)]
        command = [options.kernelpro, "evaluate", path, *files, "--target", "cuda", "--policy",
                   "kernelbench", "--precision", precision, "--json"]
        done = subprocess.run(command, capture_output=True, text=True)
    try:
        answers = json.loads(done.stdout)
    except ValueError:
        error = done.stderr.strip() or done.stdout.strip() or f"exit {done.returncode}"
        return [("error", error[-300:])] * len(kernels)
    answers = answers if isinstance(answers, list) else [answers]
    return [(a.get("outcome", "?"), a.get("rule") or a.get("reason") or "") for a in answers]


def kernelbench_verdict(evaluation, source, kernel):
    import torch

    precision = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            result = evaluation.eval_kernel_against_ref(
                source, kernel.source, num_correct_trials=5, measure_performance=False,
                backend=kernel.backend, precision=precision[kernel.precision],
                device=torch.device("cuda:0"))
    except Exception as error:  # the kernel broke KernelBench's harness: no pass
        return False, type(error).__name__
    if result is None:
        return False, "no result"
    return bool(result.correctness), "" if result.compiled else "does not compile"


def source_of(checkout, task):
    name, sizes, *_ = table.TASKS[task]
    return harness.task_source(checkout, name, sizes)


def write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w") as file:
        file.write(text)
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernelbench", required=True, help="a checkout")
    parser.add_argument("--kernelpro", default="kernelpro", help="the program")
    parser.add_argument("--tasks", default=",".join(table.TASKS), help="some of them")
    parser.add_argument("--jobs", type=int, default=6, help="programs at once")
    options = parser.parse_args()

    wanted = options.tasks.split(",")
    groups = collections.OrderedDict()
    for kernel in table.all_kernels():
        if kernel.task in wanted:
            groups.setdefault((kernel.task, kernel.precision), []).append(kernel)

    begin = time.perf_counter()
    ours = kernelpro_verdicts(options, options.kernelbench, groups)
    middle = time.perf_counter()
    evaluation, stubbed = harness.load(options.kernelbench)

    print(f"{'task':10} {'kernel':52} {'KernelBench':12} {'KernelPro':16} agree")
    total = agreed = explained = bad = 0
    for key, kernels in groups.items():
        source = source_of(options.kernelbench, key[0])
        for kernel, (outcome, detail) in zip(kernels, ours[key]):
            theirs, why = kernelbench_verdict(evaluation, source, kernel)
            same = theirs == (outcome == "correct") and outcome != "error"
            total += 1
            agreed += same
            remark = "yes" if same else f"NO: {(detail.splitlines() or [''])[0][:100]}"
            if not same and kernel.why and outcome != "error":
                explained += 1
                remark = f"no: {kernel.why}"
            elif not same:
                bad += 1
            if theirs != kernel.right:
                bad += 1
                remark += f"; KernelBench was expected to say {kernel.right}"
            print(f"{kernel.task:10} {kernel.name[:52]:52} "
                  f"{('right' if theirs else why or 'wrong')[:12]:12} {outcome:16} {remark}")
    end = time.perf_counter()
    print(f"\n{total} kernels: {agreed} verdicts agree, {explained} differ for a stated reason, "
          f"{total - agreed - explained} differ without one")
    print(f"time: KernelPro {middle - begin:.1f} s ({options.jobs} at once), KernelBench {end - middle:.1f} s (one process)")
    if stubbed:
        print("not installed, and replaced by empty modules for KernelBench's imports: "
              + ", ".join(stubbed))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
