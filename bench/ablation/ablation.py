#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a diagnosis is worth to a writer: one step from the same parents, with different feedback.

    bench/ablation/ablation.py draw --kernelbench CHECKOUT --count 18            # the tasks, by a rule
    bench/ablation/ablation.py begin DIR --kernelbench CHECKOUT --count 18       # GPU: a run of each task
    bench/ablation/ablation.py restore DIR                                       # or those of starts.tar.xz
    bench/ablation/ablation.py ask DIR first                                     # requests for first kernels
    bench/ablation/ablation.py recall DIR                                        # or those of the archives
    bench/ablation/ablation.py parents DIR                                       # GPU: judges them, a run of each parent
    bench/ablation/ablation.py ask DIR step                                      # requests of each arm
    bench/ablation/ablation.py again DIR mended                                  # an arm of today's tools
    bench/ablation/ablation.py judge DIR --output results/ablation.jsonl         # GPU: candidates against their parents
    bench/ablation/ablation.py table results/ablation.jsonl
    bench/ablation/ablation.py promised DIR mended                               # and what came of it
    bench/ablation/ablation.py keep DIR ARCHIVE                                  # for recall --archives

`draw` leaves out degenerate tasks (src/suite/degenerate.csv, bench/kernelbench/eager.csv) and those of
results/kernelbench, and takes the first --count of each level in the order of the SHA-256 of
"SEED:LEVEL/NUMBER". `ask` writes DIR/requests/TASK/ARM/, each a folder that a writer sees alone; it
puts kernels into reply/. A parent is the first correct first kernel, by name, that reaches 5 to 85 %
of its ceiling. Each candidate of a step is timed in turn with its parent; a failed one counts as 1x,
since a search would keep the parent. `parents` and `judge` leave out what is there already. `table` gives for each arm the geometric mean of the parents'
better candidate (not below 1x), and for two arms the ratio over the parents that both have, with a
percentile bootstrap interval; --without PARENT... leaves some out.

