// SPDX-License-Identifier: Apache-2.0
#include "measure/worker/testing/fake_sampling.h"

#if KERNELPRO_HAVE_CUDA && __has_include(<cupti_pcsampling.h>)

#include <cupti_pcsampling.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <utility>

namespace kernelpro::fake {

namespace {

constexpr const char* kReasons[] = {"smsp__pcsamp_warps_issue_stalled_selected",
                                    "smsp__pcsamp_warps_issue_stalled_long_scoreboard",
                                    "smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued",
                                    "smsp__pcsamp_warps_issue_stalled_of_a_later_gpu"};
constexpr std::uint32_t kFirstId = 5;  // ids need not count from 0

struct Sampling {
  CUcontext context = nullptr;
  CUpti_PCSamplingData* data = nullptr;
  int period = 0;
  bool start_stop = false, started = false;
  std::size_t first_launch = 0, left = 0;
  std::vector<std::string> calls;
  std::map<std::string, std::pair<CUptiResult, int>> refusals;
};

Sampling& sampling() {
  static Sampling* one = [] {
    auto* made = new Sampling;
    char call[32] = {};
    int result = 0, times = 0;
    const char* asked = std::getenv("KERNELPRO_FAKE_SAMPLING");
    if (asked != nullptr && std::sscanf(asked, "%31s %d %d", call, &result, &times) == 3) {
      made->refusals[call] = {static_cast<CUptiResult>(result), times};
    }
    return made;
  }();
  return *one;
}

// The error that a call must return.
CUptiResult enter(const char* call) {
  auto& [result, times] = sampling().refusals[call];
  if (times > 0) {
    --times;
    return result;
  }
  sampling().calls.emplace_back(call);
  return CUPTI_SUCCESS;
}

void add_place(const char* function, std::uint64_t offset,
               const std::vector<CUpti_PCSamplingStallReason>& reasons) {
  CUpti_PCSamplingData& data = *sampling().data;
  if (data.totalNumPcs == data.collectNumPcs) return;
  CUpti_PCSamplingPCData& pc = data.pPcData[data.totalNumPcs];
  data.totalNumPcs = data.totalNumPcs + 1;
  pc.functionName = ::strdup(function);
  pc.pcOffset = offset;
  pc.stallReasonCount = reasons.size();
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    pc.stallReason[i] = reasons[i];
    data.totalSamples = data.totalSamples + reasons[i].samples;
  }
}

}  // namespace

void refuse_sampling(const std::string& call, CUptiResult result, int times) {
  sampling().refusals[call] = {result, times};
}
int sampled_period() { return sampling().period; }
void leave_program_counters(std::size_t count) { sampling().left = count; }
std::vector<std::string> sampling_calls() { return std::exchange(sampling().calls, {}); }

}  // namespace kernelpro::fake

using kernelpro::fake::enter;
using kernelpro::fake::sampling;

#define KP_FAKE_SAMPLING(name, params) \
  extern "C" KP_FAKE_API CUptiResult CUPTIAPI cupti##name(params)
#define KP_FAKE_TRY(call) \
  if (const CUptiResult kp_result = (call); kp_result != CUPTI_SUCCESS) return kp_result

extern "C" KP_FAKE_API CUptiResult CUPTIAPI cuptiGetResultString(CUptiResult result,
                                                                 const char** text) {
  *text = result == CUPTI_ERROR_HARDWARE_BUSY             ? "CUPTI_ERROR_HARDWARE_BUSY"
          : result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"
                                                          : "CUPTI_ERROR_OF_THE_FAKE";
  return CUPTI_SUCCESS;
}

KP_FAKE_SAMPLING(PCSamplingEnable, CUpti_PCSamplingEnableParams* params) {
  KP_FAKE_TRY(enter("Enable"));
  if (params->ctx == nullptr || sampling().context != nullptr) return CUPTI_ERROR_INVALID_CONTEXT;
  sampling().context = params->ctx;
  return CUPTI_SUCCESS;
}

