#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the first part of results/README.md and its chart from the recorded runs.

    bench/page.py             # results/README.md, results/kernels.svg
    bench/page.py --check     # exits 1 where they are not what the records say

A kernel's time is that of its run's confirmation in fresh processes; its factor is the paired one of
that confirmation. Where a run goes on from the winner of another, factors multiply, and so do the
bounds of their intervals. The limit is the call's at the measured ceilings (`floor_us`).
"""
import argparse
import dataclasses
import difflib
import functools
import html
import json
import os
import sys
import tarfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path.insert(0, os.path.join(ROOT, "bench", "ablation"))
from gains import geometric, micro, times  # noqa: E402
from generations import LOWERED  # noqa: E402
FLAGSHIPS = "bench/ablation/flagships.tar.xz"
SEARCHES = "bench/ablation/searches.tar.xz"
OPEN = "bench/ablation/open.tar.xz"
SUITE = "bench/kernelbench/open.tar.xz"
TF32 = "bench/kernelbench/tf32.tar.xz"  # tasks of the suite again, at TF32's tolerance
BEGIN, END = "<!-- bench/page.py: from here", "to here -->"

# Name, what it starts from, records in order: a file, or an archive and its member.
KERNELS = [
    ("softmax, fp32", "PyTorch", ["results/exchange/softmax.jsonl", (SEARCHES, "softmax/greedy.jsonl")]),
    ("the same in Triton", "PyTorch", [(OPEN, "softmax_triton/diagnosed.jsonl")]),
    ("layer norm, fp32", "PyTorch", ["results/exchange/layernorm.jsonl", (OPEN, "layernorm/diagnosed.jsonl")]),
    ("conv2d 11 x 11, TF32", "PyTorch", ["results/exchange/conv2d.jsonl", (FLAGSHIPS, "conv2d/confirmed3.jsonl")]),
    ("conv2d, ReLU, max-pool, TF32", "PyTorch",
     ["results/exchange/conv2d_relu_maxpool.jsonl", (FLAGSHIPS, "conv2d_relu_maxpool/confirmed.jsonl")]),
    ("product, strict fp32", "PyTorch", [(FLAGSHIPS, "matmul_fp32/diagnosed.jsonl")]),
    ("attention, fp16", "PyTorch", ["results/exchange/attention_fp16.jsonl", (SEARCHES, "attention_fp16/confirmed.jsonl")]),
    ("product, bf16", "cuBLAS", ["results/exchange/gemm_bf16.jsonl"]),
    ("the same in CuTe C++", "cuBLAS", [(OPEN, "gemm_cute/diagnosed.jsonl")]),
    ("MoE weight gradient, bf16", "VeOmni's Triton",
     ["results/exchange/moe_dw1.jsonl", (OPEN, "moe_dw1/diagnosed.jsonl")]),
    ("the same in CuTe C++", "a naive kernel", [(SEARCHES, "moe_dw1/diagnosed.jsonl")]),
    ("gated delta rule, bf16", "PyTorch", [(SUITE, "gated_delta_rule/diagnosed.jsonl")]),
    ("Mamba-2's scan, bf16", "PyTorch", [(SUITE, "ssd_scan/diagnosed.jsonl")]),
    ("paged decode attention, bf16", "PyTorch", [(SUITE, "paged_decode/diagnosed.jsonl")]),
]
# Whose results follow from a few sums: no kernel, an identity (results/kernelbench.md).
IDENTITIES = ("2-44", "2-72")
# Tasks whose records call them by the name of a copied file, "task".
NAMES = {"1-18": "Matmul with transposed both", "2-12": "Gemm Multiply LeakyReLU", "2-31": "Conv2d Min Add Multiply",
         "2-37": "Matmul Swish Sum GroupNorm", "2-62": "Matmul GroupNorm LeakyReLU Sum",
         "2-88": "Gemm GroupNorm Swish Multiply Swish", "3-1": "MLP", "3-3": "DeepNarrowMLP", "3-9": "ResNet18",
         "3-11": "VGG16", "3-5": "AlexNet", "3-27": "RegNet", "3-31": "VisionAttention", "3-38": "LSTMBidirectional", "3-39": "GRU",
         "3-42": "GRUBidirectionalHidden", "3-49": "Mamba2ReturnFinalState", "3-50": "ReLUSelfAttention"}


@dataclasses.dataclass
class Row:
    name: str
    start: str
    us: float
    ratio: float
    low: float
    high: float
    floor_us: float
    labels: list
    records: list
    host_form: bool  # the start's, of the last record
    written: bool  # by a writer of the last run


@functools.lru_cache
def members(archive):
    """Its texts by name."""
    with tarfile.open(os.path.join(ROOT, archive)) as opened:
        return {each.name.removeprefix("./"): opened.extractfile(each).read().decode()
                for each in opened if each.isfile() and each.name.endswith((".json", ".jsonl"))}


def lines_of(record):
    if isinstance(record, str):
        with open(os.path.join(ROOT, record), encoding="utf-8") as file:
            return file.read().splitlines()
    if record[1] not in members(record[0]):
        sys.exit(f"{record[0]} has no {record[1]}")
    return members(record[0])[record[1]].splitlines()


def source_of(candidate, rows):
    """The candidate whose source it has: a tuner's settings have their parent's."""
    by_id = {row["candidate"]: row for row in rows if "candidate" in row}
    while candidate["proposer"] == "tuner":
        candidate = by_id[candidate["parent"]]
    return candidate


def row_of(name, start, records):
    """None if one of the records is not confirmed."""
    ratio = low = high = 1.0
    for record in records:
        rows = [json.loads(line) for line in lines_of(record)]
        confirmed = [row["confirmation"] for row in rows if "confirmation" in row
                     and row["confirmation"]["evaluation"]["outcome"]["kind"] == "correct"]
        if not confirmed:
            return None
        best = confirmed[-1]["best"]
        outcome = confirmed[-1]["evaluation"]["outcome"]
        candidate, first = (next(row for row in rows if row.get("candidate") == number) for number in (best, 1))
        versus = outcome.get("versus") or ({"ratio": 1, "low": 1, "high": 1} if best == 1 else None)  # the start stays
        if not versus:
            return None
        ratio, low, high = ratio * versus["ratio"], low * versus["low"], high * versus["high"]
    return Row(name, start, outcome["timings"][0]["median_us"], ratio, low, high,
               candidate["diagnosis"]["floor_us"], outcome.get("labels") or [], records,
               "host-form" in (first["evaluation"]["outcome"].get("labels") or []),
               source_of(candidate, rows)["proposer"] not in ("start", "seed"))


def order(row):
    return len(set(row.labels) & LOWERED), row.us


def pytorch(archive, task, precisions):
    """PyTorch's own times by name, of the faster precision."""
    out = {}
    for precision in precisions:
        text = members(archive).get(f"{task}/baselines.{precision}.json", '{"baselines": []}')
        for each in json.loads(text)["baselines"]:
            if not each["error"]:
                out[each["name"]] = min(each["median_us"], out.get(each["name"], each["median_us"]))
    return out


