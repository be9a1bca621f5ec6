// SPDX-License-Identifier: Apache-2.0
// Reads what the tracer library wrote (profile/inject/trace_format.h). The files come from a
// process that ran foreign code: any bytes are safe.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "profile/trace/trace.h"

namespace kernelpro {

// Adds one process's records to `trace`, which is left unsorted. False: not a trace file. A file
// that ends early, or without its end record, leaves what could be read and complete = false.
bool read_trace(std::string_view bytes, Trace* trace);

// All traces of a folder, sorted. Fails (kBadInput) when there is none or none can be read.
Result<Trace> read_trace_folder(const std::string& folder);

}  // namespace kernelpro
