// SPDX-License-Identifier: Apache-2.0
// NVRTC, opened at run time. Blocks while it compiles; one thread at a time.
#pragma once

#if KERNELPRO_HAVE_CUDA

#include <string>
#include <vector>

#include "base/error.h"

namespace kernelpro {

struct NvrtcHeader {
  std::string name;
  std::string text;
};

struct NvrtcOutput {
  bool ok = false;
  std::string cubin;
  std::string log;
};

// "13.0", or a kEnvironment error that lists where NVRTC was searched for.
Result<std::string> nvrtc_version();

// Compiles device code to a cubin. An Error is the machine's fault; rejected source gives `ok ==
// false` and the log.
Result<NvrtcOutput> nvrtc_compile(const std::string& source, const std::string& file_name,
                                  const std::vector<NvrtcHeader>& headers,
                                  const std::vector<std::string>& options);

// A cubin of our own kernels for `arch`, compiled once and cached.
Result<std::string> trusted_cubin(std::string_view source, const std::string& arch);
// Its place in the cache.
Result<std::string> trusted_cubin_path(std::string_view source, const std::string& arch);

}  // namespace kernelpro

#endif