starts.tar.xz has the runs that `begin` made of 36 tasks on an H200 (levels 1 and 2, 18 of each, seed
1; several at a time, so their times are rough). first.tar.xz has two first kernels for each of 30 of
them (not for six elementwise ones, where nothing is left to win), by a language model, a fresh one for
each task, from the request alone. step.tar.xz has the 24 parents among them, the run of each with what
was observed of it, and the candidates of five arms, two each, by a fresh writer for each parent and
arm; of the last two, `mended` and `placed`, with the requests. `recall` puts both, and the rows in results/, into DIR:
`judge` goes on with what is not judged (with `--extra=--no-probes` in about half of the time), and
`again` asks once more, with the diagnosis of the tools as they are now.
"""

import argparse
import concurrent.futures
import contextlib
import glob
import hashlib
import json
import math
import os
import queue
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import threading
import time

from gains import promised, table

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
ARMS = ("none", "raw", "diagnosed")
PARENT_SHARES = (0.05, 0.85)


def excluded():
    """Tasks "LEVEL/NUMBER" that are degenerate or were used before."""
    out = set()
    for path in ("src/suite/degenerate.csv", "bench/kernelbench/eager.csv"):
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            out.update(m.group(1) for m in re.finditer(r"^(\d+/\d+),", file.read(), re.M))
    with tarfile.open(os.path.join(ROOT, "results/kernelbench/suite.tar.xz")) as archive:
        for name in archive.getnames():
            out.update("/".join(m) for m in re.findall(r"level(\d)-(\d+)_", name))
    return out


def draw(options):
    """[(name, path)] by the rule: the first `count` of each level."""
    out, used = [], excluded()
    for level in options.levels.split(","):
        tasks = []
        for path in glob.glob(os.path.join(options.kernelbench, "KernelBench", "level" + level, "*.py")):
            name = level + "/" + os.path.basename(path).split("_")[0]
            if name not in used:
                tasks.append((hashlib.sha256(f"{options.seed}:{name}".encode()).hexdigest(), name, path))
        out += [(name.replace("/", "-"), path) for _, name, path in sorted(tasks)[:options.count]]
    return out


RUNNING = {}  # leaders of process groups, and how each is told to end: os.kill, os.killpg
ENDED = threading.Event()


def end_running(*_):
    """On SIGTERM: no more begins, and what runs is interrupted."""
    ENDED.set()
    for pid, tell in list(RUNNING.items()):
        with contextlib.suppress(ProcessLookupError):
            tell(pid, signal.SIGTERM)


def call(options, *arguments, seconds=300, gpu=None, accepted=(0, 1, 7)):
    """(standard output, what went wrong or ""). `gpu`: the only one that it sees. `accepted`: exit statuses that are
    no failure; 1 is a kernel that is not correct, 7 a run whose replies are still to come."""
    seen = os.environ | ({"CUDA_VISIBLE_DEVICES": gpu} if gpu is not None else {})
    with subprocess.Popen([options.kernelpro, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=seen, start_new_session=True) as running:
        RUNNING[running.pid] = os.kill  # it ends its workers itself
        if ENDED.is_set():
            end_running()
        try:
            out, said = running.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)  # its workers too, which would go on using the GPU
            return "", f"no answer in {seconds} s"
        finally:
            RUNNING.pop(running.pid)
    return out, "" if running.returncode in accepted else (said or out or f"it ended with status {running.returncode}")[-600:]


def side_by_side(options, work, items, each):
    """work(item, options that name a GPU) for all items, `each` at a time on each GPU; None for those
    that did not begin in time. SIGTERM interrupts those that run, as it would interrupt one of them."""
    free = queue.Queue()
    for _ in range(each):
        for gpu in range(options.gpus):
            free.put(["--gpu", str(gpu)] if options.gpus > 1 else [])

    def one(item):
        if ENDED.is_set() or time.monotonic() > options.until:
            return None
        gpu = free.get()
        try:
            return work(item, gpu)
        finally:
            free.put(gpu)
    before = signal.signal(signal.SIGTERM, end_running)
    try:
        with concurrent.futures.ThreadPoolExecutor(each * options.gpus) as pool:
            return list(pool.map(one, items))
    finally:
        signal.signal(signal.SIGTERM, before)


def start_run(options, task, run, *more):
    shutil.rmtree(run, ignore_errors=True)
    _, wrong = call(options, "optimize", task, "--proposer", "exchange", "--exchange-wait", "0", "--target",
                    "cuda", "--run", run, "--no-record", "--tune", str(getattr(options, "tune", 0)), "--timeout", "60",
                    *more)
    return wrong


def begin(options):
    def one(item, gpu):
        name, path = item
        folder = os.path.join(options.folder, name)
        if os.path.exists(os.path.join(folder, "first", "report.html")):
            return
        os.makedirs(folder, exist_ok=True)
        shutil.copy(path, os.path.join(folder, "task.py"))
        wrong = start_run(options, os.path.join(folder, "task.py"), os.path.join(folder, "first"),
                          "--feedback", "none", "--profile", "off", *gpu, *options.extra)
        print(f"{name}: {wrong or 'begun'}", flush=True)
    side_by_side(options, one, draw(options), options.jobs)


def restore(options):
    with tarfile.open(os.path.join(HERE, "starts.tar.xz")) as archive:
        for member in archive:
            name = member.name.removesuffix(".jsonl")
            folder = os.path.join(options.folder, name)
            os.makedirs(folder)
            text = archive.extractfile(member).read().decode()
            with open(os.path.join(folder, "task.py"), "w", encoding="utf-8") as file:
                file.write(json.loads(text.split("\n", 1)[0])["run"]["task"]["module"]["source"])
            recorded = os.path.join(folder, "first.jsonl")
            with open(recorded, "w", encoding="utf-8") as file:
                file.write(text)
            _, wrong = call(options, "pack", recorded, os.path.join(folder, "first"))
            print(f"{name}: {wrong or 'restored'}", flush=True)


def folders(options):
    return sorted(os.path.dirname(path) for path in glob.glob(os.path.join(options.folder, "*", "task.py")))


def ask(options):
    """A folder for each writer: the request's files, without anything of the run."""
    arms = ("first",) if options.stage == "first" else options.arms.split(",")
    for folder in folders(options):
        run = os.path.join(folder, options.stage)
        if not os.path.exists(os.path.join(run, "store.db")) or (
                options.stage == "step" and not os.path.exists(os.path.join(folder, "parent.cu"))):
            continue
        for arm in arms:
            seen = os.path.join(options.folder, "requests", os.path.basename(folder), arm)
            if os.path.exists(seen):
                continue
            feedback = ["--feedback", arm] if arm != "first" else []
            out, wrong = call(options, "propose", run, "-n", "1", "--json", *feedback, *options.extra)
            if wrong:
                print(f"{folder}, {arm}: {wrong}")
                continue
            request = json.loads(out[out.index("{"):])["requests"][0]
            shutil.copytree(request if os.path.isabs(request) or os.path.exists(request)
                            else os.path.join(run, request), seen)
            print(seen)


