#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns the store of a sweep into a landscape file, and a landscape into the tuning community's
formats. Standard library only.

    export.py RUN LANDSCAPE.json.gz          the run of `kernelpro optimize --proposer sweep`
    export.py LANDSCAPE.json.gz --kernel-tuner CACHE.json
    export.py LANDSCAPE.json.gz --t4 RESULTS.json

A landscape is one JSON object, gzipped without a time stamp, so that the same run gives the same
bytes:

    task, created, version, machine, target   origin
    source             text of the kernel; its `@knob` lines are the space
    knobs              [{name, values, tags}], in the order of the source
    metrics            names of the observations; `evidence` below follows this order
    variants           one for each measured setting, in the order of measurement:
      setting          index of each knob's value
      outcome          "correct", "compile-error", "crashed", "timed-out", "wrong-result", "rejected"
      us, low, high    when correct: time of a call as a run's search sees it: the incumbent's time
                       over the ratio of interleaved measurements (src/run/store/ledger.h)
      why              when not: the first line of the message
      bound, floor_us, fraction, findings   when correct: the diagnosis;
                       finding: [tool, [tags], likely, upper, stop]
      evidence         5 digits each; null where not observed
      compile_ms, run_ms                    cost of the variant
"""
import argparse
import gzip
import json
import re
import sqlite3
import sys
from pathlib import Path


def knobs_of(source):
    """The same lines as src/core/candidate/knobs.cc reads."""
    knobs = []
    for line in source.splitlines():
        match = re.match(r"\s*//\s*@knob\s+(\w+)\s+([^:]+?)\s*(?::\s*(.*))?$", line)
        if match:
            knobs.append({"name": match[1], "values": match[2].split(),
                          "tags": (match[3] or "").split()})
    return knobs


def short(value):
    """Five significant digits, integers as such."""
    if value is None:
        return None
    rounded = float(f"{value:.5g}")
    return int(rounded) if rounded == int(rounded) and abs(rounded) < 1e15 else rounded


def items_of(evidence):
    """Metric -> value of the first kernel, the only one in a plan-form sweep."""
    found = {name: item["value"] for name, item in evidence.get("items", {}).items()}
    for kernel in evidence.get("kernels", [])[:1]:
        for name, item in kernel.get("items", {}).items():
            found.setdefault(name, item["value"])
    return found


def first_line(outcome):
    for key in ("reason", "log", "rule", "where", "message"):
        if isinstance(outcome.get(key), str) and outcome[key]:
            return outcome[key].splitlines()[0][:160]
    return ""


def diagnosis_of(diagnosis):
    findings = [[f["tool"], [p["tag"] for p in f["prescriptions"]], short(f["likely_speedup"]),
                 short(f["upper_speedup"]), f["stop"]] for f in diagnosis["findings"]]
    return {"bound": diagnosis["bound"], "floor_us": short(diagnosis["floor_us"]),
            "fraction": short(diagnosis["fraction_of_ceiling"]), "findings": findings}


def times_of(correct, score_us, known):
    """us, low, high; `known`: content hash -> us of earlier variants."""
    versus = correct.get("versus")
    if versus and versus["ratio"] > 0 and versus["incumbent"] in known:
        against = known[versus["incumbent"]]
        return against / versus["ratio"], against / versus["high"], against / versus["low"]
    widest = max(correct["timings"], key=lambda t: (t["high_us"] - t["low_us"]) / t["median_us"])
    return (score_us, score_us * widest["low_us"] / widest["median_us"],
            score_us * widest["high_us"] / widest["median_us"])


def variant_of(row, knobs, known):
    name, values, outcome, score_us, evaluation, evidence, diagnosis = row
    values, evaluation = json.loads(values), json.loads(evaluation)
    variant = {"setting": [knob["values"].index(values[knob["name"]]) for knob in knobs],
               "outcome": outcome, "compile_ms": short(evaluation["compile_ms"]),
               "run_ms": short(evaluation["run_ms"])}
    detail = evaluation["outcome"]
    if outcome != "correct":
        return {**variant, "why": first_line(detail)}, {}
    times = times_of(detail, score_us, known)
    known[name] = times[0]
    variant["us"], variant["low"], variant["high"] = map(short, times)
    variant.update(diagnosis_of(json.loads(diagnosis)))
    return variant, items_of(json.loads(evidence))


def load_run(folder):
    path = Path(folder) / "store.db"
    if not path.is_file():
        sys.exit(f"export: {folder} has no store.db: name the folder of a sweep's run")
    store = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    meta = dict(store.execute("SELECT key, value FROM meta"))
    if json.loads(meta["settings"]).get("proposer") != "sweep":
        sys.exit(f"export: {folder} is no sweep: make one with `kernelpro optimize TASK "
                 "--proposer sweep`")
    source = store.execute("SELECT s.text FROM candidates c JOIN sources s ON s.hash = c.source "
                           "ORDER BY c.id LIMIT 1").fetchone()[0]
    knobs = knobs_of(source)
    rows = store.execute(
        "SELECT c.content_hash, c.knobs, e.outcome, e.score_us, e.json, v.json, d.json FROM evaluations e "
        "JOIN candidates c ON c.id = e.candidate LEFT JOIN evidence v ON v.candidate = c.id "
        "LEFT JOIN diagnosis d ON d.candidate = c.id ORDER BY e.position")
    variants, observed, known = [], [], {}
    for row in rows:
        variant, items = variant_of(row, knobs, known)
        variants.append(variant)
        observed.append(items)
    # Values that are the same for every variant are stored once.
    names = sorted({name for items in observed for name in items})
    constant, metrics = {}, []
    for name in names:
        values = {short(items[name]) for items in observed if name in items}
        everywhere = all(name in items for items, v in zip(observed, variants) if "us" in v)
        if len(values) == 1 and everywhere:
            constant[name] = values.pop()
        else:
            metrics.append(name)
    for variant, items in zip(variants, observed):
        if items:
            variant["evidence"] = [short(items.get(name)) for name in metrics]
    task = json.loads(meta["task"])
    space = 1
    for knob in knobs:
        space *= len(knob["values"])
    if len(variants) < space:
        print(f"export: note: {len(variants)} of {space} settings were measured; `kernelpro resume "
              f"{folder}` goes on", file=sys.stderr)
    return {"format": 1, "task": task["name"], "created": meta["created"],
            "version": meta["version"], "machine": json.loads(meta["machine"]),
            "target": meta["target"], "cases": task.get("cases", []), "source": source,
            "knobs": knobs, "constant": constant, "metrics": metrics, "variants": variants}


def read(path):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return json.load(file)


def write(landscape, path):
    text = json.dumps(landscape, separators=(",", ":"), sort_keys=True)
    with open(path, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        packed.write(text.encode())


def number_if_one(text):
    """Kernel Tuner's keys are made with str(): 4 stays "4"; names stay names."""
    return int(text) if re.fullmatch(r"-?(0|[1-9]\d*)", text) else text


