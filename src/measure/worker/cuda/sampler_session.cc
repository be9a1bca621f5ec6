// SPDX-License-Identifier: Apache-2.0
#include "measure/worker/cuda/sampler_session.h"

#if KERNELPRO_HAVE_CUPTI

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "machine/driver/cuda_driver.h"

namespace kernelpro {

namespace {

constexpr int kShortest = 8, kLongest = 31;  // CUPTI allows 5 to 31
constexpr double kMostSamples = 250e3;

constexpr std::size_t kMostPcs = 1 << 15;        // distinct, with samples
constexpr std::size_t kScratchBytes = 16 << 20;  // CUPTI's default holds 5,500 of them
constexpr std::size_t kHardwareBytes = 64 << 20;
constexpr std::uint32_t kSleepMs = 1;  // of CUPTI's threads, which fetch the samples
constexpr std::size_t kMostReasons = 256;
constexpr std::string_view kExposed = "_not_issued";

// A zeroed parameter block for a context.
template <class Params>
Params params_for(CUcontext context, std::size_t size) {
  Params params{};
  params.size = size;
  params.ctx = context;
  return params;
}
#define KP_SAMPLING_PARAMS(type, name, context) \
  auto name =                                   \
      params_for<CUpti_PCSampling##type##Params>(context, CUpti_PCSampling##type##ParamsSize)

// What CUPTI calls reason number i.
struct Reason {
  Stall stall = Stall::kSelected;
  bool exposed = false;
};
struct Reasons {
  std::size_t count = 0;  // with those that we do not know
  std::map<std::uint32_t, Reason> known;
};

// Where CUPTI puts the samples. It keeps pointers to it while sampling is enabled.
struct Buffers {
  CUpti_PCSamplingData data{};
  std::vector<CUpti_PCSamplingPCData> pcs;
  std::vector<CUpti_PCSamplingStallReason> stalls;

  explicit Buffers(std::size_t reasons) : pcs(kMostPcs), stalls(kMostPcs * reasons) {
    for (std::size_t i = 0; i < kMostPcs; ++i) {
      pcs[i] = {};
      pcs[i].size = sizeof pcs[i];
      pcs[i].stallReason = &stalls[i * reasons];
    }
    data.size = sizeof data;
    data.collectNumPcs = kMostPcs;
    data.pPcData = pcs.data();
  }
};

// Enabled for its lifetime.
class Sampling {
 public:
  static Result<Sampling> enable(const CuptiSampling& cu, CUcontext context) {
    KP_SAMPLING_PARAMS(Enable, params, context);
    KP_CUPTI_TRY(cu.PCSamplingEnable(&params));
    return Sampling(cu, context);
  }
  Sampling(Sampling&& other) noexcept
      : cu_(other.cu_), context_(std::exchange(other.context_, nullptr)) {}
  Sampling& operator=(Sampling&&) = delete;
  ~Sampling() {
    if (context_ == nullptr) return;
    KP_SAMPLING_PARAMS(Disable, params, context_);
    static_cast<void>(cu_->PCSamplingDisable(&params));
  }

  Result<Reasons> reasons() const;
  Result<void> configure(int period, Buffers* buffers) const;
  Result<void> start() const {
    KP_SAMPLING_PARAMS(Start, params, context_);
    KP_CUPTI_TRY(cu_->PCSamplingStart(&params));
    return {};
  }
  Result<void> stop() const {
    KP_SAMPLING_PARAMS(Stop, params, context_);
    KP_CUPTI_TRY(cu_->PCSamplingStop(&params));
    return {};
  }

