// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as task.toml must never crash, and every accepted task must yield a header.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "task/load/header.h"
#include "task/load/loader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kernelpro;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<Task> task = parse_task(text, "task.toml");
  if (!task) {
    if (task.error().message.empty()) std::abort();
    return 0;
  }
  for (const Case& c : task->cases) {
    for (const Shaped& shaped : shaped_tensors(*task, c)) {
      if (shaped.elements < 1 || shaped.bytes < 1) std::abort();
    }
    for (const TargetKind target : {TargetKind::kCpu, TargetKind::kCuda}) {
      if (task_header(*task, c, target).empty()) std::abort();
    }
  }
  return 0;
}
