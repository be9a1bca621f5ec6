#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kernel Tuner's strategies on recorded landscapes, in its simulation mode, with their default
options: how many evaluations each needs to get within 5 % of the fastest variant.

    pip install kernel-tuner
    rivals.py --out FOLDER [--seeds N] [--first N] [--budget N] [--strategies A,B]
              LANDSCAPE.json.gz...

Writes FOLDER/<landscape>.<strategy>.kernel-tuner.json for compare.py; existing files are kept, so
that an interrupted run continues. Counts distinct variants, including failures, as Kernel Tuner
does; a strategy that ends without getting close, or fails, has 0. Strategies with a settable start
(Kernel Tuner's x0) start where bench_landscape does with the same seed; the others draw a random
start. scikit-optimize and pyatf, if installed, add two more strategies.
"""
import argparse
import contextlib
import io
import json
import multiprocessing
import os
import random
import re
import sys
import tempfile
import warnings
from pathlib import Path

import export

CLOSE = 1.05


class Close(Exception):
    """The search got close and can stop."""


def count_evaluations(runner_class, limit_ms, counted):
    """Makes the simulation count evaluations and stop when a variant is within the limit."""
    original = runner_class.run

    def run(self, parameter_space, tuning_options):
        results = []
        for element in parameter_space:
            key = ",".join(str(value) for value in element)
            new = key not in self.visited_results
            result = original(self, [element], tuning_options)
            results += result
            if new and key in self.visited_results:
                counted[0] += 1
                time = tuning_options.cache[key]["time"]
                if isinstance(time, float) and time <= limit_ms:
                    counted[1] = counted[1] or counted[0]
                    raise Close()
        return results

    runner_class.run = run
    return original


def mix64(x):
    """As kp::mix64 (src/core/task/inputs.h)."""
    mask = (1 << 64) - 1
    x = (x + 0x9e3779b97f4a7c15) & mask
    x = ((x ^ (x >> 30)) * 0xbf58476d1ce4e5b9) & mask
    x = ((x ^ (x >> 27)) * 0x94d049bb133111eb) & mask
    return x ^ (x >> 31)


def restrictions_of(landscape):
    """The source's requirements in Python's operators; no requirement here divides."""
    found = re.findall(r"^\s*//\s*@require\s+(.+)$", landscape["source"], re.MULTILINE)
    return [re.sub(r"!(?!=)", " not ", text.replace("&&", " and ").replace("||", " or ")).strip()
            for text in found]


def start_of(landscape, seed):
    """The correct variant that bench_landscape starts this seed from."""
    correct = [v for v in landscape["variants"] if "us" in v]
    index = mix64((seed * 0x9e37 + 1) & ((1 << 64) - 1)) % len(correct)
    return list(export.parameters(landscape, correct[index]).values())


def evaluations_needed(job):
    """The count for one seed; 0 when the strategy ended before it got close."""
    found = attempt(job)
    if "x0" in found[1]:  # the strategy does not support x0
        found = attempt(job[:-1] + (None,))
    return found


def attempt(job):
    cache_path, strategy, seed, budget, limit_ms, restrictions, start = job
    import numpy
    import kernel_tuner
    from kernel_tuner.runners.simulation import SimulationRunner

    cache = json.loads(Path(cache_path).read_text(encoding="utf-8"))
    random.seed(seed)
    numpy.random.seed(seed)
    counted = [0, 0]
    original = count_evaluations(SimulationRunner, limit_ms, counted)
    options = {"max_fevals": budget}
    if start:
        options["x0"] = start
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kernel_tuner.tune_kernel(
                cache["kernel_name"], "__global__ void kernel() {}", tuple(cache["problem_size"]),
                [], cache["tune_params"], lang="CUDA", cache=cache_path, simulation_mode=True,
                restrictions=restrictions,
                strategy=strategy, strategy_options=options, quiet=True, seed=seed)
    except Close:
        pass
    except Exception as problem:  # the strategy failed: it did not get close
        if os.environ.get("KERNEL_TUNER_TRACE"):
            raise
        return 0, f"{type(problem).__name__}: {problem}"
    finally:
        SimulationRunner.run = original
    return counted[1], ""


def strategies_that_exist():
    from kernel_tuner.interface import strategy_map
    return [name for name in strategy_map if name != "brute_force"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("landscapes", nargs="+")
    parser.add_argument("--out", required=True)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--first", type=int, default=1, help="seed")
    parser.add_argument("--budget", type=int, default=0, help="0: as many as there are variants")
    parser.add_argument("--strategies", default="", help="by default all that are installed")
    given = parser.parse_args()
    strategies = given.strategies.split(",") if given.strategies else strategies_that_exist()
    Path(given.out).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, multiprocessing.Pool() as pool:
        for path in given.landscapes:
            landscape = export.read(path)
            name = Path(path).name.split(".")[0]
            budget = given.budget or len(landscape["variants"])
            cache = Path(folder) / f"{name}.json"
            cache.write_text(json.dumps(export.kernel_tuner_cache(landscape)), encoding="utf-8")
            fastest = min(v["us"] for v in landscape["variants"] if "us" in v)
            for strategy in strategies:
                to = Path(given.out) / f"{name}.{strategy}.kernel-tuner.json"
                if to.exists():
                    continue
                jobs = [(str(cache), strategy, seed, budget, CLOSE * fastest / 1000,
                         restrictions_of(landscape), start_of(landscape, seed))
                        for seed in range(given.first, given.first + given.seeds)]
                found = pool.map(evaluations_needed, jobs, chunksize=max(1, given.seeds // 64))
                counts = [count for count, _ in found]
                problems = sorted({problem for _, problem in found if problem})
                to.write_text(json.dumps({"landscape": name, "budget": budget, "within": CLOSE,
                                          "seeds": given.seeds, "searches": {strategy: counts},
                                          "problems": problems[:3]}) + "\n", encoding="utf-8")
                reached = sorted(c or budget for c in counts)
                print(f"{name} {strategy}: median {reached[len(reached) // 2]}, reached "
                      f"{sum(c > 0 for c in counts)} of {len(counts)}"
                      + (f"; {problems[0][:120]}" if problems else ""), flush=True)


if __name__ == "__main__":
    sys.exit(main())
