#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fits the synthetic landscape of bench/search.cc to recorded runs.

    python3 bench/synthetic/fit.py results/exchange/*/store.db > bench/synthetic/landscape.json

Everything is in natural logarithms. A candidate's distance is ln(time / speed of light), where its
diagnosis knows the speed of light. The recorded writers put nearly all candidates right below the
start, so designs are told apart by their times: candidates of a task in order of distance, cut where
two neighbours are further apart than SAME_DESIGN. Prints what each figure rests on beside it.
"""
import json
import math
import sqlite3
import statistics
import sys

SAME_DESIGN = 0.15  # own choice: twice the largest spread of what is plainly one design
CLOSE = 0.05        # a diagnosis of what is closer than this to the speed of light is not counted
IDEAS = 8           # own choice: ideas of a design that a writer draws from; no run repeats one


def read(path):
    """start, candidates in order: (id, parent, distance or None, ln of the likely gain)"""
    store = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    rows = []
    for ident, parent, outcome, text in store.execute(
            "SELECT c.id, c.parent, e.outcome, d.json FROM candidates c JOIN evaluations e ON"
            " e.candidate = c.id JOIN diagnosis d ON d.candidate = c.id ORDER BY e.position"):
        diagnosis = json.loads(text)
        distance = None
        if outcome == "correct":
            distance = max(0.0, -math.log(diagnosis["fraction_of_ceiling"]))
        told = max([f.get("likely_speedup", 1) for f in diagnosis["findings"]] or [1])
        rows.append((ident, parent, distance, math.log(max(1.0, told))))
    return rows


def designs(distances):
    """Cuts distances, given with their order, into designs."""
    groups = []
    for distance, order in sorted(distances):
        if groups and distance - groups[-1][-1][0] < SAME_DESIGN:
            groups[-1].append((distance, order))
        else:
            groups.append([(distance, order)])
    return [sorted(group, key=lambda pair: pair[1]) for group in groups]


def sd(values):
    return statistics.stdev(values) if len(values) > 1 else 0.0


def main():
    tasks = [read(path) for path in sys.argv[1:]]
    written = sum(len(rows) - 1 for rows in tasks)
    failed = sum(row[2] is None for rows in tasks for row in rows[1:])
    rate = failed / written
    starts, rates, firsts, fresh, steps, immature = [], [], [], [], [], []
    told, silent, asked = [], 0, 0
    for rows in tasks:
        starts.append(rows[0][2])
        wrong = sum(row[2] is None for row in rows[1:])
        # Drawn towards the mean of all by as much as two more candidates would.
        rates.append((wrong + 2 * rate) / (len(rows) - 1 + 2))
        known = {row[0]: row[2] for row in rows}
        groups = designs([(row[2], i) for i, row in enumerate(rows) if i > 0 and row[2] is not None])
        of_task = []
        for group in groups:
            best = min(distance for distance, _ in group)
            of_task.append(math.log(max(best, 0.005)))
            first = rows[group[0][1]]
            fresh.append((known.get(first[1]), of_task[-1], len(firsts)))
            if len(group) > 1:
                immature.append(group[0][0] - best)
            steps += [a[0] - b[0] for a, b in zip(group, group[1:])]
        firsts.append(of_task)
        for row in rows:
            if row[2] is None or row[2] < CLOSE:
                continue
            asked += 1
            if row[3] <= 0.01:
                silent += 1
            else:
                told.append(row[3] / row[2])
    everything = [x for task in firsts for x in task]
    centre = statistics.median(everything)
    # A jump is a design that is more than two robust standard deviations nearer to the light.
    spread = 1.4826 * statistics.median(abs(x - centre) for x in everything)
    jumps = [x for x in everything if x < centre - 2 * spread]
    plain = [[x for x in task if x not in jumps] for task in firsts]
    plain = [task for task in plain if task]
    values = [x for task in plain for x in task]
    within = [x - statistics.mean(task) for task in plain for x in task if len(task) > 1]
    freedom = sum(len(task) - 1 for task in plain if len(task) > 1)
    within_sd = math.sqrt(sum(x * x for x in within) / freedom)
    between = max(0.0, sd([statistics.mean(task) for task in plain]) ** 2 -
                  within_sd ** 2 / statistics.mean(len(task) for task in plain))
    # How much of a parent's distance a new design keeps: least squares through both means.
    pairs = [(math.log(max(parent, 0.005)), child) for parent, child, _ in fresh
             if parent is not None and child not in jumps]
    mean_x = statistics.mean(x for x, _ in pairs)
    mean_y = statistics.mean(y for _, y in pairs)
    slope = (sum((x - mean_x) * (y - mean_y) for x, y in pairs) /
             sum((x - mean_x) ** 2 for x, _ in pairs))
    error = math.sqrt(sum((y - mean_y - slope * (x - mean_x)) ** 2 for x, y in pairs) /
                      (len(pairs) - 2) / sum((x - mean_x) ** 2 for x, _ in pairs))
    working = written - failed
    fitted = {
        "starts": [round(x, 4) for x in starts],
        "failure_rates": [round(x, 4) for x in rates],
        "new_design": round(len(everything) / working, 4),
        "distance_mean": round(statistics.mean(values), 4),
        "distance_sd": round(within_sd, 4),
        "task_sd": round(math.sqrt(between), 4),
        "parent_mean": round(mean_x, 4),
        "inheritance": round(min(1.0, max(0.0, slope)), 4),
        "jump": round(len(jumps) / len(everything), 4),
        "jump_size": round(centre - statistics.mean(jumps), 4) if jumps else 0.0,
        "immature": round(statistics.mean(immature), 4),
        "step_mean": round(statistics.mean(steps), 4),
        "step_sd": round(sd(steps), 4),
        "silent": round(silent / asked, 4),
        "told_mean": round(statistics.mean(told), 4),
        "told_sd": round(sd(told), 4),
        "knows_design": False,
        "ideas": IDEAS,
    }
    notes = {
        "runs": len(tasks),
        "written": written,
        "failed": failed,
        "designs": len(everything),
        "jumps": len(jumps),
        "steps within a design": len(steps),
        "inheritance": f"slope {slope:.3f}, standard error {error:.3f}, {len(pairs)} pairs",
        "diagnoses": f"{asked} of candidates further than {CLOSE} from the light, {silent} silent",
    }
    print(json.dumps({"parameters": fitted, "rests_on": notes}, indent=1))


if __name__ == "__main__":
    main()
