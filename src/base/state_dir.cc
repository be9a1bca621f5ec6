// SPDX-License-Identifier: Apache-2.0
#include "base/state_dir.h"

#include <unistd.h>

#include <cstdlib>

#include "base/files.h"

namespace kernelpro {

namespace {

std::string env(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::string state_dir() {
  for (const char* own : {"KERNELPRO_STATE", "KERNELPRO_CACHE"}) {
    if (!env(own).empty()) return env(own);
  }
  if (!env("XDG_STATE_HOME").empty()) return join(env("XDG_STATE_HOME"), "kernelpro");
  const std::string home = env("HOME");
  if (!home.empty() && ::access(home.c_str(), W_OK) == 0) {
    return join(home, ".local/state/kernelpro");
  }
  return cache_dir();
}

}  // namespace kernelpro
