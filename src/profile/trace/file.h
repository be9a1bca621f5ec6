// SPDX-License-Identifier: Apache-2.0
// Reads trace files written by the tracer library (profile/inject/trace_format.h). They come from a
// process that ran untrusted code: any bytes are safe.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "profile/trace/trace.h"

namespace kernelpro {

// Adds one process's records to `trace`, unsorted. False: not a trace file. A truncated file, or
// one without its end record, keeps what could be read and sets complete = false.
bool read_trace(std::string_view bytes, Trace* trace);

// All traces in a folder, sorted. kBadInput when there is none or none can be read.
Result<Trace> read_trace_folder(const std::string& folder);

}  // namespace kernelpro
