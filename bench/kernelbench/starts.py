#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a first request would hold: KernelBench's modules, unchanged, diagnosed as starts. Needs a GPU.

    bench/kernelbench/starts.py --kernelbench CHECKOUT --keep DIR [--kernelpro PROGRAM]
        [--tasks 1/1,2/40-60] [--draw N] [--seed 0] [--seconds 500]
    bench/kernelbench/starts.py --from DIR [--kernelpro PROGRAM]

Evaluates each task's Model as its own candidate, with all counters and samples, one after the
other. --draw takes N of the tasks at random, by --seed. Tasks that src/suite/degenerate.csv or
eager.csv lists are left out. --keep stores each verdict; --from reads them again, has today's tools
diagnose their evidence, and needs no GPU. Prints a row for each task, and how many have a specific
finding or a stop.
"""

import argparse
import glob
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import eager

TOOLS = os.path.join(HERE, "..", "..", "src", "diagnose", "tools", "*", "*.cc")


def catch_alls():
    """The tools whose row says that they speak where no other does."""
    found = set()
    for path in glob.glob(TOOLS):
        with open(path, encoding="utf-8") as file:
            if "catch_all = true" in file.read():
                found.add(os.path.basename(os.path.dirname(path)))
    return found


def last_object(text):
    start = text.find("{")
    return json.loads(text[start:]) if start >= 0 else None


def evaluate(options, path):
    with tempfile.TemporaryDirectory() as folder:
        start = os.path.join(folder, "start.py")
        with open(path, encoding="utf-8") as file:
            source = file.read()
        with open(start, "w", encoding="utf-8") as file:
            file.write(source + "\n\nModelNew = Model\n")
        command = [options.kernelpro, "evaluate", path, start, "--target", "cuda", "--profile",
                   "full", "--no-probes", "--timeout", "60", "--json"]
        begin = time.perf_counter()
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=options.limit)
            answer = last_object(done.stdout)
        except subprocess.TimeoutExpired:
            return {"error": "no answer in %g s" % options.limit}
        except ValueError:
            answer = None
        if answer is None:
            return {"error": eager.ends(done.stderr or done.stdout)}
        answer["seconds"] = round(time.perf_counter() - begin, 2)
        return answer


def diagnose_again(options, record):
    """Today's tools on a stored verdict."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(record, file)
        file.flush()
        done = subprocess.run([options.kernelpro, "diagnose", "--json", "--no-record", file.name],
                              capture_output=True, text=True, timeout=120)
    answer = last_object(done.stdout)
    if answer is None:
        raise SystemExit("starts.py: diagnose says: " + eager.ends(done.stderr))
    return answer["diagnosis"]


def row(label, record, diagnosis, generic):
    findings = diagnosis.get("findings", [])
    stop = any(f.get("stop") for f in findings)
    specific = [f for f in findings if f["tool"] not in generic and not f.get("stop")]
    said = ", ".join("%s %.2f" % (f["tool"], f["likely_speedup"]) for f in findings) or "nothing"
    evidence = record.get("phases_ms", {}).get("evidence", 0)
    print("| %s | %s | %.0f | %.0f %% | %.0f | %s |" % (
        label, record.get("trust", ""), record.get("time_us", 0),
        100 * diagnosis.get("fraction_of_ceiling", 0), evidence, said))
    return {"specific": bool(specific), "stop": stop, "silent": not findings,
            "evidence_ms": evidence}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernelbench", help="a checkout")
    parser.add_argument("--kernelpro", default="build/release/bin/kernelpro")
    parser.add_argument("--keep")
    parser.add_argument("--from", dest="source")
    parser.add_argument("--tasks", default="")
    parser.add_argument("--draw", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=1e9, help="start no task after this time")
    parser.add_argument("--limit", type=float, default=120, help="seconds for one task")
    options = parser.parse_args()
    generic = catch_alls()

    todo = []
    if options.source:
        for path in sorted(glob.glob(os.path.join(options.source, "*.json"))):
            label = re.sub("-", "/", os.path.basename(path)[:-len(".json")])
            todo.append((label, path))
    else:
        if not options.kernelbench:
            parser.error("name a checkout with --kernelbench, or a kept folder with --from")
        tasks, left_out = eager.all_tasks(options.kernelbench), eager.excluded()
        labels = [l for l in eager.selected(tasks, options.tasks) if l not in left_out]
        if options.draw:
            labels = random.Random(options.seed).sample(labels, min(options.draw, len(labels)))
        todo = [(label, tasks[label]) for label in labels]
    if options.keep:
        os.makedirs(options.keep, exist_ok=True)

    stop = time.monotonic() + options.seconds
    print("| task | trust | us | of the ceiling | evidence, ms | findings, likely gain |")
    print("|---|---|---|---|---|---|")
    rows, failed, late = [], [], 0
    for label, path in todo:
        if time.monotonic() > stop:
            late += 1
            continue
        if options.source:
            with open(path, encoding="utf-8") as file:
                record = json.load(file)
        else:
            record = evaluate(options, path)
        if options.keep:
            with open(os.path.join(options.keep, label.replace("/", "-") + ".json"), "w",
                      encoding="utf-8") as file:
                json.dump(record, file)
        if record.get("outcome") != "correct":
            said = record.get("error") or "%s: %s" % (record.get("outcome"), record.get("reason"))
            failed.append("%s: %s" % (label, said))
            continue
        diagnosis = diagnose_again(options, record) if options.source else record["diagnosis"]
        rows.append(row(label, record, diagnosis or {}, generic))
    for each in failed:
        print(each)
    print("\na specific finding or a stop in %d of %d first diagnoses (specific %d, stop %d, silent %d);"
          " evidence of a start: median %.0f ms; not judged correct %d, not run %d" % (
              sum(r["specific"] or r["stop"] for r in rows), len(rows),
              sum(r["specific"] for r in rows), sum(r["stop"] for r in rows),
              sum(r["silent"] for r in rows),
              sorted(r["evidence_ms"] for r in rows)[len(rows) // 2] if rows else 0,
              len(failed), late))
    return 1 if failed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
