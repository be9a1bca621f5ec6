// SPDX-License-Identifier: Apache-2.0
#include "machine/energy_counter.h"

#include <unistd.h>

#include <optional>

#include "base/clock.h"

namespace kernelpro {

namespace {

constexpr double kNoTickS = 3;  // a counter that has not advanced for this long is broken
constexpr unsigned kPollUs = 1000;

Error no_counter(const std::string& why) {
  return {ErrorKind::kEnvironment, "this GPU's energy cannot be read: " + why,
          "leave out --objective and --energy, or run on a whole GPU of Volta or later"};
}

}  // namespace

Result<EnergyCounter> EnergyCounter::open(const std::string& uuid) {
  EnergyCounter counter;
  KP_ASSIGN(counter.nvml_, nvml());
  if (counter.nvml_->DeviceGetTotalEnergyConsumption == nullptr) {
    return tl::unexpected<Error>(no_counter("this NVML has no energy counter"));
  }
  const int status = counter.nvml_->DeviceGetHandleByUUID(uuid.c_str(), &counter.device_);
  if (status != 0) {
    return tl::unexpected<Error>(no_counter(counter.nvml_->ErrorString(status)));
  }
  KP_TRY(counter.joules());
  return counter;
}

Result<double> EnergyCounter::joules() const {
  unsigned long long millijoules = 0;
  const int status = nvml_->DeviceGetTotalEnergyConsumption(device_, &millijoules);
  if (status != 0) return tl::unexpected<Error>(no_counter(nvml_->ErrorString(status)));
  return static_cast<double>(millijoules) * 1e-3;
}

bool TickFinder::see(double at_s, double joules) {
  const bool moved = any_ && joules != last_.joules;
  if (!any_ || moved) last_ = {at_s, joules};
  any_ = true;
  return moved;
}

Result<double> idle_watts(const EnergyCounter& counter, double seconds) {
  TickFinder ticks;
  std::optional<EnergyTick> first;
  const double start = real_clock().now_s();
  for (;;) {
    KP_ASSIGN(const auto joules, counter.joules());
    const double now = real_clock().now_s();
    if (ticks.see(now, joules)) {
      if (first && now - first->at_s >= seconds) {
        return (ticks.last().joules - first->joules) / (ticks.last().at_s - first->at_s);
      }
      if (!first) first = ticks.last();
    }
    if (now - start > seconds + kNoTickS) {
      return tl::unexpected<Error>(no_counter("its counter does not move"));
    }
    ::usleep(kPollUs);
  }
}

}  // namespace kernelpro
