// SPDX-License-Identifier: Apache-2.0
#include "serve/mcp/stop.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>

namespace kernelpro {

namespace {

int descriptor = -1;

extern "C" void on_stop(int signal) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = ::write(descriptor, &one, sizeof one);
  std::signal(signal, SIG_DFL);
}

}  // namespace

int stop_descriptor() {
  if (descriptor < 0) {
    descriptor = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    std::signal(SIGINT, on_stop);
    std::signal(SIGTERM, on_stop);
    std::signal(SIGPIPE, SIG_IGN);
  }
  return descriptor;
}

}  // namespace kernelpro
