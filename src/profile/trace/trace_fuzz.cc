// SPDX-License-Identifier: Apache-2.0
#include "profile/trace/file.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  kernelpro::Trace trace;
  if (!kernelpro::read_trace({reinterpret_cast<const char*>(data), size}, &trace)) return 0;
  trace.sort();
  kernelpro::summarize(trace);
  return 0;
}
