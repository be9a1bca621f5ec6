#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The live page's figures (results/live-page.md), with the real programs and Chromium.

    pip install playwright        # the browser: apt-get install chromium
    bench/live_page.py build/release/bin/kernelpro [--candidates 2000] [--pairs 8]

It makes a run of so many candidates from a short real one, and measures: the time from opening the
page to its first paint and to its table; the time from a commit (the runner's progress line is
printed after it) to the event's candidate on the screen; and the run time of a small run with the
page open over that without, in pairs of alternating order.

Runs have the first half of the processors, the server and the browser the others: a run that is timed
on every processor of a machine waits for whatever else works there, and a browser does.
"""
import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import tempfile
import time

from playwright.sync_api import sync_playwright

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TASK = os.path.join(ROOT, "tests", "tasks", "softmax")


ALL = sorted(os.sched_getaffinity(0))
OF_RUNS = set(ALL[:max(1, len(ALL) // 2)])
OF_OTHERS = set(ALL) - OF_RUNS or OF_RUNS


def confined():
    os.sched_setaffinity(0, OF_RUNS)


def kernelpro(program, *words):
    return subprocess.run([program, *words], check=True, capture_output=True, text=True,
                          preexec_fn=confined).stdout


def optimize(program, folder, evaluations):
    kernelpro(program, "optimize", TASK, "--target", "cpu", "--no-record", "--near-ceiling", "0",
              "--evaluations", str(evaluations), "--seconds", "3600", "--run", folder)


def enlarge(program, small, large, candidates):
    """Writes a run with many candidates: the small one's, each with knobs of its own.

    A result names its incumbent by the hash of its contents, which only the program computes: the
    run is written once to learn them, and again with the start as everybody's incumbent.
    """
    text = os.path.join(os.path.dirname(large), "large.jsonl")
    kernelpro(program, "trajectories", small, "--output", text)
    with open(text, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    real = [line for line in lines if "candidate" in line and line.get("position")]
    draw = random.Random(1)
    made = [line for line in lines if "run" in line]
    for number in range(1, candidates + 1):
        line = json.loads(json.dumps(real[0] if number == 1 else draw.choice(real[1:])))
        line["candidate"] = line["position"] = number
        line["at_s"] = 0.4 * number
        line["repairs"] = 0
        line.pop("step", None)
        line["parent"] = 0 if number == 1 else max(1, int(number * draw.betavariate(4, 1.3)) - 1)
        line["knobs"] = dict(line["knobs"], SYNTHETIC=str(number))
        made.append(line)

    def write(folder):
        with open(text, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in made)
        kernelpro(program, "pack", text, folder)

    write(large + ".first")
    known = json.loads(kernelpro(program, "show", large + ".first", "--json"))
    start = next(each for each in known["candidates"] if each["id"] == 1)
    shutil.rmtree(large + ".first")
    for line in made[2:]:
        outcome = line["evaluation"]["outcome"]
        if outcome["kind"] != "correct":
            continue
        ratio = start["time_us"] / outcome["timings"][0]["median_us"] * draw.uniform(0.9, 1.02)
        outcome["versus"] = {"incumbent": start["hash"], "ratio": ratio, "low": ratio * 0.99,
                             "high": ratio * 1.01}
    write(large)
    os.remove(text)


def serve(program, runs):
    server = subprocess.Popen([program, "serve", "--runs", runs, "--port", "0", "--no-record"],
                              stdout=subprocess.PIPE, text=True)
    for line in server.stdout:
        if line.startswith("page: "):
            return server, line.split()[1]
    raise SystemExit("the server did not start")


def link_to(page, link, name):
    """The address of a run's page; the list has its number."""
    page.goto(link)
    page.wait_for_selector("html[data-ready]", state="attached")
    href = page.locator("a", has_text=name).first.get_attribute("href")
    base, token = link.split("/#/?")
    return base + "/" + href + "?" + token


def first_paint(browser, link, times):
    paints, tables = [], []
    for _ in range(times):
        page = browser.new_context(viewport={"width": 1400, "height": 900}).new_page()
        page.goto(link)
        page.wait_for_selector("tr.row")
        tables.append(page.evaluate("performance.now()"))
        page.wait_for_selector("html[data-detail]", state="attached")
        paints.append(page.evaluate(
            "performance.getEntriesByName('first-contentful-paint')[0].startTime"))
        page.context.close()
    return paints, tables


