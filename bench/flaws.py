#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The planted-flaw suite (tests/flaws/README.md): does the diagnosis name the flaw, is it silent on
the fixed and on the sound kernels, and are its gains right? Prints a line for each pair and each
sound kernel, then the figures.

    bench/flaws.py [--kernelpro PROGRAM] [--only TASK]... [--sealed | --all] [--ncu]
                   [--save DIR | --from DIR] [--json FILE]
    bench/flaws.py --list [--all | --sealed]      # checks the suite's files; needs nothing

Needs a GPU, except with --from, which diagnoses and scores the evidence stored by --save. Sealed
kernels are skipped unless --sealed (only these) or --all is given. --ncu also scores Nsight
Compute's rules on the same kernels, and needs bench_replays and kernelpro-worker next to PROGRAM;
with --from it profiles the kernels without a report in DIR, and keeps the reports there.
"""

import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile
import tomllib

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import ncu_rules

FLAWS = os.path.join(os.path.dirname(HERE), "tests", "flaws")
LEAST_GAIN = 1.15  # a pair that gains less has no flaw on this machine and does not count
MAIN = 1.1         # findings that promise less are only remarks
CLOSE = 1.5        # largest ratio between the likely and the measured gain


def read_toml(path):
    with open(path, "rb") as file:
        return tomllib.load(file)


class Kernel:
    """One source and its results."""

    def __init__(self, task, path):
        self.task = task
        self.path = path
        self.name = os.path.relpath(path, FLAWS)[:-3].replace(os.sep, "-")
        self.time_us = 0.0
        self.problem = "not run"
        self.findings = {}  # by judge ("kernelpro", "ncu"): a list of Finding, best first


class Finding:
    def __init__(self, name, classes, likely, upper, stop=False):
        self.name, self.classes, self.stop = name, classes, stop
        self.likely, self.upper = likely, upper


class Pair:
    def __init__(self, folder):
        flaw = read_toml(os.path.join(folder, "flaw.toml"))
        task = os.path.dirname(folder)
        self.name = os.path.relpath(folder, FLAWS)
        self.flaw, self.symptoms = flaw["class"], set(flaw["symptoms"])
        self.sealed = flaw["sealed"]
        self.flawed = Kernel(task, os.path.join(folder, "flawed.cu"))
        self.mended = Kernel(task, os.path.join(folder, "mended.cu"))

    def gain(self):
        both = self.flawed.time_us > 0 and self.mended.time_us > 0
        return self.flawed.time_us / self.mended.time_us if both else 0.0


class Match:
    """match.toml: the classes that each of our tools and each of ncu's rules names."""

    def __init__(self, path):
        table = read_toml(path)
        self.tools = table.get("tools", {})
        self.rules = table.get("ncu", [])
        known = known_classes()
        used = [c for classes in self.tools.values() for c in classes]
        used += [c for rule in self.rules for c in rule["classes"]]
        wrong = sorted(set(used) - known)
        if wrong:
            sys.exit("%s names classes that do not exist: %s" % (path, ", ".join(wrong)))

    def of_tool(self, tool):
        return set(self.tools.get(tool, []))

    def of_rule(self, name, text):
        classes = set()
        for rule in self.rules:
            if rule.get("rule", name) == name and rule.get("contains", "").lower() in text.lower():
                classes |= set(rule["classes"])
        return classes


def known_classes():
    return set(read_toml(os.path.join(FLAWS, "classes.toml"))["class"])


def load_suite(only, wanted):
    """(pairs, sound kernels); `wanted(sealed)` decides whether a kernel is run."""
    classes = known_classes()
    sealed_sound = set(read_toml(os.path.join(FLAWS, "sound.toml"))["sealed"])
    pairs, sound = [], []
    for task in sorted(glob.glob(os.path.join(FLAWS, "*", ""))):
        if only and os.path.basename(task[:-1]) not in only:
            continue
        for flaw in sorted(glob.glob(os.path.join(task, "*", "flaw.toml"))):
            pair = Pair(os.path.dirname(flaw))
            wrong = ({pair.flaw} | pair.symptoms) - classes
            wrong |= {p for p in (pair.flawed.path, pair.mended.path) if not os.path.exists(p)}
            if wrong:
                sys.exit("%s: there is no %s" % (flaw, ", ".join(sorted(wrong))))
            if wanted(pair.sealed):
                pairs.append(pair)
        for path in sorted(glob.glob(os.path.join(task, "sound-*.cu"))):
            if wanted(os.path.relpath(path, FLAWS) in sealed_sound):
                sound.append(Kernel(task[:-1], path))
    return pairs, sound