# Kernel Tuner's names for failures (kernel_tuner/util.py).
ERRORS = {"compile-error": "CompilationFailedConfig", "crashed": "RuntimeFailedConfig",
          "timed-out": "RuntimeFailedConfig", "wrong-result": "RuntimeFailedConfig",
          "rejected": "RuntimeFailedConfig"}
INVALIDITY = {"correct": "correct", "compile-error": "compile", "crashed": "runtime",
              "timed-out": "timeout", "wrong-result": "correctness", "rejected": "constraints"}


def parameters(landscape, variant):
    return {knob["name"]: number_if_one(knob["values"][at])
            for knob, at in zip(landscape["knobs"], variant["setting"])}


def kernel_tuner_cache(landscape):
    """A cache file of Kernel Tuner (kernel_tuner/util.py, process_cache); times in ms."""
    cache = {}
    for variant in landscape["variants"]:
        values = parameters(landscape, variant)
        entry = dict(values)
        if variant["outcome"] == "correct":
            entry["time"] = variant["us"] / 1000
            entry["times"] = [variant["us"] / 1000]
        else:
            entry["time"] = ERRORS[variant["outcome"]]
            entry["__error__"] = ERRORS[variant["outcome"]]
        entry.update(compile_time=variant["compile_ms"], verification_time=0,
                     benchmark_time=variant["run_ms"], strategy_time=0, framework_time=0,
                     timestamp=landscape["created"])
        cache[",".join(str(value) for value in values.values())] = entry
    return {"device_name": landscape["machine"]["name"], "kernel_name": landscape["task"],
            "problem_size": [1, 1, 1], "tune_params_keys": [k["name"] for k in landscape["knobs"]],
            "tune_params": {k["name"]: [number_if_one(v) for v in k["values"]]
                            for k in landscape["knobs"]},
            "objective": "time", "cache": cache}


def t4_results(landscape):
    """Results in the T4 schema 1.0.0 (kernel_tuner/schema/T4, file_utils.get_t4_results)."""
    results = []
    for variant in landscape["variants"]:
        correct = variant["outcome"] == "correct"
        time_ms = variant["us"] / 1000 if correct else None
        measurements = [{"name": "time", "value": time_ms, "unit": "ms"}] if correct else []
        for name, value in zip(landscape["metrics"], variant.get("evidence", [])):
            if value is not None:
                measurements.append({"name": name, "value": value, "unit": ""})
        results.append({
            "timestamp": landscape["created"], "configuration": parameters(landscape, variant),
            "objectives": ["time"],
            "times": {"compilation": variant["compile_ms"], "framework": 0,
                      "search_algorithm": 0, "validation": 0, "benchmark": variant["run_ms"],
                      "runtimes": [time_ms] if correct else []},
            "invalidity": INVALIDITY[variant["outcome"]],
            "correctness": 0 if variant["outcome"] == "wrong-result" else 1,
            "measurements": measurements})
    return {"results": results, "schema_version": "1.0.0",
            "metadata": {"timeunit": "milliseconds"}}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", help="folder of a run, or a landscape")
    parser.add_argument("landscape", nargs="?", help="to write, from a run")
    parser.add_argument("--kernel-tuner", metavar="FILE", help="cache file to write")
    parser.add_argument("--t4", metavar="FILE", help="results to write in the T4 schema")
    given = parser.parse_args()
    if Path(given.source).is_dir():
        if not given.landscape:
            parser.error("name the landscape to write: NAME.json.gz")
        landscape = load_run(given.source)
        write(landscape, given.landscape)
        good = [v["us"] for v in landscape["variants"] if "us" in v]
        best = f", best {min(good):.6g} us" if good else ""
        print(f"{landscape['task']}: {len(landscape['variants'])} variants, {len(good)} correct"
              f"{best}, {Path(given.landscape).stat().st_size // 1024} KiB")
    else:
        landscape = read(given.source)
    for path, make in ((given.kernel_tuner, kernel_tuner_cache), (given.t4, t4_results)):
        if path:
            Path(path).write_text(json.dumps(make(landscape)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
