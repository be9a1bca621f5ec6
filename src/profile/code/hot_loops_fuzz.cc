// SPDX-License-Identifier: Apache-2.0
#include "profile/code/hot_loops.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  kernelpro::hot_mix(kernelpro::parse_objdump(text));
  return 0;
}
