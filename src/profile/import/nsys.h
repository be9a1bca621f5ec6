// SPDX-License-Identifier: Apache-2.0
// Traces from Nsight Systems: SQLite exports (any version; missing tables and columns are
// tolerated), the CSV of `nsys stats --report cuda_gpu_trace`, and .nsys-rep files through an
// installed nsys.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "profile/import/device.h"
#include "profile/trace/trace.h"

namespace kernelpro {

struct NsysImport {
  Trace trace;  // sorted; summarize(trace) gives the evidence
  DeviceFacts device;
  std::vector<std::string> notes;  // sentences: what the export lacks
};

// kBadInput when the file is not an SQLite database, is damaged, or contains no CUDA activity (the
// message explains how to trace it). Blocks; opens the file read-only.
Result<NsysImport> import_nsys_sqlite(const std::string& path);

bool is_nsys_csv(std::string_view text);
// The result has no host calls: this report lacks them. kBadInput when it has no rows.
Result<NsysImport> import_nsys_csv(std::string_view text);

// Runs `nsys export` into a temporary folder. kEnvironment without nsys; the message explains how
// to export where it is installed. Blocks.
Result<NsysImport> import_nsys_report(const std::string& path);

}  // namespace kernelpro
