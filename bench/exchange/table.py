# SPDX-License-Identifier: Apache-2.0
"""Prints the table of results/exchange.md from the recorded runs.

    python3 bench/exchange/table.py [--kernelpro PROGRAM] [RUN...]      default: results/exchange/*.jsonl

Ratios come from the winner's confirmation: interleaved with the start, in fresh processes. The
start's idea names it: the module itself (eager PyTorch), or the given implementation.
"""
import argparse
import glob
import json
import os
import subprocess
import sys


def microseconds(us):
    return f"{us / 1000:.2f} ms" if us >= 1000 else f"{us:.0f} us"


def row(program, run):
    text = subprocess.run([program, "show", run, "--json"], check=True, capture_output=True, text=True).stdout
    shown = json.loads(text)
    candidates = {c["id"]: c for c in shown["candidates"]}
    start = min(c["id"] for c in shown["candidates"] if c["parent"] == 0)
    written = [c for c in shown["candidates"] if c["proposer"] == "exchange" and c["evaluated"]]
    correct = [c for c in written if c["outcome"] == "correct"]
    best = min(correct, key=lambda c: c["time_us"])
    ratio = candidates[start]["time_us"] / best["time_us"]
    interval = "best so far"
    if shown["best"]["id"] != start:
        best = candidates[shown["best"]["id"]]
        ratio = shown["best"]["speedup"]
        interval = f"{shown['best']['speedup_low']:.2f} to {shown['best']['speedup_high']:.2f}"
    return (f"| {os.path.basename(run).removesuffix('.jsonl')} | {microseconds(candidates[start]['time_us'])} | "
            f"{microseconds(best['time_us'])} | {ratio:.2f}x ({interval}) | {len(correct)} of {len(written)} | "
            f"{best['idea']} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernelpro", default="build/release/bin/kernelpro", help="the program")
    parser.add_argument("runs", nargs="*", help="folders of runs, or runs as text")
    arguments = parser.parse_args()
    root = os.path.join(os.path.dirname(__file__), "..", "..", "results", "exchange")
    runs = arguments.runs or sorted(glob.glob(os.path.join(root, "*.jsonl")))
    if not runs:
        sys.exit("there are no runs\n  next: name some, or record them (results/exchange.md)")
    print("| task | start | best | speed-up (95 % interval) | correct | idea of the best |")
    print("|---|---|---|---|---|---|")
    for run in runs:
        print(row(arguments.kernelpro, run.rstrip("/")))


if __name__ == "__main__":
    main()
