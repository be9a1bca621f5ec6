#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges the winners of recorded runs again: which of them hold before today's evaluator?

    bench/winners.py --kernelpro build/release/bin/kernelpro results/exchange/*.jsonl \\
        results/kernelbench/suite.tar.xz

Takes runs as text, and archives of them. Each winner is evaluated as `kernelpro evaluate` would,
beside the task's own module. A winner holds if it is correct. With --jobs above 1 the runs share the
GPU, which disturbs times but no verdict. Exit status 1 unless all hold.
"""
import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time


def texts(path):
    """(name, text) of each run."""
    if not path.endswith(".tar.xz"):
        with open(path, encoding="utf-8") as file:
            yield os.path.basename(path)[:-len(".jsonl")], file.read()
        return
    with tarfile.open(path) as archive:
        for member in archive:
            if member.isfile() and member.name.endswith(".jsonl"):
                name = os.path.basename(member.name)[:-len(".jsonl")]
                yield name, archive.extractfile(member).read().decode()


def winner(name, text):
    lines = [json.loads(line) for line in text.splitlines()]
    task = next(line["run"] for line in lines if "run" in line)["task"]
    best = [line["confirmation"] for line in lines if "confirmation" in line][-1]
    kernel = next(line for line in lines if line.get("candidate") == best["best"])
    versus = best["evaluation"]["outcome"].get("versus") or {}
    return {"name": name, "task": task, "kernel": kernel, "ratio": versus.get("ratio"),
            "labels": best["evaluation"]["outcome"].get("labels", [])}


def judge(kernelpro, won, limit):
    kernel, task = won["kernel"], won["task"]
    extension = {"cuda": ".cu", "plan": ".cu", "python": ".py"}[kernel["language"]]
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, "task.py"), os.path.join(folder, "kernel" + extension)]
        for path, text in zip(paths, (task["module"]["source"], kernel["source"])):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        command = [kernelpro, "evaluate", *paths, "--target", "cuda", "--json",
                   "--precision", task["precision"]]
        for knob, value in kernel["knobs"].items():
            command += ["--knob", f"{knob}={value}"]
        start = time.monotonic()
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
            verdict = json.loads(done.stdout)
        except subprocess.TimeoutExpired:
            verdict = {"outcome": "no verdict", "reason": f"none within {limit:.0f} s"}
        except json.JSONDecodeError:
            verdict = {"outcome": "no verdict", "reason": (done.stderr or done.stdout)[-300:]}
        verdict["seconds"] = time.monotonic() - start
        return verdict


def row(won, verdict):
    versus = verdict.get("versus") or {}
    ratio = (f"{versus['ratio']:.3g}x [{versus['low']:.3g}, {versus['high']:.3g}]"
             if "ratio" in versus else "-")
    then = f"{won['ratio']:.3g}x" if won["ratio"] else "-"
    held = "yes" if verdict["outcome"] == "correct" else "**no**"
    reason = verdict.get("reason", "").replace("\n", " ").replace("|", "/")[:200]
    return (f"| {won['name'][:48]} | {held} | {', '.join(verdict.get('labels', [])) or '-'} | "
            f"{', '.join(won['labels']) or '-'} | {verdict.get('time_us') or 0:.1f} us | "
            f"{won['kernel']['time_us']:.1f} us | {ratio} | {then} | {verdict['seconds']:.0f} | "
            f"{'' if held == 'yes' else verdict['outcome'] + ': '}{reason} |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kernelpro", required=True)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=float, default=180, help="seconds for each")
    parser.add_argument("--only", default="", help="judge those whose name holds this")
    parser.add_argument("runs", nargs="+")
    options = parser.parse_args()
    all_won = [winner(name, text) for path in options.runs for name, text in texts(path)
               if options.only in name]
    print("| winner | holds | labels | then | time | then | over the start | then | seconds | why |\n"
          "|---|---|---|---|---|---|---|---|---|---|")
    held = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        judged = pool.map(lambda won: judge(options.kernelpro, won, options.limit), all_won)
        for won, verdict in zip(all_won, judged):
            held += verdict["outcome"] == "correct"
            print(row(won, verdict), flush=True)
    print(f"winners that hold {held}/{len(all_won)}")
    return 0 if held == len(all_won) else 1


if __name__ == "__main__":
    sys.exit(main())