def kernelbench(archive, precisions):
    """{task: (its confirmed run's row, PyTorch's own times by name)}; of arms, the fastest with the fewest labels
    that rank lower."""
    out = {}
    for name in sorted(members(archive)):
        task = name.split("/")[0]
        if not task[0].isdigit() or not name.endswith(".jsonl") or task in IDENTITIES:
            continue
        words = json.loads(members(archive)[name].split("\n", 1)[0])["run"]["task"]["name"].split("_")[1:] or [NAMES[task]]
        row = row_of(" ".join([task.replace("-", "/"), *words])[:40].strip(), "PyTorch", [(archive, name)])
        if row and (task not in out or order(row) < order(out[task][0])):
            out[task] = row, pytorch(archive, task, precisions)
            if not {"eager", "compile"} <= set(out[task][1]):
                sys.exit(f"{task} has no times of PyTorch: bench/kernelbench/baselines.py DIR --only {task}")
    return dict(sorted(out.items(), key=lambda item: [int(part) for part in item[0].split("-")]))


def share(row):
    return row.floor_us / row.us


def link(record):
    path, member = (record, "") if isinstance(record, str) else record
    text = member or os.path.basename(path)
    return f"[{text}]({os.path.relpath(path, 'results')})"


def limit_now(row):
    """A limit that a kernel stands beyond counts more work than there is to do."""
    return f"{100 * share(row):.0f} %" if share(row) <= 1.05 else ">100 %"


