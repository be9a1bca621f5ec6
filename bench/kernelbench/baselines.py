#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Remeasures some of the baselines of a suite's tasks at fp32, prints them next to the stored ones,
and writes them into the suite. Needs a GPU; each task runs in a separate process.

    bench/kernelbench/baselines.py SUITE --kernelbench CHECKOUT [--kinds eager,graph] [--keep]
"""
import argparse
import glob
import json
import math
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(HERE, "..", "..", "python"))


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


def measure(path, kinds):
    """Runs in a separate process: times each kind, in the form of a suite's baselines.json."""
    from kernelpro_torch.baseline import Baseline
    from kernelpro_torch.channel import Refusal

    baseline = Baseline("cuda")
    with open(path, encoding="utf-8") as file:
        command = {"source": file.read(), "path": path, "dims": {}, "precision": "fp32"}
    for kind in kinds:
        entry = {"name": kind, "error": "", "case": "full", "method": "", "median_us": 0.0,
                 "low_us": 0.0, "high_us": 0.0, "samples": 0}
        try:
            answer = baseline.time(dict(command, kind=kind))
        except Refusal as refusal:
            entry["error"] = str(refusal)
        else:
            low, median, high = interval(answer["times"])
            entry.update(method=answer["method"], median_us=median, low_us=low, high_us=high,
                         samples=len(answer["times"]))
        print("baseline " + json.dumps(entry), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suite")
    parser.add_argument("--kernelbench", required=True, help="a checkout of KernelBench")
    parser.add_argument("--kinds", default="eager,graph")
    parser.add_argument("--keep", action="store_true", help="write nothing into the suite")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    kinds = options.kinds.split(",")
    if options.one:
        return measure(options.one, kinds)
    failed = False
    with open(os.path.join(options.suite, "suite.json"), encoding="utf-8") as file:
        tasks = json.load(file)["tasks"]
    print("| task | " + " | ".join(f"{kind}, was | {kind}, is" for kind in kinds) + " |")
    print("|---" * (1 + 2 * len(kinds)) + "|")
    for task in tasks:
        label = f"{task['level']}/{task['number']}"
        found = glob.glob(os.path.join(options.kernelbench, "KernelBench", f"level{task['level']}",
                                       f"{task['number']}_*.py"))
        kept = glob.glob(os.path.join(options.suite, "*", task["name"], "baselines.json"))
        if len(found) != 1 or not kept:
            print(f"| {label} | no file in the checkout, or no baselines in the suite |")
            failed = True
            continue
        run = subprocess.run([sys.executable, __file__, options.suite, "--kernelbench",
                              options.kernelbench, "--kinds", options.kinds, "--one", found[0]],
                             capture_output=True, text=True, timeout=300, check=False)
        new = {}
        for line in run.stdout.splitlines():
            if line.startswith("baseline "):
                entry = json.loads(line[len("baseline "):])
                new[entry["name"]] = entry
        cells = []
        for path in kept:
            with open(path, encoding="utf-8") as file:
                text = json.load(file)
            for i, old in enumerate(text["baselines"]):
                if old["name"] not in new:
                    continue
                cells += [f"{old['median_us']:.1f} us",
                          new[old["name"]]["error"] or f"{new[old['name']]['median_us']:.1f} us"]
                if not new[old["name"]]["error"]:
                    text["baselines"][i] = new[old["name"]]
            if not options.keep:
                with open(path, "w", encoding="utf-8") as file:
                    json.dump(text, file, separators=(",", ":"))
        if len(new) < len(kinds) or any(entry["error"] for entry in new.values()):
            failed = True
            print(run.stderr[-1000:], file=sys.stderr)
        print(f"| {label} | " + " | ".join(cells) + " |", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
