// SPDX-License-Identifier: Apache-2.0
#include "base/process/worker_path.h"

#include <unistd.h>

#include <cstdlib>

#include "base/files.h"

namespace kernelpro {

std::string companion_path(const std::string& name) {
  const std::string beside = join(executable_dir(), name);
  const std::string installed = join(join(executable_dir(), "../libexec/kernelpro"), name);
  return !exists(beside) && exists(installed) ? installed : beside;
}

Result<std::string> worker_path() {
  const char* own = std::getenv("KERNELPRO_WORKER");
  const bool chosen = own != nullptr && *own != '\0';
  const std::string path = chosen ? own : companion_path("kernelpro-worker");
  if (::access(path.c_str(), X_OK) == 0 && !is_dir(path)) return path;
  return fail(ErrorKind::kEnvironment, "the program " + path + " was not found",
              chosen ? "point KERNELPRO_WORKER at kernelpro-worker, or unset it"
                     : "install KernelPro again (make install), keep kernelpro-worker beside "
                       "kernelpro, or point KERNELPRO_WORKER at it");
}

}  // namespace kernelpro
