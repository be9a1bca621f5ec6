#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Someone who has profiles and binaries of other machines, no GPU and no profiler.

    profiles.py KERNELPRO SOURCE_DIR
"""

import json
import shutil
from pathlib import Path

from persona import check, tell

# As `ncu --page raw --csv ./app` prints it.
RAW = """==PROF== Connected to process 4711 (app)
==PROF== Profiling "axpy" - 0: 0%....50%....100% - 8 passes
==PROF== Disconnected from process 4711
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size",\
"Grid Size","Device","CC","device__attribute_display_name",\
"device__attribute_multiprocessor_count","dram__bytes_read.sum","dram__bytes_write.sum",\
"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed","gpu__time_duration.sum",\
"launch__registers_per_thread"
"","","","","","","","","","","","","","Mbyte","Mbyte","%","usecond","register/thread"
"0","4711","app","127.0.0.1","void axpy<float>(float *, const float *, float, int)","1","7",\
"(256, 1, 1)","(4096, 1, 1)","0","9.0","NVIDIA H100 80GB HBM3","132","1,073.74","536.87",\
"81.50","640.25","18"
"1","4711","app","127.0.0.1","scale(float *)","1","7","(256, 1, 1)","(8, 1, 1)","0","9.0",\
"NVIDIA H100 80GB HBM3","132","0.50","0.50","2.00","20.00","12"
"""
TRACE = """Generating SQLite file trace.sqlite from trace.nsys-rep
Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),\
Bytes (MB),Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,GreenCtx,Strm,Name
100,30000,11,2,3,4,64,1,1,24,0.001,0.004,,,,,NVIDIA H100 80GB HBM3 (0),1,,7,"void k<float>(float *)"
170000,5000,13,,,,,,,,,,4.194,838860.800,Pageable,Device,NVIDIA H100 80GB HBM3 (0),1,,7,\
[CUDA memcpy Host-to-Device]
"""
LIBRARY = """struct Args { const float* x; float* y; };
extern "C" void launch(const Args& args) {
  float sum = 0;
  for (int i = 0; i < 1 << 20; ++i) sum += args.x[i];
  args.y[0] = sum;
}
"""
DEVICE = """__global__ void twice(float* y, const float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i];
}
"""


def recorded_evidence(me, source):
    """What `diagnose --evidence` saved elsewhere, with the flaw that was planted there."""
    fixtures = Path(source) / "src" / "diagnose" / "fixtures"
    for name, tool in (("flaw-conv7-all_taps_global", "missing-shared-memory-tiling"),
                       ("axpy-scalar", "scalar-loads"),
                       ("cpu-matmul-scalar", "scalar-code")):
        shutil.copy(fixtures / f"{name}.json", me.work)
        me.run("diagnose", f"{name}.json").says("saved evidence", rf"1\. {tool} +likely .*at most")
        first = me.run("diagnose", f"{name}.json", "--json").json()["diagnosis"]["findings"][0]
        check(first["tool"] == tool, f"{name}: {tool} should come first, not {first['tool']}")
    me.run("diagnose", "axpy-sound.json", status=2).refused("no file axpy-sound.json")
    shutil.copy(fixtures / "axpy-sound.json", me.work)
    me.run("diagnose", "axpy-sound.json").says("nothing left to gain")
    me.run("compare", "axpy-scalar.json", "axpy-sound.json").says("axpy")
    me.run("compare", "axpy-scalar.json", "flaw-conv7-all_taps_global.json", status=2).refused("different work")
    me.run("compare", "axpy-scalar.json", "cpu-matmul-scalar.json", status=2).refused("different")
    cut = (me.work / "axpy-scalar.json").read_text()[:500]
    (me.work / "cut.json").write_text(cut)
    me.run("diagnose", "cut.json", status=2).refused("cut off", "--evidence")


def counters(me, source):
    testdata = Path(source) / "src" / "profile" / "import" / "testdata"
    printed = (testdata / "fuzz_ncu_details" / "details.txt").read_text()
    me.run("diagnose", "-", stdin=printed).says("Nsight Compute", "details page", "--page raw")
    lines = (testdata / "fuzz_ncu_source" / "page.csv").read_text()
    (me.work / "lines.csv").write_text(lines)
    me.run("diagnose", "lines.csv").says("samples", "dependent-chain")

    (me.work / "raw.csv").write_text(RAW)
    raw = me.run("diagnose", "raw.csv").says("2 launches", "H100", "--bytes", "axpy")
    check("by machine code" not in raw.text, "an account without machine code does not rest on it")
    work = ["--kernel", "axpy", "--bytes", 1610612736, "--flops", 268435456]
    known = me.run("diagnose", "raw.csv", *work)
    known.says("memory bounds", "nominal peaks", "% of the ceiling", "nothing left to gain")
    check("measured" not in known.text, "ceilings by the GPU's name are not called measured ones")
    me.run("diagnose", "raw.csv", "--kernel", "gemm", status=2).refused("gemm")
    me.run("diagnose", "raw.csv", *work, "--all").says("gpu__time_duration.sum")
    me.run("diagnose", "raw.csv", *work, "--for-model").says("## Diagnosis", "memory bounds")

    # Saved, it gives the same wherever it is opened.
    told = me.run("diagnose", "raw.csv", *work, "--evidence", "saved.json", "--json").json()
    again = me.run("diagnose", "saved.json", "--json").json()
    findings = [each["diagnosis"]["findings"] for each in (told, again)]
    check(findings[0] == findings[1], "what was saved should say the same")

    (me.work / "trace.csv").write_text(TRACE)
    me.run("diagnose", "trace.csv").says("Nsight Systems", "copies", "no host calls")


def binaries(me):
    (me.work / "library.cpp").write_text(LIBRARY)
    me.run("-O3", "-g1", "-shared", "-fPIC", "library.cpp", "-o", "library.so", program="c++")
    me.run("diagnose", "library.so").says("machine code", "scalar-code")
    me.run("diagnose", "/bin/sh", status=2).refused("device code|launch")
    nvcc = shutil.which("nvcc", path=f"{me.environment['PATH']}:/usr/local/cuda/bin")
    if nvcc is None:
        return
    (me.work / "twice.cu").write_text(DEVICE)
    me.run("-arch=sm_90", "-lineinfo", "-cubin", "-o", "twice.cubin", "twice.cu", program=nvcc)
    done = me.run("diagnose", "twice.cubin", status=(0, 3))
    if done.status == 3:
        done.refused("nvdisasm")
    else:
        done.says("machine code")


def what_is_not_here(me):
    (me.work / "app.ncu-rep").write_bytes(b"NVR\0of another machine")
    (me.work / "notes.txt").write_text("nothing that was measured\n")
    me.run("diagnose", status=2).refused("nothing to diagnose")
    me.run("diagnose", "notes.txt", status=2).refused("nothing that can be diagnosed")
    if shutil.which("ncu", path=me.environment["PATH"]) is None:
        me.run("diagnose", "app.ncu-rep", status=(2, 3)).refused("ncu|Nsight Compute")
    page = me.run("help", "diagnose").text
    for what in (".cubin", ".ncu-rep", ".nsys-rep", "--evidence"):
        check(what in page, f"the help should name {what}:\n{page}")


def profiles(me, source):
    recorded_evidence(me, source)
    counters(me, source)
    binaries(me)
    what_is_not_here(me)
    check(json.loads((me.work / "saved.json").read_text()), "the evidence is a file to keep")


if __name__ == "__main__":
    tell(profiles, "KERNELPRO SOURCE_DIR")
