#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a written step is worth, by how far behind the best its parent was.

    bench/ablation/steps.py [RUN.jsonl | ARCHIVE.tar.xz ...]      # by default all archives of bench/ablation
    bench/ablation/steps.py --rows FILE                           # the steps themselves, for bench_steps

One row for each class of parents: the steps of recorded runs that were written from such a parent, how
many came out more than 2 % ahead of the best so far, and the mean gain over that best (the logarithm's,
0 where the step was behind it or failed). Settings that the tuner tried count for what is the best, not
as steps. Steps from the start are left out of the second table: every writer finds something there.
The third has the steps from parents behind the best, by whether what their own diagnosis promised
would have taken them past it. Then what share of their promises was gained over parents that are no
start, and the last line: of the steps whose request named another parent than the
best so far, how many sources share more lines with the best, which the request shows beside it.
"""
import argparse
import glob
import json
import math
import os
import statistics
import tarfile

HERE = os.path.dirname(os.path.abspath(__file__))
CLASSES = ((0, 1.02, "the best, or within 2 % of it"), (1.02, 1.1, "2 to 10 % behind"), (1.1, 1.5, "10 to 50 % behind"),
           (1.5, math.inf, "further behind"))
AHEAD = 1.02
CLEAR = 0.05  # of a source's lines
NAIVE = 4  # a step that gains more began at a naive kernel, as no later one does


def texts(paths):
    for path in paths:
        if path.endswith(".jsonl"):
            with open(path, encoding="utf-8") as file:
                yield file.read()
            continue
        with tarfile.open(path) as archive:
            for name in archive.getnames():
                if name.endswith(".jsonl") and "confirmed" not in name:
                    yield archive.extractfile(name).read().decode()


def promised(row):
    """What the likeliest finding promises, stops left out."""
    findings = (row.get("diagnosis") or {}).get("findings", [])
    return max([1.0] + [each.get("likely_speedup") or 1.0 for each in findings if not each.get("stop")])


def lines_of(source):
    """Those that say something, without their indentation."""
    return {line.strip() for line in source.splitlines() if len(line.strip()) > 8}


def nearer_to(source, parent, best):
    """"parent", "best" or "", by the lines that the three have in common."""
    mine = lines_of(source)
    one, other = (len(mine & lines_of(each)) / max(1, len(mine)) for each in (parent, best))
    return "" if abs(one - other) < CLEAR else "parent" if one > other else "best"


def steps_of(text):
    """(parent over best, best over child or 0, parent is the start, promise of the parent, what the
    source is nearer to where parent and best have two, promise of the child), of the written candidates
    in turn"""
    best, start, times, promises, sources, leader = 0.0, None, {}, {}, {}, None
    for line in text.splitlines():
        row = json.loads(line)
        if "candidate" not in row or "evaluation" not in row:
            continue
        us = row.get("time_us") or 0.0
        right = row["evaluation"]["outcome"]["kind"] == "correct"
        if start is None:
            start = row["candidate"]
        elif row.get("proposer") != "tuner" and row.get("parent") in times:
            parent = row["parent"]
            two = leader is not None and sources[parent] != sources[leader]
            near = nearer_to(row["source"], sources[parent], sources[leader]) if two else None
            yield times[parent] / best, best / us if right else 0.0, parent == start, promises[parent], near, promised(row)
        if right:
            times[row["candidate"]], promises[row["candidate"]] = us, promised(row)
            sources[row["candidate"]] = row.get("source", "")
            if not best or us < best:
                best, leader = us, row["candidate"]


def table(classes):
    """classes: [(words, steps)]"""
    print("| built on | steps | ahead of the best by more than 2 % | mean gain over the best | incorrect |")
    print("|---|---|---|---|---|")
    for words, steps in classes:
        gains = [step[1] for step in steps]
        if gains:
            ahead = sum(gain > AHEAD for gain in gains)
            mean = statistics.mean(max(0.0, math.log(gain)) if gain else 0.0 for gain in gains)
            print(f"| {words} | {len(gains)} | {ahead} ({100 * ahead / len(gains):.0f} %) | {100 * mean:.1f} % | "
                  f"{sum(gain == 0 for gain in gains)} |")


def by_distance(steps):
    return [(words, [step for step in steps if low < step[0] <= high]) for low, high, words in CLASSES]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*")
    parser.add_argument("--rows", help="write the steps there as JSON, and no table")
    options = parser.parse_args()
    names = [os.path.join(HERE, name + ".tar.xz") for name in ("generations", "midway", "flagships", "searches")]
    steps = [step for text in texts(options.files or [name for name in names if os.path.exists(name)]) for step in steps_of(text)]
    if options.rows:
        with open(options.rows, "w", encoding="utf-8") as file:
            json.dump([{"lag": step[0], "gain": step[1], "start": step[2], "promise": step[3], "promised": step[5]}
                       for step in steps if step[1] < NAIVE], file)
        return
    table(by_distance(steps))
    print("\nWithout steps from a run's start:\n")
    table(by_distance([step for step in steps if not step[2]]))
    behind = [step for step in steps if step[0] > AHEAD]
    print("\nMore than 2 % behind the best:\n")
    table([("a promise that reaches the best", [step for step in behind if step[0] < step[3]]),
           ("one that does not", [step for step in behind if step[0] >= step[3]])])
    kept = [(math.log(step[0] * step[1]), math.log(step[3])) for step in steps if step[1] and not step[2] and step[3] > AHEAD]
    if kept:
        print(f"\nOf what {len(kept)} parents promised that are not a start, {sum(k[0] for k in kept) / sum(k[1] for k in kept):.2f} "
              f"was gained over them (of the logarithms' sums; median {statistics.median(k[0] / k[1] for k in kept):.2f}).")
    near = [step[4] for step in steps if step[4] is not None]
    print(f"\nOf {len(near)} sources asked for on another parent than the best, {near.count('best')} are nearer to the "
          f"best, {near.count('parent')} to their parent.")


if __name__ == "__main__":
    main()
