#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the package python/kernelpro against the real program, on the CPU.

    run.py KERNELPRO                api_test.py and, with PyTorch, modules_test.py, reference_test.py and
                                    the notebook
    run.py --types KERNELPRO VENV   mypy --strict, and frames_test.py with pandas
    run.py --prepare VENV           makes the environment of --types, alone

Exit status 77: --types found no package index, and nothing was tested.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parents[1]
sys.path.insert(0, str(HERE.parent))
from environment import prepare, python_in, with_torch  # noqa: E402


def check(python, *words, kernelpro=None, cwd=HERE):
    """Runs it with the package of the source tree; leaves with its status when it fails."""
    environment = dict(os.environ, PYTHONPATH=str(SOURCE / "python"))
    if kernelpro:
        environment["KERNELPRO_PROGRAM"] = str(Path(kernelpro).resolve())
    status = subprocess.run([str(python), *map(str, words)], env=environment, cwd=cwd,
                            timeout=1700).returncode
    if status != 0:
        sys.exit(status)


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--prepare":
        prepare(sys.argv[2], HERE / "requirements.txt")
    elif len(sys.argv) == 4 and sys.argv[1] == "--types":
        python = python_in(Path(sys.argv[3]).resolve(), HERE / "requirements.txt")
        check(python, "-m", "mypy", "--config-file", SOURCE / "pyproject.toml", cwd=SOURCE)
        check(python, "frames_test.py", kernelpro=sys.argv[2])
    elif len(sys.argv) == 2:
        torch = with_torch()
        check(torch or sys.executable, "api_test.py", kernelpro=sys.argv[1])
        if torch is None:
            print("modules_test.py, reference_test.py and the notebook: skipped, no interpreter has PyTorch")
            return
        check(torch, "modules_test.py", kernelpro=sys.argv[1])
        check(torch, "reference_test.py")
        with tempfile.TemporaryDirectory() as folder:
            check(torch, HERE / "notebook.py", SOURCE / "examples" / "python.ipynb",
                  kernelpro=sys.argv[1], cwd=folder)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
