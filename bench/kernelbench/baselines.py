#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own times of the tasks of bench/ablation/generations.py: eager, CUDA graphs, torch.compile.

    bench/kernelbench/baselines.py DIR --gpus 2 --each 4    # --only 1-18,2-2; --kinds eager,graph

Needs a GPU that nothing else uses. Writes DIR/NAME/baselines.fp32.json and .tf32.json of each
DIR/NAME/task.py, which `generations.py keep` keeps and `standing.py` prints. What was measured is not
measured again, what failed is. Each precision of a task has a process, which measures its kinds in turn.
Of the processes that share a GPU one is alone on it while it times; they compile and warm up side by side,
so what max-autotune chose it chose by times taken beside others.
"""
import argparse
import contextlib
import fcntl
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(HERE, "..", "..", "python"))
sys.path.insert(0, os.path.join(HERE, "..", "ablation"))
KINDS = {"fp32": ["eager", "graph", "compile", "max-autotune"], "tf32": ["eager", "graph", "compile"]}


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


class Turns:
    """Whose turn it is on a GPU, by two locks on files. Nobody overtakes a process that waits to be alone."""

    def __init__(self, path):
        self.gate, self.gpu = (open(path + each, "w", encoding="utf-8") for each in (".gate", ".gpu"))  # until it ends

    @contextlib.contextmanager
    def held(self, how):
        fcntl.flock(self.gate, fcntl.LOCK_EX)
        fcntl.flock(self.gpu, how)
        fcntl.flock(self.gate, fcntl.LOCK_UN)
        try:
            yield
        finally:
            fcntl.flock(self.gpu, fcntl.LOCK_UN)

    def beside(self):
        return self.held(fcntl.LOCK_SH)

    def alone(self):
        return self.held(fcntl.LOCK_EX)


@contextlib.contextmanager
def limited(entry, seconds):
    """Ends this process and its compilers after so long, with an entry that says so. Waiting is not counted."""
    def end():
        print("baseline " + json.dumps(entry | {"error": f"no answer in {seconds} s"}), flush=True)
        os.killpg(0, signal.SIGKILL)
    timer = threading.Timer(seconds, end)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def measure(baseline, command, turns, limit):
    """An entry of the file. What the GPU held for this kind is free afterwards."""
    from kernelpro_torch.channel import Refusal

    entry, begun = {"name": command["kind"], "precision": command["precision"], "error": ""}, time.monotonic()
    ready = baseline.ready(command)
    try:
        with turns.beside(), limited(entry, limit):
            calls = ready.__enter__()
        try:
            with turns.alone(), limited(entry, limit):
                times = baseline.measure(calls, 1.0)
        finally:
            with turns.beside():
                del calls
                ready.__exit__(None, None, None)
    except Refusal as refusal:
        return entry | {"error": str(refusal)[:200], "seconds": time.monotonic() - begun}
    low, median, high = interval(times)
    return entry | {"median_us": median, "low_us": low, "high_us": high, "samples": len(times),
                    "seconds": time.monotonic() - begun}


def measure_kinds(options):
    """In a process of its own: a line for each kind."""
    turns = Turns(options.turns)
    with turns.beside():
        from kernelpro_torch.baseline import Baseline
        baseline = Baseline("cuda")
    with open(options.folder, encoding="utf-8") as file:
        command = {"source": file.read(), "path": options.folder, "dims": {}, "precision": options.precision}
    for kind in options.kinds.split(","):
        print("baseline " + json.dumps(measure(baseline, command | {"kind": kind}, turns, options.limit)), flush=True)


def read(path):
    """The baselines in a file, [] if there is none."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return json.load(file)["baselines"]


def one(item, gpu):
    """Measures what is missing of a task at one precision; whether all of it could be."""
    options, folder, precision = item
    path = os.path.join(folder, f"baselines.{precision}.json")
    have = [each for each in read(path) if not each["error"]]
    wanted = set(options.kinds.split(",")) - {each["name"] for each in have}
    kinds = [kind for kind in KINDS[precision] if kind in wanted]
    if not kinds:
        return True
    begun = time.monotonic()
    with subprocess.Popen([sys.executable, __file__, os.path.join(folder, "task.py"), "--kinds", ",".join(kinds),
                           "--precision", precision, "--turns", os.path.join(options.turns, gpu[-1] if gpu else "0"),
                           "--limit", str(options.limit)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
                          env=os.environ | ({"CUDA_VISIBLE_DEVICES": gpu[-1]} if gpu else {})) as running:
        options.running[running.pid] = os.killpg  # its compilers too
        out, said = running.communicate()
        options.running.pop(running.pid)
    new = [json.loads(line[len("baseline "):]) for line in out.splitlines() if line.startswith("baseline ")]
    if len(new) < len(kinds) and not (new and new[-1]["error"]):
        new.append({"name": kinds[len(new)], "precision": precision,
                    "error": said[-300:] or f"the process ended with status {running.returncode}"})
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump({"baselines": have + new}, file, indent=1)
    os.replace(path + ".new", path)
    print(f"{os.path.basename(folder)}, {precision}: " + ", ".join(
        f"{each['name']} {each['error'] or '%.1f us' % each['median_us']}"
        for each in new) + f" in {time.monotonic() - begun:.0f} s", flush=True)
    return not any(each["error"] for each in new)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--only", default="", help="tasks, by their folders' names, separated by commas, in this order")
    parser.add_argument("--precision", choices=KINDS, help="one alone")
    parser.add_argument("--kinds", default=",".join(KINDS["fp32"]))
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--each", type=int, default=1, help="processes at a time on each GPU, of which one times")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin nothing later; call it again")
    parser.add_argument("--limit", type=int, default=240, help="seconds of a kind, besides waiting")
    parser.add_argument("--turns", help="locks of the processes on a GPU; for the processes that this one begins")
    options = parser.parse_args()
    if not set(options.kinds.split(",")) <= set(KINDS["fp32"]):
        parser.error("kinds are " + ", ".join(KINDS["fp32"]))
    if os.path.isfile(options.folder):
        return measure_kinds(options)
    from ablation import RUNNING, side_by_side
    options.running = RUNNING
    options.until = time.monotonic() + options.seconds
    names = options.only.split(",") if options.only else sorted(os.listdir(options.folder))
    items = [(options, os.path.join(options.folder, name), precision)
             for precision in ([options.precision] if options.precision else KINDS)
             for name in names if os.path.exists(os.path.join(options.folder, name, "task.py"))]
    if not items:
        parser.error("no such task in " + options.folder + ": --only")
    with tempfile.TemporaryDirectory() as options.turns:
        return 0 if all(side_by_side(options, one, items, options.each)) else 1


if __name__ == "__main__":
    sys.exit(main())
