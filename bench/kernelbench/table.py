#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints a suite as the table of results/kernelbench.md, with geometric means over the baselines.

    kernelpro bench --out DIR; bench/kernelbench/table.py DIR/report.json [--without 2/44,2/72]
"""
import argparse
import json
import math
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "ablation"))
from gains import micro, times  # noqa: E402

BASELINES = ["eager", "graph", "compile", "max-autotune"]


def over(task, name):
    for each in task["baselines"]["baselines"]:
        if each["name"] == name and not each["error"] and each["median_us"] > 0:
            return each["median_us"] / task["best_us"]
    return None


def row(task):
    digits = 2 if task["speedup"] < 10 else 1
    low, high = task["speedup_low"], task["speedup_high"]
    name = task["task"].split("_", 1)[-1].replace("_", " ").strip()[:46].strip()
    cells = [f"{task['label']} {name}", micro(task["start_us"]), micro(task["best_us"]),
             f"{task['speedup']:.{digits}f}x [{low:.{digits}f}, {high:.{digits}f}]"]
    cells += [times(over(task, name)) for name in BASELINES]
    cells += [f"{100 * task['fraction_of_speed_of_light']:.0f} %", str(task["evaluations"] - 1),
              str(task["failed"])]
    return "| " + " | ".join(cells) + " |"


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("report")
    parser.add_argument("--without", default="", help="labels left out of a second mean")
    options = parser.parse_args()
    with open(options.report, encoding="utf-8") as file:
        tasks = [task for task in json.load(file)["tasks"] if task["correct"]]
    print("| task | start | best | over the start [95 %] | over eager | CUDA graph | torch.compile "
          "| max-autotune | of the speed of light | evaluated | wrong or failed |")
    print("|---" * 11 + "|")
    for task in tasks:
        print(row(task))
    left_out = set(options.without.split(",")) - {""}
    for text, some in (("all", tasks), (f"without {options.without}",
                                        [t for t in tasks if t["label"] not in left_out])):
        if text != "all" and not left_out:
            continue
        print(f"\n{text}: over the start {mean([t['speedup'] for t in some]):.2f}x", end="")
        for name in BASELINES:
            ratios = [r for r in (over(t, name) for t in some) if r is not None]
            print(f", {name} {mean(ratios):.2f}x ({len(ratios)})", end="")
        print()


if __name__ == "__main__":
    main()