def right_waits(kernel):
    """Waits for matrix products by that name. What was recorded before `awaited_at` (src/profile/places/blame.h)
    has the hardware's: waits for a group of them count as barriers, those of a product for another as arrivals."""
    places = kernel.get("places") or {}
    if places.get("basis") != "sampled":
        return
    for each in places.get("places", []):
        code = each["at"].get("code", "")
        named = {"barrier": "WARPGROUP.DEPBAR", "warpgroup_arrive": "GMMA."}.get(each["stall"])
        if not named or named not in code:
            continue
        for stall, sign in ((each["stall"], -1), ("gmma", 1)):
            entry = next((one for one in places["stalls"] if one["stall"] == stall), None)
            if entry is None:
                entry = {"stall": stall, "share": 0, "exposed": 0}
                places["stalls"].append(entry)
            for key in ("share", "exposed"):
                entry[key] = max(0.0, entry[key] + sign * each[key])
        each["stall"] = "gmma"
        each["producers"] = [one for one in each.get("producers", []) if "GMMA" in one["at"].get("code", "")]
        for role in places.get("roles", []):
            for wait in role.get("waits", []):
                if wait["stall"] == ("barrier" if "DEPBAR" in code else "warpgroup_arrive") and wait.get("line") in (
                        [each["at"].get("line")] + [one["line"] for one in each["at"].get("callers", [])]):
                    wait["stall"] = "gmma"
    places["stalls"].sort(key=lambda one: -one["share"])


def right_evidence(run, candidate):
    """Gives the lines that its evidence names their texts, and renames waits for matrix products to gmma. What was
    recorded before 2026-11-29 has the texts of earlier lines: it read the file that was compiled, with the
    knobs' values in front."""
    store = sqlite3.connect(os.path.join(run, "store.db"))
    text, = store.execute("select text from sources where hash = (select source from candidates where id = ?)",
                          (candidate,)).fetchone()
    source = [""] + [line.strip() for line in text.split("\n")]

    def mend(item):
        if isinstance(item, dict):
            shown = item.get("text", "")  # "asm INSTRUCTION" is of later ones
            if item.get("file") == "kernel.cu" and shown and not shown.startswith("asm ") and 0 < item["line"] < len(source):
                item["text"] = source[item["line"]]
            item = list(item.values())
        elif isinstance(item, list) and len(item) == 3 and item[0] == "kernel.cu" and 0 < item[1] < len(source):
            item[2] = source[item[1]]
        for each in item if isinstance(item, list) else ():
            mend(each)
    for evidence, in store.execute("select json from evidence where candidate = ?", (candidate,)).fetchall():
        known = json.loads(evidence)
        mend(known)
        for kernel in known.get("kernels", []):
            right_waits(kernel)
        store.execute("update evidence set json = ? where candidate = ?", (json.dumps(known), candidate))
    store.commit()
    store.close()


def diagnose_again(options, run, candidate):
    """Stores what today's tools say of the evidence that was kept; what went wrong, or None."""
    right_evidence(run, candidate)
    _, wrong = call(options, "diagnose", f"{run}:{candidate}", "--keep", "--no-record")
    return wrong or None


