// SPDX-License-Identifier: Apache-2.0
#include "measure/cuda/calls.h"

#include <algorithm>
#include <utility>

#include "machine/gpu_lease.h"
#include "measure/cuda/capture.h"

namespace kernelpro {

namespace {

// Sampling worked, and yet says nothing of a kernel that ran: seen with some settings of one
// attention kernel on an H200; why is not known.
bool lacks_a_kernel(const SampleAnswers& answers, const LaunchPlan& plan) {
  if (answers.kernels.empty() || !answers.missing.empty()) return false;
  return std::ranges::any_of(plan.nodes, [&](const PlanNode& node) {
    return !node.function.empty() &&
           std::ranges::none_of(answers.kernels, [&](const KernelSamples& kernel) {
             return kernel.function == node.function;
           });
  });
}

}  // namespace

void CudaCalls::start_ahead(const std::string& uuid) {
  uuid_ = uuid;
  if (shop_.settings.counters == CounterSet::kOff) return;
  profile_.start_ahead(shop_.task, shop_.cases);
  sampling_.start_ahead(shop_.task, shop_.cases);
}

void CudaCalls::settle() {
  profile_.settle();
  sampling_.settle();
}

std::optional<CudaCalls::Known> CudaCalls::known(const Subject& subject, std::size_t at) const {
  if (at >= shop_.cases.size()) return std::nullopt;
  Known found;
  const Binary& binary = subject.binaries[at];
  const auto captured = shop_.plans.find(binary.hash);
  if (is_module(subject)) {
    const ModulePlan* made = forms_.plan_in_use(subject, at);
    if (made == nullptr) return std::nullopt;
    found.place = made->place;
    found.call.plan = made->plan;
    found.call.images = made->images;
    found.call.operators = made->operators;
  } else if (binary.form == Binary::Form::kPlanForm) {
    found.place = binary.place;
    found.call.plan = binary.plan;
  } else if (captured != shop_.plans.end()) {
    found.place = captured->second.place;
    found.call.plan = captured->second.plan;
  } else {
    return std::nullopt;
  }
  found.call.layout = placed(shop_.cases[at].layout, found.place);
  found.call.layout.scratch_bytes = found.call.plan.scratch_bytes;
  return found;
}

std::optional<CallFacts> CudaCalls::facts(const Subject& subject, std::size_t at) const {
  std::optional<Known> found = known(subject, at);
  if (!found) return std::nullopt;
  return std::move(found->call);
}

// Judged by an earlier process: its plan is captured anew, to be observed and not to be judged.
Result<CudaCalls::Known> CudaCalls::captured(const Subject& subject, std::size_t at) {
  const Binary& binary = subject.binaries[at];
  CudaCase& state = shop_.cases[at];
  auto& known = captured_[binary.hash];
  if (!known) {
    const std::uint64_t place = fresh_secret();
    KP_ASSIGN(CudaLink link,
              CudaLink::start(WorkerRole::kCudaCapture, shop_.settings.gpu, Queues::kOne));
    KP_ASSIGN(auto plan, capture_plan(std::move(link), binary, "launch",
                                      placed(state.layout, place), shop_.settings.timeout_s));
    if (const auto* outcome = std::get_if<Outcome>(&plan)) {
      return fail(ErrorKind::kEnvironment,
                  "its launch could not be captured again: " + outcome_summary(*outcome),
                  "evaluate the candidate again");
    }
    known = PlacedPlan{std::get<LaunchPlan>(std::move(plan)), place};
  }
  Known found;
  found.place = known->place;
  found.call.plan = known->plan;
  return found;
}

template <class Collect>
std::optional<Missing> CudaCalls::observed(const Subject& subject, std::size_t at, Family family,
                                           Collect collect) {
  const auto missing = [&](const Error& error) {
    return Missing{family, error.message, error.next};
  };
  std::optional<Known> found = known(subject, at);
  if (!found && is_module(subject)) {
    return Missing{
        family, "it runs in host form, which has no launch plan: " + forms_.why_host_form(subject),
        "trace it: kernelpro diagnose -- python FILE"};
  }
  CudaCase& state = shop_.cases[at];
  auto lease = GpuLease::take(uuid_, kLeaseTimeout);
  if (!lease) return missing(lease.error());
  crew_.wait_for_leaving();
  if (!found) {
    auto again = captured(subject, at);
    if (!again) return missing(again.error());
    found = std::move(*again);
  }
  Binary binary = subject.binaries[at];
  binary.images = found->call.images;
  binary.place = found->place;
  collect(state, binary, found->call.plan);
  profile_.release();  // with the GPU, which is others' next
  // Forgets sets that the kernels modified, so that the next candidate is not affected.
  if (const auto swept = forget_broken_sets(shop_.judge, state); !swept) {
    return missing(swept.error());
  }
  return std::nullopt;
}

CounterAnswers CudaCalls::profile(const Subject& subject, std::size_t at, CounterSet set) {
  CounterAnswers answers;
  if (set == CounterSet::kOff || at >= shop_.cases.size()) return answers;
  auto missing = observed(subject, at, Family::kCounters,
                          [&](const CudaCase& state, const Binary& binary, const LaunchPlan& plan) {
                            answers = profile_.collect(shop_.task, shop_.cases, state, binary, plan,
                                                       set, shop_.settings.timeout_s);
                          });
  if (missing) answers.missing.push_back(std::move(*missing));
  return answers;
}

SampleAnswers CudaCalls::sample(const Subject& subject, std::size_t at) {
  SampleAnswers answers;
  if (at >= shop_.cases.size()) return answers;
  auto missing = observed(subject, at, Family::kSamples,
                          [&](const CudaCase& state, const Binary& binary, const LaunchPlan& plan) {
                            const auto collect = [&] {
                              return sampling_.collect(shop_.task, shop_.cases, state, binary, plan,
                                                       shop_.settings.timeout_s);
                            };
                            answers = collect();
                            if (lacks_a_kernel(answers, plan)) answers = collect();
                          });
  if (missing) answers.missing.push_back(std::move(*missing));
  return answers;
}

}  // namespace kernelpro
