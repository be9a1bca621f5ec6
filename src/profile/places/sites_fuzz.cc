// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "profile/places/definitions.h"
#include "profile/places/sites.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  kernelpro::followed(text, kernelpro::kernel_sites("a.cu", text, "k"));
  kernelpro::definition_sites("a.cu", text, {1, 2, 3, 4, 5, 6, 7, 8});
  kernelpro::launch_sites("a.cu", text, "k");
  kernelpro::kernel_base_name(text);
  return 0;
}
