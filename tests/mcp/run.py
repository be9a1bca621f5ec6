#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Drives `kernelpro mcp` and `kernelpro serve` with the official Python client of MCP.

    run.py KERNELPRO VENV
    run.py --prepare VENV

Makes the virtual environment VENV with what requirements.txt lists, unless it is there already;
--prepare does that alone, while other tests run, and leaves it to the test to say what is missing.
Exit status 77: the client cannot be had here, and nothing was tested.
"""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SKIPPED = 77


def skip(why):
    print(f"skipped: {why}\n  next: install python3-venv and give this machine a package index")
    sys.exit(SKIPPED)


def environment(venv):
    """The interpreter of the virtual environment, made when it is not complete."""
    python = venv / "bin" / "python"
    wanted = (HERE / "requirements.txt").read_text()
    stamp = venv / "kernelpro-requirements.txt"
    if stamp.exists() and stamp.read_text() == wanted:
        return python
    steps = [
        [sys.executable, "-m", "venv", "--clear", str(venv)],
        [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
         "--retries", "1", "--timeout", "20", "-r", str(HERE / "requirements.txt")],
    ]
    for step in steps:
        try:
            made = subprocess.run(step, capture_output=True, text=True, timeout=900)
        except (OSError, subprocess.TimeoutExpired) as error:
            skip(str(error))
        if made.returncode != 0:
            lines = (made.stderr or made.stdout).strip().splitlines() or ["no reason given"]
            skip(f"{' '.join(step[:4])}: {lines[-1]}")
    stamp.write_text(wanted)
    return python


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    venv = Path(sys.argv[2]).resolve()
    if sys.argv[1] == "--prepare":
        try:
            environment(venv)
        except SystemExit:
            pass
        return
    python = environment(venv)
    test = [str(python), str(HERE / "client_test.py"), str(Path(sys.argv[1]).resolve())]
    sys.exit(subprocess.run(test, timeout=1500).returncode)


if __name__ == "__main__":
    main()
