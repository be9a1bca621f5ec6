#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much the accounts of recorded kernels know: of every correct CUDA candidate of these runs.

    bench/accounts.py [--kernelpro PROGRAM] RUN...

RUN: a run's folder, or a run as text. The tools of PROGRAM read the evidence that the run keeps; no
GPU is needed. Prints a row for each run and the sums: kernels with evidence, those whose account
knows all but 10 % of the time, those sampled whose waits for an earlier instruction have one producer
for 85 % of them, those below 90 % of their ceiling that hear of no finding, and the findings of tools
that were known to be wrong about real kernels.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from programs import SINGLE, UNKNOWN, unknown_share

BELOW = 0.9  # of the ceiling
WATCHED = ("accidental-fp64", "scalar-code", "one-thread-busy")


def said_by(program, *arguments):
    done = subprocess.run([program, *arguments, "--json"], capture_output=True, text=True)
    start = done.stdout.find("{")
    return json.loads(done.stdout[start:]) if start >= 0 else None


def candidates(program, run):
    """What diagnose says of each correct candidate that has evidence."""
    shown = said_by(program, "show", run)
    for each in (shown or {}).get("candidates", []):
        if each.get("outcome") != "correct" or each.get("language") == "python":
            continue
        said = said_by(program, "diagnose", "%s:%d" % (run, each["id"]), "--no-record")
        if said and said["diagnosis"].get("account", {}).get("kernels"):
            yield said


def counts(said):
    diagnosis, evidence = said["diagnosis"], said["evidence"]
    longest = (evidence["kernels"] or [evidence])[0]
    places = [longest["places"]] if longest.get("places", {}).get("basis") == "sampled" else []
    tools = [finding["tool"] for finding in diagnosis["findings"]]
    below = diagnosis.get("fraction_of_ceiling", 1) < BELOW
    return {"kernels": 1, "known": unknown_share(diagnosis["account"]) <= UNKNOWN, "sampled": len(places),
            "single": sum(each["single_producer"] >= SINGLE for each in places), "below": below,
            "silent": below and not tools, "watched": sum(tool in WATCHED for tool in tools)}


def row(name, sums):
    return "| %s | %d | %d | %d of %d | %d of %d | %d |" % (
        name, sums["kernels"], sums["known"], sums["single"], sums["sampled"], sums["silent"], sums["below"],
        sums["watched"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernelpro", default="build/release/bin/kernelpro")
    parser.add_argument("runs", nargs="+")
    options = parser.parse_args()
    print("| run | kernels | all but 10 % known | one producer for 85 % | silent, of those below 90 % | "
          + ", ".join(WATCHED) + " |\n|---|---|---|---|---|---|")
    names = ("kernels", "known", "sampled", "single", "below", "silent", "watched")
    total = dict.fromkeys(names, 0)
    with tempfile.TemporaryDirectory() as folder:
        for number, run in enumerate(options.runs):
            place = run
            if run.endswith(".jsonl"):
                place = os.path.join(folder, str(number))
                subprocess.run([options.kernelpro, "pack", run, place], check=True, capture_output=True)
            sums = dict.fromkeys(names, 0)
            for said in candidates(options.kernelpro, place):
                for name, value in counts(said).items():
                    sums[name] += value
            print(row("/".join(os.path.abspath(run).split("/")[-2:]), sums), flush=True)
            for name in names:
                total[name] += sums[name]
    print(row("all", total))


if __name__ == "__main__":
    main()
