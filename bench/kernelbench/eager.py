#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""False positives on KernelBench's modules as candidates for themselves ("eager starts"): each
task's unchanged Model, at fp32, through `kernelpro evaluate` on new inputs for each draw. Tasks of
levels 1 to 3 that src/suite/degenerate.csv and eager.csv do not list. Needs a GPU.

    bench/kernelbench/eager.py --kernelbench CHECKOUT --out FILE [--kernelpro PROGRAM]
        [--tasks 1/1,2/40-60] [--draws 3] [--jobs 8] [--gpus 1] [--timed] [--seconds 500] [--list]

Checks only verdicts (--no-timing); --timed also times the modules, on a GPU shared with other
evaluations. A task that ends in an error, such as lack of memory next to others, is retried alone.

Each finished task is one line of JSON in FILE; tasks with a line there are not run again, so the
same command continues where it stopped (--retry-errors repeats the tasks that ended in an error).
Prints a table, and exits 1 when a start was not judged correct, 3 when tasks remain.
"""

import argparse
import concurrent.futures
import csv
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LISTS = [os.path.join(HERE, "..", "..", "src", "suite", "degenerate.csv"),
         os.path.join(HERE, "eager.csv")]
# Each evaluation holds the inputs of two sets and a spare, so tasks with large tensors run next to
# fewer others: SIZES lists each task's gigabytes, ROOM limits the total.
SIZES = os.path.join(HERE, "sizes.csv")
ROOM = 125.0
CONTEXTS = 3.0  # gigabytes of contexts and small tensors per evaluation
SETS = 6.5  # memory of an evaluation as a multiple of the task's size: sets, float64 results
SETS_TIMED = 9.0  # ... four sets
UNLISTED = 0.5  # the size of tasks that SIZES does not list


def rows(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.reader(line for line in file if not line.startswith("#")))


def excluded():
    return {row[0]: row[1] for path in LISTS for row in rows(path) if row}


def all_tasks(checkout):
    """label -> path, in order."""
    found = {}
    for level in (1, 2, 3):
        folder = os.path.join(checkout, "KernelBench", f"level{level}")
        for name in os.listdir(folder):
            number = re.match(r"(\d+)_.*\.py$", name)
            if number:
                found[level, int(number[1])] = os.path.join(folder, name)
    return {f"{level}/{number}": found[level, number] for level, number in sorted(found)}


def selected(labels, text):
    """`text`: "1/3,2/40-60,3"; "" is all."""
    if not text:
        return list(labels)
    wanted = set()
    for part in text.split(","):
        match = re.fullmatch(r"(\d+)(?:/(\d+)(?:-(\d+))?)?", part.strip())
        if not match:
            raise SystemExit(f"eager.py: cannot read \"{part}\" in --tasks: write 2, 2/40 or 2/40-60")
        level, first = match[1], int(match[2] or 0)
        last = int(match[3] or match[2] or 10**6)
        some = [label for label in labels if label.split("/")[0] == level
                and first <= int(label.split("/")[1]) <= last]
        if not some:
            raise SystemExit(f"eager.py: --tasks {part} names no task")
        wanted.update(some)
    return [label for label in labels if label in wanted]


class Room:
    """Gigabytes of each GPU's memory, which evaluations share. Larger requests take all of it."""

    def __init__(self, gpus, total):
        self._total = total
        self._free = [total] * gpus
        self._changed = threading.Condition()

    def take(self, amount):
        """A GPU's index and the gigabytes reserved there until released."""
        amount = min(amount, self._total)
        with self._changed:
            self._changed.wait_for(lambda: max(self._free) >= amount)
            gpu = self._free.index(max(self._free))
            self._free[gpu] -= amount
        return gpu, amount

    def give_back(self, gpu, amount):
        with self._changed:
            self._free[gpu] += amount
            self._changed.notify_all()


def ends(text):
    text = text.strip()
    return text if len(text) < 700 else f"{text[:300]} ... {text[-300:]}"


def judge(options, label, path, gpu):
    """One program for all draws: the same module under different names, each on different inputs."""
    begin = time.perf_counter()
    with open(path, encoding="utf-8") as file:
        source = file.read()
    record = {"task": label, "name": os.path.basename(path)}
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for draw in range(options.draws):
            files.append(os.path.join(folder, f"draw{draw}.py"))
            with open(files[-1], "w", encoding="utf-8") as file:
                file.write(f"{source}\n\n# draw {draw}\nModelNew = Model\n")
        command = [options.kernelpro, "evaluate", path, *files, "--target", "cuda", "--redraw",
                   "--gpu", gpu, "--timeout", "60", "--json"]
        if not options.timed:
            command.append("--no-timing")
        try:
            # A separate lease folder, so that evaluations share the GPU.
            own = {**os.environ, "KERNELPRO_LEASES": folder}
            done = subprocess.run(command, capture_output=True, text=True, timeout=options.limit,
                                  env=own)
            answers = json.loads(done.stdout)
        except subprocess.TimeoutExpired:
            return {**record, "error": f"no answer in {options.limit:g} s", "draws": []}
        except ValueError:
            said = ends(done.stderr or done.stdout) or f"exit status {done.returncode}"
            return {**record, "error": said, "status": done.returncode, "draws": [],
                    "seconds": round(time.perf_counter() - begin, 2)}
    answers = answers if isinstance(answers, list) else [answers]
    record["draws"] = [{key: answer.get(key) for key in
                        ("outcome", "rule", "reason", "max_error", "labels", "notes")}
                       for answer in answers]
    record["seconds"] = round(time.perf_counter() - begin, 2)
    return record