def again(options):
    """Requests of an arm whose diagnosis is that of the tools as they are now."""
    for folder in folders(options):
        run, seen = (os.path.join(options.folder, *path) for path in (
            (os.path.basename(folder), "step"), ("requests", os.path.basename(folder), options.arm)))
        if not os.path.exists(os.path.join(run, "store.db")) or os.path.exists(seen):
            continue
        with tempfile.TemporaryDirectory() as copy:
            other = shutil.copytree(run, os.path.join(copy, "run"))
            wrong = diagnose_again(options, other, 1)
            if wrong:
                print(f"{folder}: {wrong}")
                continue
            store = sqlite3.connect(os.path.join(other, "store.db"))
            store.execute("delete from requests")  # else the next finding would be asked for
            store.commit()
            store.close()
            out, wrong = call(options, "propose", other, "-n", "1", "--json", "--feedback", "diagnosed",
                              *options.extra)
            if wrong:
                print(f"{folder}: {wrong}")
                continue
            request = json.loads(out[out.index("{"):])["requests"][0]
            shutil.copytree(os.path.join(other, request), seen)
            print(seen)


def recall(options):
    """Puts what the archives hold, TASK/..., where it belongs: run.jsonl, parent.cu, ARM/KERNEL, ARM/prompt.md, and
    kernels without an arm, which are first ones."""
    for archive in options.archives:
        with tarfile.open(archive) as file:
            for member in file:
                name, _, path = member.name.removeprefix("./").partition("/")
                folder = os.path.join(options.folder, name)
                if not member.isfile() or not os.path.isdir(folder):
                    continue
                arm, _, kernel = path.rpartition("/")
                if path in ("run.jsonl", "parent.cu"):
                    to = os.path.join(folder, "step.jsonl" if path == "run.jsonl" else path)
                else:
                    reply = ("reply",) if kernel.endswith(".cu") else ()  # else the request's own text
                    to = os.path.join(options.folder, "requests", name, arm or "first", *reply, kernel)
                os.makedirs(os.path.dirname(to), exist_ok=True)
                with open(to, "wb") as out:
                    out.write(file.extractfile(member).read())
                if path == "run.jsonl" and not os.path.exists(os.path.join(folder, "step")):
                    _, wrong = call(options, "pack", to, os.path.join(folder, "step"))
                    print(f"{name}: {wrong or 'recalled'}", flush=True)
    if os.path.exists(options.rows):  # what was judged already
        with open(options.rows, encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        for parent in {row["parent"] for row in rows}:
            with open(os.path.join(options.folder, parent, "step.json"), "w", encoding="utf-8") as file:
                json.dump([row for row in rows if row["parent"] == parent], file)


def keep(options):
    """The parents' runs as text, first kernels, requests and candidates, in an archive that recall reads."""
    with tempfile.TemporaryDirectory() as into:
        for folder in folders(options):
            name = os.path.basename(folder)
            requests = os.path.join(options.folder, "requests", name)
            for path in glob.glob(os.path.join(requests, "*", "reply", "*.cu")) + glob.glob(
                    os.path.join(requests, "*", "prompt.md")):
                arm = os.path.relpath(path, requests).split(os.sep)[0]
                first = arm == "first" and path.endswith(".cu")
                os.makedirs(os.path.join(into, name, *([] if first else [arm])), exist_ok=True)
                shutil.copy(path, os.path.join(into, name, *([] if first else [arm])))
            if os.path.exists(os.path.join(folder, "parent.cu")):
                shutil.copy(os.path.join(folder, "parent.cu"), os.path.join(into, name))
            if os.path.exists(os.path.join(folder, "step", "store.db")):
                text = os.path.join(into, name, "run.jsonl")
                _, wrong = call(options, "trajectories", os.path.join(folder, "step"), "--output", text)
                if not wrong:
                    without_paths(text)
                elif os.path.exists(text):
                    os.remove(text)
                print(f"{name}: {wrong or 'kept'}")
        with tarfile.open(options.archive, "w:xz") as archive:
            for name in sorted(os.listdir(into)):
                archive.add(os.path.join(into, name), name)


def without_paths(path):
    """Takes the folders of the machine out of a run's text."""
    with open(path, encoding="utf-8") as file:
        head, rest = file.read().split("\n", 1)
    run = json.loads(head)
    run["run"]["task"]["folder"] = ""
    run["run"]["settings"]["include_dirs"] = []
    text = re.sub(r"/(?:tmp|home|root|work)/[\w./-]*/([\w.-]+)", r"\1", json.dumps(run) + "\n" + rest)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def arms_of(options, name):
    """The arms that a parent was asked in, those of ARMS first."""
    folder = os.path.join(options.folder, "requests", name)
    return sorted(set(os.listdir(folder) if os.path.exists(folder) else []) - {"first"}, key=lambda arm: (ARMS.index(arm) if arm in ARMS else len(ARMS), arm))


def replies(options, name, arm):
    return sorted(glob.glob(os.path.join(options.folder, "requests", name, arm, "reply", "*.cu")))


def verdicts(options, folder, kernels, *more):
    """The verdict on each kernel, in their order; None where there is none."""
    out, wrong = call(options, "evaluate", os.path.join(folder, "task.py"), *kernels, "--target", "cuda", "--json",
                      "--timeout", "60", *more, seconds=120 + 60 * len(kernels))
    starts = [i for i in (out.find("["), out.find("{")) if i >= 0]
    if not starts and len(kernels) > 1 and "next:" in wrong:  # one that cannot be read ends the call for all
        return [verdicts(options, folder, [kernel], *more)[0] for kernel in kernels]
    if not starts:
        print(f"{folder}: {wrong}", flush=True)
        return [{"outcome": "refused", "reason": wrong}] if "next:" in wrong else [None]
    answer = json.loads(out[min(starts):])
    return answer if isinstance(answer, list) else [answer]


def share(verdict):
    return (verdict.get("diagnosis") or {}).get("fraction_of_ceiling") or 0


def standing(run):
    """(outcome, microseconds, share of the ceiling, what went wrong) of the kernel that a run starts from."""
    with sqlite3.connect(f"file:{run}/store.db?mode=ro", uri=True) as store:
        row = store.execute("select e.json, d.json from evaluations e left join diagnosis d using (candidate) "
                            "order by e.position limit 1").fetchone()
    if row is None:
        return "no verdict", 0, 0, ""
    outcome, diagnosis = json.loads(row[0])["outcome"], json.loads(row[1] or "{}")
    times = [each["median_us"] for each in outcome.get("timings", [])]
    return (outcome["kind"], max(times, default=0), diagnosis.get("fraction_of_ceiling") or 0,
            str(outcome.get("reason") or outcome.get("log") or "")[:200])


def parents(options):
    """The run of each parent: begun from each first kernel in turn, kept where that is one."""
    def one(folder, gpu):
        run = os.path.join(folder, "step")
        if os.path.exists(os.path.join(folder, "first.json")):
            return
        seen = []
        for kernel in replies(options, os.path.basename(folder), "first"):
            wrong = start_run(options, os.path.join(folder, "task.py"), run, "--start", kernel, *gpu, *options.extra)
            found = standing(run) if os.path.exists(os.path.join(run, "store.db")) else ("no verdict", 0, 0, wrong)
            seen.append([os.path.basename(kernel), *found])
            print(f"{os.path.basename(folder)} {seen[-1]}", flush=True)
            if found[0] == "correct" and PARENT_SHARES[0] <= found[2] <= PARENT_SHARES[1]:
                shutil.copy(kernel, os.path.join(folder, "parent.cu"))
                break
            shutil.rmtree(run, ignore_errors=True)
        if seen and seen[-1][1] != "no verdict":
            with open(os.path.join(folder, "first.json"), "w", encoding="utf-8") as file:
                json.dump(seen, file)

    side_by_side(options, one, folders(options), options.each)


def answered(path):
    with open(path, encoding="utf-8") as file:
        found = re.search(r"^\s*//\s*answers:\s*(.*)$", file.read(), re.M)
    return found.group(1).strip() if found else ""


def row_of(folder, arm, path, verdict):
    versus = verdict.get("versus") or {}
    name = os.path.basename(folder)
    return {"task": name.replace("-", "/", 1), "parent": name, "arm": arm, "generation": 1,
            "kernel": os.path.basename(path), "outcome": verdict["outcome"], "labels": verdict.get("labels", []),
            "time_us": verdict.get("time_us"), "share": share(verdict), "ratio": versus.get("ratio"),
            "low": versus.get("low"), "high": versus.get("high"), "answers": answered(path),
            "reason": verdict.get("reason", "")[:300]}


def rows_of(path):
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def judge(options):
    """Each candidate that has no row in turn with its parent. Several at a time on a GPU take turns."""
    def one(folder, gpu):
        name, path = os.path.basename(folder), os.path.join(folder, "step.json")
        rows = rows_of(path)
        known = {(row["arm"], row["kernel"]) for row in rows}
        kernels = [(arm, kernel) for arm in arms_of(options, name) for kernel in replies(options, name, arm)
                   if (arm, os.path.basename(kernel)) not in known]
        if not kernels:
            return
        judged = verdicts(options, folder, [kernel for _, kernel in kernels], "--against",
                          os.path.join(folder, "parent.cu"), *gpu, *options.extra)
        if not any(judged):
            return
        new = [row_of(folder, arm, kernel, verdict or {"outcome": "no verdict"})
               for (arm, kernel), verdict in zip(kernels, judged)]
        with open(path, "w", encoding="utf-8") as file:
            json.dump(rows + new, file)
        for row in new:
            print(json.dumps(row), flush=True)

    def parents_us(folder):
        path = os.path.join(folder, "first.json")
        seen = json.load(open(path, encoding="utf-8")) if os.path.exists(path) else []
        return seen[-1][2] if isinstance(seen, list) and seen else math.inf

    side_by_side(options, one, sorted(folders(options), key=parents_us), options.each)  # quick ones first
    with open(options.output, "w", encoding="utf-8") as file:
        for folder in folders(options):
            file.writelines(json.dumps(row) + "\n" for row in rows_of(os.path.join(folder, "step.json")))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    for name in ("draw", "begin", "restore", "recall", "keep", "ask", "again", "parents", "judge", "table",
                 "promised"):
        verb = verbs.add_parser(name)
        if name == "table":
            verb.add_argument("rows")
            verb.add_argument("--without", nargs="*", default=[], help="parents")
            continue
        if name != "draw":
            verb.add_argument("folder")
            verb.add_argument("--kernelpro", default=os.path.join(ROOT, "build/release/bin/kernelpro"))
            verb.add_argument("--jobs", type=int, default=4, help="at a time on each GPU, where times do not count")
            verb.add_argument("--gpus", type=int, default=1)
            verb.add_argument("--seconds", type=float, default=1e9, help="begin nothing later; call it again")
            verb.add_argument("--extra", nargs="*", default=[], help="further options of optimize, propose or evaluate")
        if name in ("draw", "begin"):
            verb.add_argument("--kernelbench", required=True, help="a checkout")
            verb.add_argument("--levels", default="1,2")
            verb.add_argument("--count", type=int, default=18, help="tasks of each level")
            verb.add_argument("--seed", type=int, default=1)
        if name == "ask":
            verb.add_argument("stage", choices=("first", "step"))
            verb.add_argument("--arms", default=",".join(ARMS), help="of a step")
        if name in ("again", "promised"):
            verb.add_argument("arm")
        if name in ("recall", "promised"):
            verb.add_argument("--rows", default=os.path.join(ROOT, "results/ablation.jsonl"))
        if name == "recall":
            verb.add_argument("--archives", nargs="+", help="in place of first.tar.xz and step.tar.xz",
                              default=[os.path.join(HERE, each) for each in ("first.tar.xz", "step.tar.xz")])
        if name == "keep":
            verb.add_argument("archive")
        if name == "judge":
            verb.add_argument("--output", help="by default DIR/rows.jsonl")
        if name in ("parents", "judge"):
            verb.add_argument("--each", type=int, default=1, help="tasks at a time on each GPU, which take turns")
    options = parser.parse_args()
    if getattr(options, "output", "") is None:
        options.output = os.path.join(options.folder, "rows.jsonl")
    options.until = time.monotonic() + getattr(options, "seconds", 0)
    if options.verb == "draw":
        for name, path in draw(options):
            print(name, os.path.basename(path))
        return
    {"begin": begin, "restore": restore, "recall": recall, "keep": keep, "ask": ask, "again": again, "parents": parents,
     "judge": judge, "table": table, "promised": promised}[options.verb](options)


if __name__ == "__main__":
    sys.exit(main())
