#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own times of the tasks of bench/ablation/generations.py: eager, CUDA graphs, torch.compile.

    bench/kernelbench/baselines.py DIR [--only 1-18,2-2] [--gpus 2 --each 3] [--seconds 300]

Needs a GPU. Writes DIR/NAME/baselines.json of each DIR/NAME/task.py, which `generations.py keep` keeps
and `standing.py` prints; what is there is not measured again. Each precision of a task has a process
that measures its kinds in turn. Compilers and first calls of several processes share a GPU; times are
taken by one at a time. max-autotune, which times kernels to choose them, may so have chosen on a busy
GPU; --each 1 avoids that.
"""
import argparse
import fcntl
import json
import math
import os
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(HERE, "..", "..", "python"))
sys.path.insert(0, os.path.join(HERE, "..", "ablation"))
KINDS = {"fp32": "eager,graph,compile,max-autotune", "tf32": "eager,graph,compile"}


def interval(times):
    """(low, median, high): order statistics that contain the median with at least 95 % confidence."""
    times, n = sorted(times), len(times)
    rank, tail = 0, 0.0
    while rank < n // 2:
        tail += math.comb(n, rank) / 2 ** n
        if 2 * tail > 0.05:
            break
        rank += 1
    low = max(rank - 1, 0)
    return times[low], (times[(n - 1) // 2] + times[n // 2]) / 2, times[n - 1 - low]


def measure(options):
    """In a process of its own: a line for each kind."""
    from kernelpro_torch.baseline import Baseline
    from kernelpro_torch.channel import Refusal

    baseline = Baseline("cuda")
    with open(options.folder, encoding="utf-8") as file:
        command = {"source": file.read(), "path": options.folder, "dims": {}, "precision": options.precision}
    for kind in options.kinds.split(","):
        entry = {"name": kind, "precision": options.precision, "error": ""}
        begun = time.monotonic()
        try:
            with baseline.ready(dict(command, kind=kind)) as calls, open(options.lock, "w", encoding="utf-8") as turn:
                fcntl.flock(turn, fcntl.LOCK_EX)
                times = baseline.measure(calls, 1.0)
        except Refusal as refusal:
            entry["error"] = str(refusal)[:200]
        else:
            low, median, high = interval(times)
            entry |= {"median_us": median, "low_us": low, "high_us": high, "samples": len(times)}
        print("baseline " + json.dumps(entry | {"seconds": time.monotonic() - begun}), flush=True)


def read(path):
    """The measured baselines of a task, [] if there are none."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return json.load(file)["baselines"]


def one(item, gpu):
    """Measures what is missing of a task at one precision: (what it said)."""
    options, folder, precision = item
    path = os.path.join(folder, f"baselines.{precision}.json")
    have = read(path)
    wanted = set(options.kinds.split(",")) - {each["name"] for each in have}
    kinds = [kind for kind in KINDS[precision].split(",") if kind in wanted]
    if not kinds:
        return
    number = gpu[-1] if gpu else "0"
    begun = time.monotonic()
    with subprocess.Popen([sys.executable, __file__, os.path.join(folder, "task.py"), "--kinds", ",".join(kinds),
                           "--precision", precision, "--lock", os.path.join(options.folder, f"gpu{number}.lock")],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
                          env=os.environ | {"CUDA_VISIBLE_DEVICES": number}) as running:
        try:
            out, said = running.communicate(timeout=options.limit)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)  # its compilers too
            out, said = running.communicate()
    new = [json.loads(line[len("baseline "):]) for line in out.splitlines() if line.startswith("baseline ")]
    if len(new) < len(kinds):
        new.append({"name": kinds[len(new)], "precision": precision,
                    "error": f"no answer in {options.limit} s" if running.returncode < 0 else said[-300:]})
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"baselines": have + new}, file, indent=1)
    print(f"{os.path.basename(folder)}, {precision}: " + ", ".join(
        f"{each['name']} {each['error'] or '%.1f us' % each['median_us']}" for each in new)
        + f" in {time.monotonic() - begun:.0f} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--only", default="", help="tasks, by their folders' names, separated by commas, in this order")
    parser.add_argument("--precisions", default="fp32,tf32")
    parser.add_argument("--kinds", default=KINDS["fp32"])
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--each", type=int, default=1, help="processes at a time on each GPU; they take times in turn")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin nothing later; call it again")
    parser.add_argument("--limit", type=int, default=240, help="seconds of a process")
    for hidden in ("--precision", "--lock"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.lock:
        return measure(options)
    from ablation import side_by_side
    options.until = time.monotonic() + options.seconds
    names = options.only.split(",") if options.only else sorted(os.listdir(options.folder))
    items = [(options, os.path.join(options.folder, name), precision) for precision in options.precisions.split(",")
             for name in names if os.path.exists(os.path.join(options.folder, name, "task.py"))]
    side_by_side(options, one, items, options.each)
    return 0


if __name__ == "__main__":
    sys.exit(main())
