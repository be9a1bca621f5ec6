// SPDX-License-Identifier: Apache-2.0
// The part of CUPTI's range profiler that needs no GPU: a chip's metrics, the passes needed to
// collect them, and their values from counter data. One thread at a time.
#pragma once

#include "machine/driver/cupti.h"

#if KERNELPRO_HAVE_CUPTI

#include <cstdint>
#include <string>
#include <vector>

namespace kernelpro {

// Configuration to collect a set of metrics. Buffers given to the profiler must outlive its
// session, or the driver writes into freed memory.
struct CounterConfig {
  std::vector<std::string> metrics;  // chip metric names
  std::vector<std::uint8_t> image;
  std::size_t passes = 0;
};

class CounterHost {
 public:
  // `chip`: "GH100"; `availability`: of the device, empty without one. Fails with kEnvironment on a
  // chip unknown to this CUPTI.
  static Result<CounterHost> open(const std::string& chip,
                                  std::vector<std::uint8_t> availability = {});
  CounterHost(CounterHost&& other) noexcept;
  CounterHost& operator=(CounterHost&& other) noexcept;
  ~CounterHost();

  const std::string& chip() const { return chip_; }
  // Whether the chip has a metric of this full name ("dram__bytes_read.sum").
  bool has(const std::string& metric) const;
  // REQUIRES: the chip has all metrics.
  Result<CounterConfig> schedule(const std::vector<std::string>& metrics) const;
  // Values in the order of `metrics`; NaN where unavailable.
  Result<std::vector<double>> values(const std::vector<std::uint8_t>& counter_data,
                                     std::size_t range,
                                     const std::vector<std::string>& metrics) const;

 private:
  CounterHost() = default;
  Result<CUpti_Profiler_Host_Object*> make_object() const;

  const Cupti* cupti_ = nullptr;
  std::string chip_;
  std::vector<std::uint8_t> availability_;
  CUpti_Profiler_Host_Object* object_ = nullptr;  // for queries; each schedule makes another
};

}  // namespace kernelpro

#endif
