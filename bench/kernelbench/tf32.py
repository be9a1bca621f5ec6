#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""KernelBench with TF32 allowed on both sides, as its users run it: a table and geometric means.

    bench/ablation/generations.py recall STRICT --archive bench/kernelbench/open.tar.xz
    bench/ablation/generations.py recall TF32 --archive bench/kernelbench/tf32.tar.xz
    bench/kernelbench/tf32.py STRICT TF32 [--without 2-72] [--kernelbench CHECKOUT]

TF32 has runs of some tasks under that contract (`begin TF32 --after STRICT`), whose search began with the
best kernel of STRICT. Of each task the faster one of both experiments counts: what keeps fp32's precision
keeps TF32's. PyTorch's times are those of bench/kernelbench/baselines.py with TF32 allowed; where the task
has no matrix products, those without.
"""
import argparse
import json
import os
import sys

from standing import Task, mean, title

from ablation import call, ROOT  # noqa: E402  (standing.py knows where they are)
from gains import micro, times  # noqa: E402
from generations import labels, runs  # noqa: E402

KINDS = ("eager", "CUDA graph", "torch.compile")


def has_products(options, run, candidate):
    out, _ = call(options, "diagnose", f"{run}:{candidate}", "--json")
    items = json.loads(out[out.index("{"):])["evidence"]["items"] if "{" in out else {}
    return items.get("task.matmul_flops", {"value": 1})["value"] > 0


class Both:
    """A task's best kernel where TF32 is allowed, and PyTorch's times there."""

    def __init__(self, options, name, strict_runs, tf32_runs):
        strict = Task(options, os.path.join(options.strict, name), strict_runs)
        tf32 = Task(options, os.path.join(options.tf32, name), tf32_runs) if tf32_runs else None
        self.above = "above-measured-ceiling" in labels(strict.best)
        self.own = tf32 if tf32 and tf32.best and tf32.best["proposer"] != "seed" else None
        chosen = self.own if self.own and self.own.best["time_us"] < strict.best["time_us"] else strict
        self.us, self.confirmed, self.is_strict = chosen.best["time_us"], chosen.confirmed, chosen is strict
        # In turn with the module where TF32 is allowed; a start in host form is no measure of it.
        self.paired = tf32.best["speedup"] if tf32 and tf32.best and not tf32.host_form else None
        self.pytorch = {kind: (tf32.baselines[kind + ", TF32"] if tf32 else 0) or strict.baselines[kind + ", TF32"]
                        for kind in KINDS}
        if not any(self.pytorch.values()) and not has_products(options, strict_runs[0], strict.best["id"]):
            self.pytorch = {kind: strict.baselines[kind] for kind in KINDS}

    def over(self, kind):
        return self.pytorch[kind] / self.us if self.pytorch[kind] else None

    def cells(self):
        gain = self.paired
        return [micro(self.pytorch["eager"]) if self.pytorch["eager"] else "-", micro(self.us),
                "fp32" if self.is_strict else "TF32",
                f"{times(gain['ratio'])} [{', '.join(times(gain[end]).rstrip('x') for end in ('low', 'high'))}]" if gain else "-",
                *(times(self.over(kind)) for kind in KINDS), "yes" if self.confirmed else "no"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("strict")
    parser.add_argument("tf32")
    parser.add_argument("--only", default="", help="tasks, by their folders' names, separated by commas")
    parser.add_argument("--without", default="", help="tasks left out of a second mean")
    parser.add_argument("--kernelbench", default="", help="a checkout, for the tasks' names")
    parser.add_argument("--kernelpro", default=os.path.join(ROOT, "build/release/bin/kernelpro"))
    options = parser.parse_args()
    found = {"strict": {}, "tf32": {}}
    for which, of in found.items():
        for name, _, run in runs(options, getattr(options, which)):
            of.setdefault(name, []).append(run)
    tasks = {name: Both(options, name, some, found["tf32"].get(name, [])) for name, some in found["strict"].items()
             if name[0].isdigit()}
    head = ["task", "eager, TF32", "best", "precision kept", "in turn with the module [95 %]", *("over " + kind for kind in KINDS),
            "confirmed"]
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for name, task in tasks.items():
        print("| " + " | ".join([title(options, name), *task.cells()]) + " |")
    head = ["geometric means", "tasks", *("over " + kind for kind in KINDS), "fast_1", "fast_2"]
    print("\n| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    left_out = set(options.without.split(",")) - {""}
    for level in sorted({name[0] for name in tasks}):
        every = {name: task for name, task in tasks.items() if name[0] == level}
        within = {name: task for name, task in every.items() if not task.above and name not in left_out}
        also = "".join(f" and {name.replace('-', '/')}" for name in sorted(left_out & set(every)))
        for words, some in ((f"level {level}", every), (f"level {level}, without what is above its ceiling{also}", within)):
            over = [task.over("eager") for task in some.values()]
            known = [gain for gain in over if gain]
            fast = [f"{sum(gain > least for gain in known) / len(known):.2f}" for least in (1, 2)] if known else ["-", "-"]
            print("| " + " | ".join([words, str(len(some)), *(mean([task.over(kind) for task in some.values()]) for kind in KINDS),
                                     *fast]) + " |")


if __name__ == "__main__":
    sys.exit(main())
