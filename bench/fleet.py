#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Simulates a suite on many GPUs, with the seconds that recorded runs took.

    bench/fleet.py                      # 250 tasks on 64 GPUs: the table of results/gpus.md
    bench/fleet.py --tasks 45 --gpus 2 --write 300

A task is drawn from the recorded runs (results/kernelbench, bench/ablation/midway.tar.xz) with what
its start, its candidates and its confirmation kept the GPU busy for, and how long they compiled. A run
asks a writer for --candidates kernels at a time, --generations times; a request takes a lognormal time
around --write seconds. Runs on one GPU wait for each other to measure (the lease), and for nothing
else. The time of a start is that of a run's first evaluation, with PyTorch's import and the compiler,
all of which counts as the GPU's. The order of tasks is that of the suite, or slowest start first. Pure;
the same seed gives the same table.
"""
import argparse
import heapq
import json
import math
import os
import random
import statistics
import tarfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
ARCHIVES = ("results/kernelbench/suite.tar.xz", "bench/ablation/midway.tar.xz")
SPREAD = 0.5  # of the logarithm of a writer's time


def recorded():
    """Per run: seconds of the start, of each candidate (GPU, compiler), of the confirmation."""
    runs = []
    for path in ARCHIVES:
        with tarfile.open(os.path.join(ROOT, path)) as archive:
            for member in sorted(archive.getnames()):
                if not member.endswith(".jsonl"):
                    continue
                rows = [json.loads(line) for line in archive.extractfile(member)]
                done = [row["evaluation"] for row in rows if "evaluation" in row]
                ends = [row["confirmation"]["evaluation"] for row in rows if "confirmation" in row]
                cost = [((each.get("run_ms") or 0) / 1e3, (each.get("compile_ms") or 0) / 1e3) for each in done]
                if len(cost) > 1 and ends:
                    runs.append({"start": rows[next(i for i, row in enumerate(rows) if "evaluation" in row)]["at_s"],
                                 "candidates": cost[1:], "end": (ends[-1].get("run_ms") or 0) / 1e3})
    return runs


def work(run, options, rng):
    """Steps of a run: seconds without the GPU, then seconds with it."""
    steps = [(0.0, run["start"])]
    for _ in range(options.generations):
        write = rng.lognormvariate(math.log(options.write), SPREAD)
        drawn = [rng.choice(run["candidates"]) for _ in range(options.candidates)]
        steps.append((write + drawn[0][1], drawn[0][0]))
        steps += [(max(0.0, compiled - drawn[0][1]), busy) for busy, compiled in drawn[1:]]
    return steps + [(0.0, run["end"])]


def simulate(tasks, gpus, each, slowest_first):
    """(makespan, share of GPU time that measures, when 95 % of the tasks are done)"""
    if slowest_first:
        tasks = sorted(tasks, key=lambda steps: -steps[0][1])
    waiting = list(reversed(tasks))
    free_at, ended, busy = [0.0] * gpus, [], 0.0
    events, number = [], 0

    def begin(now, gpu):
        nonlocal number
        if waiting:
            number += 1
            steps = waiting.pop()
            heapq.heappush(events, (now + steps[0][0], number, gpu, steps, 0))
    for _ in range(each):
        for gpu in range(gpus):
            begin(0.0, gpu)
    while events:
        now, mine, gpu, steps, at = heapq.heappop(events)
        if at == len(steps):
            ended.append(now)
            begin(now, gpu)
            continue
        start = max(now, free_at[gpu])
        done = start + steps[at][1]
        free_at[gpu], busy = done, busy + steps[at][1]
        apart = steps[at + 1][0] if at + 1 < len(steps) else 0.0
        heapq.heappush(events, (done + apart, mine, gpu, steps, at + 1))
    ended.sort()
    return ended[-1], busy / (gpus * ended[-1]), ended[math.ceil(0.95 * len(ended)) - 1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=250)
    parser.add_argument("--gpus", type=int, default=64)
    parser.add_argument("--generations", type=int, default=8)
    parser.add_argument("--candidates", type=int, default=2)
    parser.add_argument("--write", type=float, default=0, help="median seconds of a request; by default 60 and 300")
    parser.add_argument("--usd", type=float, default=3.5, help="what a GPU costs an hour")
    parser.add_argument("--seeds", type=int, default=20)
    options = parser.parse_args()
    runs = recorded()
    print(f"{options.tasks} tasks drawn from {len(runs)} recorded runs, {options.gpus} GPUs, {options.generations} "
          f"generations of {options.candidates}; means of {options.seeds} seeds, US$ {options.usd:.2f} for a GPU's hour\n")
    print("| a request takes | runs a GPU | order | hours | the GPUs measure | after 95 % of the tasks | tasks an hour | US$ a task |")
    print("|---" * 8 + "|")
    for write in [options.write] if options.write else [60.0, 300.0]:
        options.write = write
        for each in (1, 2, 4, 8):
            for slowest in (False, True) if each in (1, 4) else (False,):
                out = []
                for seed in range(options.seeds):
                    rng = random.Random(seed)
                    tasks = [work(rng.choice(runs), options, rng) for _ in range(options.tasks)]
                    out.append(simulate(tasks, options.gpus, each, slowest))
                hours = statistics.mean(each[0] for each in out) / 3600
                tail = statistics.mean((each[0] - each[2]) / each[0] for each in out)
                print(f"| {write:.0f} s | {each} | {'slowest start first' if slowest else 'as given'} | {hours:.2f} | "
                      f"{100 * statistics.mean(each[1] for each in out):.0f} % | {100 * tail:.0f} % of the time | "
                      f"{options.tasks / hours:.0f} | {hours * options.gpus * options.usd / options.tasks:.2f} |")


if __name__ == "__main__":
    main()
