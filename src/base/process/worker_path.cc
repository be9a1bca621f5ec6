// SPDX-License-Identifier: Apache-2.0
#include "base/process/worker_path.h"

#include <unistd.h>

#include <cstdlib>

#include "base/files.h"

namespace kernelpro {

Result<std::string> worker_path() {
  const char* own = std::getenv("KERNELPRO_WORKER");
  const bool chosen = own != nullptr && *own != '\0';
  const std::string path = chosen ? own : join(executable_dir(), "kernelpro-worker");
  if (::access(path.c_str(), X_OK) == 0 && !is_dir(path)) return path;
  return fail(ErrorKind::kEnvironment, "the program " + path + " was not found",
              chosen ? "point KERNELPRO_WORKER at kernelpro-worker, or unset it"
                     : "keep kernelpro-worker beside kernelpro, or point KERNELPRO_WORKER at it");
}

}  // namespace kernelpro
