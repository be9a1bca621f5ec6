// SPDX-License-Identifier: Apache-2.0
#include "measure/cpu/perf_events.h"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

namespace kernelpro {

namespace {

constexpr std::uint64_t kEvents[] = {PERF_COUNT_HW_INSTRUCTIONS, PERF_COUNT_HW_CPU_CYCLES,
                                     PERF_COUNT_HW_CACHE_MISSES};

Fd open_counter(pid_t thread, std::uint64_t event) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_HARDWARE;
  attributes.config = event;
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  attributes.inherit = 1;
  return Fd(static_cast<int>(
      ::syscall(SYS_perf_event_open, &attributes, thread, -1, -1, PERF_FLAG_FD_CLOEXEC)));
}

}  // namespace

PerfEvents::PerfEvents(pid_t pid) {
  bool have[3] = {false, false, false};
  for (const std::string& name : list_dir("/proc/" + std::to_string(pid) + "/task")) {
    for (int which = 0; which < 3; ++which) {
      Fd fd = open_counter(static_cast<pid_t>(std::atoi(name.c_str())), kEvents[which]);
      if (!fd.valid()) continue;
      have[which] = true;
      counters_.push_back({std::move(fd), which});
    }
  }
  available_ = have[0] && have[1];
}

PerfCounts PerfEvents::read() const {
  PerfCounts counts;
  for (const Counter& counter : counters_) {
    std::uint64_t value = 0;
    if (::read(counter.fd.get(), &value, sizeof value) != sizeof value) continue;
    const double n = static_cast<double>(value);
    if (counter.which == 0) counts.instructions += n;
    if (counter.which == 1) counts.cycles += n;
    if (counter.which == 2) {
      counts.cache_misses += n;
      counts.has_misses = true;
    }
  }
  return counts;
}

}  // namespace kernelpro
