// SPDX-License-Identifier: Apache-2.0
// The board's energy counter, read through NVML (nvmlDeviceGetTotalEnergyConsumption). It advances
// in ticks, about ten a second on an H200, and a read takes milliseconds: measure from tick to
// tick. One thread at a time.
#pragma once

#include <string>

#include "base/error.h"
#include "machine/driver/nvml.h"

namespace kernelpro {

class EnergyCounter {
 public:
  // `uuid`: "GPU-..." of a whole GPU. Fails with kEnvironment without NVML, the GPU, or the counter
  // (GPUs before Volta, slices of a MIG GPU).
  static Result<EnergyCounter> open(const std::string& uuid);

  // Joules since the driver was loaded.
  Result<double> joules() const;

 private:
  const Nvml* nvml_ = nullptr;
  NvmlDevice device_ = nullptr;
};

// Idle power in watts, averaged over about `seconds`; blocks for that long plus two ticks.
Result<double> idle_watts(const EnergyCounter& counter, double seconds);

// A moment at which the counter advanced.
struct EnergyTick {
  double at_s = 0;
  double joules = 0;
};

// Finds ticks in a series of readings. Pure.
class TickFinder {
 public:
  // True if the counter advanced since the last reading; false for the first.
  bool see(double at_s, double joules);
  EnergyTick last() const { return last_; }

 private:
  bool any_ = false;
  EnergyTick last_;
};

}  // namespace kernelpro
