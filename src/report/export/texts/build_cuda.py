# SPDX-License-Identifier: Apache-2.0
# For model_new.py on the cuda target: PyTorch builds the kernel.
from torch.utils.cpp_extension import load_inline as _kp_load_inline

_KP_DEVICE, _KP_PLACE = "cuda", "a GPU"
_KP_ALIGNMENT = 256  # bytes; the kernel may rely on it

_KP_CPP = @CPP@

_KP_CUDA = @CUDA@


def _kp_build():
    major, minor = _kp_torch.cuda.get_device_capability()
    arch = f"{major}{minor}" + ("a" if major >= 9 else "")
    return _kp_load_inline(
        name="@EXTENSION@",
        cpp_sources=[_KP_CPP],
        cuda_sources=[_KP_CUDA],
        functions=["kp_run"],
        extra_cflags=["-O2"],
        extra_cuda_cflags=[
            "-O3",
            "-std=c++20",
            f"-gencode=arch=compute_{arch},code=sm_{arch}",
            # PyTorch turns these off for its own code; the kernel was built with them.
            "-U__CUDA_NO_HALF_OPERATORS__",
            "-U__CUDA_NO_HALF_CONVERSIONS__",
            "-U__CUDA_NO_HALF2_OPERATORS__",
            "-U__CUDA_NO_BFLOAT16_CONVERSIONS__",
        ],
    )


_kp_extension = _kp_build()


def _kp_launch(tensors, workspace, device):
    with _kp_torch.cuda.device(device):
        stream = _kp_torch.cuda.current_stream(device).cuda_stream
        _kp_extension.kp_run(tensors, workspace, stream)
