# SPDX-License-Identifier: Apache-2.0
"""python .../kernelpro_torch ROLE [ARGUMENTS]: started by kernelpro, not by hand."""

import os
import sys

# Started by path: this folder must not shadow other modules.
sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def main(role, arguments):
    from kernelpro_torch.channel import Channel

    channel = Channel()
    if role == "reference":
        from kernelpro_torch import quick_import

        quick_import.import_torch(arguments[0])
        from kernelpro_torch import reference

        reference.serve(channel, *arguments)
    elif role == "candidate":
        from kernelpro_torch import candidate

        candidate.serve(channel, *arguments)
    elif role == "capture":
        from kernelpro_torch import capture

        capture.serve(channel, *arguments)
    elif role == "baseline":
        from kernelpro_torch import baseline

        baseline.serve(channel, *arguments)
    else:
        sys.exit(f"unknown role {role!r}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
