# SPDX-License-Identifier: Apache-2.0
"""Explains exceptions that the sandbox around this process causes: which rule of
src/task/reference/module_process.h the file broke, and what its user can do."""

import errno
import os
import socket
import sys

_RULES = {
    "files": "it may read the system, Python's packages and its own folder (not a home folder), and "
             "write below $TMPDIR; name what else it must read in KERNELPRO_MODULE_READ",
    "network": "it has no network: download what it needs first, into a folder that you name in "
               "KERNELPRO_MODULE_READ",
    "environment": "it does not see your environment: write the value into the file",
    "processes": "it may not signal, trace or limit other processes: take that out of the file",
}


def advice(error):
    """"" if the sandbox has nothing to do with it."""
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        rule = _rule(error)
        if rule:
            return f"a task's file runs in a sandbox; rule {rule}: {_RULES[rule]}"
        error = error.__cause__ or error.__context__
    return ""


def _rule(error):
    if isinstance(error, socket.gaierror):
        return "network"
    if isinstance(error, KeyError):
        return "environment" if _raised_in(error, os) else ""
    if isinstance(error, ImportError):
        return "files" if any(_closed(folder) for folder in sys.path if folder) else ""
    if not isinstance(error, OSError):
        return ""
    path = _text(error.filename)
    if isinstance(error, FileNotFoundError):  # such as ~/.cache: our home is empty
        home = os.environ.get("HOME", "")
        return "files" if home and path.startswith(home + os.sep) else ""
    if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
        return ""
    if path:
        return "files"
    return "network" if _raised_in(error, socket) else "processes"


def _raised_in(error, module):
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code.co_filename in (
        module.__file__, f"<frozen {module.__name__}>")


def _closed(folder):
    try:
        os.listdir(folder)
    except PermissionError:
        return True
    except OSError:
        pass
    return False


def _text(name):
    return os.fsdecode(name) if isinstance(name, (str, bytes)) else ""
