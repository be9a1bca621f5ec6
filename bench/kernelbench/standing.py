#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the runs of bench/ablation/generations.py have reached: the best of each task, as a table.

    bench/ablation/generations.py recall DIR --archive bench/kernelbench/open.tar.xz
    bench/kernelbench/standing.py DIR [--only 1-18,2-2] [--without 2-72]

The best is the fastest of those with the fewest labels that rank lower, over all arms of a task; it counts
as confirmed in fresh processes if the run has it confirmed. `written` counts sources, not settings that
the tuner tried. PyTorch's own times are those of bench/kernelbench/baselines.py.
"""
import argparse
import json
import os
import sqlite3
import statistics
import sys

from baselines import read
from table import micro, times

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "ablation"))
from ablation import call, geometric, share, ROOT  # noqa: E402
from generations import best, measured, rank, runs  # noqa: E402

# Of PyTorch at the task's precision, then with TF32, which the kernels do not have.
BASELINES = {"eager": ("fp32", "eager"), "CUDA graph": ("fp32", "graph"), "torch.compile": ("fp32", "compile"),
             "max-autotune": ("fp32", "max-autotune"), "eager, TF32": ("tf32", "eager"),
             "CUDA graph, TF32": ("tf32", "graph"), "torch.compile, TF32": ("tf32", "compile")}


def labels(each):
    return each["evaluation"]["outcome"].get("labels") or []


class Task:
    """What all runs of a task have reached and cost."""

    def __init__(self, options, folder, paths):
        self.name = ""
        self.start_us, self.generations, self.written, self.best, self.confirmed = 0, 0, {}, None, False
        self.evaluations, self.seconds, self.characters = 0, 0.0, 0
        for run in paths:
            out, _ = call(options, "show", run, "--json")
            shown = json.loads(out)
            self.name = shown["task"]
            for each in shown["candidates"]:
                self.add(each)
            self.generations = max(self.generations, measured(run))
            self.seconds += shown["run_seconds"]
            self.characters += written_characters(run)
            found = best(shown["candidates"])
            if shown["confirmed"] and found:
                sure = shown["best"]
                found = next(each for each in shown["candidates"] if each["id"] == sure["id"]) | {
                    "time_us": sure["time_us"], "fraction": sure["fraction_of_ceiling"], "speedup": {
                        "ratio": sure["speedup"], "low": sure["speedup_low"], "high": sure["speedup_high"]}}
            # What is confirmed before what is not: other arms may share what a confirmation has refused.
            if found and (not self.best or (not shown["confirmed"], rank(found)) < (not self.confirmed, rank(self.best))):
                self.best, self.confirmed = found, shown["confirmed"]
        self.failed = sum(outcome != "correct" for outcome in self.written.values())
        self.baselines = {each: self.baseline(folder, *kind) for each, kind in BASELINES.items()}

    def add(self, each):
        if not each.get("evaluated"):
            return
        self.evaluations += 1
        if each["proposer"] == "start":
            self.start_us = each.get("time_us") or 0
        elif each["proposer"] != "tuner":
            self.written[each["hash"]] = each["outcome"]  # arms share what came before

    def share(self):
        return self.best.get("fraction") or share(self.best)

    @staticmethod
    def baseline(folder, precision, kind):
        """Microseconds; 0 if it was not measured, or failed."""
        return next((each.get("median_us", 0) for each in read(os.path.join(folder, f"baselines.{precision}.json"))
                     if each["name"] == kind), 0)

    def over(self, kind):
        return self.baselines[kind] / self.best["time_us"] if self.baselines[kind] else None

    def cells(self, kinds):
        found = [""] * (3 + len(kinds))
        if self.best:
            gain = self.best["speedup"]
            digits = 2 if gain["ratio"] < 10 else 1
            found = [micro(self.best["time_us"]),
                     f"{gain['ratio']:.{digits}f}x [{gain['low']:.{digits}f}, {gain['high']:.{digits}f}]",
                     *(times(self.over(kind)) for kind in kinds), f"{100 * self.share():.0f} %"]
        return [micro(self.start_us), *found, "yes" if self.confirmed else "no", str(self.generations),
                str(len(self.written)), str(self.failed), ", ".join(labels(self.best)) if self.best else ""]


def written_characters(run):
    """Of requests, each once, and of the replies."""
    with sqlite3.connect(f"file:{run}/store.db?mode=ro", uri=True) as store:
        rows = store.execute("select request, length(prompt), length(reply), prompt from writings").fetchall()
    return sum({(row[0], row[3]): row[1] for row in rows}.values()) + sum(row[2] for row in rows)


def mean(values):
    known = [each for each in values if each]
    return f"{geometric(known):.2f}x" + (f" ({len(known)})" if len(known) < len(values) else "") if known else "-"


def print_means(title, tasks, kinds):
    """A row: geometric means of what the tasks with a kernel have; in brackets of how many, if not of all."""
    gains = [task.best["speedup"]["ratio"] for task in tasks]
    eager = [task.over("eager") or gain for task, gain in zip(tasks, gains)]
    print("| " + " | ".join([
        title, str(len(tasks)), mean(gains), *(mean([task.over(kind) for task in tasks]) for kind in kinds),
        f"{100 * geometric([task.share() for task in tasks]):.0f} %",
        mean([gain / task.share() for gain, task in zip(gains, tasks)]),
        f"{sum(each > 1 for each in eager) / len(tasks):.2f}", f"{sum(each > 2 for each in eager) / len(tasks):.2f}"]) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--only", default="", help="tasks, by their folders' names, separated by commas")
    parser.add_argument("--without", default="", help="tasks left out of a second mean")
    parser.add_argument("--kernelpro", default=os.path.join(ROOT, "build/release/bin/kernelpro"))
    options = parser.parse_args()
    paths = {}
    for name, _, run in runs(options):
        paths.setdefault(name, []).append(run)
    tasks = {name: Task(options, os.path.join(options.folder, name), some) for name, some in paths.items()}
    kinds = [kind for kind in BASELINES if any(task.baselines[kind] for task in tasks.values())]
    head = ["task", "start", "best", "over the start [95 %]", *kinds, "of the speed of light", "confirmed", "generations",
            "written", "failed", "labels"]
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for name, task in tasks.items():
        title = name.replace("-", "/", 1) + " " + task.name.partition("_")[2].replace("_", " ")[:40] if name[0].isdigit() else name
        print("| " + " | ".join([title, *task.cells(kinds)]) + " |")

    reached = {name: task for name, task in tasks.items() if task.best}
    head = ["geometric means", "tasks", "over the start", *kinds, "of the speed of light", "what the ceiling allows",
            "fast_1", "fast_2"]
    print("\n| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    left_out = options.without.split(",")
    for level in sorted({name[0] for name in reached if name[0].isdigit()}):
        some = {name: task for name, task in reached.items() if name[0] == level}
        print_means(f"level {level}", list(some.values()), kinds)
        some = [task for name, task in some.items() if "above-measured-ceiling" not in labels(task.best) and name not in left_out]
        print_means(f"level {level}, without what is above its ceiling"
                    + (f" and {options.without}" if options.without.startswith(level) else ""), some, kinds)
    costs = list(tasks.values())
    print(f"\nA task took, in the median, {statistics.median(t.evaluations for t in costs):.0f} evaluations, "
          f"{statistics.median(t.seconds for t in costs):.0f} s of its runs and {statistics.median(t.characters for t in costs):.0f} "
          f"characters of requests and replies; of {sum(len(t.written) for t in costs)} kernels written {sum(t.failed for t in costs)} failed.")


if __name__ == "__main__":
    sys.exit(main())