def table(rows):
    out = ["| kernel | start | now | over the start (95 % interval) | of the limit, then and now | labels | records |",
           "|---|---|---|---|---|---|---|"]
    for row in rows:
        out.append(f"| {row.name} | {row.start}, {micro(row.us * row.ratio)} | {micro(row.us)} | "
                   f"**{times(row.ratio)}** ({times(row.low)} to {times(row.high)}) | "
                   f"{100 * share(row) / row.ratio:.0f} %, {limit_now(row)} | {', '.join(row.labels)} | "
                   f"{', '.join(link(record) for record in row.records)} |")
    return out


def suite_table(suite):
    out = ["| task | eager | now | over the start (95 % interval) | over eager | over torch.compile | of the limit | labels |",
           "|---|---|---|---|---|---|---|---|"]
    for row, own in suite.values():
        spread = f" ({times(row.low)} to {times(row.high)})" if row.low < row.high else ""
        paired = "-" if row.host_form else f"**{times(row.ratio)}**{spread}"
        out.append(f"| {row.name} | {micro(own['eager'])} | {micro(row.us)} | {paired} | {times(own['eager'] / row.us)} | "
                   f"{times(own['compile'] / row.us)} | {limit_now(row)} | {', '.join(row.labels)} |")
    return out


def suite_means(suite):
    """A row for each level: of all tasks that are confirmed, and of those that are not above their limit."""
    out = ["| geometric means, confirmed tasks | tasks | over the start, in turn | over eager | over torch.compile | of the limit |",
           "|---|---|---|---|---|---|"]
    for level in "123":
        some = [each for task, each in suite.items() if task[0] == level]
        within = [each for each in some if "above-measured-ceiling" not in each[0].labels]
        for words, chosen in ((f"level {level}", some), (f"level {level}, without what is above its limit", within)):
            if chosen is within and within == some:
                continue
            paired = [row.ratio for row, _ in chosen if not row.host_form]
            out.append(f"| {words} | {len(chosen)} | {times(geometric(paired))} ({len(paired)}) | " +
                       " | ".join(times(geometric([own[kind] / row.us for row, own in chosen])) for kind in ("eager", "compile")) +
                       f" | {100 * geometric([share(row) for row, _ in chosen]):.0f} % |")
    return out


WIDTH, LABEL, FACTOR, LINE, TOP = 860, 250, 90, 30, 54


def chart(rows):
    """Two bars a kernel: the start's and the kernel's share of the limit."""
    height = TOP + LINE * len(rows) + 12
    scale = WIDTH - LABEL - FACTOR
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" '
           'font-size="13" role="img" aria-label="Shares of the limit, before and after">',
           f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
           f'<rect x="{LABEL}" y="10" width="12" height="12" fill="#b9bfc9"/>'
           f'<text x="{LABEL + 18}" y="21" fill="#333">the start</text>'
           f'<rect x="{LABEL + 100}" y="10" width="12" height="12" fill="#2f6fd6"/>'
           f'<text x="{LABEL + 118}" y="21" fill="#333">KernelPro\'s kernel, and how many times as fast</text>']
    for tick in (0, 25, 50, 75, 100):
        x = LABEL + scale * tick / 100
        out.append(f'<line x1="{x:.0f}" y1="{TOP - 6}" x2="{x:.0f}" y2="{height - 8}" stroke="#e3e6eb"/>'
                   f'<text x="{x:.0f}" y="{TOP - 12}" fill="#777" font-size="11" text-anchor="middle">{tick} %</text>')
    for i, row in enumerate(rows):
        y = TOP + LINE * i
        now = min(1.0, share(row))
        out.append(f'<text x="{LABEL - 10}" y="{y + 16}" fill="#222" text-anchor="end">{html.escape(row.name)}</text>'
                   f'<rect x="{LABEL}" y="{y + 2}" width="{scale * share(row) / row.ratio:.1f}" height="8" fill="#b9bfc9"/>'
                   f'<rect x="{LABEL}" y="{y + 11}" width="{scale * now:.1f}" height="11" fill="#2f6fd6"/>'
                   f'<text x="{LABEL + scale * now + 8:.1f}" y="{y + 21}" fill="#222">{times(row.ratio)}</text>')
    return "\n".join(out + ["</svg>"]) + "\n"


