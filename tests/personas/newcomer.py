#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Someone who has installed KernelPro and follows the README, on a machine without a GPU.

    newcomer.py KERNELPRO SOURCE_DIR
"""

import re
import signal

from persona import check, tell

FUNCTION = """// Doubles every element.
void twice(const float* x, float* y, int n) {
  for (int i = 0; i < n; ++i) y[i] = x[i] + x[i];
}
"""
CALLER = """#include <cstdio>
#include "kernel.h"
alignas(64) static float x[64 * 1024], y[64 * 1024];  // a row of equals becomes 1/1024 each
int main() {
  kernelpro_softmax::run(x, y, nullptr);
  std::printf("%.6f\\n", 1024.0 * y[64 * 1024 - 1]);
}
"""


def looks_around(me):
    me.run(status=2).says("optimize", "doctor", "To try it")
    me.run("--version").says("kernelpro")
    me.run("doctor").says("cpu target", "OK host compiler", "measured ceilings", "cuda target")
    me.run("list", status=2).refused("no folder runs", "kernelpro optimize")
    me.run("optimze", "softmax", status=2).refused("no command")
    me.run("optimize", "no-such-task", status=2).refused("no task folder", "task.toml")


def optimizes_the_example(me, source):
    me.example(source)
    kept = ["--target", "cpu", "--seed", "1", "--run", "runs/first"]
    going = me.start("optimize", "softmax", "--evaluations", "40", "--near-ceiling", "0", *kept)
    going.line_with("run folder runs/first")
    going.line_with(r"\[2/40\] evaluated")
    stopped = going.end(signal.SIGINT)
    check(stopped.status == 130, "Ctrl+C should end it with 130", stopped)
    stopped.says("kernelpro resume runs/first")
    seen = len(me.run("show", "runs/first", "--json").json()["candidates"])
    check(seen >= 2, f"the two reported candidates should be in the run, not {seen}")

    done = me.run("resume", "runs/first", "--evaluations", str(seen + 1))
    done.says("report: runs/first/report.html", "budget of .* evaluations is used up")
    check(re.search(r"faster than the start|No candidate beat|Nothing faster", done.text),
          "it should say what came of it", done)
    me.run("resume", "runs/first").says("stopped after")  # nothing is left to do
    me.run("list").says("softmax|runs/first", "cpu", f"{seen + 1} evaluations")
    me.run("show", "runs/first").says("softmax on", "cpu", f"{seen + 1} evaluations", "#1")
    me.run("diagnose", "runs/first").says("call takes")
    me.run("optimize", "softmax", *kept, status=(2, 5)).refused("runs/first")
    return seen + 1


def takes_the_result(me, evaluations):
    page = me.work / "page.html"
    me.run("report", "runs/first", "--output", page).says("page.html")
    text = page.read_text()
    check("softmax" in text and "<script" in text, "the report should be about softmax")
    check(not re.search(r'(src|href)="https?:', text), "the report should need no network")
    run = me.run("show", "runs/first", "--json").json()
    check(len(run["candidates"]) == evaluations, "a resumed run should repeat nothing")

    me.run("export", "runs/first", "--output", "mine").says("kernel.h", "kernel.cpp")
    (me.work / "mine" / "main.cpp").write_text(CALLER)
    lines = (me.work / "mine" / "kernel.cpp").read_text().splitlines()
    build = next(line for line in lines if "Build: c++ " in line).split("Build: c++ ")[1].split()
    words = [word for word in build if word not in ("-c", "kernel.cpp")]
    me.run(*words, "mine/kernel.cpp", "mine/main.cpp", "-o", "mine/app", program="c++")
    me.run(program=str(me.work / "mine" / "app")).says("1.00000")


def makes_a_task(me):
    (me.work / "twice.cpp").write_text(FUNCTION)
    me.run("new", "--from", "twice.cpp").says("found: the function twice", "to decide", "TODO")
    me.run("new", "--from", "twice.cpp", status=2).refused("twice exists", "--output")
    files = {name: me.work / "twice" / name for name in ("task.toml", "reference.cpp")}
    me.run("optimize", "twice", "--target", "cpu", status=2).refused("filled in", "line [1-9]")

    # Decides what is open, as the messages say.
    task = files["task.toml"].read_text()
    task = re.sub(r"dims = \{ (\w+) = \d{5,} \}", r"dims = { \1 = 65536 }", task)
    files["task.toml"].write_text(re.sub(r" *# TODO\(kernelpro\).*", "", task))
    reference = files["reference.cpp"].read_text()
    if "TODO(kernelpro)" in reference:
        size = re.search(r"dims = \{ (\w+) =", task).group(1)
        files["reference.cpp"].write_text(
            '#include "task.h"\nextern "C" void reference(const ReferenceArgs& args) {\n'
            f"  for (long i = 0; i < {size}; ++i) args.y[i] = 2.0 * args.x[i];\n}}\n")
    me.run("evaluate", "twice", "twice/kernel.cpp").says("correct", "interval")
    wrong = (me.work / "twice" / "kernel.cpp").read_text().replace("x[i] + x[i]", "x[i]")
    (me.work / "wrong.cpp").write_text(wrong)
    me.run("evaluate", "twice", "wrong.cpp", status=1).says("wrong result in y", "0.5 times")


def newcomer(me, source):
    looks_around(me)
    evaluations = optimizes_the_example(me, source)
    takes_the_result(me, evaluations)
    makes_a_task(me)


if __name__ == "__main__":
    tell(newcomer, "KERNELPRO SOURCE_DIR")