 private:
  Sampling(const CuptiSampling& cu, CUcontext context) : cu_(&cu), context_(context) {}
  const CuptiSampling* cu_;
  CUcontext context_;
};

Result<Reasons> Sampling::reasons() const {
  std::size_t count = 0;
  KP_SAMPLING_PARAMS(GetNumStallReasons, number, context_);
  number.numStallReasons = &count;
  KP_CUPTI_TRY(cu_->PCSamplingGetNumStallReasons(&number));
  count = std::min(count, kMostReasons);
  std::vector<std::uint32_t> ids(count);
  std::vector<std::array<char, CUPTI_STALL_REASON_STRING_SIZE>> names(count);
  std::vector<char*> pointers;
  for (auto& name : names) {
    name.fill('\0');
    pointers.push_back(name.data());
  }
  KP_SAMPLING_PARAMS(GetStallReasons, get, context_);
  get.numStallReasons = count;
  get.stallReasonIndex = ids.data();
  get.stallReasons = pointers.data();
  KP_CUPTI_TRY(cu_->PCSamplingGetStallReasons(&get));
  Reasons reasons;
  reasons.count = count;
  for (std::size_t i = 0; i < count; ++i) {
    names[i].back() = '\0';
    const std::string_view name = names[i].data();
    if (const auto stall = stall_from_name(name)) {
      reasons.known[ids[i]] = {*stall, name.ends_with(kExposed)};
    }
  }
  return reasons;
}

Result<void> Sampling::configure(int period, Buffers* buffers) const {
  std::vector<CUpti_PCSamplingConfigurationInfo> settings;
  const auto add = [&](CUpti_PCSamplingConfigurationAttributeType type) -> auto& {
    settings.emplace_back();
    settings.back().attributeType = type;
    return settings.back().attributeData;
  };
  settings.reserve(8);
  add(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD).samplingPeriodData.samplingPeriod =
      static_cast<std::uint32_t>(period);
  add(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_COLLECTION_MODE).collectionModeData.collectionMode =
      CUPTI_PC_SAMPLING_COLLECTION_MODE_CONTINUOUS;
  add(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_ENABLE_START_STOP_CONTROL)
      .enableStartStopControlData.enableStartStopControl = 1;
  add(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER)
      .samplingDataBufferData.samplingDataBuffer = &buffers->data;
  add(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SCRATCH_BUFFER_SIZE)
      .scratchBufferSizeData.scratchBufferSize = kScratchBytes;
  add(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_HARDWARE_BUFFER_SIZE)
      .hardwareBufferSizeData.hardwareBufferSize = kHardwareBytes;
  add(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_WORKER_THREAD_PERIODIC_SLEEP_SPAN)
      .workerThreadPeriodicSleepSpanData.workerThreadPeriodicSleepSpan = kSleepMs;
  KP_SAMPLING_PARAMS(ConfigurationInfo, params, context_);
  params.numAttributes = settings.size();
  params.pPCSamplingConfigurationInfo = settings.data();
  KP_CUPTI_TRY(cu_->PCSamplingSetConfigurationAttribute(&params));
  return {};
}

using Stalls = std::map<Stall, StallSamples>;

// Adds the samples at one program counter. `pc` is packed: its members are copied, never bound.
void add_samples(const CUpti_PCSamplingPCData& pc, const Reasons& reasons, Stalls* stalls) {
  const std::size_t given = pc.stallReasonCount;
  const std::size_t count = std::min(given, reasons.count);
  const CUpti_PCSamplingStallReason* all = pc.stallReason;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t id = all[i].pcSamplingStallReasonIndex;
    const std::uint32_t samples = all[i].samples;
    const auto reason = reasons.known.find(id);
    if (reason == reasons.known.end() || samples == 0) continue;
    StallSamples& stall = (*stalls)[reason->second.stall];
    stall.stall = reason->second.stall;
    (reason->second.exposed ? stall.exposed : stall.all) += samples;
  }
}

SampleAnswers read(const Buffers& buffers, const Reasons& reasons, int period) {
  std::map<std::string, std::map<int, Stalls>> functions;
  const std::size_t given = buffers.data.totalNumPcs;
  const std::size_t pcs = std::min(given, kMostPcs);
  for (std::size_t i = 0; i < pcs; ++i) {
    const CUpti_PCSamplingPCData& pc = buffers.pcs[i];
    const std::uint64_t offset = pc.pcOffset;
    // The name is left to CUPTI, which may share it with other records.
    const char* name = pc.functionName;
    if (name == nullptr || offset > (1u << 30)) continue;
    add_samples(pc, reasons, &functions[name][static_cast<int>(offset)]);
  }
  SampleAnswers answers;
  answers.source = "cupti";
  answers.period_cycles = std::ldexp(1.0, period);
  answers.dropped = static_cast<double>(buffers.data.droppedSamples);
  for (auto& [name, by_offset] : functions) {
    KernelSamples& kernel = answers.kernels.emplace_back();
    kernel.function = name;
    for (const auto& [offset, stalls] : by_offset) {
      PcSamples& at = kernel.pcs.emplace_back();
      at.offset = offset;
      for (const auto& [key, stall] : stalls) {
        at.stalls.push_back({key, std::max(stall.all, stall.exposed), stall.exposed});
      }
    }
  }
  if (buffers.data.hardwareBufferFull != 0) {
    answers.missing.push_back({Family::kSamples,
                               "the buffer of samples was full",
                               "evaluate a smaller case",
                               {},
                               "of the end of the call"});
  }
  if (const std::size_t remaining = buffers.data.remainingNumPcs; remaining > 0) {
    answers.missing.push_back({Family::kSamples,
                               "the kernels have too many instructions",
                               "evaluate fewer kernels at once",
                               {},
                               "of " + std::to_string(remaining) + " further instructions"});
  }
  return answers;
}

}  // namespace

int sampling_period(double cycles, int multiprocessors) {
  int period = kShortest;
  const double most = std::max(1, multiprocessors) * cycles / kMostSamples;
  while (period < kLongest && std::ldexp(1.0, period) < most) ++period;
  return period;
}

Result<SampleAnswers> sample_run(int period, const std::function<Result<void>()>& run) {
  KP_ASSIGN(const CuptiSampling* cu, cupti_sampling());
  KP_ASSIGN(const CudaDriver* driver, cuda_driver());
  CUcontext context = nullptr;
  KP_CUDA_TRY(driver->CtxGetCurrent(&context));
  // Freed after sampling has been disabled.
  std::optional<Buffers> buffers;
  KP_ASSIGN(const Sampling sampling, Sampling::enable(*cu, context));
  KP_ASSIGN(const Reasons reasons, sampling.reasons());
  if (reasons.known.empty()) {
    return fail(ErrorKind::kEnvironment, "cuptiPCSamplingGetStallReasons: none that are known",
                "install the CUPTI of the CUDA toolkit that this was built with");
  }
  buffers.emplace(reasons.count);
  KP_TRY(sampling.configure(period, &*buffers));
  KP_TRY(sampling.start());
  const Result<void> ran = run();
  const Result<void> stopped = sampling.stop();
  if (!ran) return tl::unexpected<Error>(ran.error());
  if (!stopped) return tl::unexpected<Error>(stopped.error());
  return read(*buffers, reasons, period);
}

}  // namespace kernelpro

#endif
