// SPDX-License-Identifier: Apache-2.0
#include "worker/cuda/profiler_session.h"

#if KERNELPRO_HAVE_CUPTI

#include <algorithm>
#include <bit>
#include <random>
#include <utility>

#include "base/clock.h"

namespace kernelpro {

namespace {

constexpr int kOrders = 16;              // of metrics that are tried: the scheduler is greedy
constexpr std::size_t kLeastRoom = 8;    // launches: most calls have fewer
constexpr std::size_t kExtraPasses = 4;  // over what was scheduled, before something is wrong

double ms_since(double start) { return (real_clock().now_s() - start) * 1e3; }

Result<CUpti_RangeProfiler_Object*> enable_profiler(const Cupti& cu) {
  const Result<const CudaDriver*> driver = cuda_driver();
  if (!driver) return tl::unexpected<Error>(driver.error());
  CUcontext context = nullptr;
  KP_CUDA_TRY((*driver)->CtxGetCurrent(&context));
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
  const Result<const Cupti*> library = cupti();
  if (!library) return tl::unexpected<Error>(library.error());
  const Cupti& cu = **library;
  const Result<const CudaDriver*> driver = cuda_driver();
  if (!driver) return tl::unexpected<Error>(driver.error());
  CUcontext context = nullptr;
  KP_CUDA_TRY((*driver)->CtxGetCurrent(&context));
  KP_CUPTI_PARAMS(CUpti_Profiler_Initialize, initialize);
  KP_CUPTI_TRY(cu.ProfilerInitialize(&initialize));
  KP_CUPTI_PARAMS(CUpti_Device_GetChipName, chip);
  chip.deviceIndex = 0;  // of those that this process sees
  KP_CUPTI_TRY(cu.DeviceGetChipName(&chip));
  const std::string name = chip.pChipName;
  auto image = availability(cu, context);
  if (!image) return tl::unexpected<Error>(image.error());
  Result<CounterHost> host = CounterHost::open(name, std::move(*image));
  if (!host) return tl::unexpected<Error>(host.error());
  const auto profiler = enable_profiler(cu);
  if (!profiler) return tl::unexpected<Error>(profiler.error());
  return CounterSession(cu, std::move(*host), *profiler);
}

CounterSession::CounterSession(CounterSession&& other) noexcept
    : cu_(other.cu_),
      host_(std::move(other.host_)),
      profiler_(std::exchange(other.profiler_, nullptr)),
      room_(other.room_),
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
    auto config = host_.schedule(names);
    if (!config) return tl::unexpected<Error>(config.error());
    if (k == 0 || config->passes < made->config.passes) made->config = std::move(*config);
    if (made->config.passes == 1) break;
    std::shuffle(names.begin(), names.end(), random);
  }
  known = std::move(made);
  return known.get();
}

// The first configuration says how many launches a profiler ever has room for (CUPTI 13.0 drops the
// others, whatever later configurations say): more need another profiler.
Result<void> CounterSession::reserve(std::size_t ranges) {
  if (room_ == 0) {
    room_ = ranges;
    return {};
  }
  if (ranges <= room_) return {};
  KP_CUPTI_PARAMS(CUpti_RangeProfiler_Disable, disable);
  disable.pRangeProfilerObject = std::exchange(profiler_, nullptr);
  KP_CUPTI_TRY(cu_->RangeProfilerDisable(&disable));
  const auto profiler = enable_profiler(*cu_);
  if (!profiler) return tl::unexpected<Error>(profiler.error());
  profiler_ = *profiler;
  room_ = ranges;
  return {};
}

