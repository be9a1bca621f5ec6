#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The account of programs whose phases are planted and clocked by themselves (bench/phases).

    bench/phases.py [--kernelpro PROGRAM] [--jobs N] [--keep DIR] [--only NAME]...
    bench/phases.py --from DIR [--again]

Each program runs by itself, for the shares that it clocks, and under `kernelpro diagnose -- PROGRAM`,
for the account's; --keep stores what it said. --from scores such a folder and needs no GPU, with --again
by what the tools of --kernelpro say of its evidence. Prints both for each planted part, and how many are within 5 points.
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

HERE = os.path.dirname(os.path.abspath(__file__))
NVCC = ["nvcc", "-arch=sm_90a", "-O3", "-lineinfo", "-std=c++17"]
CLOSE = 0.05  # of the operation's time
OF_CALL = {"gaps": ("gaps", "launch"), "host": ("host",), "copies": ("copies",)}


def planted(program):
    said = subprocess.run([program], capture_output=True, text=True, timeout=60)
    found = re.search(r"phases: (\{.*\})", said.stdout)
    if said.returncode != 0 or not found:
        raise RuntimeError("status %d: %s" % (said.returncode, (said.stderr or said.stdout)[-160:]))
    return json.loads(found.group(1))


def said_of(program, kernelpro):
    command = [kernelpro, "diagnose", "--json", "--no-record", "--", program]
    said = subprocess.run(command, capture_output=True, text=True, timeout=180)
    start = said.stdout.find("{")
    if start < 0:
        raise RuntimeError("status %d: %s" % (said.returncode, said.stderr.strip()[-160:]))
    return json.loads(said.stdout[start:])


def said_again(said, kernelpro):
    """What these tools say about the stored evidence."""
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump(said["evidence"], file)
        file.flush()
        command = [kernelpro, "diagnose", "--json", "--no-record", file.name]
        said = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(said.stdout)


def share_of(account, part):
    """A part's share of the call, over all kernels that the account has."""
    if part in OF_CALL:
        us = sum(each["us"] for each in account["parts"] if each["part"] in OF_CALL[part])
        return us / account["us"]
    kind, _, stall = part.partition(":")
    us = sum(each["us"] for kernel in account["kernels"] for each in kernel["parts"]
             if each["part"] == kind and (not stall or each.get("stall", "").startswith(stall)))
    return us / account["us"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kernelpro", default="build/release/bin/kernelpro")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--keep")
    parser.add_argument("--from", dest="source")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--only", action="append", default=[])
    arguments = parser.parse_args()
    sources = [path for path in sorted(glob.glob(os.path.join(HERE, "phases", "*.cu")))
               if not arguments.only or os.path.basename(path)[:-3] in arguments.only]
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        programs = {os.path.basename(path)[:-3]: os.path.join(folder, os.path.basename(path)[:-3])
                    for path in sources}
        if not arguments.source:
            with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
                list(pool.map(lambda path: subprocess.run(
                    [*NVCC, "-o", programs[os.path.basename(path)[:-3]], path], check=True), sources))
        for name, program in programs.items():
            try:
                if arguments.source:
                    with open(os.path.join(arguments.source, name + ".json"), encoding="utf-8") as file:
                        results[name] = json.load(file)
                    if arguments.again:
                        results[name]["said"] = said_again(results[name]["said"],
                                                           arguments.kernelpro)
                else:
                    results[name] = {"planted": planted(program),
                                     "said": said_of(program, arguments.kernelpro)}
            except (RuntimeError, OSError, KeyError, subprocess.TimeoutExpired) as error:
                print("%s: %s" % (name, error), file=sys.stderr)
    if arguments.keep:
        os.makedirs(arguments.keep, exist_ok=True)
        for name, result in results.items():
            with open(os.path.join(arguments.keep, name + ".json"), "w", encoding="utf-8") as file:
                json.dump(result, file)
    print("| program | part | clocked | account | off by, points |\n|---|---|---|---|---|")
    close = all_parts = 0
    for name, result in results.items():
        for part, clocked in result["planted"].items():
            told = share_of(result["said"]["diagnosis"]["account"], part)
            all_parts += 1
            close += abs(told - clocked) <= CLOSE
            print("| %s | %s | %.1f %% | %.1f %% | %+.1f |" %
                  (name, part, 100 * clocked, 100 * told, 100 * (told - clocked)))
    print("\n%d of %d parts of %d programs are within %.0f points." %
          (close, all_parts, len(results), 100 * CLOSE))
    return 0 if len(results) == len(programs) else 1


if __name__ == "__main__":
    sys.exit(main())
