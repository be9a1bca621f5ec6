#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the evaluations per minute of runs as a table; the first run of each kind is the baseline.

    bench/rate.py [--parts] KIND GPUS RUN [KIND GPUS RUN ...]

The time runs from the first to the last stored evaluation, so that the one-time costs of opening
the task and preparing the target do not count. With --parts, prints what an evaluation took and its
parts in ms, as means over the correct candidates after the first that were measured themselves, and
apart for those that were screened.
"""
import json
import sqlite3
import sys

PARTS = {"waiting for its turn": "turn", "waiting for a process": "worker", "checking": "check", "timing": "time"}
SCREENED = "evaluate.screened"  # observed
AGAIN = "not measured a second time"


def rate(run):
    with sqlite3.connect(f"file:{run}/store.db?mode=ro", uri=True) as db:
        times = [at for (at,) in db.execute("SELECT at_s FROM evaluations ORDER BY position")]
    if len(times) < 2:
        sys.exit(f"{run} has fewer than two evaluations: nothing to divide; run it longer")
    return len(times), times[-1] - times[0]


def mean(values):
    return sum(values) / max(1, len(values))


def parts(run):
    """[how many were screened, what each took, how many others, each, the parts of all]"""
    with sqlite3.connect(f"file:{run}/store.db?mode=ro", uri=True) as db:
        rows = db.execute("SELECT json FROM evaluations WHERE outcome = 'correct' AND position > "
                          "(SELECT MIN(position) FROM evaluations)")
        seen = [json.loads(text) for (text,) in rows]
    own = [each for each in seen if AGAIN not in str(each["outcome"].get("notes"))]
    screened = [each for each in own if SCREENED in each["outcome"].get("observed", {})]
    full = [each for each in own if each not in screened]
    took = [value for kind in (screened, full) for value in (len(kind), mean([each["run_ms"] for each in kind]))]
    return took + [mean([each["outcome"].get("observed", {}).get(f"evaluate.{name}_ms", 0) for each in own])
                   for name in PARTS.values()]


def main():
    words = sys.argv[1:]
    split = words[:1] == ["--parts"]
    words = words[split:]
    if not words or len(words) % 3:
        sys.exit(__doc__)
    first = {}
    titles = ["run", "GPUs", "evaluations", "seconds", "a minute", "x the first"]
    titles += ["screened", "each", "in full", "each", *PARTS] if split else []
    print("| " + " | ".join(titles) + " |")
    print("|---" * len(titles) + "|")
    for kind, gpus, run in zip(words[0::3], words[1::3], words[2::3]):
        count, seconds = rate(run)
        minute = 60 * (count - 1) / seconds
        base = first.setdefault(kind, minute)
        cells = [kind, gpus, str(count), f"{seconds:.1f}", f"{minute:.1f}", f"{minute / base:.2f}"]
        cells += [f"{ms:.0f}" for ms in parts(run)] if split else []
        print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
