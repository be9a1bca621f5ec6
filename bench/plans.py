#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which PyTorch candidates become launch plans: evaluates each file of bench/plans, task and candidate
in one, and compares the form in which it was timed with the one that its second line expects.

    bench/plans.py --kernelpro build/release/bin/kernelpro [--only NAME]... [--jobs N] [--out FOLDER]

"plan" and "host-form" mean a correct verdict in that form, anything else is the name of an outcome.
Prints a table; exits 1 when a form is not the expected one.
"""

import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import time

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "plans")


def expected(path):
    with open(path, encoding="utf-8") as file:
        line = file.read().splitlines()[1]
    return [form.strip() for form in line.removeprefix("# form:").split("|")]


def evaluate(kernelpro, path, limit):
    begin = time.perf_counter()
    try:
        done = subprocess.run([kernelpro, "evaluate", path, path, "--target", "cuda", "--json"],
                              capture_output=True, text=True, timeout=limit)
        text, errors = done.stdout, done.stderr
    except subprocess.TimeoutExpired as error:
        text, errors = "", f"no answer within {limit} s: {error}"
    try:
        verdict = json.loads(text)
    except ValueError:
        verdict = {"outcome": "error", "reason": (errors or text).strip()[-1500:]}
    verdict["seconds"] = time.perf_counter() - begin
    return verdict


def form_of(verdict):
    if verdict.get("outcome") != "correct":
        return verdict.get("outcome", "error")
    return "host-form" if "host-form" in verdict.get("labels", []) else "plan"


def why(verdict):
    told = [note for note in verdict.get("notes", []) if "host form" in note or "copied" in note]
    return "; ".join([verdict.get("reason", ""), *told]).strip("; ").replace("\n", " ")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kernelpro", required=True)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=float, default=120)
    parser.add_argument("--out")
    options = parser.parse_args()
    paths = [os.path.join(FOLDER, name) for name in sorted(os.listdir(FOLDER))
             if name.endswith(".py") and (not options.only or name[:-3] in options.only)]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        verdicts = list(pool.map(lambda p: evaluate(options.kernelpro, p, options.limit), paths))
    wrong = 0
    print("| candidate | expected | got | us | method | seconds | why |\n|---|---|---|---|---|---|---|")
    for path, verdict in zip(paths, verdicts):
        name, forms, got = os.path.basename(path)[:-3], expected(path), form_of(verdict)
        wrong += got not in forms
        method = next((t["method"] for t in verdict.get("timings", [])), "")
        print(f"| {name} | {' or '.join(forms)} | {got}{'' if got in forms else ' (!)'} | "
              f"{verdict.get('time_us', 0):.1f} | {method} | {verdict['seconds']:.0f} | "
              f"{why(verdict)[:400]} |")
        if options.out:
            with open(os.path.join(options.out, name + ".json"), "w", encoding="utf-8") as file:
                json.dump(verdict, file, indent=1)
    print(f"forms as expected {len(paths) - wrong}/{len(paths)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
