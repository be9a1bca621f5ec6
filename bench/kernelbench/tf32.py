#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""KernelBench at TF32's tolerance, for PyTorch and for the kernels: a table and geometric means.

    bench/ablation/generations.py recall STRICT --archive bench/kernelbench/open.tar.xz
    bench/ablation/generations.py recall TF32 --archive bench/kernelbench/tf32.tar.xz
    bench/kernelbench/tf32.py STRICT TF32 [--without 2-72] [--recurrent 3-38,...] [--kernelbench CHECKOUT]

TF32 has runs of some tasks under that contract (`begin TF32 --after STRICT`), each of which began with the
best kernel of STRICT. A task's kernel is that of its run under TF32, if it is faster or the same kernel
measured again, else that of STRICT: what keeps fp32's precision keeps TF32's. PyTorch's times are the
faster of those of bench/kernelbench/baselines.py with and without TF32 (`*`: only without was timed).
"""
import argparse
import os
import sys

from standing import Task, mean, title

from ablation import ROOT  # noqa: E402  (standing.py knows where they are)
from gains import micro, times  # noqa: E402
from generations import labels, rank, runs  # noqa: E402

KINDS = ("eager", "CUDA graph", "torch.compile")


class AtTf32:
    """A task's best kernel where TF32 is allowed, and PyTorch's times there."""

    def __init__(self, options, name, strict_runs, tf32_runs):
        strict = Task(options, os.path.join(options.strict, name), strict_runs)
        own = Task(options, os.path.join(options.tf32, name), tf32_runs) if tf32_runs else None
        own = own if own and own.best else None
        again = bool(own) and own.best["proposer"] == "seed"  # what the run began with
        chosen = own if own and (again or self.order(own) < self.order(strict)) else strict
        self.best, self.confirmed, self.has_run = chosen.best, chosen.confirmed, bool(own)
        self.written_for = "TF32" if chosen is own and not again else "fp32"
        # In turn with the module where TF32 is allowed; a start in host form is no measure of it.
        self.paired = own.best["speedup"] if chosen is own and not own.host_form else None
        self.pytorch = {}
        for kind in KINDS:
            known = [task.baselines[each] for task in (strict, own) if task for each in (kind, kind + ", TF32")]
            self.pytorch[kind] = min((us for us in known if us), default=0)
        self.measured = any(task.baselines["eager, TF32"] for task in (strict, own) if task)

    @staticmethod
    def order(task):
        return rank(task.best)[0], task.best["time_us"]

    def over(self, kind):
        return self.pytorch[kind] / self.best["time_us"] if self.pytorch[kind] else None

    def cells(self):
        gain = self.paired
        eager = micro(self.pytorch["eager"]) + ("" if self.measured else "*") if self.pytorch["eager"] else "-"
        return [eager, micro(self.best["time_us"]), self.written_for,
                f"{times(gain['ratio'])} [{', '.join(times(gain[end]).rstrip('x') for end in ('low', 'high'))}]" if gain else "-",
                *(times(self.over(kind)) for kind in KINDS), "yes" if self.confirmed else "no", ", ".join(labels(self.best))]


def row_of_means(words, tasks):
    known = [gain for gain in (task.over("eager") for task in tasks) if gain]
    return [words, str(len(tasks)), *(mean([task.over(kind) for task in tasks]) for kind in KINDS),
            *(f"{sum(gain > least for gain in known) / len(known):.2f}" if known else "-" for least in (1, 2))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("strict")
    parser.add_argument("tf32")
    parser.add_argument("--only", default="", help="tasks, by their folders' names, separated by commas")
    parser.add_argument("--without", default="", help="tasks left out of a second mean")
    parser.add_argument("--recurrent", default="", help="tasks left out of a third: in eager PyTorch, their time is the host's")
    parser.add_argument("--every", action="store_true", help="list tasks without a run under TF32, too")
    parser.add_argument("--kernelbench", default="", help="a checkout, for the tasks' names")
    parser.add_argument("--kernelpro", default=os.path.join(ROOT, "build/release/bin/kernelpro"))
    options = parser.parse_args()
    found = {"strict": {}, "tf32": {}}
    for which in ("strict", "tf32"):
        for name, _, run in runs(options, getattr(options, which)):
            found[which].setdefault(name, []).append(run)
    tasks = {name: AtTf32(options, name, some, found["tf32"].get(name, []))
             for name, some in found["strict"].items() if name[0].isdigit()}
    head = ["task", "eager", "best", "written for", "in turn with the module [95 %]", *("over " + kind for kind in KINDS), "confirmed",
            "labels"]
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for name, task in tasks.items():
        if task.has_run or options.every:
            print("| " + " | ".join([title(options, name), *task.cells()]) + " |")
    head = ["geometric means", "tasks", *("over " + kind for kind in KINDS), "fast_1", "fast_2"]
    print("\n| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    left_out, recurrent = set(options.without.split(",")), set(options.recurrent.split(","))
    for level in sorted({name[0] for name in tasks}):
        every = {name: task for name, task in tasks.items() if name[0] == level}
        within = {name: task for name, task in every.items()
                  if "above-measured-ceiling" not in labels(task.best) and name not in left_out}
        also = "".join(f" and {name.replace('-', '/')}" for name in sorted(left_out & set(every)))
        plain = {name: task for name, task in within.items() if name not in recurrent}
        for words, some in ((f"level {level}", every), (f"level {level}, without what is above its ceiling{also}", within),
                            (f"level {level}, and without recurrent networks", plain if plain != within else {})):
            if some:
                print("| " + " | ".join(row_of_means(words, list(some.values()))) + " |")


if __name__ == "__main__":
    sys.exit(main())
