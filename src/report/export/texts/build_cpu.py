# SPDX-License-Identifier: Apache-2.0
# For model_new.py on the cpu target: a C++ compiler builds the kernel, without PyTorch's headers.
import ctypes as _kp_ctypes

_KP_DEVICE, _KP_PLACE = "cpu", "the CPU"
_KP_ALIGNMENT = 64  # bytes; the kernel may rely on it

_KP_CPP = @CPP@


def _kp_build():
    import os
    import subprocess
    import tempfile

    compiler = os.environ.get("CXX") or "c++"
    with tempfile.TemporaryDirectory() as folder:
        source, library = os.path.join(folder, "kernel.cpp"), os.path.join(folder, "kernel.so")
        with open(source, "w") as file:
            file.write(_KP_CPP)
        command = [compiler, *"@FLAGS@".split(), "-fPIC", "-shared", source, "-o", library]
        try:
            made = subprocess.run(command, capture_output=True, text=True)
        except OSError as error:
            raise RuntimeError(f"{compiler} cannot be started: install g++, or set CXX") from error
        if made.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} failed:\n{made.stderr}")
        return _kp_ctypes.CDLL(library)  # stays loaded when the file is gone


_kp_entry = getattr(_kp_build(), "@ENTRY@")
_kp_entry.argtypes = [_kp_ctypes.POINTER(_kp_ctypes.c_void_p), _kp_ctypes.c_void_p]
_kp_entry.restype = None


def _kp_launch(tensors, workspace, device):
    pointers = [tensor.data_ptr() for tensor in tensors]
    _kp_entry((_kp_ctypes.c_void_p * len(pointers))(*pointers), workspace.data_ptr())