def read_findings(diagnosis, match):
    return [Finding(f["tool"], match.of_tool(f["tool"]), f["likely_speedup"], f["upper_speedup"],
                    f.get("stop", False)) for f in diagnosis.get("findings", [])]


def last_json(text):
    """The JSON that a program printed, or None."""
    try:
        return json.loads(text)
    except ValueError:
        return None


class Runner:
    def __init__(self, arguments, match):
        self.program = arguments.kernelpro
        self.match = match
        self.save = arguments.save
        shown = subprocess.run([self.program, "help", "evaluate"], capture_output=True, text=True)
        self.counters = ["--profile", "full"] if "--profile" in shown.stdout else []
        if not self.counters:
            print("this kernelpro collects no counters", file=sys.stderr)

    def evaluate(self, task, kernels):
        """One process for all kernels of a task."""
        command = [self.program, "evaluate", task, *[k.path for k in kernels], "--target", "cuda",
                   "--no-probes", "--json", *self.counters]
        done = subprocess.run(command, capture_output=True, text=True)
        verdicts = last_json(done.stdout)
        if isinstance(verdicts, dict):
            verdicts = [verdicts]
        if not verdicts or len(verdicts) != len(kernels):
            said = (done.stderr or done.stdout).strip().splitlines() or ["nothing"]
            for kernel in kernels:
                kernel.problem = "status %d: %s" % (done.returncode, said[-1])
            return
        for kernel, verdict in zip(kernels, verdicts):
            kernel.time_us = verdict["time_us"]
            correct = verdict["outcome"] == "correct"
            kernel.problem = "" if correct else verdict["outcome"] + ": " + verdict["reason"]
            kernel.findings["kernelpro"] = read_findings(verdict["diagnosis"], self.match)
            if self.save:
                store(self.save, kernel, verdict)

    def replay(self, task, kernels):
        """Nsight Compute on one call of each kernel."""
        if not kernels:
            return
        bin_folder = os.path.dirname(os.path.abspath(self.program))
        with tempfile.TemporaryDirectory() as folder:
            made = subprocess.run([os.path.join(bin_folder, "bench_replays"), task, folder,
                                   *[k.path for k in kernels]], capture_output=True, text=True)
            sys.stderr.write(made.stderr)
            for i, kernel in enumerate(kernels):
                file = os.path.join(folder, "%d.json" % i)
                if not os.path.exists(file):
                    continue
                text, problem = ncu_rules.profile(os.path.join(bin_folder, "kernelpro-worker"),
                                                  file)
                if problem:
                    print("%s: ncu: %s" % (kernel.name, problem), file=sys.stderr)
                    continue
                if self.save:
                    with open(os.path.join(self.save, kernel.name + ".ncu.csv"), "w") as out:
                        out.write(text)
                kernel.findings["ncu"] = ncu_findings(text, self.match)


def ncu_findings(text, match):
    return [Finding(f.rule, match.of_rule(f.rule, f.text), f.gain, f.gain)
            for f in ncu_rules.read(text)]


def store(folder, kernel, verdict):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, kernel.name + ".json"), "w") as file:
        json.dump(verdict["evidence"], file)
    about = {k: verdict[k] for k in ("outcome", "reason", "time_us", "machine", "hash")}
    with open(os.path.join(folder, kernel.name + ".verdict"), "w") as file:
        json.dump(about, file)


