# SPDX-License-Identifier: Apache-2.0
"""Nsight Compute's rules: the findings of `ncu --set full --page details --csv` for one call of a
launch plan, ordered by the gain for the whole call."""

import csv
import os
import subprocess
import tempfile

LAUNCHES = 16  # most launches of one call: each costs seconds under --set full
SECONDS = 300
# Fires with the largest estimate on every kernel that stores: it reports poor compression of data
# that was never meant to be compressed. Counting it would be unfair to the other rules.
ARTEFACTS = {"MemoryL2Compression"}


class RuleFinding:
    def __init__(self, kernel, rule, text, gain, whole):
        self.kernel, self.rule, self.text = kernel, rule, text
        self.gain = gain    # of the whole call, as a factor; 1 if ncu gives no estimate
        self.whole = whole  # ncu's estimate is for the kernel ("global"), not for a part of it


def profile(worker, replay):
    """(the CSV, a problem or "")."""
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "ncu.csv")
        command = ["ncu", "--set", "full", "--page", "details", "--csv", "--log-file", log,
                   "--clock-control", "none", "--profile-from-start", "off",
                   "--launch-count", str(LAUNCHES), worker, "cuda-replay", replay]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        except FileNotFoundError:
            return "", "Nsight Compute is not installed"
        except subprocess.TimeoutExpired:
            return "", "did not end in %d s" % SECONDS
        text = ""
        if os.path.exists(log):
            with open(log, errors="replace") as file:
                text = file.read()
        if '"Rule Name"' in text:
            return text, ""
        said = (text + done.stdout + done.stderr).strip().splitlines() or ["nothing"]
        return "", "status %d: %s" % (done.returncode, said[-1])


def read(text):
    """The findings of all kernels, the largest gain of the call first."""
    lines = text.splitlines()
    first = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), len(lines))
    rows = list(csv.DictReader(line for line in lines[first:] if not line.startswith("==")))
    durations = _durations(rows)
    total = sum(durations.values()) or 1.0
    found = []
    for row in rows:
        rule = row.get("Rule Name") or ""
        kind = (row.get("Rule Type") or "").strip().upper()
        if not rule or rule in ARTEFACTS or kind not in ("OPT", "WRN"):
            continue
        percent = _number(row.get("Estimated Speedup"))
        part = durations.get(row["ID"], total) / total
        saved = min(percent / 100.0, 0.999) * part
        whole = (row.get("Estimated Speedup Type") or "").strip().lower() == "global"
        found.append(RuleFinding(row.get("Kernel Name", ""), rule, row.get("Rule Description") or "",
                                 1.0 / (1.0 - saved), whole))
    # Estimates for a part of a kernel ("local") do not apply to the whole: sort them last.
    found.sort(key=lambda f: (not f.whole, -f.gain))
    once, seen = [], set()
    for finding in found:
        key = (finding.rule, finding.text[:60])
        if key not in seen:
            seen.add(key)
            once.append(finding)
    return once


def _durations(rows):
    """Nanoseconds by launch."""
    unit = {"nsecond": 1.0, "ns": 1.0, "usecond": 1e3, "us": 1e3, "msecond": 1e6, "ms": 1e6,
            "second": 1e9, "s": 1e9}
    return {row["ID"]: _number(row["Metric Value"]) * unit.get(row.get("Metric Unit", ""), 1.0)
            for row in rows if row.get("Metric Name") == "Duration"}


def _number(text):
    try:
        return float((text or "0").replace(",", ""))
    except ValueError:
        return 0.0
