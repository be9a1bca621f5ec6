#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the runs of bench/ablation/generations.py have reached: the best of each task, as a table.

    bench/ablation/generations.py recall DIR --archive bench/kernelbench/open.tar.xz
    bench/kernelbench/standing.py DIR [--only 1-18,2-2]

The best is the fastest of those with the fewest labels that rank lower, over all arms of a task. `written`
counts sources, not settings that the tuner tried.
"""
import argparse
import json
import os
import sys

from table import micro

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "ablation"))
from ablation import call, geometric, share, ROOT  # noqa: E402
from generations import measured, runs, LOWERED  # noqa: E402


class Task:
    """What all runs of a task have evaluated."""

    def __init__(self, options, paths):
        self.start, self.generations, self.written, self.right = 0, 0, {}, []
        for run in paths:
            self.generations = max(self.generations, measured(run))
            out, _ = call(options, "show", run, "--json")
            for each in json.loads(out)["candidates"]:
                self.add(each)
        self.best = min(self.right, default=None, key=lambda each: (len(set(labels(each)) & LOWERED), -each["speedup"]["ratio"]))
        self.failed = sum(outcome != "correct" for outcome in self.written.values())

    def add(self, each):
        if each["proposer"] == "start":
            self.start = each.get("time_us") or 0
            return
        if not each.get("evaluated"):
            return
        if each["proposer"] != "tuner":
            self.written[each["hash"]] = each["outcome"]  # arms share what came before
        if each["outcome"] == "correct" and each.get("speedup"):
            self.right.append(each)

    def cells(self):
        found = ["", "", ""]
        if self.best:
            gain = self.best["speedup"]
            digits = 2 if gain["ratio"] < 10 else 1
            found = [micro(self.best["time_us"]),
                     f"{gain['ratio']:.{digits}f}x [{gain['low']:.{digits}f}, {gain['high']:.{digits}f}]",
                     f"{100 * share(self.best):.0f} %"]
        return [micro(self.start), *found, str(self.generations), str(len(self.written)), str(self.failed),
                ", ".join(labels(self.best)) if self.best else ""]


def labels(each):
    return ((each.get("evaluation") or {}).get("outcome") or {}).get("labels") or []


def level(name):
    return f"level {name[0]}" if name[0].isdigit() else "others"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--only", default="", help="tasks, by their folders' names, separated by commas")
    parser.add_argument("--kernelpro", default=os.path.join(ROOT, "build/release/bin/kernelpro"))
    options = parser.parse_args()
    paths = {}
    for name, _, run in runs(options):
        paths.setdefault(name, []).append(run)
    tasks = {name: Task(options, some) for name, some in paths.items()}
    print("| task | start | best | over the start [95 %] | of the speed of light | generations | written | failed | labels |")
    print("|---" * 9 + "|")
    for name, task in tasks.items():
        title = name.replace("-", "/", 1) if name[0].isdigit() else name
        print("| " + " | ".join([title, *task.cells()]) + " |")
    reached = [(level(name), task.best) for name, task in tasks.items() if task.best]
    within = [(each, best) for each, best in reached if "above-measured-ceiling" not in labels(best)]
    for what, some in (("", reached), (", without what is above its ceiling", within)):
        means = []
        for each in sorted({each for each, _ in some}):
            gains = [best["speedup"]["ratio"] for other, best in some if other == each]
            means.append(f"{each} {geometric(gains):.2f}x ({len(gains)})")
        print(f"\nGeometric means over the start{what}: " + ", ".join(means))


if __name__ == "__main__":
    sys.exit(main())
