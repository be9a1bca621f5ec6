#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Drives `kernelpro mcp` and `kernelpro serve` with the official Python client of MCP.

    run.py KERNELPRO VENV
    run.py --prepare VENV

Makes the virtual environment VENV with what requirements.txt lists, unless it is there already;
--prepare does that alone. Exit status 77: the client cannot be had here, and nothing was tested.
"""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from environment import prepare, python_in  # noqa: E402


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    if sys.argv[1] == "--prepare":
        prepare(sys.argv[2], HERE / "requirements.txt")
        return
    python = python_in(Path(sys.argv[2]).resolve(), HERE / "requirements.txt")
    test = [str(python), str(HERE / "client_test.py"), str(Path(sys.argv[1]).resolve())]
    sys.exit(subprocess.run(test, timeout=1500).returncode)


if __name__ == "__main__":
    main()
