// SPDX-License-Identifier: Apache-2.0
// What a trace shows: of a call (launches, copies, gaps) or of a whole program.
#include "core/metrics_tables.h"

namespace kernelpro {

namespace {
constexpr Metric kMetrics[] = {
    {"trace.span", "us", "from the first to the last thing on the GPU"},
    {"trace.busy", "us", "of it, with a kernel, copy or memset running"},
    {"trace.gaps", "us", "of it, with nothing running"},
    {"trace.longest_gap", "us", "the longest time with nothing running"},
    {"trace.kernels", "1", "kernel launches"},
    {"trace.kernel_median", "us", "median time of a kernel"},
    {"trace.launch_api", "us", "median time of a launch call on the host"},
    {"trace.copies_host", "1", "copies between host and device"},
    {"trace.copies_host_us", "us", "their time"},
    {"trace.copies_host_bytes", "byte", "their bytes"},
    {"trace.copies_pageable", "1", "of them from or to pageable memory"},
    {"trace.copies_device", "1", "copies within the device"},
    {"trace.copies_device_us", "us", "their time"},
    {"trace.memsets", "1", "memsets"},
    {"trace.memsets_us", "us", "their time"},
    {"trace.syncs", "1", "synchronising calls on the host"},
    {"trace.syncs_us", "us", "host time in them"},
    {"trace.allocations", "1", "cudaMalloc and cudaFree calls"},
    {"trace.dropped", "1", "records that were lost"},
};
}  // namespace

std::span<const Metric> trace_metrics() { return kMetrics; }

}  // namespace kernelpro