KP_FAKE_SAMPLING(PCSamplingDisable, CUpti_PCSamplingDisableParams* params) {
  KP_FAKE_TRY(enter("Disable"));
  if (params->ctx != sampling().context) return CUPTI_ERROR_INVALID_CONTEXT;
  // The real one touches it now.
  if (sampling().data != nullptr) sampling().data->rangeId = 1;
  sampling().context = nullptr;
  sampling().data = nullptr;
  return CUPTI_SUCCESS;
}

KP_FAKE_SAMPLING(PCSamplingGetNumStallReasons, CUpti_PCSamplingGetNumStallReasonsParams* params) {
  *params->numStallReasons = std::size(kernelpro::fake::kReasons);
  return CUPTI_SUCCESS;
}

KP_FAKE_SAMPLING(PCSamplingGetStallReasons, CUpti_PCSamplingGetStallReasonsParams* params) {
  for (std::size_t i = 0; i < params->numStallReasons; ++i) {
    params->stallReasonIndex[i] = kernelpro::fake::kFirstId + static_cast<std::uint32_t>(i);
    std::strcpy(params->stallReasons[i], kernelpro::fake::kReasons[i]);
  }
  return CUPTI_SUCCESS;
}

KP_FAKE_SAMPLING(PCSamplingSetConfigurationAttribute,
                 CUpti_PCSamplingConfigurationInfoParams* params) {
  KP_FAKE_TRY(enter("Configure"));
  if (params->ctx != sampling().context || sampling().started) return CUPTI_ERROR_INVALID_OPERATION;
  for (std::size_t i = 0; i < params->numAttributes; ++i) {
    const CUpti_PCSamplingConfigurationInfo& info = params->pPCSamplingConfigurationInfo[i];
    const auto& data = info.attributeData;
    if (info.attributeType == CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD) {
      sampling().period = static_cast<int>(data.samplingPeriodData.samplingPeriod);
    } else if (info.attributeType ==
               CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER) {
      sampling().data =
          static_cast<CUpti_PCSamplingData*>(data.samplingDataBufferData.samplingDataBuffer);
    } else if (info.attributeType ==
               CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_ENABLE_START_STOP_CONTROL) {
      sampling().start_stop = data.enableStartStopControlData.enableStartStopControl != 0;
    }
  }
  return CUPTI_SUCCESS;
}

KP_FAKE_SAMPLING(PCSamplingStart, CUpti_PCSamplingStartParams* params) {
  KP_FAKE_TRY(enter("Start"));
  if (params->ctx != sampling().context || !sampling().start_stop || sampling().data == nullptr) {
    return CUPTI_ERROR_INVALID_OPERATION;
  }
  sampling().started = true;
  sampling().first_launch = kernelpro::fake::launches().size();
  return CUPTI_SUCCESS;
}

KP_FAKE_SAMPLING(PCSamplingStop, CUpti_PCSamplingStopParams* params) {
  sampling().started = false;
  KP_FAKE_TRY(enter("Stop"));
  if (params->ctx != sampling().context) return CUPTI_ERROR_INVALID_OPERATION;
  using kernelpro::fake::kFirstId;
  const auto& launches = kernelpro::fake::launches();
  auto& forgets = sampling().refusals["Forget"].second;  // the kernels' names, so many times
  const bool forget = forgets-- > 0;
  // In no order, as the real one's.
  for (std::size_t i = sampling().first_launch; i < launches.size(); ++i) {
    const char* name = forget ? "another" : launches[i].kernel.c_str();
    kernelpro::fake::add_place(name, 32,
                               {{kFirstId + 2, 48}, {kFirstId + 1, 64}, {kFirstId + 3, 5}});
    kernelpro::fake::add_place(name, 0, {{kFirstId, 8}});
  }
  sampling().data->droppedSamples = 3;
  sampling().data->remainingNumPcs = sampling().left;
  return CUPTI_SUCCESS;
}

#endif
