// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string>

#include "task/scaffold/scaffold.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  kernelpro::ScaffoldSource source;
  source.name = "fuzz";
  source.text.assign(reinterpret_cast<const char*>(data), size);
  for (const char* file : {"fuzz.cu", "fuzz.cpp", "fuzz.py"}) {
    source.file = file;
    static_cast<void>(kernelpro::scaffold_from(source));
  }
  return 0;
}
