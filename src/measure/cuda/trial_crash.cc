// SPDX-License-Identifier: Apache-2.0
// CudaTrial: what a crash on the GPU means.
#include <utility>

#include "core/task/key.h"
#include "measure/cuda/sanitizer.h"
#include "measure/cuda/trial.h"

namespace kernelpro {

namespace {

constexpr double kSanitizeTimeout = 20;
constexpr int kLaterCalls = 24;

}  // namespace

// Whether the candidate, which crashed, does so only where it cannot write to its inputs.
bool CudaTrial::writes_inputs() {
  if (loaded_.state == nullptr || !shop_.more) return false;
  CudaCase* state = &own(*loaded_.state);
  for (const bool writable : {true, false}) {
    const SetKeys step = {{0, fresh_secret()}};
    auto workers = shop_.more(1);
    if (!workers || !shop_.reference.fill(*state, 0, {fresh_key(), DrawKind::kGiven}) ||
        !poison(shop_.judge, *state, step, true)) {
      return false;
    }
    CudaWorker& worker = workers->front();
    post_cases(worker.link, shop_.task, shop_.cases, loaded_.place, writable);
    auto failed =
        load_plan(worker, *state, "candidate", *loaded_.binary, loaded_.plan, nullptr, nullptr);
    if (!failed) {
      failed =
          run_sets(worker, *state, "candidate", step, timing_.timeout_s, doing("checking", *state));
    }
    if (!failed) {  // perhaps only in later calls
      const auto called =
          call_once(shop_.judge, worker, *state, std::vector<int>(kLaterCalls, 0), -1, timing_);
      if (!called) return false;
      if (const auto* outcome = std::get_if<Outcome>(&*called)) failed = *outcome;
    }
    shop_.retire(std::move(worker));
    if (failed.has_value() == writable) return false;
  }
  return true;
}

// A crash on the GPU has little detail: compute-sanitizer, where available, adds the thread, the
// access and the source line.
Outcome CudaTrial::explained(Outcome outcome) {
  auto* crash = std::get_if<Crashed>(&outcome);
  if (crash == nullptr || crash->by != Crashed::By::kItself || loaded_.state == nullptr ||
      crash->reason.find("CUDA_ERROR") == std::string::npos ||
      // A block that does not fit never ran: there is no access to find.
      crash->reason.find("OUT_OF_RESOURCES") != std::string::npos) {
    return outcome;
  }
  if (crash->reason.find("ILLEGAL_ADDRESS") != std::string::npos && writes_inputs()) {
    return Rejected{"input-mutation",
                    "it writes to an input or a parameter (and runs where it may do that)"};
  }
  const std::string sentence =
      sanitize(*loaded_.binary, loaded_.plan, placed(loaded_.state->layout, loaded_.place),
               loaded_.state->judged, kSanitizeTimeout, shop_.settings.gpu);
  if (!sentence.empty()) crash->reason += "; " + sentence;
  return outcome;
}

}  // namespace kernelpro