def page():
    kernels = [row_of(*each) for each in KERNELS]
    suite, tf32 = kernelbench(SUITE, ["fp32"]), kernelbench(TF32, ["fp32", "tf32"])
    tasks = len({name.split("/")[0] for name in members(SUITE) if name[0].isdigit()})
    for_tf32 = ", ".join(task.replace("-", "/") for task, (row, _) in tf32.items() if row.written)
    if not all(kernels):
        sys.exit("not confirmed: " + ", ".join(each[0] for each, row in zip(KERNELS, kernels) if not row))
    return "\n".join([
        BEGIN + " -->", "",
        "## Kernels, on an NVIDIA H200", "",
        "![Shares of the limit that the machine sets: before and after](kernels.svg)", "",
        "Confirmed in fresh processes, with all probes, in turn with the start. Where there are two records, the second run "
        "started from the first one's winner: ratios and interval bounds are multiplied, the start's "
        "time is computed. The limit is what that day's measured "
        "bandwidth and arithmetic rates allow for the definition's own bytes and operations. Bars of the chart are "
        "shares of it, of the kernels in the first table.", ""] + table(kernels) + [
        "", f"## KernelBench, {len(suite)} of {tasks - len(IDENTITIES)} tasks", "",
        "Fifteen tasks a level [drawn by a rule](kernelbench.md), without the identities 2/44 and 2/72, at strict fp32: those "
        "that are confirmed in fresh processes (1.00x: PyTorch's own "
        "stays, since every kernel has a label that ranks lower). In 3/39 and 3/42, recurrent networks, eager PyTorch is host-bound. "
        "Over the start: timed in turn with the module itself (`-`: its start is in host form, timed from outside). Eager PyTorch "
        "and torch.compile at fp32 were timed separately. All runs are in "
        f"[open.tar.xz]({os.path.relpath(SUITE, 'results')}).", ""] + suite_means(suite) + [""] + suite_table(suite) + [
        "", "### At TF32's tolerance", "",
        f"{len(tf32)} of these tasks with PyTorch and the kernels both allowed to round factors to TF32's 10 bits, confirmed "
        f"likewise. {for_tf32} have kernels that were written for it; in the others the strict kernel stays, or PyTorch's own (1.00x). The "
        "limit is that of fp16 products. [How they multiply, all tasks, and what to bear in mind](kernelbench.md#at-tf32s-tolerance); "
        f"all runs are in [tf32.tar.xz]({os.path.relpath(TF32, 'results')}).", ""] + suite_means(tf32) + [""] + suite_table(tf32) + [
        "", "What the labels mean: [Evaluation](../docs/evaluation.md). Each record can be shown and judged again: "
        "`kernelpro show FILE`, `kernelpro replay FILE`.", "",
        "<!-- " + END]) + "\n", chart(kernels)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    path = os.path.join(ROOT, "results/README.md")
    with open(path, encoding="utf-8") as file:
        old = file.read()
    text, picture = page()
    new = old[:old.index(BEGIN)] + text + old[old.index(END) + len(END) + 1:]
    written = {path: new, os.path.join(ROOT, "results/kernels.svg"): picture}
    for each, content in written.items():
        known = ""
        if os.path.exists(each):
            with open(each, encoding="utf-8") as file:
                known = file.read()
        if options.check and known != content:
            sys.stdout.writelines(difflib.unified_diff(known.splitlines(True), content.splitlines(True), each, "the records"))
            sys.exit("run bench/page.py")
        if not options.check:
            with open(each, "w", encoding="utf-8") as file:
                file.write(content)


if __name__ == "__main__":
    main()
