#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Several generations from the same kernels, with different feedback or searches: what the loop adds to a step.

    bench/ablation/generations.py begin DIR --arms none,diagnosed  # GPU: a run of each DIR/NAME/{task.py,parent.cu};
                                                        # without parent.cu it starts from the module. --after OTHER:
                                                        # and tries OTHER/NAME's best kernel next (for example one
                                                        # written for another precision)
    bench/ablation/generations.py recall DIR            # or the runs of generations.tar.xz; --archive FILE:
                                                        # of midway.tar.xz, flagships.tar.xz, or open.tar.xz,
                                                        # whose answers wait (and bench/kernelbench/open.tar.xz)
    bench/ablation/generations.py ask DIR               # requests of the next generation
    bench/ablation/generations.py measure DIR           # GPU: the replies to them
    bench/ablation/generations.py confirm DIR           # GPU: the best of each, in fresh processes; --best:
                                                        # of each task's best arm alone
    bench/ablation/generations.py rows DIR              # a JSON line for each candidate
    bench/kernelbench/standing.py DIR                   # a table: the best of each task
    bench/ablation/generations.py keep DIR ARCHIVE      # the runs as text, which recall takes
    bench/ablation/generations.py table results/generations.jsonl

Each arm is an ordinary run, continued with `kernelpro propose` and `kernelpro measure`, so the search
chooses what to build on, and the request tells what was tried. `none` hears times only; `diagnosed` the
account, the findings and what the last change did; `asked` what `none` hears, and may ask: its folder
has a program `ask`, which answers from the run's diagnoses and notes in asked.txt what it was asked.
`mcts` and `greedy` hear what `diagnosed` hears and choose what to build on as their names say; a task's
arms begin as copies of one run, with one measured start.
A confirmed run loses its confirmation when it goes on: `measure` keeps the run as it was, as
NAME/ARM.confirmed.jsonl, until its new best is confirmed.
`ask DIR` writes DIR/requests/NAME/ARM/GENERATION/, each a folder that a writer sees alone; kernels go
into its reply/. `measure` leaves out what was measured already.
"""

import argparse
import concurrent.futures
import glob
import json
import math
import os
import re
import shutil
import sqlite3
import statistics
import sys
import tarfile
import tempfile
import time

from ablation import call, diagnose_again, side_by_side, start_run, without_paths, HERE, ROOT
from gains import geometric, interval

# What an arm's requests tell, and how it chooses what to build on.
ARMS = {"none": ("none", ""), "diagnosed": ("diagnosed", ""), "asked": ("none", ""),
        "greedy": ("diagnosed", "greedy"), "mcts": ("diagnosed", "mcts")}
CONFIRMED = "confirmed"  # in names of runs as they were when they were confirmed
# A kernel with one of these ranks below one without, whatever its time (core/evaluation/label.h).
LOWERED = {"given-distribution-only", "given-parameters-only", "coarser-than-fp32"}

MAY_ASK = """## What you may ask
`./ask` in this folder answers questions about the candidates that were measured. Ask as often as you
like; nothing else is known of them.

- `./ask account [N]`: where the time of candidate N goes (by default, of the one to build on)
- `./ask line LINE [N]`: what a line of its source costs, and why
- `./ask tools`: the diagnosis tools, and what each one looks for
- `./ask tool NAME [N]`: what that tool says of candidate N: cause, what to change, what it is worth
- `./ask compare A B`: which parts of the time moved from candidate A to B