def verdict(record, draws):
    """correct, wrong (the evaluator refused honest work) or error (there is no verdict)."""
    if record.get("error") or len(record["draws"]) != draws:
        return "error"
    outcomes = {draw["outcome"] for draw in record["draws"]}
    if outcomes == {"correct"}:
        return "correct"
    return "wrong" if outcomes & {"wrong-result", "rejected"} else "error"


def read_records(path):
    records = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            for line in file:
                try:
                    record = json.loads(line)
                    records[record["task"]] = record
                except (ValueError, KeyError):
                    pass  # the last line of an interrupted run
    return records


def sizes():
    return {row[0]: float(row[1]) for row in rows(SIZES) if row}


def run(options, tasks, todo, records):
    """Largest first, since they run alone; stops starting tasks after options.seconds."""
    known = sizes()
    room, lock = Room(options.gpus, options.room), threading.Lock()
    stop = time.monotonic() + options.seconds
    todo = sorted(todo, key=lambda label: -known.get(label, UNLISTED))
    again = []

    def one(label, alone):
        if time.monotonic() > stop:
            return
        sets = SETS_TIMED if options.timed else SETS
        size = CONTEXTS + sets * known.get(label, UNLISTED)
        gpu, held = room.take(options.room if alone else size)
        try:
            if time.monotonic() > stop:
                return
            record = judge(options, label, tasks[label], str(gpu))
        finally:
            room.give_back(gpu, held)
        if not alone and verdict(record, options.draws) == "error":
            again.append(label)
            return
        with lock:
            records[label] = record
            with open(options.out, "a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")

    for alone, labels in ((False, todo), (True, again)):
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for each in [pool.submit(one, label, alone) for label in list(labels)]:
                each.result()


def table(options, labels, records):
    counts = {"correct": 0, "wrong": 0, "error": 0}
    remarks = {}
    largest = (0.0, "")
    for label in labels:
        record = records.get(label)
        if record is None:
            continue
        what = verdict(record, options.draws)
        counts[what] += 1
        for draw in record["draws"]:
            largest = max(largest, (draw.get("max_error") or 0.0, label))
            for name in draw.get("labels") or []:
                remarks.setdefault(name, set()).add(label)
        if what == "correct":
            continue
        print(f"{label} {what}: {record['name']}")
        for i, draw in enumerate(record["draws"]):
            if draw["outcome"] != "correct":
                print(f"    draw {i}: {draw['outcome']} {draw['rule'] or ''} {draw['reason'] or ''}")
        if record.get("error"):
            print("    " + record["error"].replace("\n", "\n    "))
    for name, where in sorted(remarks.items()):
        print(f"label {name}: {len(where)} tasks: {', '.join(w for w in labels if w in where)}")
    ran = sum(counts.values())
    print(f"eager starts judged correct in all of {options.draws} draws: {counts['correct']} of {ran}"
          f" (wrong {counts['wrong']}, without a verdict {counts['error']}, not run yet "
          f"{len(labels) - ran}); largest error {largest[0]:.2g} of what is allowed ({largest[1]})")
    if counts["wrong"] or counts["error"]:
        return 1
    return 3 if ran < len(labels) else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernelbench", required=True, help="a checkout")
    parser.add_argument("--kernelpro", default="kernelpro", help="the program")
    parser.add_argument("--out", help="lines of JSON; continued when it is there")
    parser.add_argument("--tasks", default="", help="some of them: 1/1,2/40-60,3")
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=8, help="evaluations at once")
    parser.add_argument("--gpus", type=int, default=1, help="how many to use")
    parser.add_argument("--room", type=float, default=ROOM, help="GB of a GPU's memory for all of them")
    parser.add_argument("--timed", action="store_true", help="time the starts too, side by side")
    parser.add_argument("--seconds", type=float, default=1e9, help="start no task after this time")
    parser.add_argument("--limit", type=float, default=240, help="seconds for one task")
    parser.add_argument("--retry-errors", action="store_true", help="run tasks without a verdict again")
    parser.add_argument("--list", action="store_true", help="print the tasks and what is left out")
    options = parser.parse_args()

    tasks, left_out = all_tasks(options.kernelbench), excluded()
    labels = [l for l in selected(tasks, options.tasks) if l not in left_out]
    if options.list:
        for label in selected(tasks, options.tasks):
            print(f"{label:6} {left_out.get(label, '')}".rstrip())
        print(f"{len(labels)} tasks run, {len(tasks) - len(labels)} do not")
        return 0
    if not options.out:
        parser.error("--out FILE is missing: where the results go")
    if os.path.exists(options.kernelpro):
        options.kernelpro = os.path.abspath(options.kernelpro)
    records = read_records(options.out)
    todo = [l for l in labels if l not in records
            or (options.retry_errors and verdict(records[l], options.draws) == "error")]
    begin = time.perf_counter()
    run(options, tasks, todo, records)
    status = table(options, labels, records)
    print(f"{time.perf_counter() - begin:.0f} s, {options.jobs} at once")
    return status


if __name__ == "__main__":
    sys.exit(main())