WATCH = """() => { window.seen = {}; const node = document.documentElement;
  new MutationObserver(() => requestAnimationFrame(() => setTimeout(() => {
    const n = Number(node.getAttribute('data-seen')); if (!(n in window.seen)) window.seen[n] = Date.now();
  }, 0))).observe(node, {attributes: true, attributeFilter: ['data-seen']}); }"""


LAST_SEEN = "document.documentElement.getAttribute('data-seen')"


def event_delays(browser, link, program, run, first, count):
    page = browser.new_context(viewport={"width": 1400, "height": 900}).new_page()
    page.goto(link)
    page.wait_for_selector("html[data-detail]", state="attached")
    page.evaluate(WATCH)
    runner = subprocess.Popen([program, "resume", run, "--evaluations", str(first + count),
                               "--near-ceiling", "0", "--seconds", "100000", "--json"],
                              stdout=subprocess.PIPE, text=True, preexec_fn=confined)
    commits = []
    for line in runner.stdout:
        if '"evaluated"' in line and '"event"' in line:
            commits.append(time.time() * 1000)
    runner.wait()
    # The page's policy forbids wait_for_function, which evaluates a text in the page.
    until = time.time() + 20
    while int(page.evaluate(LAST_SEEN)) < first + len(commits) and time.time() < until:
        time.sleep(0.1)
    time.sleep(0.5)
    seen = {int(number): at for number, at in page.evaluate("window.seen").items()}
    delays = []
    for i, commit in enumerate(commits):  # an event may bring several candidates at once
        shown = [at for number, at in seen.items() if number >= first + 1 + i]
        delays.append(min(shown) - commit)
    page.context.close()
    return delays


def paired(browser, program, runs, link, pairs):
    page = browser.new_context(viewport={"width": 1400, "height": 900}).new_page()
    ratios = []
    for pair in range(pairs):
        seconds = {}
        for watched in (pair % 2 == 0, pair % 2 == 1):
            name = f"pair-{pair}-{'watched' if watched else 'alone'}"
            folder = os.path.join(runs, name)
            optimize(program, folder, 1)
            page.goto(link_to(page, link, name) if watched else "about:blank")
            start = time.monotonic()
            kernelpro(program, "resume", folder, "--evaluations", "16", "--near-ceiling", "0")
            seconds[watched] = time.monotonic() - start
        ratios.append(seconds[True] / seconds[False])
        print(f"pair {pair}: {seconds[True]:.1f} s watched, {seconds[False]:.1f} s alone", flush=True)
    page.context.close()
    return ratios


def row(name, values, unit):
    values = sorted(values)
    print(f"| {name} | {statistics.median(values):.3g} {unit} | {values[0]:.3g} to {values[-1]:.3g} {unit} | {len(values)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--candidates", type=int, default=2000)
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--events", type=int, default=15)
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    options = parser.parse_args()
    os.sched_setaffinity(0, OF_OTHERS)
    program = os.path.abspath(options.program)
    with tempfile.TemporaryDirectory() as folder:
        runs = os.path.join(folder, "runs")
        small, large = os.path.join(folder, "small"), os.path.join(runs, "large")
        optimize(program, small, 12)
        os.makedirs(runs)
        enlarge(program, small, large, options.candidates)
        server, link = serve(program, runs)
        try:
            with sync_playwright() as play:
                browser = play.chromium.launch(executable_path=options.chromium, args=["--no-sandbox"])
                probe = browser.new_page()
                address = link_to(probe, link, "large")
                probe.close()
                paints, tables = first_paint(browser, address, 7)
                delays = event_delays(browser, address, program, large, options.candidates, options.events)
                ratios = paired(browser, program, runs, link, options.pairs)
        finally:
            server.terminate()
            server.wait()
    print("\n| figure | median | range | n |\n|---|---|---|---|")
    row("first paint", paints, "ms")
    row("table on the screen", tables, "ms")
    row("event on the screen after its commit", delays, "ms")
    row("run time with the page over without", ratios, "x")


if __name__ == "__main__":
    main()
