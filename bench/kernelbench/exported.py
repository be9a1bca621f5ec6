#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times the unchanged output of `kernelpro export` against the task's Model: kernel.cu with
kernel.h, built with nvcc and called through its C++ interface, and ModelNew of model_new.py. L2
cold, device events, median of 100 with the quartiles; results are compared first. Needs a GPU.

    bench/kernelbench/exported.py EXPORT_DIR TASK.py [--set NAME=VALUE ...]
"""

import argparse
import ctypes
import importlib.util
import os
import re
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

import harness
import torch


def load(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def build(folder, scratch):
    """(function of pointers, workspace and stream; names of its tensors; workspace's bytes)."""
    header = open(os.path.join(folder, "kernel.h")).read()
    space = re.search(r"namespace (\w+) \{", header).group(1)
    signature = re.search(r"cudaError_t run\((.*?)\);", header, re.S).group(1)
    parameters = [" ".join(p.split()) for p in signature.split(",")][:-2]
    casts = ", ".join(f"({p.rsplit(' ', 1)[0]})p[{i}]" for i, p in enumerate(parameters))
    use = os.path.join(scratch, "use.cc")
    with open(use, "w") as file:
        file.write(f'#include "kernel.h"\nextern "C" int call(void* const* p, void* w, void* s) {{\n'
                   f"  return {space}::run({casts}, w, (cudaStream_t)s);\n}}\n"
                   f'extern "C" std::size_t bytes() {{ return {space}::workspace_bytes(); }}\n')
    major, minor = torch.cuda.get_device_capability()
    arch = f"{major}{minor}" + ("a" if major >= 9 else "")
    library = os.path.join(scratch, "kernel.so")
    nvcc = os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin", "nvcc")
    subprocess.run([nvcc, "-std=c++20", "-O3", "--expt-relaxed-constexpr",
                    f"-gencode=arch=compute_{arch},code=sm_{arch}", "-shared", "-Xcompiler",
                    "-fPIC", "-I", folder, os.path.join(folder, "kernel.cu"), use, "-o", library],
                   check=True)
    loaded = ctypes.CDLL(library)
    loaded.bytes.restype = ctypes.c_size_t
    return loaded, len(parameters), loaded.bytes()


def times(call, flush):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for _ in range(5):
        call()
    found = []
    for _ in range(100):
        torch.cuda.synchronize()
        flush.sum()
        begin.record()
        call()
        end.record()
        torch.cuda.synchronize()
        found.append(begin.elapsed_time(end) * 1e3)
    low, middle, high = statistics.quantiles(found, n=4)
    return f"{middle:9.2f} us  ({low:.2f} to {high:.2f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("export")
    parser.add_argument("task")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE")
    options = parser.parse_args()
    sizes = dict(each.split("=") for each in options.set)

    with tempfile.TemporaryDirectory() as scratch, torch.no_grad():
        task_path = os.path.join(scratch, "task.py")
        with open(task_path, "w") as file:
            file.write(harness.task_source("", options.task, sizes))
        task = load(task_path, "task")
        new = load(os.path.join(options.export, "model_new.py"), "model_new")
        models = []
        for kind in (task.Model, new.ModelNew):
            torch.manual_seed(42)
            arguments = task.get_init_inputs()
            torch.manual_seed(42)
            models.append(kind(*arguments).cuda())
        torch.manual_seed(1)
        inputs = [v.cuda() if isinstance(v, torch.Tensor) else v for v in task.get_inputs()]
        expected, got = (model(*inputs) for model in models)
        outputs = [got] if isinstance(got, torch.Tensor) else list(got)

        library, count, workspace_bytes = build(options.export, scratch)
        state = [s.to("cuda") for s in new._kp_state(models[1])]
        given = [v for v in inputs if isinstance(v, torch.Tensor)]
        native = [torch.empty_like(t) for t in outputs]
        tensors = given + state + native
        assert len(tensors) == count, "the export takes another number of tensors"
        pointers = (ctypes.c_void_p * count)(*(t.data_ptr() for t in tensors))
        workspace = torch.empty(workspace_bytes, dtype=torch.uint8, device="cuda")

        def call():
            status = library.call(pointers, ctypes.c_void_p(workspace.data_ptr()),
                                  ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
            assert status == 0, f"CUDA error {status}"

        call()
        torch.cuda.synchronize()
        expected = [expected] if isinstance(expected, torch.Tensor) else list(expected)
        for name, results in (("ModelNew", outputs), ("kernel.cu", native)):
            worst = max(float((a.double() - b.double()).abs().max()) for a, b in
                        zip(expected, results))
            print(f"{name:10} largest difference from Model: {worst:.2e}")
        flush = torch.ones(64 << 20, dtype=torch.int64, device="cuda")
        for name, function in (("Model", lambda: models[0](*inputs)),
                               ("ModelNew", lambda: models[1](*inputs)), ("kernel.cu", call)):
            print(f"{name:10} {times(function, flush)}")


if __name__ == "__main__":
    sys.exit(main())
