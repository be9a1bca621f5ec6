#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns a complete Kernel Tuner cache file into a landscape: knobs, requirements, times, failures.
Its variants have no observations or diagnoses. Standard library only.

    import_cache.py CACHE.json[.gz] SPACE.json LANDSCAPE.json.gz

SPACE.json describes the space in the tuning community's T1 schema; only its conditions are used.
https://github.com/AutoTuningAssociation/benchmark_hub has both files for several kernels and GPUs
(cachefiles/, kernels/).
"""
import gzip
import json
import re
import sys


def cache_of(path):
    opened = gzip.open if path.endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8") as file:
        text = file.read()
    try:
        return json.loads(text)
    except json.JSONDecodeError:  # an interrupted run did not close the object
        return json.loads(text.rstrip().rstrip(",") + "}}")


def requirements_of(conditions):
    """Translates Python conditions to C++ operators; a chained comparison becomes two."""
    texts = []
    for condition in conditions:
        text = condition["Expression"]
        chain = re.fullmatch(r"(\w+)\s*(<=?)\s*([^<>=]+?)\s*(<=?)\s*(\w+)", text)
        texts += [f"{chain[1]} {chain[2]} {chain[3]}", f"{chain[3]} {chain[4]} {chain[5]}"] \
            if chain else [text]
    return texts


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    cache = cache_of(sys.argv[1])
    with open(sys.argv[2], encoding="utf-8") as file:
        space = json.load(file)["ConfigurationSpace"]
    names = cache["tune_params_keys"]
    values = {name: [str(v) for v in cache["tune_params"][name]] for name in names}
    lines = [f"// @knob {name} {' '.join(values[name])}" for name in names]
    lines += [f"// @require {text}" for text in requirements_of(space.get("Conditions", []))]
    variants = []
    for entry in cache["cache"].values():
        variant = {"setting": [values[name].index(str(entry[name])) for name in names],
                   "compile_ms": 0, "run_ms": 0}
        time = entry["time"]
        if isinstance(time, (int, float)):
            us = float(f"{1000 * time:.6g}")
            variant |= {"outcome": "correct", "us": us, "low": us, "high": us}
        else:
            variant |= {"outcome": "compile-error", "why": str(time)[:160]}
        variants.append(variant)
    landscape = {
        "task": cache["kernel_name"], "created": "", "target": "foreign",
        "machine": {"name": cache["device_name"]}, "metrics": [],
        "source": "\n".join(lines) + "\n",
        "knobs": [{"name": name, "values": values[name], "tags": []} for name in names],
        "variants": variants,
    }
    with open(sys.argv[3], "wb") as raw, gzip.GzipFile("", "wb", 9, raw, 0) as file:
        file.write(json.dumps(landscape, separators=(",", ":")).encode())
    works = sum(v["outcome"] == "correct" for v in variants)
    print(f"{sys.argv[3]}: {len(variants)} settings, {works} work")


if __name__ == "__main__":
    main()
