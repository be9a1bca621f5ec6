// SPDX-License-Identifier: Apache-2.0
#include "measure/cuda/sampling.h"

#include "base/text.h"
#include "core/task/key.h"
#include "measure/cuda/worker.h"

namespace kernelpro {

namespace {

constexpr double kLoadTimeout = 60;

Missing why_not(const Answer& answer) {
  return missing_from(answer, Family::kSamples, "sampled",
                      "use `ncu --section SourceCounters` and import its report");
}

bool refused_as(const Answer& answer, RefusalKind kind) {
  const auto* refusal = std::get_if<Refusal>(&answer);
  return refusal != nullptr && refusal->kind == kind;
}

}  // namespace

void CudaSampling::start_ahead(const Task& task, const std::vector<CudaCase>& cases) {
  if (out_of_reach_) return;
  if (link_ && !link_->running()) link_.reset();
  if (link_) return;
  Result<CudaLink> link = CudaLink::start(WorkerRole::kCudaSampler, gpu_);
  if (!link) return;  // reported when samples are requested
  link_ = std::move(*link);
  post_cases(*link_, task, cases, fresh_secret());
}

void CudaSampling::settle() {
  if (!link_) return;
  const Answer answer = link_->settle(kStartTimeout);
  if (std::holds_alternative<Reply>(answer)) return;
  failed_ = why_not(answer);
  if (refused_as(answer, RefusalKind::kUnavailable)) out_of_reach_ = failed_;
  link_.reset();
}

SampleAnswers CudaSampling::collect(const Task& task, const std::vector<CudaCase>& cases,
                                    const CudaCase& state, const Binary& binary,
                                    const LaunchPlan& plan, double timeout_s) {
  start_ahead(task, cases);
  settle();
  if (link_) {
    move_to(*link_, task, cases, binary.place);
    return ask(state, binary, plan, timeout_s);
  }
  SampleAnswers answers;
  answers.missing.push_back(
      out_of_reach_
          ? *out_of_reach_
          : failed_.value_or(Missing{Family::kSamples, "the sampling process cannot be started",
                                     "run again; `kernelpro doctor` shows what is missing"}));
  return answers;
}

SampleAnswers CudaSampling::ask(const CudaCase& state, const Binary& binary, const LaunchPlan& plan,
                                double timeout_s) {
  SampleAnswers answers;
  const auto give_up = [&](const Answer& answer) {
    answers.missing.push_back(why_not(answer));
    if (refused_as(answer, RefusalKind::kUnavailable)) out_of_reach_ = answers.missing.back();
    link_.reset();  // whatever state it is in
    return answers;
  };
  const Answer loaded =
      link_->ask(load_command(state.c->name, "candidate", binary, plan), kLoadTimeout);
  if (!std::holds_alternative<Reply>(loaded)) return give_up(loaded);
  const Json command = {
      {"do", "sample"}, {"case", state.c->name}, {"subject", "candidate"}, {"set", 0}};
  Answer sampled = link_->ask(command, timeout_s);
  // The process that had the hardware before may be slow to release it.
  if (refused_as(sampled, RefusalKind::kBusy)) sampled = link_->ask(command, timeout_s);
  const auto* reply = std::get_if<Reply>(&sampled);
  if (reply == nullptr) return give_up(sampled);
  auto read = sample_answers_from_json(dump_json(JsonReader(reply->json).object("answers")));
  if (read) return std::move(*read);
  answers.missing.push_back(
      {Family::kSamples, "the sampling process's answer cannot be read", "run again"});
  return answers;
}

}  // namespace kernelpro
