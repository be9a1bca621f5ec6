#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares searches on recorded landscapes, from the counts of bench_landscape and rivals.py.

    pip install scipy
    compare.py FOLDER [--search mcts+diagnosis]

For each landscape the rival is the search that did best on the *other* landscapes: lowest geometric
mean of its median count over that of random search ("any"). A seed that never got close counts as
the whole budget. Test: Wilcoxon's signed-rank test over the seeds, two-sided, zeros split (Pratt).
"""
import argparse
import json
import math
import statistics
import sys
from pathlib import Path

BLIND = "any"


def load(folder):
    """landscape -> search -> counts, and which searches are Kernel Tuner's."""
    counts, theirs = {}, set()
    for path in sorted(Path(folder).glob("*.json")):
        data = json.loads(path.read_text(encoding="utf-8"))
        for search, found in data["searches"].items():
            if path.name.endswith(".kernel-tuner.json"):
                search = f"KT {search}"
                theirs.add(search)
            needed = [count or data["budget"] for count in found]
            counts.setdefault(data["landscape"], {})[search] = needed
    return counts, theirs


def badness(counts, search, landscapes):
    """Geometric mean of the medians over those of random search."""
    logs = [math.log(statistics.median(counts[name][search]) /
                     statistics.median(counts[name][BLIND])) for name in landscapes]
    return math.exp(sum(logs) / len(logs))


def p_value(a, b):
    from scipy.stats import wilcoxon
    if all(x == y for x, y in zip(a, b)):
        return 1.0
    return wilcoxon(a, b, zero_method="pratt").pvalue


def against(counts, name, search, rival):
    mine, other = counts[name][search], counts[name][rival]
    seeds = min(len(mine), len(other))
    ratio = statistics.median(mine) / statistics.median(other)
    means = statistics.fmean(mine) / statistics.fmean(other)
    return (f"{rival} | {statistics.median(mine):g} | {statistics.median(other):g} | {ratio:.2f} | "
            f"{means:.2f} | {p_value(mine[:seeds], other[:seeds]):.2g}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--search", default="mcts+diagnosis")
    given = parser.parse_args()
    counts, theirs = load(given.folder)
    names = sorted(name for name in counts if given.search in counts[name] and
                   BLIND in counts[name])
    if len(names) < 2:
        sys.exit(f"compare: {given.folder} has {len(names)} landscape with {given.search} and "
                 f"{BLIND}: run bench_landscape --out on at least two")
    everywhere = set.intersection(*(set(counts[name]) for name in names))
    own = {s for s in everywhere if s.split("+")[0] == given.search.split("+")[0]}
    sets = {"Kernel Tuner's": theirs & everywhere, "all others": everywhere - own}
    header = f"| landscape | rival | {given.search} | rival | of medians | of means | p |"
    for title, rivals in [("blind drawing", {BLIND})] + sorted(sets.items()):
        if not rivals:
            continue
        print(f"\nAgainst {title}" + (", the best on the other landscapes" if len(rivals) > 1
                                      else "") + f"\n\n{header}\n|---|---|---|---|---|---|---|")
        for name in names:
            others = [other for other in names if other != name]
            rival = min(sorted(rivals), key=lambda s: badness(counts, s, others))
            print(f"| {name} | {against(counts, name, given.search, rival)} |")
    print(f"\nGeometric mean of the medians over blind drawing's, all {len(names)} landscapes\n")
    print("| search | of blind |\n|---|---|")
    for search in sorted(everywhere, key=lambda s: badness(counts, s, names)):
        print(f"| {search} | {badness(counts, search, names):.3f} |")


if __name__ == "__main__":
    main()
