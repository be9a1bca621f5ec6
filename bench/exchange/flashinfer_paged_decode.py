#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times FlashInfer's decode kernels on paged_decode.py's inputs, as they ship, and compares their result with the
module's. Needs a GPU, nvcc and `pip install flashinfer-python` (written for 0.2.8).

    python3 bench/exchange/flashinfer_paged_decode.py

Their plan depends on the sequences' lengths; a model makes it once a token for all its layers, so it is not
in the time: the median of 200 replays of a CUDA graph of one call, whose 1 GB of pages no cache holds.
"""
import os
import statistics
import sys

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import paged_decode as task


def stand_in():
    """cuda.cudart and cuda.nvrtc, which newer packages no longer have."""
    import cuda.bindings.nvrtc
    import cuda.bindings.runtime
    sys.modules.setdefault("cuda.cudart", cuda.bindings.runtime)
    sys.modules.setdefault("cuda.nvrtc", cuda.bindings.nvrtc)
    cuda.cudart, cuda.nvrtc = cuda.bindings.runtime, cuda.bindings.nvrtc


def time_of(call):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = call()
    times = []
    for _ in range(220):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(1000 * begin.elapsed_time(end))
    return out, times[20:]


def main():
    # CUDA 13 keeps kernel templates to their own file by default; 0.2.8 instantiates them in another.
    os.environ.setdefault("NVCC_APPEND_FLAGS", "-static-global-template-stub=false")
    stand_in()
    import flashinfer
    q, keys, values, table, lengths = (x.cuda() for x in task.get_inputs())
    expected = task.Model()(q, keys, values, table, lengths).float()
    counts = (lengths + task.page - 1) // task.page
    indptr = torch.zeros(task.sequences + 1, dtype=torch.int32, device="cuda")
    indptr[1:] = counts.cumsum(0)
    indices = torch.cat([table[s, :n] for s, n in enumerate(counts.tolist())])
    last = (lengths - 1) % task.page + 1
    for tensor_cores in (False, True):
        room = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
        decode = flashinfer.BatchDecodeWithPagedKVCacheWrapper(room, "NHD", use_tensor_cores=tensor_cores)
        decode.plan(indptr, indices, last, task.heads, task.kv_heads, task.width, task.page,
                    q_data_type=torch.bfloat16, kv_data_type=torch.bfloat16)
        out, times = time_of(lambda: decode.run(q, (keys, values)))
        error = (out.float() - expected).abs().max().item()
        print(f"flashinfer {flashinfer.__version__}, tensor cores {'on' if tensor_cores else 'off'}: "
              f"{statistics.median(times):.1f} us (from {min(times):.1f} to {max(times):.1f}), off by at most {error:.4f}")


if __name__ == "__main__":
    main()
