// SPDX-License-Identifier: Apache-2.0
// The board's own count of the energy that it has drawn, through NVML
// (nvmlDeviceGetTotalEnergyConsumption). It moves in ticks, about ten a second on an H200, and
// reading it takes milliseconds: whoever measures reads from tick to tick. One thread at a time.
#pragma once

#include <string>

#include "base/error.h"
#include "machine/driver/nvml.h"

namespace kernelpro {

class EnergyCounter {
 public:
  // `uuid`: "GPU-..." of a whole GPU. Fails with kEnvironment where there is no NVML, no such GPU,
  // or no such counter (GPUs before Volta, slices of a MIG GPU).
  static Result<EnergyCounter> open(const std::string& uuid);

  // Joules since the driver was loaded.
  Result<double> joules() const;

 private:
  const Nvml* nvml_ = nullptr;
  NvmlDevice device_ = nullptr;
};

// Watts that the GPU draws while it is left alone for about `seconds`; blocks for that long, and
// for two ticks.
Result<double> idle_watts(const EnergyCounter& counter, double seconds);

// A point in time at which the counter moved.
struct EnergyTick {
  double at_s = 0;
  double joules = 0;
};

// Finds ticks in a series of readings. Pure.
class TickFinder {
 public:
  // True when the counter has moved since the last reading (never for the first).
  bool see(double at_s, double joules);
  EnergyTick last() const { return last_; }

 private:
  bool any_ = false;
  EnergyTick last_;
};

}  // namespace kernelpro
