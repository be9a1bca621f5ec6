// SPDX-License-Identifier: Apache-2.0
// Time behind an interface: a real clock, and a fake one for tests. Monotonic, in nanoseconds.
#pragma once

#include <cstdint>
#include <string>

namespace kernelpro {

class Clock {
 public:
  virtual ~Clock() = default;
  // Monotonic nanoseconds since some fixed point. Never goes back. Safe from any thread.
  virtual std::int64_t now_ns() const = 0;
  double now_s() const { return static_cast<double>(now_ns()) * 1e-9; }
};

// CLOCK_MONOTONIC.
const Clock& real_clock();

// Processor time of the calling thread, in seconds: what its work takes, however busy the machine
// is.
double thread_cpu_s();

// Stands still until advanced. Not for concurrent use.
class FakeClock : public Clock {
 public:
  std::int64_t now_ns() const override { return now_; }
  void advance_s(double seconds) { now_ += static_cast<std::int64_t>(seconds * 1e9); }

 private:
  std::int64_t now_ = 0;
};

// Wall-clock time as "2026-11-21T09:30:00Z", for records that people read.
std::string utc_now();

}  // namespace kernelpro
