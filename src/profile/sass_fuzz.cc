// SPDX-License-Identifier: Apache-2.0
#include "profile/sass.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const kernelpro::SassFunction& function : kernelpro::parse_sass(text)) {
    kernelpro::hot_mix(function);
  }
  return 0;
}