Result<CounterSession::Bytes*> CounterSession::counter_data(const Schedule& schedule,
                                                            std::size_t ranges) {
  std::unique_ptr<Bytes>& data = data_[{&schedule, ranges}];
  if (!data) {
    std::vector<const char*> names;
    for (const std::string& name : schedule.config.metrics) names.push_back(name.c_str());
    KP_CUPTI_PARAMS(CUpti_RangeProfiler_GetCounterDataSize, size);
    size.pRangeProfilerObject = profiler_;
    size.pMetricNames = names.data();
    size.numMetrics = names.size();
    size.maxNumOfRanges = ranges;
    size.maxNumRangeTreeNodes = static_cast<std::uint32_t>(ranges);
    KP_CUPTI_TRY(cu_->RangeProfilerGetCounterDataSize(&size));
    data = std::make_unique<Bytes>(size.counterDataSize);
  }
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
  // Launches beyond the maximum are dropped without a word, their counters stay 0.
  set.maxRangesPerPass = ranges;
  set.numNestingLevels = 1;
  set.minNestingLevel = 1;
  set.passIndex = 0;
  set.targetNestingLevel = 1;
  KP_CUPTI_TRY(cu_->RangeProfilerSetConfig(&set));
  return {};
}

// Whether it was the last one.
Result<bool> CounterSession::one_pass(const Step& run) {
  KP_CUPTI_PARAMS(CUpti_RangeProfiler_Start, start);
  start.pRangeProfilerObject = profiler_;
  KP_CUPTI_TRY(cu_->RangeProfilerStart(&start));
  const Result<void> ran = run();
  KP_CUPTI_PARAMS(CUpti_RangeProfiler_Stop, stop);
  stop.pRangeProfilerObject = profiler_;
  const CUptiResult stopped = cu_->RangeProfilerStop(&stop);
  if (!ran) return tl::unexpected<Error>(ran.error());
  if (stopped != CUPTI_SUCCESS) {
    return tl::unexpected<Error>(cupti_error("cu_->RangeProfilerStop", stopped));
  }
  return stop.isAllPassSubmitted != 0;
}

Result<CounterSession::Collected> CounterSession::collect(const Schedule& schedule,
                                                          std::size_t launches, const Step& before,
                                                          const Step& run) {
  Collected collected;
  double start = real_clock().now_s();
  const std::size_t ranges = std::max(kLeastRoom, std::bit_ceil(launches));  // few buffers
  KP_TRY(reserve(ranges));
  const Result<Bytes*> data = counter_data(schedule, ranges);
  if (!data) return tl::unexpected<Error>(data.error());
  KP_TRY(set_config(schedule, ranges, *data));
  collected.phases_ms["set config"] = ms_since(start);
  start = real_clock().now_s();
  for (bool last = false; !last; ++collected.passes) {
    if (collected.passes == static_cast<int>(schedule.config.passes + kExtraPasses)) {
      return fail(ErrorKind::kEnvironment, "CUPTI asks for more passes than it announced",
                  "`kernelpro doctor` shows the versions of driver and CUPTI; they should match");
    }
    KP_TRY(before());
    const Result<bool> pass = one_pass(run);
    if (!pass) return tl::unexpected<Error>(pass.error());
    last = *pass;
    if (collected.passes == 0) collected.phases_ms["first pass"] = ms_since(start);
  }
  collected.phases_ms["passes"] = ms_since(start);
  start = real_clock().now_s();
  KP_CUPTI_PARAMS(CUpti_RangeProfiler_DecodeData, decode);
  decode.pRangeProfilerObject = profiler_;
  KP_CUPTI_TRY(cu_->RangeProfilerDecodeData(&decode));
  KP_CUPTI_PARAMS(CUpti_RangeProfiler_GetCounterDataInfo, info);
  info.pCounterDataImage = (*data)->data();
  info.counterDataImageSize = (*data)->size();
  KP_CUPTI_TRY(cu_->RangeProfilerGetCounterDataInfo(&info));
  if (decode.numOfRangeDropped > 0 || info.numTotalRanges != launches) {
    return fail(ErrorKind::kEnvironment,
                "CUPTI counted " + std::to_string(info.numTotalRanges) + " kernels of " +
                    std::to_string(launches) + " and dropped " +
                    std::to_string(decode.numOfRangeDropped),
                "run again; if it stays so, report it with your driver and CUPTI versions");
  }
  for (std::size_t i = 0; i < launches; ++i) {
    auto values = host_.values(**data, i, schedule.config.metrics);
    if (!values) return tl::unexpected<Error>(values.error());
    collected.values.push_back(std::move(*values));
  }
  collected.phases_ms["decode"] = ms_since(start);
  return collected;
}

}  // namespace kernelpro

#endif
