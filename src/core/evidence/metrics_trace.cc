// SPDX-License-Identifier: Apache-2.0
// Metrics from a trace of a call (launches, copies, gaps) or of a whole program. For repeated work,
// all figures are per repetition, so counts need not be integers.
#include "core/evidence/metrics_tables.h"

namespace kernelpro {

namespace {
constexpr MetricRow kTraceRows[] = {
    {"trace.span", "us", "from the first to the last thing on the GPU"},
    {"trace.periods", "1",
     "repetitions of the work that the figures are the mean of; 0: a whole program that runs once"},
    {"trace.busy", "us", "of it, with a kernel, copy or memset running"},
    {"trace.kernels_us", "us", "of it, with a kernel running"},
    {"trace.overlap", "us", "of it, with two or more kernels, copies or memsets at once"},
    {"trace.gaps", "us", "of it, with nothing running"},
    {"trace.longest_gap", "us", "the longest time with nothing running"},
    // Gaps by what preceded the next GPU activity; they sum to trace.gaps.
    {"trace.gaps_sync", "us", "gaps in which the host waited first, then asked for the next thing"},
    {"trace.gaps_allocation", "us", "gaps in which the host allocated or freed memory"},
    {"trace.gaps_launch", "us", "gaps in which the host was late with the launch"},
    {"trace.gaps_queue", "us", "gaps although the next thing was already in the queue"},
    {"trace.gaps_unknown", "us", "gaps before things whose call was not recorded"},
    {"trace.kernels", "1", "kernel launches"},
    {"trace.kernel_median", "us", "median time of a kernel"},
    {"trace.kernels_graph", "1", "of the launches, those by CUDA graphs"},
    {"trace.launch_api", "us", "median time of a launch call on the host"},
    {"trace.streams", "1", "streams with a kernel"},
    {"trace.pointwise", "1",
     "launches of PyTorch's own pointwise and reduction kernels, by their names"},
    {"trace.pointwise_us", "us", "their time"},
    {"trace.copies_host", "1", "copies between host and device"},
    {"trace.copies_host_us", "us", "their time"},
    {"trace.copies_host_alone_us", "us", "of it, with no kernel running"},
    {"trace.copies_host_bytes", "byte", "their bytes"},
    {"trace.copies_pageable", "1", "of them from or to pageable memory"},
    {"trace.copies_device", "1", "copies within the device"},
    {"trace.copies_device_us", "us", "their time"},
    {"trace.copies_device_bytes", "byte", "their bytes"},
    {"trace.memsets", "1", "memsets"},
    {"trace.memsets_us", "us", "their time"},
    {"trace.memsets_bytes", "byte", "their bytes"},
    {"trace.syncs", "1", "synchronising calls on the host"},
    {"trace.syncs_us", "us", "host time in them"},
    {"trace.allocations", "1", "cudaMalloc, cudaFree and their like"},
    {"trace.allocated_bytes", "byte", "device memory allocated while the call runs"},
    {"trace.allocations_us", "us", "host time in them"},
    {"trace.dropped", "1", "records that were lost, in the whole trace"},
};

constexpr MetricTable kTables[] = {
    {Family::kTrace, Level::kTiming, Scope::kCall, kTraceRows},
};
}  // namespace

std::span<const MetricTable> trace_tables() { return kTables; }

}  // namespace kernelpro
