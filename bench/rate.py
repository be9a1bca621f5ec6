#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Evaluations per minute of runs, as a table; the first run of each kind is what others are
compared with.

    bench/rate.py KIND GPUS RUN [KIND GPUS RUN ...]

The time is that between the first and the last evaluation as the run stored them, so that opening
the task and preparing the target, which is done once, does not count.
"""
import sqlite3
import sys


def rate(run):
    with sqlite3.connect(f"file:{run}/store.db?mode=ro", uri=True) as db:
        times = [at for (at,) in db.execute("SELECT at_s FROM evaluations ORDER BY position")]
    if len(times) < 2:
        sys.exit(f"{run} has fewer than two evaluations: nothing to divide; run it longer")
    return len(times), times[-1] - times[0]


def main():
    words = sys.argv[1:]
    if not words or len(words) % 3:
        sys.exit(__doc__)
    first = {}
    print("| run | GPUs | evaluations | seconds | a minute | x the first |")
    print("|---|---|---|---|---|---|")
    for kind, gpus, run in zip(words[0::3], words[1::3], words[2::3]):
        count, seconds = rate(run)
        minute = 60 * (count - 1) / seconds
        base = first.setdefault(kind, minute)
        print(f"| {kind} | {gpus} | {count} | {seconds:.1f} | {minute:.1f} | {minute / base:.2f} |")


if __name__ == "__main__":
    main()
