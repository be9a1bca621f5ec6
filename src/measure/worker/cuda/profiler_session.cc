// SPDX-License-Identifier: Apache-2.0
#include "measure/worker/cuda/profiler_session.h"

#if KERNELPRO_HAVE_CUPTI

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <random>
#include <utility>

#include "base/clock.h"
#include "base/text.h"

namespace kernelpro {

namespace {

constexpr int kOrders = 16;              // of metrics to try: the scheduler is greedy
constexpr std::size_t kAtOnce = 2;       // launches; of more, CUPTI 13.0 was seen to count 2
constexpr std::size_t kExtraPasses = 4;  // over the schedule, before it is an error

constexpr double kBusySeconds = 4;  // while another process holds the counters
constexpr unsigned kBusyStepUs = 100'000;

double ms_since(double start) { return (real_clock().now_s() - start) * 1e3; }

Result<CUpti_RangeProfiler_Object*> enable_profiler(const Cupti& cu) {
  KP_ASSIGN(const CudaDriver* driver, cuda_driver());
  CUcontext context = nullptr;
  KP_CUDA_TRY(driver->CtxGetCurrent(&context));
  KP_CUPTI_PARAMS(CUpti_RangeProfiler_Enable, enable);
  enable.ctx = context;
  KP_CUPTI_TRY(cu.RangeProfilerEnable(&enable));
  return enable.pRangeProfilerObject;
}

Result<std::vector<std::uint8_t>> availability(const Cupti& cu, CUcontext context) {
  KP_CUPTI_PARAMS(CUpti_Profiler_GetCounterAvailability, get);
  get.ctx = context;
  KP_CUPTI_TRY(cu.ProfilerGetCounterAvailability(&get));
  std::vector<std::uint8_t> image(get.counterAvailabilityImageSize);
  get.pCounterAvailabilityImage = image.data();
  KP_CUPTI_TRY(cu.ProfilerGetCounterAvailability(&get));
  image.resize(get.counterAvailabilityImageSize);
  return image;
}

}  // namespace

Result<CounterSession> CounterSession::open() {
  KP_ASSIGN(const Cupti* library, cupti());
  const Cupti& cu = *library;
  KP_ASSIGN(const CudaDriver* driver, cuda_driver());
  CUcontext context = nullptr;
  KP_CUDA_TRY(driver->CtxGetCurrent(&context));
  KP_CUPTI_PARAMS(CUpti_Profiler_Initialize, initialize);
  KP_CUPTI_TRY(cu.ProfilerInitialize(&initialize));
  KP_CUPTI_PARAMS(CUpti_Device_GetChipName, chip);
  chip.deviceIndex = 0;  // of those that this process sees
  KP_CUPTI_TRY(cu.DeviceGetChipName(&chip));
  const std::string name = chip.pChipName;
  // The previous process may be slow to release them.
  auto image = availability(cu, context);
  const double begun = real_clock().now_s();
  while (!image && image.error().cause == Cause::kInUse &&
         real_clock().now_s() - begun < kBusySeconds) {
    ::usleep(kBusyStepUs);
    image = availability(cu, context);
  }
  if (!image) return tl::unexpected<Error>(image.error());
  KP_ASSIGN(CounterHost host, CounterHost::open(name, std::move(*image)));
  KP_ASSIGN(const auto profiler, enable_profiler(cu));
  return CounterSession(cu, std::move(host), profiler);
}

CounterSession::CounterSession(CounterSession&& other) noexcept
    : cu_(other.cu_),
      host_(std::move(other.host_)),
      profiler_(std::exchange(other.profiler_, nullptr)),
      schedules_(std::move(other.schedules_)),
      data_(std::move(other.data_)) {}

CounterSession::~CounterSession() {
  if (profiler_ == nullptr) return;
  KP_CUPTI_PARAMS(CUpti_RangeProfiler_Disable, disable);
  disable.pRangeProfilerObject = profiler_;
  cu_->RangeProfilerDisable(&disable);
}

Result<const CounterSession::Schedule*> CounterSession::schedule(
    const std::vector<std::string>& metrics) {
  std::unique_ptr<Schedule>& known = schedules_[metrics];
  if (known) return known.get();
  auto made = std::make_unique<Schedule>();
  std::vector<std::string> names;
  for (const std::string& metric : metrics) {
    (host_.has(metric) ? names : made->unknown).push_back(metric);
  }
  if (names.empty()) {
    return fail(ErrorKind::kEnvironment, chip() + " has none of the counters that are wanted",
                "install a CUPTI that knows this GPU");
  }
  std::mt19937 random(1);  // the same orders every time
  for (int k = 0; k < kOrders; ++k) {
    KP_ASSIGN(auto config, host_.schedule(names));
    if (k == 0 || config.passes < made->config.passes) made->config = std::move(config);
    if (made->config.passes == 1) break;
    std::shuffle(names.begin(), names.end(), random);
  }
  known = std::move(made);
  return known.get();
}

Result<CounterSession::Bytes*> CounterSession::counter_data(const Schedule& schedule,
                                                            std::size_t ranges) {
  // Asked every time: Initialize does not get the number of ranges, and uses the last answer.
  std::vector<const char*> names;
  for (const std::string& name : schedule.config.metrics) names.push_back(name.c_str());
  KP_CUPTI_PARAMS(CUpti_RangeProfiler_GetCounterDataSize, size);
  size.pRangeProfilerObject = profiler_;
  size.pMetricNames = names.data();
  size.numMetrics = names.size();
  size.maxNumOfRanges = ranges;
  size.maxNumRangeTreeNodes = static_cast<std::uint32_t>(ranges);
  KP_CUPTI_TRY(cu_->RangeProfilerGetCounterDataSize(&size));
  std::unique_ptr<Bytes>& data = data_[{&schedule, ranges}];
  if (!data) data = std::make_unique<Bytes>(size.counterDataSize);
  std::fill(data->begin(), data->end(), std::uint8_t{0});
  KP_CUPTI_PARAMS(CUpti_RangeProfiler_CounterDataImage_Initialize, clear);
  clear.pRangeProfilerObject = profiler_;
  clear.counterDataSize = data->size();
  clear.pCounterData = data->data();
  KP_CUPTI_TRY(cu_->RangeProfilerCounterDataImageInitialize(&clear));
  return data.get();
}

Result<void> CounterSession::set_config(const Schedule& schedule, std::size_t ranges, Bytes* data) {
  KP_CUPTI_PARAMS(CUpti_RangeProfiler_SetConfig, set);
  set.pRangeProfilerObject = profiler_;
  set.configSize = schedule.config.image.size();
  set.pConfig = schedule.config.image.data();
  set.counterDataImageSize = data->size();
  set.pCounterDataImage = data->data();
  set.range = CUPTI_AutoRange;
  set.replayMode = CUPTI_UserReplay;
  // Launches beyond the maximum are silently dropped; their counters stay 0.
  set.maxRangesPerPass = ranges;
  set.numNestingLevels = 1;
  set.minNestingLevel = 1;
  set.passIndex = 0;
  set.targetNestingLevel = 1;
  KP_CUPTI_TRY(cu_->RangeProfilerSetConfig(&set));
  return {};
}

Result<void> CounterSession::collect_ranges(const Schedule& schedule, std::size_t launches,
                                            int only, const Step& before, const Run& run,
                                            Collected* collected, std::size_t* counted) {
  double start = real_clock().now_s();
  const auto lap = [&](const char* phase) {
    collected->phases_ms[phase] += ms_since(std::exchange(start, real_clock().now_s()));
  };
  const std::size_t ranges = std::bit_ceil(launches);  // few different buffers
  KP_ASSIGN(const auto data, counter_data(schedule, ranges));
  KP_TRY(set_config(schedule, ranges, data));
  lap("set config");
  const auto begin = [&]() -> Result<void> {
    KP_CUPTI_PARAMS(CUpti_RangeProfiler_Start, params);
    params.pRangeProfilerObject = profiler_;
    KP_CUPTI_TRY(cu_->RangeProfilerStart(&params));
    return {};
  };
  bool last = false;
  const auto end = [&]() -> Result<void> {
    KP_CUPTI_PARAMS(CUpti_RangeProfiler_Stop, params);
    params.pRangeProfilerObject = profiler_;
    KP_CUPTI_TRY(cu_->RangeProfilerStop(&params));
    last = params.isAllPassSubmitted != 0;
    return {};
  };
  for (std::size_t pass = 0; !last; ++pass, ++collected->passes) {
    if (pass == schedule.config.passes + kExtraPasses) {
      return fail(ErrorKind::kEnvironment, "CUPTI asks for more passes than it announced",
                  "`kernelpro doctor` shows the versions of driver and CUPTI; they should match");
    }
    KP_TRY(before());
    KP_TRY(run(only, begin, end));
    if (collected->passes == 0) collected->phases_ms["first pass"] = ms_since(start);
  }
  lap("passes");
  KP_CUPTI_PARAMS(CUpti_RangeProfiler_DecodeData, decode);
  decode.pRangeProfilerObject = profiler_;
  KP_CUPTI_TRY(cu_->RangeProfilerDecodeData(&decode));
  KP_CUPTI_PARAMS(CUpti_RangeProfiler_GetCounterDataInfo, info);
  info.pCounterDataImage = data->data();
  info.counterDataImageSize = data->size();
  KP_CUPTI_TRY(cu_->RangeProfilerGetCounterDataInfo(&info));
  *counted = info.numTotalRanges - std::min(info.numTotalRanges, decode.numOfRangeDropped);
  for (std::size_t i = 0; *counted == launches && i < launches; ++i) {
    KP_ASSIGN(auto values, host_.values(*data, i, schedule.config.metrics));
    collected->values.push_back(std::move(values));
  }
  lap("decode");
  return {};
}

Result<CounterSession::Collected> CounterSession::collect(const Schedule& schedule,
                                                          std::size_t launches, const Step& before,
                                                          const Run& run) {
  Collected collected;
  std::size_t counted = 0;
  const double start = real_clock().now_s();
  if (launches <= kAtOnce) {
    KP_TRY(collect_ranges(schedule, launches, launches == 1 ? 0 : -1, before, run, &collected,
                          &counted));
    if (counted == launches) return collected;
    collected = Collected();
    collected.phases_ms["all at once"] = ms_since(start);
  }
  for (std::size_t i = 0; i < launches; ++i) {
    counted = 0;
    KP_TRY(collect_ranges(schedule, 1, static_cast<int>(i), before, run, &collected, &counted));
    if (counted == 1) continue;
    return fail(ErrorKind::kEnvironment,
                "CUPTI counted " + std::to_string(counted) + " kernels of 1",
                "run again; if it fails again, report it with your driver and CUPTI versions");
  }
  return collected;
}

Result<void> CounterSession::warm_up(const Schedule& schedule, const Step& run) {
  Collected collected;
  std::size_t counted = 0;
  return collect_ranges(
      schedule, 1, 0, [] { return Result<void>(); },
      [&](int, const Step& begin, const Step& end) -> Result<void> {
        KP_TRY(begin());
        KP_TRY(run());
        return end();
      },
      &collected, &counted);
}

}  // namespace kernelpro

#endif
