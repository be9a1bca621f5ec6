// SPDX-License-Identifier: Apache-2.0
// Traces from Nsight Systems: its SQLite exports (of any version: tables and columns that are
// missing are done without), the CSV of `nsys stats --report cuda_gpu_trace`, and .nsys-rep files
// through an installed nsys.
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

// kBadInput when the file is no SQLite database, is damaged, or has nothing of CUDA in it (the
// message says how to trace it). Blocks; opens the file read-only.
Result<NsysImport> import_nsys_sqlite(const std::string& path);

bool is_nsys_csv(std::string_view text);
// Without host calls: this report has none. kBadInput when there is no row in it.
Result<NsysImport> import_nsys_csv(std::string_view text);

// Runs `nsys export` into a temporary folder. kEnvironment without nsys: the message says how to
// export where it is. Blocks.
Result<NsysImport> import_nsys_report(const std::string& path);

}  // namespace kernelpro
