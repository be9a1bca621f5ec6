// SPDX-License-Identifier: Apache-2.0
#include "profile/code/cubin.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  static_cast<void>(kernelpro::cubin_functions({reinterpret_cast<const char*>(data), size}));
  return 0;
}
