// SPDX-License-Identifier: Apache-2.0
#include "machine/driver/cupti_host.h"

#if KERNELPRO_HAVE_CUPTI

#include <cmath>
#include <limits>
#include <utility>

namespace kernelpro {

namespace {

std::vector<const char*> pointers(const std::vector<std::string>& names) {
  std::vector<const char*> all;
  for (const std::string& name : names) all.push_back(name.c_str());
  return all;
}

void close(const Cupti& cu, CUpti_Profiler_Host_Object* object) {
  KP_CUPTI_PARAMS(CUpti_Profiler_Host_Deinitialize, end);
  end.pHostObject = object;
  cu.ProfilerHostDeinitialize(&end);
}

Result<CounterConfig> config_of(const Cupti& cu, CUpti_Profiler_Host_Object* object,
                                const std::vector<std::string>& metrics) {
  CounterConfig config;
  config.metrics = metrics;
  std::vector<const char*> names = pointers(metrics);
  KP_CUPTI_PARAMS(CUpti_Profiler_Host_ConfigAddMetrics, add);
  add.pHostObject = object;
  add.ppMetricNames = names.data();
  add.numMetrics = names.size();
  KP_CUPTI_TRY(cu.ProfilerHostConfigAddMetrics(&add));
  KP_CUPTI_PARAMS(CUpti_Profiler_Host_GetConfigImageSize, size);
  size.pHostObject = object;
  KP_CUPTI_TRY(cu.ProfilerHostGetConfigImageSize(&size));
  config.image.resize(size.configImageSize);
  KP_CUPTI_PARAMS(CUpti_Profiler_Host_GetConfigImage, image);
  image.pHostObject = object;
  image.configImageSize = config.image.size();
  image.pConfigImage = config.image.data();
  KP_CUPTI_TRY(cu.ProfilerHostGetConfigImage(&image));
  KP_CUPTI_PARAMS(CUpti_Profiler_Host_GetNumOfPasses, passes);
  passes.configImageSize = config.image.size();
  passes.pConfigImage = config.image.data();
  KP_CUPTI_TRY(cu.ProfilerHostGetNumOfPasses(&passes));
  config.passes = passes.numOfPasses;
  return config;
}

}  // namespace

Result<CUpti_Profiler_Host_Object*> CounterHost::make_object() const {
  KP_CUPTI_PARAMS(CUpti_Profiler_Host_Initialize, begin);
  begin.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
  begin.pChipName = chip_.c_str();
  begin.pCounterAvailabilityImage = availability_.empty() ? nullptr : availability_.data();
  const CUptiResult result = cupti_->ProfilerHostInitialize(&begin);
  if (result != CUPTI_SUCCESS) {
    Error error = cupti_error("cu.ProfilerHostInitialize", result);
    error.message += " (chip " + chip_ + ")";
    return tl::unexpected<Error>(std::move(error));
  }
  return begin.pHostObject;
}

Result<CounterHost> CounterHost::open(const std::string& chip,
                                      std::vector<std::uint8_t> availability) {
  KP_ASSIGN(const Cupti* library, cupti());
  CounterHost host;
  host.cupti_ = library;
  host.chip_ = chip;
  host.availability_ = std::move(availability);
  KP_ASSIGN(host.object_, host.make_object());
  return host;
}

CounterHost::CounterHost(CounterHost&& other) noexcept { *this = std::move(other); }

CounterHost& CounterHost::operator=(CounterHost&& other) noexcept {
  std::swap(cupti_, other.cupti_);
  std::swap(chip_, other.chip_);
  std::swap(availability_, other.availability_);
  std::swap(object_, other.object_);
  return *this;
}

CounterHost::~CounterHost() {
  if (object_ != nullptr) close(*cupti_, object_);
}

bool CounterHost::has(const std::string& metric) const {
  // Properties exist for unschedulable names too; only scheduling is a reliable test.
  const Result<CUpti_Profiler_Host_Object*> object = make_object();
  if (!object) return false;
  const char* name = metric.c_str();
  KP_CUPTI_PARAMS(CUpti_Profiler_Host_ConfigAddMetrics, add);
  add.pHostObject = *object;
  add.ppMetricNames = &name;
  add.numMetrics = 1;
  const bool known = cupti_->ProfilerHostConfigAddMetrics(&add) == CUPTI_SUCCESS;
  close(*cupti_, *object);
  return known;
}

Result<CounterConfig> CounterHost::schedule(const std::vector<std::string>& metrics) const {
  // Metrics cannot be removed from an object.
  KP_ASSIGN(const auto object, make_object());
  Result<CounterConfig> config = config_of(*cupti_, object, metrics);
  close(*cupti_, object);
  return config;
}

Result<std::vector<double>> CounterHost::values(const std::vector<std::uint8_t>& counter_data,
                                                std::size_t range,
                                                const std::vector<std::string>& metrics) const {
  std::vector<const char*> names = pointers(metrics);
  std::vector<double> result(names.size(), std::numeric_limits<double>::quiet_NaN());
  KP_CUPTI_PARAMS(CUpti_Profiler_Host_EvaluateToGpuValues, evaluate);
  evaluate.pHostObject = object_;
  evaluate.pCounterDataImage = counter_data.data();
  evaluate.counterDataImageSize = counter_data.size();
  evaluate.rangeIndex = range;
  evaluate.ppMetricNames = names.data();
  evaluate.numMetrics = names.size();
  evaluate.pMetricValues = result.data();
  KP_CUPTI_TRY(cupti_->ProfilerHostEvaluateToGpuValues(&evaluate));
  return result;
}

}  // namespace kernelpro

#endif
