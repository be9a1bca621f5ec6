#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whole programs with a planted flaw, diagnosed as a newcomer would: kernelpro diagnose -- PROGRAM.

    bench/programs.py [--kernelpro PROGRAM] [--only NAME]... [--jobs N] [--keep DIR]
                      [--no-counters | --ncu --times DIR] [--from DIR [--again]] [SET...]
    bench/programs.py --list [SET...]

SET: a folder of cases (bench/programs/README.md); by default all of bench/programs. Compiles
everything with --jobs compilers, then runs one program after the other: each as it is for its
time, the flawed and the sound ones once more under `diagnose`. --keep stores what diagnose said,
with the evidence that it rests on. With --ncu nothing is run under diagnose: it reads a report of
Nsight Compute (--set full) of one launch of the kernel concerned. --times takes the programs' times
from what an earlier --keep stored. --from scores such a folder again and needs no GPU, and with
--again the tools of --kernelpro read that evidence anew. Prints a row for each case and the figures.
"""

import argparse
import concurrent.futures
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from flaws import CLOSE, LEAST_GAIN, MAIN

NEAR = 3  # lines
SMALL = 4  # a gain
UNKNOWN = 0.1  # of the call's time, at most
SINGLE = 0.85  # of the samples that wait for an earlier instruction: one line made them wait
NVCC = ["nvcc", "-arch=sm_90a", "-O3", "-lineinfo", "-std=c++17"]


class Case:
    def __init__(self, folder):
        self.folder = folder
        self.name = os.path.basename(folder)
        with open(os.path.join(folder, "truth.json"), encoding="utf-8") as file:
            self.truth = json.load(file)
        self.sound = self.truth["sound"]
        self.kind = self.truth["kind"]
        self.programs = ["sound"] if self.sound else ["flawed", "fixed"]
        self.us = {}
        self.problem = ""
        self.findings = []
        self.account = {}

    def source(self, program):
        return os.path.join(self.folder, program + ".cu")

    def gain(self):
        return self.us["flawed"] / self.us["fixed"] if self.us.get("fixed") else 0.0


class Finding:
    def __init__(self, item):
        self.tool = item["tool"]
        self.likely, self.upper = item["likely_speedup"], item["upper_speedup"]
        self.stop = item.get("stop", False)
        self.lines = [site["line"] for site in item.get("sites", [])
                      if site.get("file", "").endswith((".cu", ".cuh"))]
        for place in item.get("places", []):
            self.lines += lines_of(place)


def lines_of(value):
    """Every line of the program's own source in a place."""
    if isinstance(value, dict):
        own = [value["line"]] if isinstance(value.get("line"), int) else []
        return own + [n for item in value.values() for n in lines_of(item)]
    if isinstance(value, list):
        return [n for item in value for n in lines_of(item)]
    return []


def read_sets(folders, only):
    cases = []
    for folder in folders:
        for path in sorted(glob.glob(os.path.join(folder, "*", "truth.json"))):
            case = Case(os.path.dirname(path))
            missing = [p for p in case.programs if not os.path.exists(case.source(p))]
            if missing:
                sys.exit("%s: there is no %s.cu" % (case.folder, missing[0]))
            if not only or case.name in only:
                cases.append(case)
    return cases


def compile_all(cases, bin_folder, jobs):
    def one(task):
        case, program = task
        out = os.path.join(bin_folder, case.name + "-" + program)
        done = subprocess.run([*NVCC, "-o", out, case.source(program)], capture_output=True,
                              text=True)
        return case, program, done.returncode, done.stderr

    tasks = [(case, program) for case in cases for program in case.programs]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for case, program, status, said in pool.map(one, tasks):
            if status != 0:
                case.problem = "%s does not compile: %s" % (program, said.strip()[:200])


def run_alone(case, bin_folder):
    for program in case.programs:
        try:
            done = subprocess.run([os.path.join(bin_folder, case.name + "-" + program)],
                                  capture_output=True, text=True, timeout=60)
        except subprocess.TimeoutExpired:
            case.problem = program + " takes more than a minute"
            return
        found = re.search(r"us_per_iteration: ([0-9.eE+]+)", done.stdout)
        if done.returncode != 0 or not found:
            said = (done.stderr or done.stdout).strip()[-160:]
            case.problem = "%s: status %d: %s" % (program, done.returncode, said)
            return
        case.us[program] = float(found.group(1))


