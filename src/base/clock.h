// SPDX-License-Identifier: Apache-2.0
// Times. Decisions take them as numbers, so that tests can give any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace kernelpro {

// CLOCK_MONOTONIC: since some fixed point, never going back. Safe from any thread.
struct Clock {
  std::int64_t now_ns() const;
  double now_s() const { return static_cast<double>(now_ns()) * 1e-9; }
};
inline Clock real_clock() { return {}; }

// Processor time of the calling thread, in seconds: what its work takes, however busy the machine
// is.
double thread_cpu_s();

// Wall-clock time as "2026-11-21T09:30:00Z", for records that people read.
std::string utc_now();

// Seconds since 1970 of such a time; nullopt: it is none.
std::optional<std::int64_t> utc_seconds(const std::string& text);

}  // namespace kernelpro
