// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdlib>

#include "profile/sass/sass.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const kernelpro::SassKernel& kernel : kernelpro::kernel_mixes(text)) {
    for (const auto& [name, value] : kernel.mix.metrics) {
      if (!std::isfinite(value) || value < 0) std::abort();
    }
  }
  return 0;
}