"""

def runs(options, folder=""):
    """[(name, arm, run)], in the order of --only if given; of the experiment in `folder`, by default of its own."""
    folder = folder or options.folder
    names = options.only.split(",") if options.only else sorted(os.listdir(folder))
    return [(name, arm, os.path.join(folder, name, arm)) for name in names for arm in ARMS
            if os.path.exists(os.path.join(folder, name, arm, "store.db"))]


def measured(run):
    """How many generations it has."""
    return len(glob.glob(os.path.join(run, "generation*.json")))


def recall(options):
    """The runs of an archive, to go on with."""
    with tarfile.open(options.archive) as archive:
        archive.extractall(options.folder, filter="data")

    def one(recorded):
        run = recorded.removesuffix(".jsonl")
        _, wrong = call(options, "pack", recorded, run)
        for path in [] if wrong else glob.glob(run + ".generation*.json"):
            os.rename(path, os.path.join(run, path[len(run) + 1:]))
        if os.path.exists(run + ".open") and not wrong:  # a request whose answers were not measured
            name, arm = os.path.relpath(run, options.folder).split(os.sep)
            request = os.path.join(options.folder, "requests", name, arm, str(measured(run) + 1))
            os.makedirs(os.path.dirname(request), exist_ok=True)
            os.rename(run + ".open", request)
            os.rename(os.path.join(request, "asked"), os.path.join(run, "asked"))
            with open(os.path.join(run, "asked"), encoding="utf-8") as file:
                os.makedirs(os.path.join(run, "exchange", file.read(), "reply"), exist_ok=True)
        if not wrong:
            settle(run, timeout_s=options.timeout, include_dirs=options.include)
        print(f"{run}: {wrong or 'recalled'}", flush=True)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        list(pool.map(one, sorted(path for path in glob.glob(os.path.join(options.folder, "*", "*.jsonl"))
                                  if CONFIRMED not in os.path.basename(path))))


def settle(run, **own):
    """Settings of an arm, and no GPU by its number: the run may go on where others are."""
    store = sqlite3.connect(os.path.join(run, "store.db"))
    settings = json.loads(store.execute("select value from meta where key = 'settings'").fetchone()[0])
    settings |= {"gpu": ""} | own
    store.execute("update meta set value = ? where key = 'settings'", [json.dumps(settings)])
    store.commit()
    store.close()


def keep(options):
    """The runs as text, in an archive, with requests whose answers were not measured."""
    with tempfile.TemporaryDirectory() as folder:
        def one(item):
            name, arm, run = item
            into = os.path.join(folder, name)
            os.makedirs(into, exist_ok=True)
            # The task, PyTorch's own times (bench/kernelbench/baselines.py), an earlier confirmation.
            for pattern in ("*.py", "*.json", f"*{CONFIRMED}*.jsonl"):
                for path in glob.glob(os.path.join(options.folder, name, pattern)):
                    shutil.copy(path, into)
            text = os.path.join(into, arm + ".jsonl")
            _, wrong = call(options, "trajectories", run, "--output", text)
            if not wrong:
                without_paths(text)
            for path in glob.glob(os.path.join(run, "generation*.json")):
                shutil.copy(path, os.path.join(into, arm + "." + os.path.basename(path)))
            request = os.path.join(options.folder, "requests", name, arm, str(measured(run) + 1))
            if os.path.exists(os.path.join(run, "asked")) and os.path.exists(request):
                shutil.copytree(request, os.path.join(into, arm + ".open"))
                shutil.copy(os.path.join(run, "asked"), os.path.join(into, arm + ".open"))
            print(f"{name}, {arm}: {wrong or 'kept'}", flush=True)
            return not wrong
        with concurrent.futures.ThreadPoolExecutor() as pool:
            if not all(pool.map(one, runs(options))):
                sys.exit("Nothing is packed, since some runs could not be read.")
        with tarfile.open(options.archive, "w:xz", preset=options.preset) as archive:
            for name in sorted(os.listdir(folder)):
                archive.add(os.path.join(folder, name), name)


def begin(options):
    arms = options.arms.split(",")
    known = best_runs(options, runs(options, options.after)) if options.after else {}

    def one(folder, gpu):
        first = os.path.join(folder, "first")
        if os.path.exists(os.path.join(folder, arms[0], "store.db")):
            return
        more, parent, name = [], os.path.join(folder, "parent.cu"), os.path.basename(folder)
        if os.path.exists(parent):
            more += ["--start", parent]
        if name in known:
            more += ["--start-from", known[name][2]]
        wrong = start_run(options, os.path.join(folder, "task.py"), first, *more, *gpu, *options.extra)
        for arm in [] if wrong else arms:
            shutil.copytree(first, os.path.join(folder, arm))
            settle(os.path.join(folder, arm), search=ARMS[arm][1])
        shutil.rmtree(first, ignore_errors=True)
        without = f", and {options.after} has no kernel of it" if options.after and name not in known else ""
        print(f"{name}: {wrong or 'begun' + without}", flush=True)
    names = options.only.split(",") if options.only else sorted(os.listdir(options.folder))
    side_by_side(options, one, [os.path.join(options.folder, name) for name in names
                                if os.path.exists(os.path.join(options.folder, name, "task.py"))], options.each)


def forget_requests(run):
    """Those that nobody answered, so that each generation has one question."""
    store = sqlite3.connect(os.path.join(run, "store.db"))
    store.execute("delete from requests")
    store.commit()
    store.close()
    for folder in glob.glob(os.path.join(run, "exchange", "0*")):
        if not os.listdir(os.path.join(folder, "taken") if os.path.exists(os.path.join(folder, "taken")) else
                          os.path.join(folder, "reply")):
            shutil.rmtree(folder)


def refresh(options, run):
    """Diagnoses of its candidates by the tools as they are now, from the evidence that was kept."""
    out, _ = call(options, "show", run, "--json")
    for each in json.loads(out)["candidates"]:
        if each.get("outcome") == "correct":
            wrong = diagnose_again(options, run, each["id"])
            if wrong:
                print(f"{run}:{each['id']}: {wrong}")


def answers(options, run, seen):
    """What ./ask knows: the diagnoses of all candidates, and the one to build on."""
    out, _ = call(options, "show", run, "--json")
    candidates = {}
    for each in json.loads(out)["candidates"]:
        said, wrong = call(options, "diagnose", f"{run}:{each['id']}", "--json")
        if wrong or "{" not in said:
            continue
        d = json.loads(said[said.index("{"):])["diagnosis"]
        every = {}
        for finding in d["findings"]:
            every.setdefault(finding["tool"], []).append(finding)
        candidates[str(each["id"])] = {key: d.get(key) for key in ("account", "floor_us", "bound", "tools")} | {"every": every}
    listed, _ = call(options, "tools", "--json")
    with open(os.path.join(seen, "prompt.md"), encoding="utf-8") as file:
        text = file.read()
    parent = text.split("Build on candidate ")[1].split(":")[0].strip()
    with open(os.path.join(seen, ".answers.json"), "w", encoding="utf-8") as file:
        json.dump({"candidates": candidates, "parent": parent,
                   "tools": {tool["name"]: tool["summary"] for tool in json.loads(listed)["tools"]
                             if tool.get("target") in ("cuda", "any")}}, file)
    shutil.copy(os.path.join(HERE, "asked.py"), os.path.join(seen, "ask"))
    at = text.index("## What it computes")
    with open(os.path.join(seen, "prompt.md"), "w", encoding="utf-8") as file:
        file.write(text[:at] + MAY_ASK + text[at:])


def ask(options):
    for name, arm, run in runs(options):
        generation = measured(run) + 1
        seen = os.path.join(options.folder, "requests", name, arm, str(generation))
        if os.path.exists(seen):
            continue
        forget_requests(run)
        if options.again:
            refresh(options, run)
        out, wrong = call(options, "propose", run, "-n", "1", "--json", "--feedback", ARMS[arm][0], *options.extra)
        if wrong:
            print(f"{name}, {arm}: {wrong}")
            continue
        request = json.loads(out[out.index("{"):])["requests"][0]
        shutil.copytree(os.path.join(run, "exchange", os.path.basename(request)), seen)
        with open(os.path.join(run, "asked"), "w", encoding="utf-8") as file:
            file.write(os.path.basename(request))
        if arm == "asked":
            answers(options, run, seen)
        print(seen)


def is_confirmed(options, run):
    out, _ = call(options, "show", run, "--json")
    return json.loads(out)["confirmed"]


def remember_confirmed(options, run):
    """Keeps a confirmed run that is about to go on, as text. What went wrong, or ""."""
    if not is_confirmed(options, run):
        return ""
    _, wrong = call(options, "trajectories", run, "--output", run + ".new")
    if not wrong:
        without_paths(run + ".new")
        os.replace(run + ".new", f"{run}.{CONFIRMED}.jsonl")
    return wrong


def forget_confirmed(options, run):
    """Of a run that is confirmed again, what it was when it last was."""
    before = f"{run}.{CONFIRMED}.jsonl"
    if os.path.exists(before) and is_confirmed(options, run):
        os.remove(before)


def known_before(run, shown):
    """Candidates of no new generation: the start, those tried right after it, those of earlier generations."""
    known = {each["id"] for each in shown["candidates"] if each["proposer"] in ("start", "seed")}
    for path in glob.glob(os.path.join(run, "generation*.json")):
        with open(path, encoding="utf-8") as file:
            known.update(json.load(file))
    return known


def measure(options):
    def one(item, gpu):
        name, arm, run = item
        asked = os.path.join(run, "asked")
        if not os.path.exists(asked):
            return
        generation = measured(run) + 1
        folder = os.path.join(options.folder, "requests", name, arm, str(generation), "reply")
        replies = glob.glob(os.path.join(folder, "*.cu")) or glob.glob(os.path.join(folder, "*.py"))
        if not replies and not glob.glob(os.path.join(folder, "*.taken")):
            return
        wrong = remember_confirmed(options, run)
        if wrong:
            print(f"{name}, {arm}: {wrong}", flush=True)
            return
        with open(asked, encoding="utf-8") as file:
            to = os.path.join(run, "exchange", file.read(), "reply")
        copies = {reply: os.path.join(to, f"g{generation}-{os.path.basename(reply)}") for reply in replies}
        for reply, copy in copies.items():
            shutil.copy(reply, copy)
        begun = time.monotonic()
        _, wrong = call(options, "measure", run, *([] if options.confirm else ["--no-confirm"]), *options.extra,
                        gpu=gpu[-1] if gpu else None, accepted=(0, 1))  # 7: every reply was refused
        shown, unread = call(options, "show", run, "--json")
        left = [copy for copy in copies.values() if os.path.exists(copy)]
        if unread or (wrong and left and len(left) < len(copies)):  # those that are left wait for another call
            for reply, copy in copies.items():
                if copy not in left:
                    os.rename(reply, reply + ".taken")
            print(f"{name}, {arm}, {len(left)} of {len(copies)} kernels wait: {wrong or unread}", flush=True)
            return
        shown = json.loads(shown)
        known = known_before(run, shown)  # what an interrupted call measured belongs to this generation
        new = [each["id"] for each in shown["candidates"] if each["id"] not in known]
        if new or not wrong:  # else the answers wait for another call
            os.remove(asked)
            with open(os.path.join(run, f"generation{generation}.json"), "w", encoding="utf-8") as file:
                json.dump(new, file)
        if options.confirm and not wrong:
            forget_confirmed(options, run)
        print(f"{name}, {arm}, generation {generation}: {wrong or 'measured'} in {time.monotonic() - begun:.0f} s", flush=True)
    side_by_side(options, one, runs(options), options.each)
    rows(options)


def labels(each):
    """Its own, as of a confirmation, before those of its evaluation."""
    return each.get("labels", each["evaluation"]["outcome"].get("labels")) or []


def rank(each):
    """Smaller is better: fewer labels that rank lower, then the larger gain."""
    return len(set(labels(each)) & LOWERED), -each["speedup"]["ratio"]


def best(candidates):
    """Of what was judged correct besides the start; None if there is nothing."""
    return min((each for each in candidates if each.get("outcome") == "correct" and each.get("speedup")
                and each["proposer"] != "start"), default=None, key=rank)


def best_runs(options, items):
    """{task: that of its runs which has the best kernel}."""
    found = {}
    for item in items:
        out, _ = call(options, "show", item[2], "--json")
        reached = best(json.loads(out)["candidates"])
        if reached and (item[0] not in found or rank(reached) < rank(found[item[0]][0])):
            found[item[0]] = reached, item
    return {name: item for name, (_, item) in found.items()}


def confirm(options):
    def one(item, gpu):
        name, arm, run = item
        begun = time.monotonic()
        _, wrong = call(options, "measure", run, *options.extra, gpu=gpu[-1] if gpu else None)
        if not wrong:
            forget_confirmed(options, run)
        print(f"{name}, {arm}: {wrong or 'confirmed'} in {time.monotonic() - begun:.0f} s", flush=True)
    chosen = runs(options)
    if options.best:
        chosen = list(best_runs(options, chosen).values())
    side_by_side(options, one, chosen, options.each)


def rows_of(run, shown):
    """A row for each candidate that was written. Its ratio to what it was built on is that of both to the start."""
    by_id = {each["id"]: each for each in shown["candidates"]}
    out = []
    for path in sorted(glob.glob(os.path.join(run, "generation*.json"))):
        with open(path, encoding="utf-8") as file:
            ids = json.load(file)
        for each in (by_id[i] for i in ids if by_id.get(i, {}).get("evaluated")):
            speed = each.get("speedup") or {}
            base = by_id.get(each["parent"], {}).get("speedup") or {"ratio": 1, "low": 1, "high": 1}
            out.append({"generation": int(re.search(r"(\d+)\.json", path).group(1)), "candidate": each["id"],
                        "built_on": each["parent"], "by": each.get("proposer", ""), "outcome": each["outcome"], "time_us": each.get("time_us"),
                        "labels": (((each.get("evaluation") or {}).get("outcome") or {}).get("labels") or []),
                        "ratio": speed.get("ratio", 0) / base["ratio"], "low": speed.get("low", 0) / base["high"],
                        "high": speed.get("high", 0) / base["low"], "over_start": speed.get("ratio"),
                        "answers": each.get("answers", ""),
                        "reason": (((each.get("evaluation") or {}).get("outcome") or {}).get("reason") or "")[:300]})
    return out


def rows(options):
    lines, newest = [], {}
    for name, _, run in runs(options):
        newest[name] = max(newest.get(name, 0), measured(run))
    for name, arm, run in runs(options):
        out, _ = call(options, "show", run, "--json")
        lines += [json.dumps({"task": name.replace("-", "/", 1), "parent": name, "arm": arm} | row)
                  for row in rows_of(run, json.loads(out))
                  if not options.last or (row["generation"] == newest[name] and row["by"] != "tuner")]
    with open(options.output, "w", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in lines)
    print("\n".join(lines))


def table(options):
    with open(options.rows, encoding="utf-8") as file:
        data = [json.loads(line) for line in file]
    arms = [arm for arm in ARMS if any(row["arm"] == arm for row in data)]
    tasks, last = sorted({row["task"] for row in data}), max(row["generation"] for row in data)

    def best(task, arm, generation, ranked=False):
        return max([1.0] + [row["over_start"] for row in data if row["outcome"] == "correct" and row["task"] == task
                            and row["arm"] == arm and row["generation"] <= generation and row["over_start"]
                            and not (ranked and set(row["labels"]) & LOWERED)])
    print("| arm | candidates | correct | faster than what they were built on | "
          + " | ".join(f"after generation {g}" for g in range(1, last + 1)) + " | 95 % interval |")
    print("|---" * (5 + last) + "|")
    for arm in arms:
        mine = [row for row in data if row["arm"] == arm and row.get("by") != "tuner"]
        right = [row for row in mine if row["outcome"] == "correct"]
        sums = [geometric([best(task, arm, g) for task in tasks]) for g in range(1, last + 1)]
        low, high = interval([best(task, arm, last) for task in tasks])
        print(f"| {arm} | {len(mine)} | {len(right)} | {sum(row['low'] > 1 for row in right)} | "
              + " | ".join(f"{each:.3f}x" for each in sums) + f" | {low:.3f} to {high:.3f} |")
    print("\n| task | " + " | ".join(arms) + " |\n|---" + "|---" * len(arms) + "|")
    for task in tasks:
        print(f"| {task} | " + " | ".join(
            ", ".join(f"{best(task, arm, g):.2f}x" for g in range(1, last + 1)) for arm in arms) + " |")

    print("\n| arms, of the tasks that both were asked in | tasks | first | second | ratio | 95 % interval | "
          "deviation of its logarithm | better, equal (within 2 %), worse |\n|---|---|---|---|---|---|---|---|")
    base = arms[0]
    for arm in arms[1:]:
        for generation in range(1, last + 1):
            both = [task for task in tasks if all(any(row["task"] == task and row["arm"] == each
                    and row["generation"] == generation for row in data) for each in (arm, base))]
            for ranked in (False, True) if len(both) > 1 else ():
                first, second = ([best(task, each, generation, ranked) for task in both] for each in (arm, base))
                ratios = [a / b for a, b in zip(first, second)]
                low, high = interval(ratios)
                print(f"| {arm} over {base}, generation {generation}{', without labels that rank lower' if ranked else ''} | "
                      f"{len(both)} | {geometric(first):.3f}x | {geometric(second):.3f}x | {geometric(ratios):.3f}x | "
                      f"{low:.3f} to {high:.3f} | {statistics.stdev(map(math.log, ratios)):.2f} | "
                      f"{sum(r > 1.02 for r in ratios)}, {sum(abs(r - 1) <= 0.02 for r in ratios)}, "
                      f"{sum(r < 0.98 for r in ratios)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    for name in ("begin", "recall", "ask", "measure", "confirm", "rows", "keep", "table"):
        verb = verbs.add_parser(name)
        if name == "table":
            verb.add_argument("rows")
            continue
        verb.add_argument("folder")
        if name == "keep":
            verb.add_argument("archive")
            verb.add_argument("--preset", type=int, default=6, help="how small xz makes it; 1 takes a third of the time")
        verb.add_argument("--kernelpro", default=os.path.join(ROOT, "build/release/bin/kernelpro"))
        verb.add_argument("--gpus", type=int, default=1)
        verb.add_argument("--each", type=int, default=1, help="runs at a time on each GPU; they wait for it to measure")
        verb.add_argument("--only", default="", help="tasks, by their folders' names, separated by commas, in this order")
        verb.add_argument("--seconds", type=float, default=1e9, help="begin nothing later; call it again")
        verb.add_argument("--extra", action="append", default=[], help="a further option of the command, as --extra=--no-probes")
        if name == "begin":
            verb.add_argument("--arms", default="none,diagnosed,asked")
            verb.add_argument("--tune", type=int, default=0, help="settings to try of each source's knobs")
            verb.add_argument("--after", default="", help="an experiment whose best kernel of the task is tried right after the start")
        if name == "recall":
            verb.add_argument("--archive", default=os.path.join(HERE, "generations.tar.xz"))
            verb.add_argument("--include", action="append", default=[], help="CUTLASS's headers, for runs in CuTe")
            verb.add_argument("--timeout", type=float, default=10, help="seconds of a call, also of one that hangs while others wait")
        if name == "ask":
            verb.add_argument("--again", action="store_true", help="diagnose anew, by today's tools, what was measured")
        if name == "confirm":
            verb.add_argument("--best", action="store_true", help="of a task's arms, the one with the best kernel alone")
        if name == "measure":
            verb.add_argument("--confirm", action="store_true", help="in the same call, which is quicker than `confirm` afterwards")
        if name in ("measure", "rows"):
            verb.add_argument("--output", help="by default DIR/rows.jsonl")
            verb.add_argument("--last", action="store_true", help="each task's newest generation alone, for ablation.py table")
    options = parser.parse_args()
    if getattr(options, "output", "") is None:
        options.output = os.path.join(options.folder, "rows.jsonl")
    options.until = time.monotonic() + getattr(options, "seconds", 0)
    {"begin": begin, "recall": recall, "ask": ask, "measure": measure, "confirm": confirm, "rows": rows,
     "keep": keep, "table": table}[options.verb](options)


if __name__ == "__main__":
    sys.exit(main())
