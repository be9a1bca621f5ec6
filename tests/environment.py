# SPDX-License-Identifier: Apache-2.0
"""Virtual environments of tests, made once in the build folder."""

import subprocess
import sys
from pathlib import Path

SKIPPED = 77  # exit status of a test that tested nothing


def skip(why):
    print(f"skipped: {why}\n  next: install python3-venv and give this machine a package index")
    sys.exit(SKIPPED)


def python_in(venv, requirements):
    """The interpreter of the virtual environment `venv` with what the file `requirements` lists,
    made when it is not complete. Leaves with SKIPPED where it cannot be had."""
    python = venv / "bin" / "python"
    wanted = requirements.read_text()
    stamp = venv / "kernelpro-requirements.txt"
    if stamp.exists() and stamp.read_text() == wanted:
        return python
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
           "--retries", "1", "--timeout", "20"]
    run_or_skip([sys.executable, "-m", "venv", "--clear", str(venv)])
    # uv needs a tenth of pip's time. Where it cannot be had, pip does.
    fast = [str(python), "-m", "uv", "pip", "install", "--quiet", "--python", str(python),
            "-r", str(requirements)]
    if failure([*pip, "uv"]) or failure(fast):
        run_or_skip([*pip, "-r", str(requirements)])
    stamp.write_text(wanted)
    return python


def failure(step):
    """What went wrong, or ""."""
    try:
        made = subprocess.run(step, capture_output=True, text=True, timeout=900)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if made.returncode == 0:
        return ""
    lines = (made.stderr or made.stdout).strip().splitlines() or ["no reason given"]
    return f"{' '.join(step[:4])}: {lines[-1]}"


def run_or_skip(step):
    if wrong := failure(step):
        skip(wrong)


def prepare(venv, requirements):
    """Makes the environment while other tests run; leaves it to the test to say what is missing."""
    try:
        python_in(Path(venv).resolve(), requirements)
    except SystemExit:
        pass


def with_torch():
    """An interpreter that has PyTorch: this one or the distribution's; None: there is none."""
    for python in (sys.executable, "/usr/bin/python3"):
        try:
            if subprocess.run([python, "-c", "import torch"], capture_output=True).returncode == 0:
                return python
        except OSError:
            pass
    return None
