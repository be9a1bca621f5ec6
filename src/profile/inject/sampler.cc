// SPDX-License-Identifier: Apache-2.0
#include "profile/inject/sampler.h"

#include <algorithm>
#include <array>

namespace kernelpro::tracer {

namespace {

constexpr std::size_t kMostPcs = 1 << 16;
constexpr std::size_t kMostReasons = 256;
constexpr std::size_t kScratchBytes = 64 << 20;
constexpr std::size_t kHardwareBytes = 256 << 20;
constexpr std::uint32_t kSleepMs = 5;  // of CUPTI's threads, which fetch the samples

// A zeroed parameter block for a context.
template <class Params>
Params params_for(CUcontext context, std::size_t size) {
  Params params{};
  params.size = size;
  params.ctx = context;
  return params;
}
#define KP_PARAMS(type, name) \
  auto name =                 \
      params_for<CUpti_PCSampling##type##Params>(context_, CUpti_PCSampling##type##ParamsSize)

}  // namespace

std::string Sampler::refused(const char* call, CUptiResult result) const {
  const char* text = nullptr;
  static_cast<void>(cupti_.GetResultString(result, &text));
  return "CUPTI gave no samples (" + std::string(call) + ": " +
         (text != nullptr ? text : std::to_string(static_cast<int>(result))) +
         "); run as root, or load the nvidia module with NVreg_RestrictProfilingToAdminUsers=0";
}

std::string Sampler::begin(CUcontext context) {
  if (context_ != nullptr) return "";
  if (!cupti_.can_sample()) return "this CUPTI does not sample program counters; use CUDA 12's";
  context_ = context;
  KP_PARAMS(Enable, enable);
  if (const CUptiResult result = cupti_.PCSamplingEnable(&enable); result != CUPTI_SUCCESS) {
    return refused("cuptiPCSamplingEnable", result);
  }
  if (std::string problem = configure(); !problem.empty()) return problem;
  KP_PARAMS(Start, start);
  const CUptiResult result = cupti_.PCSamplingStart(&start);
  started_ = result == CUPTI_SUCCESS;
  return started_ ? "" : refused("cuptiPCSamplingStart", result);
}

std::string Sampler::configure() {
  std::size_t count = 0;
  KP_PARAMS(GetNumStallReasons, number);
  number.numStallReasons = &count;
  if (const CUptiResult result = cupti_.PCSamplingGetNumStallReasons(&number);
      result != CUPTI_SUCCESS) {
    return refused("cuptiPCSamplingGetNumStallReasons", result);
  }
  count = std::min(count, kMostReasons);
  std::vector<std::uint32_t> ids(count);
  std::vector<std::array<char, CUPTI_STALL_REASON_STRING_SIZE>> names(count);
  std::vector<char*> pointers;
  for (auto& name : names) {
    name.fill('\0');
    pointers.push_back(name.data());
  }
  KP_PARAMS(GetStallReasons, get);
  get.numStallReasons = count;
  get.stallReasonIndex = ids.data();
  get.stallReasons = pointers.data();
  if (const CUptiResult result = cupti_.PCSamplingGetStallReasons(&get); result != CUPTI_SUCCESS) {
    return refused("cuptiPCSamplingGetStallReasons", result);
  }
  for (std::size_t i = 0; i < count; ++i) {
    names[i].back() = '\0';
    reasons_[ids[i]] = names[i].data();
  }
  pcs_.resize(kMostPcs);
  stalls_.resize(kMostPcs * count);
  for (std::size_t i = 0; i < kMostPcs; ++i) {
    pcs_[i].size = sizeof pcs_[i];
    pcs_[i].stallReason = stalls_.data() + i * count;
  }
  data_.size = sizeof data_;
  data_.collectNumPcs = kMostPcs;
  data_.pPcData = pcs_.data();

  std::vector<CUpti_PCSamplingConfigurationInfo> settings;
  const auto add = [&](CUpti_PCSamplingConfigurationAttributeType type) -> auto& {
    settings.emplace_back();
    settings.back().attributeType = type;
    return settings.back().attributeData;
  };
  settings.reserve(8);
  add(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD).samplingPeriodData.samplingPeriod =
      period_;
  add(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_COLLECTION_MODE).collectionModeData.collectionMode =
      CUPTI_PC_SAMPLING_COLLECTION_MODE_CONTINUOUS;
  add(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_ENABLE_START_STOP_CONTROL)
      .enableStartStopControlData.enableStartStopControl = 1;
  add(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER)
      .samplingDataBufferData.samplingDataBuffer = &data_;
  add(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SCRATCH_BUFFER_SIZE)
      .scratchBufferSizeData.scratchBufferSize = kScratchBytes;
  add(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_HARDWARE_BUFFER_SIZE)
      .hardwareBufferSizeData.hardwareBufferSize = kHardwareBytes;
  add(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_WORKER_THREAD_PERIODIC_SLEEP_SPAN)
      .workerThreadPeriodicSleepSpanData.workerThreadPeriodicSleepSpan = kSleepMs;
  KP_PARAMS(ConfigurationInfo, params);
  params.numAttributes = settings.size();
  params.pPCSamplingConfigurationInfo = settings.data();
  const CUptiResult result = cupti_.PCSamplingSetConfigurationAttribute(&params);
  return result == CUPTI_SUCCESS ? "" : refused("cuptiPCSamplingSetConfigurationAttribute", result);
}

void Sampler::end(TraceWriter* writer) {
  if (!started_) return;
  started_ = false;
  KP_PARAMS(Stop, stop);
  const CUptiResult result = cupti_.PCSamplingStop(&stop);
  TraceWriter::Batch batch(writer);
  if (result != CUPTI_SUCCESS) return batch.note(refused("cuptiPCSamplingStop", result));
  batch.add(trace_format::Kind::kSampling,
            trace_format::Sampling{data_.droppedSamples, period_, 0});
  // The records are packed: their members are copied, never bound.
  const std::size_t given = data_.totalNumPcs;
  for (std::size_t i = 0; i < std::min(given, kMostPcs); ++i) {
    const char* function = pcs_[i].functionName;
    const std::uint64_t offset = pcs_[i].pcOffset;
    const std::size_t stalls = pcs_[i].stallReasonCount;
    if (function == nullptr || offset > UINT32_MAX) continue;
    const std::uint32_t name = batch.name(function);
    for (std::size_t k = 0; k < std::min(stalls, reasons_.size()); ++k) {
      const CUpti_PCSamplingStallReason stall = pcs_[i].stallReason[k];
      const auto reason = reasons_.find(stall.pcSamplingStallReasonIndex);
      const std::uint32_t samples = stall.samples;
      if (reason == reasons_.end() || samples == 0) continue;
      batch.add(trace_format::Kind::kSample,
                trace_format::Sample{name, static_cast<std::uint32_t>(offset),
                                     batch.name(reason->second.c_str()), samples});
    }
  }
}

}  // namespace kernelpro::tracer
