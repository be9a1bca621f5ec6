// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "profile/import/ncu_source.h"
#include "profile/sass/sass.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(kernelpro::is_ncu_source_page(text));
  const kernelpro::NcuSourcePage page = kernelpro::read_ncu_source_page(text);
  static_cast<void>(kernelpro::kernel_mixes(page.sass));
  return 0;
}
