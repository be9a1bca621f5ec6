#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A run whose model is scripts/park: what it parks, what its answers become.

    tests/park/run.py KERNELPRO SOURCE_DIR
"""

import json
import os
import subprocess
import sys
import tempfile
import threading

LIMIT_S = 1200  # catches hangs alone
TASK = {
    "task.toml": """[task]
name = "scale"
flops = "N"
[[tensor]]
name = "x"
role = "input"
dtype = "fp32"
shape = ["N"]
[[tensor]]
name = "y"
role = "output"
dtype = "fp32"
shape = ["N"]
[[case]]
name = "small"
dims = { N = 65536 }
timed = true
targets = ["cpu"]
""",
    "reference.cpp": """#include "task.h"
extern "C" void reference(const ReferenceArgs& args) {
  for (long i = 0; i < N; ++i) args.y[i] = 2.0 * args.x[i];
}
""",
    "kernel.cpp": """#include "task.h"
extern "C" void launch(const Args& args) {
  for (long i = 0; i < N; ++i) args.y[i] = 2.0f * args.x[i];
}
""",
}


def answer(path, name, text):
    with open(os.path.join(path, name + ".tmp"), "w", encoding="utf-8") as file:
        file.write(text)
    os.rename(os.path.join(path, name + ".tmp"), os.path.join(path, name))


def main():
    kernelpro, source = sys.argv[1:]
    asked = []
    with tempfile.TemporaryDirectory() as folder:
        task = os.path.join(folder, "scale")
        os.makedirs(task)
        for name, text in TASK.items():
            answer(task, name, text)
        parked = os.path.join(folder, "parked")
        server = subprocess.Popen([sys.executable, os.path.join(source, "scripts", "park"), parked,
                                   "--port", "0"], stdout=subprocess.PIPE, text=True)
        address = server.stdout.readline().strip()

        def write():
            """Refuses the first question; answers the others with the start, differently named."""
            for line in server.stdout:
                what, path = line.split()
                if what != "asked":
                    continue
                asked.append(path)
                if len(asked) == 1:
                    answer(path, "error.md", "not now")
                else:
                    answer(path, "reply.md", "A first idea.\n\n```cpp\n// version %d\n%s\n```\n" %
                           (len(asked), TASK["kernel.cpp"]))

        writer = threading.Thread(target=write)
        writer.start()
        environment = {**os.environ, "HOME": folder, "KERNELPRO_CACHE": os.path.join(folder, "c")}
        run = os.path.join(folder, "run")
        done = subprocess.run([kernelpro, "optimize", task, "--target", "cpu", "--model", address,
                               "--one-call", "--tune", "0", "--evaluations", "2", "--run", run,
                               "--ideas", "1", "--no-record", "--no-memory"], capture_output=True, text=True,
                              timeout=LIMIT_S, env=environment)
        shown = subprocess.run([kernelpro, "show", run, "--json"], capture_output=True, text=True,
                               timeout=LIMIT_S, env=environment)
        server.terminate()
        server.wait()
        writer.join()
        faults = []
        if done.returncode != 0:
            faults.append("optimize ends with %d: %s" % (done.returncode, done.stderr[-500:]))
        if len(asked) < 2:
            faults.append("%d questions were parked, not 2 or more" % len(asked))
        for path in asked[1:2]:
            with open(os.path.join(path, "prompt.md"), encoding="utf-8") as file:
                if "scale" not in file.read():
                    faults.append("prompt.md does not name the task")
            with open(os.path.join(path, "request.json"), encoding="utf-8") as file:
                if json.load(file)["model"] != "parked":
                    faults.append("request.json names another model")
        candidates = json.loads(shown.stdout or "{}").get("candidates", [])
        if len(candidates) < 2:
            faults.append("the run has %d candidates, not 2" % len(candidates))
    print("\n".join(faults) if faults else "park: a refusal and an answer went through")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