def profiled(case, bin_folder):
    """A report of Nsight Compute: one launch, warm, of the kernel that the truth is about."""
    program = os.path.join(bin_folder, case.name + "-" + case.programs[0])
    command = ["ncu", "--set", "full", "--import-source", "yes", "--clock-control", "none",
               "--kernel-name", case.truth["kernel"].split("<")[0], "--launch-skip", "2",
               "--launch-count", "1", "--force-overwrite", "-o", program, program]
    try:
        subprocess.run(command, capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        pass  # said when the report is missing


def diagnose_report(case, bin_folder, kernelpro):
    report = os.path.join(bin_folder, case.name + "-" + case.programs[0]) + ".ncu-rep"
    if not os.path.exists(report):
        return {"problem": "ncu wrote no report"}
    return said_by([kernelpro, "diagnose", "--json", "--no-record", report])


def diagnose(case, bin_folder, kernelpro, options):
    program = os.path.join(bin_folder, case.name + "-" + case.programs[0])
    return said_by([kernelpro, "diagnose", "--json", "--no-record", *options, "--", program])


def diagnose_again(stored, kernelpro):
    """What these tools say about the stored evidence."""
    if "evidence" not in stored["said"]:
        return stored["said"]
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump(stored["said"]["evidence"], file)
        file.flush()
        return said_by([kernelpro, "diagnose", "--json", "--no-record", file.name])


def said_by(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=180)
    except subprocess.TimeoutExpired:
        return {"problem": "diagnose takes more than three minutes"}
    start = done.stdout.find("{")
    try:
        return json.loads(done.stdout[start:])
    except ValueError:
        said = (done.stderr or done.stdout).strip()[-200:]
        return {"problem": "status %d: %s" % (done.returncode, said)}


def unknown_share(account):
    """What the account does not know, kernels that it leaves out included."""
    parts = account["parts"] + [part for kernel in account["kernels"] for part in kernel["parts"]]
    us = sum(part["us"] for part in parts if part["part"] == "unknown")
    kernels = sum(part["us"] for part in account["parts"] if part["part"] == "kernels")
    return (us + max(0, kernels - sum(k["us"] for k in account["kernels"]))) / account["us"]


def account_points(said):
    """Of any program, sound ones too."""
    account = said.get("diagnosis", {}).get("account")
    points = {"known": bool(account) and unknown_share(account) <= UNKNOWN}
    places = [kernel["places"] for kernel in said.get("evidence", {}).get("kernels", [])
              if kernel.get("places", {}).get("basis") == "sampled"]
    if places:  # the longest kernel's
        points["single"] = places[0]["single_producer"] >= SINGLE
    return points


def rank(case):
    """The 1-based rank of the first right answer; 0: none."""
    for i, finding in enumerate(case.findings):
        if finding.tool in case.truth["answers"]:
            return i + 1
    return 0


def judge(case):
    """A row's cells, and the points that count for the figures."""
    main = [f for f in case.findings if f.likely >= MAIN and not f.stop]
    said = ", ".join("%s %.2f" % (f.tool, f.likely) for f in case.findings[:3]) or "nothing"
    if case.sound:
        return {"accused": bool(main)}, ["sound", "", "accused" if main else "ok", "", "", said]
    at = rank(case)
    points = {"top": at == 1, "three": 1 <= at <= 3, "silent": not main}
    cells = ["%.2f" % case.gain(), str(at or "-")]
    if case.truth.get("line"):
        lines = case.findings[at - 1].lines if at else []
        away = min((abs(n - case.truth["line"]) for n in lines), default=None)
        points["line"] = at in (1, 2, 3) and away is not None and away <= NEAR
        anywhere = [n for f in case.findings[:3] for n in f.lines]
        points["line of any finding"] = any(abs(n - case.truth["line"]) <= NEAR for n in anywhere)
        cells.append("%s" % ("-" if away is None else away))
    else:
        cells.append("")
    of_size = "small gain" if case.gain() <= SMALL else "large gain"
    if at:
        found = case.findings[at - 1]
        wrong = max(found.likely / case.gain(), case.gain() / found.likely)
        points["gain"] = points[of_size] = wrong <= CLOSE
        points["bound"] = found.upper * 1.02 >= case.gain()
        cells.append("%.2f to %.2f" % (found.likely, found.upper))
    else:
        points["gain"] = points[of_size] = points["bound"] = False
        cells.append("")
    return points, ["flawed", *cells, said]


def share(judged, point):
    have = [points[point] for points in judged if point in points]
    if not have:
        return ""
    return "%d of %d (%.0f %%)" % (sum(have), len(have), 100 * sum(have) / len(have))


def report(cases):
    print("| case | kind | what | gain | rank | lines away | likely to upper | said |")
    print("|---|---|---|---|---|---|---|---|")
    judged = []
    for case in cases:
        if case.problem:
            print("| %s | %s | left out: %s | | | | | |" % (case.name, case.kind, case.problem))
            continue
        if not case.sound and case.gain() < LEAST_GAIN:
            print("| %s | %s | left out: gains %.2f | | | | | |" %
                  (case.name, case.kind, case.gain()))
            continue
        points, cells = judge(case)
        points.update(case.account)
        judged.append((case, points))
        print("| %s | %s | %s |" % (case.name, case.kind, " | ".join(cells)))
    print()
    kinds = sorted({case.kind for case in cases})
    print("| figure | all | %s |" % " | ".join(kinds))
    print("|---|---|%s" % ("---|" * len(kinds)))
    rows = [("flaw on top", "top"), ("among the first three", "three"), ("silent", "silent"),
            ("line within %d, in the right finding" % NEAR, "line"),
            ("line within %d, in any of three" % NEAR, "line of any finding"),
            ("likely gain within %.1fx" % CLOSE, "gain"),
            ("likely gain within %.1fx, of gains up to %.0fx" % (CLOSE, SMALL), "small gain"),
            ("likely gain within %.1fx, of larger ones" % CLOSE, "large gain"), ("upper gain a bound", "bound"),
            ("sound accused", "accused"),
            ("account knows all but %.0f %%" % (100 * UNKNOWN), "known"),
            ("one producer for %.0f %% of the waits" % (100 * SINGLE), "single")]
    for text, point in rows:
        columns = [share([p for _, p in judged], point)]
        columns += [share([p for c, p in judged if c.kind == kind], point) for kind in kinds]
        print("| %s | %s |" % (text, " | ".join(columns)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("sets", nargs="*")
    parser.add_argument("--kernelpro", default="build/release/bin/kernelpro")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--keep")
    parser.add_argument("--from", dest="source")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--no-counters", action="store_true")
    parser.add_argument("--ncu", action="store_true")
    parser.add_argument("--times")
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    if arguments.ncu and not arguments.times:
        parser.error("--ncu reads reports beside the programs' runs; next: give their --times")
    sets = arguments.sets or sorted(glob.glob(os.path.join(HERE, "programs", "*", "")))
    cases = read_sets(sets, arguments.only)
    if not cases:
        sys.exit("programs: no cases in %s; next: name a folder of cases" % sets)
    if arguments.list:
        for case in cases:
            print("%-10s %-7s %s" % (case.kind, "sound" if case.sound else "flawed", case.name))
        return
    if arguments.source:
        for case in cases:
            path = os.path.join(arguments.source, case.name + ".json")
            with open(path, encoding="utf-8") as file:
                stored = json.load(file)
            case.us, case.problem = stored["us"], stored["problem"]
            again = arguments.again and not case.problem
            read_said(case, diagnose_again(stored, arguments.kernelpro) if again else stored["said"])
        return report(cases)
    if arguments.keep:
        os.makedirs(arguments.keep, exist_ok=True)
    with tempfile.TemporaryDirectory() as bin_folder:
        compile_all(cases, bin_folder, arguments.jobs)
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as readers:
            for reading in [run(case, bin_folder, arguments, readers) for case in cases]:
                if reading:
                    reading.result()
    report(cases)


def take(case, said, keep):
    if keep:
        with open(os.path.join(keep, case.name + ".json"), "w", encoding="utf-8") as file:
            json.dump({"us": case.us, "problem": case.problem, "said": said}, file)
    read_said(case, said)


def run(case, bin_folder, arguments, readers):
    """Runs a case, and has what diagnose says taken; reading a report needs no GPU."""
    if arguments.times and not case.problem:
        with open(os.path.join(arguments.times, case.name + ".json"), encoding="utf-8") as file:
            stored = json.load(file)
        case.us, case.problem = stored["us"], stored["problem"]
    elif not case.problem:
        run_alone(case, bin_folder)
    said = {}
    if not case.problem and not arguments.ncu:
        options = ["--no-counters"] if arguments.no_counters else []
        said = diagnose(case, bin_folder, arguments.kernelpro, options)
    if case.problem or not arguments.ncu:
        return take(case, said, arguments.keep)
    profiled(case, bin_folder)
    return readers.submit(lambda: take(case, diagnose_report(case, bin_folder, arguments.kernelpro),
                                       arguments.keep))


def read_said(case, said):
    """A diagnosis that fails is an answer, and a wrong one; a program that fails is left out."""
    if "problem" in said:
        print("%s: %s" % (case.name, said["problem"]), file=sys.stderr)
    case.account = account_points(said)
    case.findings = [Finding(f) for f in said.get("diagnosis", {}).get("findings", [])]


if __name__ == "__main__":
    main()
