#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether `scalar-code`, `one-thread-busy` and `accidental-fp64` accuse CPU kernels falsely.

    bench/cpu_kernels.py [--kernelpro PROGRAM]
    scripts/loaded bench/cpu_kernels.py          # the same beside four busy loops

The kernels in bench/cpu_kernels are by an author who had not seen the tools, and say of themselves
whether their main loop is vectorised and whether all threads work. Exit status 1 if one is accused
of what it says it is not.
"""

import argparse
import glob
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TASKS = os.path.join(os.path.dirname(HERE), "tests", "tasks")


def judge(program, path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    task = re.search(r"// task: (\S+)", text).group(1)
    vectorised, threads = re.search(r"// truth: vectorised=(\w+) threads=(\w+)", text).groups()
    done = subprocess.run([program, "evaluate", os.path.join(TASKS, task), path, "--target", "cpu", "--no-probes",
                           "--json"], capture_output=True, text=True, timeout=300)
    verdict = json.loads(done.stdout)
    tools = [finding["tool"] for finding in verdict.get("diagnosis", {}).get("findings", [])]
    wrong = [tool for tool, false in (("scalar-code", vectorised == "yes"), ("one-thread-busy", threads == "all"),
                                      ("accidental-fp64", True)) if false and tool in tools]
    versus = verdict.get("versus") or {}
    print("| %s | %s | %s | %s | %s | %.2fx | %s | %s |" % (
        os.path.basename(path)[:-4], task, verdict["outcome"], vectorised, threads, versus.get("ratio", 0),
        ", ".join(tools), ", ".join(wrong)), flush=True)
    return bool(wrong)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernelpro", default="build/release/bin/kernelpro")
    options = parser.parse_args()
    print("| kernel | task | outcome | vectorised | threads | over the start | findings | false |\n" + "|---" * 8 + "|")
    kernels = sorted(glob.glob(os.path.join(HERE, "cpu_kernels", "*.cpp")))
    wrong = sum(judge(options.kernelpro, path) for path in kernels)
    print("%d of %d kernels are accused falsely" % (wrong, len(kernels)))
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
