// SPDX-License-Identifier: Apache-2.0
#include "run/asking.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "run/proposers.h"
#include "task/load/header.h"
#include "write/prompt/focus.h"

namespace kernelpro {

namespace {

std::string largest_header(const Task& task, TargetKind target) {
  const Case* largest = largest_timed(task, target);
  return largest == nullptr ? "" : task_header(task, *largest, target);
}

// Chooses what a request asks for: where energy counts and is known, energy first; the parent's
// findings in turn; then a free choice.
void set_focus(const std::vector<ExchangeRequest>& before, ProposalRequest* request) {
  const std::string energy = energy_focus_text(*request);
  const bool told = std::any_of(before.begin(), before.end(), [&](const ExchangeRequest& each) {
    return each.parent == request->parent->id && contains(each.prompt, energy);
  });
  if (!energy.empty() && !told && !chose_freely(*request)) {
    request->focus = energy;
    return;
  }
  for (const Finding* finding : findings_to_answer(*request)) {
    const FindingRef answers{finding->tool, finding->prescriptions.front().tag};
    const bool asked = std::any_of(before.begin(), before.end(), [&](const ExchangeRequest& each) {
      return each.parent == request->parent->id && each.answers == answers;
    });
    if (asked) continue;
    request->focus = focus_text(*finding);
    request->answers = answers;
    return;
  }
}

// Where writers do not get diagnoses.
KnownPtr undiagnosed(const Known& known) {
  auto bare = std::make_shared<Known>(known);
  bare->diagnosis = {};
  return bare;
}

}  // namespace

Asking::Asking(const LoopParts& parts, Bench* bench, Planted* search)
    : parts_(parts),
      bench_(*bench),
      search_(*search),
      header_(largest_header(*parts.task, parts.settings->target)) {}

Result<ProposalRequest> Asking::request(const Turn& turn, std::vector<Candidate> pending) {
  const RunSettings& settings = *parts_.settings;
  const ProposerRow& row = proposer_of(settings);
  const Ledger& ledger = bench_.ledger();
  ProposalRequest request;
  request.task = parts_.task;
  request.target = settings.target;
  request.dialect = settings.dialect;
  KP_ASSIGN(request.parent, bench_.whole(turn.parent));
  if (settings.feedback != Feedback::kDiagnosed) request.parent = undiagnosed(*request.parent);
  KP_ASSIGN(request.start, bench_.whole(ledger.start()->id));
  // A tuner needs none of what is left out in brief, and reading it would cost a resume seconds;
  // the same holds for this run's facts.
  if (row.writes_sources) KP_TRY(bench_.whole_history());
  request.history = ledger.history();
  request.baseline = ledger.baseline();
  request.best = ledger.best();
  request.pending = std::move(pending);
  if (settings.max_evaluations > 0) {
    const int under_way = static_cast<int>(request.pending.size());
    request.evaluations_left =
        std::max(1, settings.max_evaluations - ledger.evaluations() - under_way);
  }
  request.task_header = header_;
  request.seed = settings.seed;
  // Several at once let the compiler run ahead of the measurement.
  request.wanted = settings.target == TargetKind::kCuda ? row.batch_cuda : row.batch_cpu;
  if (row.asks_models) {
    request.wanted =
        std::max(1, settings.roles.ideas) * (1 + static_cast<int>(parts_.others.size()));
  }
  if (turn.wanted > 0) request.wanted = turn.wanted;
  // No idea is asked for that could not be measured.
  if (request.evaluations_left) {
    request.wanted = std::min(request.wanted, *request.evaluations_left);
  }
  request.implementations = turn.implementations;
  if (turn.temperature >= 0) request.temperature = turn.temperature;
  request.feedback = settings.feedback;
  request.objective = settings.objective;
  request.machine = *bench_.machine();
  request.memory = settings.memory;
  if (row.writes_sources && settings.memory) {
    request.earlier = parts_.facts;
    KP_ASSIGN(request.lately, bench_.facts());
  }
  KP_ASSIGN(request.evidence, bench_.evidence(turn.parent));
  return request;
}

Result<void> Asking::check_begun() const {
  if (!bench_.ledger().history().empty()) return {};
  return fail(ErrorKind::kBadInput, "nothing of this run was measured yet",
              "let `kernelpro measure` (or `optimize`) measure its start first");
}

// When the search has given up on every line, the best is still worth an idea.
Turn Asking::any_turn() {
  const Ledger& ledger = bench_.ledger();
  const KnownPtr best = ledger.best();
  return search_.start().value_or(Turn{best != nullptr ? best->id : ledger.start()->id});
}

Result<void> Asking::take(WriterEvent event, std::vector<Candidate>* pending) {
  if (auto* proposal = std::get_if<Proposal>(&event)) {
    KP_ASSIGN(const auto id, parts_.store->add_proposal(*proposal));
    if (id != 0) pending->push_back(std::move(proposal->candidate));
    return {};
  }
  if (const auto* call = std::get_if<ModelCall>(&event)) return parts_.store->add_call(*call);
  const auto* note = std::get_if<WriterNote>(&event);
  if (note == nullptr || !parts_.observer) return {};
  Progress progress;
  progress.event = note->event;
  progress.detail = note->text;
  parts_.observer(progress);
  return {};
}

Result<int> Asking::write_kernels(int count, std::vector<Candidate> pending) {
  KP_TRY(check_begun());
  const std::size_t before = pending.size(), wanted = before + static_cast<std::size_t>(count);
  std::optional<Error> error;
  while (pending.size() < wanted && !parts_.proposer->finished() && !error) {
    const std::size_t had = pending.size();
    KP_ASSIGN(ProposalRequest asking, request(any_turn(), pending));
    asking.evaluations_left.reset();  // `measure` has no such limit
    asking.wanted = std::min(asking.wanted, static_cast<int>(wanted - had));
    KP_TRY(parts_.proposer->propose(asking, [&](WriterEvent event) {
      auto taken = take(std::move(event), &pending);
      if (!taken && !error) error = std::move(taken.error());
    }));
    if (pending.size() == had) break;  // it was stopped, or has nothing more to add
  }
  if (error) return tl::unexpected<Error>(std::move(*error));
  return static_cast<int>(pending.size() - before);
}

Result<std::vector<std::string>> Asking::write_requests(const std::string& folder, int count) {
  KP_TRY(check_begun());
  KP_ASSIGN(const auto prompts, Prompts::load(parts_.settings->prompts));
  KP_ASSIGN(auto requests, parts_.store->requests());
  std::vector<std::string> paths;
  for (int i = 0; i < count; ++i) {
    KP_ASSIGN(ProposalRequest asking, request(any_turn(), {}));
    asking.evaluations_left.reset();  // `measure` has no such limit
    // Choosing the finding to answer is a diagnosis too.
    if (parts_.settings->feedback == Feedback::kDiagnosed) set_focus(requests, &asking);
    requests.push_back(next_request(folder, requests, asking, prompts));
    KP_TRY(parts_.store->add_request(requests.back()));
    KP_ASSIGN(auto path, write_request(folder, requests.back(), asking));
    paths.push_back(std::move(path));
  }
  return paths;
}

}  // namespace kernelpro
