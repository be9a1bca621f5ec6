#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the runs of bench/ablation/generations.py have reached: the best of each task, as a table.

    bench/ablation/generations.py recall DIR --archive bench/kernelbench/open.tar.xz
    bench/kernelbench/standing.py DIR [--only 1-18,2-2] [--without 2-72]

The best is the fastest of those with the fewest labels that rank lower, over all arms of a task, or over those
arms alone whose best was confirmed in fresh processes, if there are any. `written` counts sources, not
settings that the tuner tried; fast_1 and fast_2 tasks that are faster, and twice as fast, as eager PyTorch.
PyTorch's own times are those of bench/kernelbench/baselines.py.
"""
import argparse
import contextlib
import glob
import json
import os
import sqlite3
import statistics
import sys

from baselines import read

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "ablation"))
from ablation import call, share, ROOT  # noqa: E402
from gains import geometric, micro, times  # noqa: E402
from generations import CONFIRMED, LOWERED, best, labels, measured, rank, rows_of, runs  # noqa: E402

# Of PyTorch at the task's precision, then with TF32, which the kernels do not have.
BASELINES = {"eager": ("fp32", "eager"), "CUDA graph": ("fp32", "graph"), "torch.compile": ("fp32", "compile"),
             "max-autotune": ("fp32", "max-autotune"), "eager, TF32": ("tf32", "eager"),
             "CUDA graph, TF32": ("tf32", "graph"), "torch.compile, TF32": ("tf32", "compile")}


class Task:
    """What all runs of a task have reached and cost. Arms share what came before they parted."""

    def __init__(self, options, folder, paths):
        self.start_us, self.host_form, self.generations, self.best, self.confirmed = 0, False, 0, None, False
        self.evaluated, self.written, self.exchanged, self.seconds = set(), {}, set(), 0.0
        self.by_generation = {}  # the largest gain over the start of those that keep the whole contract
        for run in paths:
            out, _ = call(options, "show", run, "--json")
            shown = json.loads(out)
            for each in shown["candidates"]:
                self.add(each)
            self.generations = max(self.generations, measured(run))
            self.seconds += shown["run_seconds"]
            self.exchanged |= exchanged(run)
            self.consider(shown)
            self.consider_earlier(options, run, shown)
            for row in rows_of(run, shown):
                if row["outcome"] == "correct" and row["over_start"] and not set(row["labels"]) & LOWERED:
                    most = self.by_generation.get(row["generation"], 0)
                    self.by_generation[row["generation"]] = max(most, row["over_start"])
        self.failed = sum(outcome != "correct" for outcome in self.written.values())
        self.baselines = {each: self.baseline(folder, *kind) for each, kind in BASELINES.items()}

    def consider(self, shown):
        found = best(shown["candidates"])
        sure = shown["best"] if shown["confirmed"] else {"id": 0}
        for each in shown["candidates"]:
            if each["id"] == sure["id"] and each["proposer"] != "start":
                found = each | {"time_us": sure["time_us"], "fraction": sure["fraction_of_ceiling"], "labels": sure["labels"],
                                "speedup": {"ratio": sure["speedup"], "low": sure["speedup_low"], "high": sure["speedup_high"]}}
        # What is confirmed before what is not: other arms may share what a confirmation has refused.
        if found and (not self.best or (not shown["confirmed"], rank(found)) < (not self.confirmed, rank(self.best))):
            self.best, self.confirmed = found, shown["confirmed"]

    def consider_earlier(self, options, run, shown):
        """Where nothing was faster since a run was confirmed, its confirmation still holds."""
        before, found = f"{run}.{CONFIRMED}.jsonl", best(shown["candidates"])
        if found and not shown["confirmed"] and os.path.exists(before):
            out, _ = call(options, "show", before, "--json")
            earlier = json.loads(out)
            if earlier["best"]["id"] == found["id"]:
                self.consider(earlier)

    def add(self, each):
        if not each.get("evaluated"):
            return
        self.evaluated.add(each["hash"])
        if each["proposer"] == "start":
            self.start_us, self.host_form = each.get("time_us") or 0, "host-form" in labels(each)
        elif each["proposer"] != "tuner":
            self.written[each["hash"]] = each["outcome"]

    def share(self):
        return self.best.get("fraction") or share(self.best)

    @staticmethod
    def baseline(folder, precision, kind):
        """Microseconds; 0 if it was not measured, or failed."""
        return next((each.get("median_us", 0) for each in read(os.path.join(folder, f"baselines.{precision}.json"))
                     if each["name"] == kind), 0)

    def path(self):
        """The largest gain over the start up to each generation; 0 up to the first that has one."""
        return [max((gain for when, gain in self.by_generation.items() if when <= generation), default=0)
                for generation in range(1, self.generations + 1)]

    def over(self, kind):
        return self.baselines[kind] / self.best["time_us"] if self.baselines[kind] else None

    def cells(self, kinds):
        found = [""] * (3 + len(kinds))
        if self.best:
            gain = self.best["speedup"]
            found = [micro(self.best["time_us"]),
                     f"{times(gain['ratio'])} [{', '.join(times(gain[end]).rstrip('x') for end in ('low', 'high'))}]",
                     *(times(self.over(kind)) for kind in kinds), f"{100 * self.share():.0f} %"]
        return [micro(self.start_us) + ("*" if self.host_form else ""), *found, "yes" if self.confirmed else "no", str(self.generations),
                str(len(self.written)), str(self.failed), ", ".join(labels(self.best)) if self.best else ""]


def exchanged(run):
    """Requests and replies, each once."""
    with contextlib.closing(sqlite3.connect(f"file:{run}/store.db?mode=ro", uri=True)) as store:
        return {text for text, in store.execute("select prompt from writings union select reply from writings")}


def mean(values):
    """Of those that are known; in brackets how many, if not all."""
    known = [each for each in values if each]
    return f"{geometric(known):.2f}x" + (f" ({len(known)})" if len(known) < len(values) else "") if known else "-"


def means(words, tasks, kinds):
    """The cells of a row, of tasks with a kernel. What a start in host form takes is no measure of the module."""
    paired = [0 if task.host_form else task.best["speedup"]["ratio"] for task in tasks]
    gains, shares = [task.over("eager") or task.best["speedup"]["ratio"] for task in tasks], [task.share() for task in tasks]
    return [words, str(len(tasks)), mean(paired), *(mean([task.over(kind) for task in tasks]) for kind in kinds),
            f"{100 * geometric([each for each in shares if each]):.0f} %",
            mean([gain / each if each else 0 for gain, each in zip(gains, shares)]),
            *(f"{sum(gain > least for gain in gains) / len(tasks):.2f}" for least in (1, 2))]


def title(options, name):
    """"1/18 Matmul with transposed both" by the file's name in a checkout of KernelBench, or "1/18"."""
    if not name[0].isdigit():
        return name
    level, number = name.split("-")
    found = glob.glob(os.path.join(options.kernelbench, "KernelBench", "level" + level, number + "_*.py"))
    words = os.path.basename(found[0]).removesuffix(".py").split("_")[1:] if found else []
    return " ".join([f"{level}/{number}", *words])[:46].strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--only", default="", help="tasks, by their folders' names, separated by commas")
    parser.add_argument("--without", default="", help="tasks left out of a second mean")
    parser.add_argument("--kernelbench", default="", help="a checkout, for the tasks' names")
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
        print("| " + " | ".join([title(options, name), *task.cells(kinds)]) + " |")

    paths = {name: path for name, path in ((name, task.path()) for name, task in tasks.items())
             if sum(gain > 0 for gain in path) > 1}
    if paths:
        last = {name: path[-1] / next(gain for gain in path if gain) for name, path in paths.items()}
        print("\n| task | best over the start after each generation | last over first |\n|---|---|---|")
        for name, path in paths.items():
            print(f"| {title(options, name)} | {', '.join(times(gain or None) for gain in path)} | {times(last[name])} |")
        gains = [gain for name, gain in last.items() if name[0].isdigit()] or list(last.values())
        print(f"\nOf {len(gains)} tasks of the suite, {sum(gain > 1.02 for gain in gains)} gained more than 2 %; "
              f"in the geometric mean all gained {geometric(gains):.2f}x.")
    if any(task.host_form for task in tasks.values()):
        print("\n`*`: in host form, timed from outside the process.")

    head = ["geometric means", "tasks", "over the start", *kinds, "of the speed of light", "what the ceiling allows",
            "fast_1", "fast_2"]
    print("\n| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    left_out = set(options.without.split(",")) - {""}
    suite = {name: task for name, task in tasks.items() if name[0].isdigit()}
    for level in sorted({name[0] for name in suite}):
        some = {name: task for name, task in suite.items() if name[0] == level and task.best}
        within = [task for name, task in some.items() if "above-measured-ceiling" not in labels(task.best) and name not in left_out]
        also = "".join(f" and {name.replace('-', '/')}" for name in sorted(left_out & set(some)))
        for words, chosen in ((f"level {level}", list(some.values())),
                              (f"level {level}, without what is above its ceiling{also}", within)):
            if chosen:
                print("| " + " | ".join(means(words, chosen, kinds)) + " |")
    if suite:
        costs = list(suite.values())
        print(f"\nA task took, in the median, {statistics.median(len(t.evaluated) for t in costs):.0f} evaluations, "
              f"{statistics.median(t.seconds for t in costs):.0f} s of its runs and "
              f"{statistics.median(sum(map(len, t.exchanged)) for t in costs):.0f} characters of requests and replies; "
              f"of {sum(len(t.written) for t in costs)} kernels written {sum(t.failed for t in costs)} failed.")


if __name__ == "__main__":
    sys.exit(main())
