// SPDX-License-Identifier: Apache-2.0
#include "measure/cuda/capture.h"

#include <algorithm>
#include <optional>

#include "base/text.h"
#include "core/plan/protocol.h"
#include "core/plan/refusal.h"

namespace kernelpro {

namespace {

constexpr std::size_t kMostSaid = 300;

Rejected bad_plan(const std::string& what) {
  return {std::string(refusal_name(RefusalKind::kPlan)), what};
}

Outcome outcome_of_lost(const Lost& lost, const std::string& phase) {
  if (lost.timed_out) return TimedOut{lost.seconds, phase};
  if (!lost.refused.empty()) {
    return Rejected{
        lost.refused,
        "launch tried something that a candidate's host code may not do: " + lost.refused};
  }
  return Crashed{lost.how + " while " + phase, lost.output, lost.by};
}

}  // namespace

Result<std::variant<LaunchPlan, Outcome>> capture_plan_in(CudaLink& link, const Binary& binary,
                                                          const std::string& entry,
                                                          const AddressLayout& layout,
                                                          double timeout_s) {
  using Captured = std::variant<LaunchPlan, Outcome>;
  Answer answer = link.ask({{"do", "capture"},
                            {"shared_object", binary.shared_object},
                            {"layout", *parse_json(layout_to_json(layout))}},
                           timeout_s + 5);
  if (const auto* lost = std::get_if<Lost>(&answer)) {
    return Captured{outcome_of_lost(*lost, "capturing " + entry)};
  }
  if (const auto* refusal = std::get_if<Refusal>(&answer)) {
    // Text from this process may be the candidate's: never the machine's fault.
    switch (refusal->kind) {
      case RefusalKind::kNone:
      case RefusalKind::kNoKernel:
      case RefusalKind::kException:
      case RefusalKind::kCudaError:
        return Captured{Crashed{refusal->text, ""}};
      default:
        return Captured{Rejected{refusal->rule, refusal->text}};
    }
  }
  const Reply& reply = std::get<Reply>(answer);
  std::optional<LaunchPlan> plan = plan_from_json(dump_json(JsonReader(reply.json).object("plan")));
  if (!plan) return Captured{bad_plan("the captured plan cannot be read")};
  // What only PyTorch candidates' plans have, and the supervisor puts there itself.
  if (plan->scratch_bytes > 0 || !plan->constants.empty()) {
    return Captured{bad_plan("the captured plan cannot be read")};
  }
  const std::string problem = plan->problem();
  if (!problem.empty()) return Captured{bad_plan("the launch plan has " + problem)};
  return Captured{std::move(*plan)};
}

std::optional<Outcome> call_uncaptured(CudaLink link, const CudaCase& state, double timeout_s) {
  const auto& memory = state.memory[0];
  for (std::size_t first = 0; first < memory.size(); first += kFdsPerFrame) {
    Json slots = Json::array();
    std::vector<int> fds;
    for (std::size_t i = first; i < std::min(memory.size(), first + kFdsPerFrame); ++i) {
      slots.push_back(memory[i].first);
      fds.push_back(memory[i].second.get());
    }
    link.post({{"do", "memory"}, {"slots", slots}}, fds);
  }
  Json inputs = Json::array();
  for (const JudgeTensor& tensor : state.judged) inputs.push_back(!tensor.output);
  const Answer answer = link.ask({{"do", "call"}, {"inputs", inputs}}, timeout_s + 5);
  if (std::holds_alternative<Reply>(answer)) return std::nullopt;
  if (const auto* refusal = std::get_if<Refusal>(&answer)) {
    return Crashed{"launch fails outside of a stream capture: " + clip(refusal->text, kMostSaid),
                   ""};
  }
  return outcome_of_lost(std::get<Lost>(answer), "calling launch outside of a stream capture");
}

}  // namespace kernelpro