def diagnose_again(program, folder, kernel, match):
    """The stored evidence with a new diagnosis."""
    verdict = os.path.join(folder, kernel.name + ".verdict")
    if not os.path.exists(verdict):
        kernel.problem = "not stored"
        return
    with open(verdict) as file:
        about = json.load(file)
    kernel.time_us = about["time_us"]
    kernel.problem = "" if about["outcome"] == "correct" else about["outcome"]
    evidence = os.path.join(folder, kernel.name + ".json")
    done = subprocess.run([program, "diagnose", evidence, "--task", kernel.task, "--json"],
                          capture_output=True, text=True)
    answer = last_json(done.stdout)
    if answer is None:
        kernel.problem = "diagnose: " + (done.stderr.strip() or "no JSON")
        return
    kernel.findings["kernelpro"] = read_findings(answer.get("diagnosis", answer), match)
    report = os.path.join(folder, kernel.name + ".ncu.csv")
    if os.path.exists(report):
        with open(report) as file:
            kernel.findings["ncu"] = ncu_findings(file.read(), match)


def score_pair(pair, judge):
    """Score of a judge on a pair: ranks count from 1, 0 means missed."""
    found = pair.flawed.findings.get(judge)
    if found is None:
        return None
    gain = pair.gain()
    rank = next((i for i, f in enumerate(found, 1) if pair.flaw in f.classes), 0)
    near = pair.symptoms | {pair.flaw}
    loose = next((i for i, f in enumerate(found, 1) if f.classes & near), 0)
    by = found[rank - 1] if rank else None
    after = pair.mended.findings.get(judge)
    accused = after is not None and any(pair.flaw in f.classes and f.likely >= MAIN and not f.stop for f in after)
    named = by or (found[loose - 1] if loose else None)
    return {"top": found[0].name if found else "", "rank": rank, "loose": loose,
            "silenced": not accused if rank and after is not None else None,
            "likely": named.likely if named else 0, "upper": named.upper if named else 0,
            "close": bool(named) and 1 / CLOSE <= named.likely / gain <= CLOSE,
            "bounded": named.upper >= gain if named else None}


def score_sound(kernel, judge):
    """alone: only "stop" findings; clean: none promises MAIN or more; said: the first that does."""
    found = kernel.findings.get(judge)
    if found is None:
        return None
    real = [f for f in found if not f.stop]
    main = next((f for f in real if f.likely >= MAIN), None)
    return {"alone": not real, "clean": main is None,
            "said": "%s %.2f" % (main.name, main.likely) if main else ""}


def rank_word(rank):
    return "1" if rank == 1 else "2-3" if 2 <= rank <= 3 else "missed" if rank == 0 else str(rank)


def yes(value):
    return "-" if value is None else "yes" if value else "NO"


def print_pairs(pairs, judge):
    print("\n%-36s %-24s %6s  %-24s %-7s %-7s %8s %7s %6s %6s %6s" % (
        judge, "planted", "gain", "top finding", "rank", "symptom", "silenced", "likely", "upper",
        "close", "bound"))
    scores = []
    for pair in pairs:
        bad = pair.flawed.problem or pair.mended.problem
        if bad:
            print("%-36s %-24s  %s" % (pair.name, pair.flaw, bad))
            continue
        score = score_pair(pair, judge)
        if score is None:
            print("%-36s %-24s  no findings were read" % (pair.name, pair.flaw))
            continue
        void = pair.gain() < LEAST_GAIN
        print("%-36s %-24s %6.2f  %-24s %-7s %-7s %8s %7.2f %6.2f %6s %6s%s" % (
            pair.name, pair.flaw, pair.gain(), score["top"][:24], rank_word(score["rank"]),
            rank_word(score["loose"]), yes(score["silenced"]), score["likely"], score["upper"],
            yes(score["close"]), yes(score["bounded"]), "  no flaw here" if void else ""))
        if not void:
            scores.append(score)
    return scores


def share(scores, key):
    known = [s for s in scores if key(s) is not None]
    hits = sum(1 for s in known if key(s))
    return "%d/%d%s" % (hits, len(known), " (%.0f %%)" % (100 * hits / len(known)) if known else "")


def print_figures(judge, scores, sounds):
    print("\n%s:" % judge)
    for text, key in (
            ("planted flaw is the top finding (>= 85 %)", lambda s: s["rank"] == 1),
            ("  or a symptom of it", lambda s: s["loose"] == 1),
            ("among the top three (>= 95 %)", lambda s: 1 <= s["rank"] <= 3),
            ("  or a symptom of it", lambda s: 1 <= s["loose"] <= 3),
            ("silenced in the mended kernel", lambda s: s["silenced"]),
            ("likely gain within 1.5x (>= 70 %)", lambda s: s["close"]),
            ("upper gain is a bound (>= 95 %)", lambda s: s["bounded"])):
        print("  %-46s %s" % (text, share(scores, key)))
    print("  %-46s %s" % ("false main finding on sound kernels (<= 10 %)",
                          share(sounds, lambda s: not s["clean"])))
    print("  %-46s %s" % ("  sound kernels with no finding at all", share(sounds,
                                                                           lambda s: s["alone"])))


def report(pairs, sound, judges):
    results = {"pairs": {p.name: {"class": p.flaw, "gain": p.gain()} for p in pairs}, "judges": {}}
    for judge in judges:
        scores = print_pairs(pairs, judge)
        print("\n%-50s %9s  %s" % ("sound, by " + judge, "us", "left alone?"))
        sounds = []
        for kernel in sound:
            score = None if kernel.problem else score_sound(kernel, judge)
            words = kernel.problem or (
                "no findings were read" if score is None else
                "yes" if score["clean"] else "NO: " + score["said"])
            print("%-50s %9.1f  %s" % (kernel.name, kernel.time_us, words))
            if score is not None:
                sounds.append(score)
        print_figures(judge, scores, sounds)
        results["judges"][judge] = {"pairs": scores, "sound": sounds}
    return results


def profile_missing(runner, folder, kernels):
    missing = [k for k in kernels if not os.path.exists(os.path.join(folder, k.name + ".ncu.csv"))]
    for task in sorted({k.task for k in missing}):
        runner.replay(task, [k for k in missing if k.task == task])


def list_suite(pairs, sound):
    for pair in pairs:
        print("%-36s %-24s %s%s" % (pair.name, pair.flaw, ", ".join(sorted(pair.symptoms)),
                                    " (sealed)" if pair.sealed else ""))
    classes = {p.flaw for p in pairs}
    print("%d pairs of %d classes, %d sound kernels" % (len(pairs), len(classes), len(sound)))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernelpro", default="build/release/bin/kernelpro")
    parser.add_argument("--only", action="append", default=[])
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--sealed", action="store_true")
    which.add_argument("--all", action="store_true")
    parser.add_argument("--ncu", action="store_true")
    parser.add_argument("--list", action="store_true")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--save")
    where.add_argument("--from", dest="stored")
    parser.add_argument("--json")
    arguments = parser.parse_args()

    beside = os.path.dirname(os.path.abspath(arguments.kernelpro))
    for name in ("bench_replays", "kernelpro-worker"):
        if arguments.ncu and not os.path.exists(os.path.join(beside, name)):
            sys.exit("--ncu needs %s beside %s: build it" % (name, arguments.kernelpro))
    match = Match(os.path.join(FLAWS, "match.toml"))
    pairs, sound = load_suite(arguments.only,
                              lambda sealed: arguments.all or sealed == arguments.sealed)
    kernels = [k for p in pairs for k in (p.flawed, p.mended)] + sound
    if not kernels:
        sys.exit("no kernel is left to run")
    if arguments.list:
        list_suite(pairs, sound)
        return 0
    if arguments.stored:
        arguments.save = arguments.stored
        runner = Runner(arguments, match) if arguments.ncu else None
        if runner:
            profile_missing(runner, arguments.stored, [p.flawed for p in pairs] + sound)
            profile_missing(runner, arguments.stored, [p.mended for p in pairs])
        for kernel in kernels:
            diagnose_again(arguments.kernelpro, arguments.stored, kernel, match)
    else:
        if arguments.save:
            os.makedirs(arguments.save, exist_ok=True)
        runner = Runner(arguments, match)
        for task in sorted({k.task for k in kernels}):
            mine = [k for k in kernels if k.task == task]
            runner.evaluate(task, mine)
            if arguments.ncu:
                runner.replay(task, [k for k in mine if not k.problem])
            print(os.path.basename(task), "; ".join(k.problem for k in mine if k.problem) or "done",
                  file=sys.stderr, flush=True)
    judges = ["kernelpro"] + (["ncu"] if any("ncu" in k.findings for k in kernels) else [])
    results = report(pairs, sound, judges)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(results, file, indent=1)
    return 1 if any(k.problem for k in kernels) else 0


if __name__ == "__main__":
    sys.exit(main())
