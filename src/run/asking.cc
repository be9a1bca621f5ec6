// SPDX-License-Identifier: Apache-2.0
#include "run/asking.h"

#include <algorithm>
#include <utility>

#include "run/proposers.h"
#include "task/load/header.h"

namespace kernelpro {

namespace {

// task.h of the timed case that moves the most bytes.
std::string largest_header(const Task& task, TargetKind target) {
  const Case* largest = nullptr;
  for (const Case* c : cases_for(task, target)) {
    if (!c->timed) continue;
    if (largest == nullptr || compulsory_bytes(task, *c) > compulsory_bytes(task, *largest)) {
      largest = c;
    }
  }
  return largest == nullptr ? "" : task_header(task, *largest, target);
}

// Chooses what a request asks for: the parent's findings in turn, then a free choice.
void set_focus(const std::vector<FindingRef>& asked, ProposalRequest* request) {
  for (const Finding& finding : request->parent->diagnosis.findings) {
    if (finding.stop || finding.prescriptions.empty()) continue;
    const FindingRef answers{finding.tool, finding.prescriptions.front().tag};
    if (std::find(asked.begin(), asked.end(), answers) != asked.end()) continue;
    request->focus = "Answer the finding " + finding.tool + ": " + finding.cause;
    request->answers = answers;
    return;
  }
}

}  // namespace

OwnRequest::OwnRequest(const ProposalRequest& of) : request(of), parent_(*of.parent) {
  request.parent = &parent_;
  history_.reserve(of.history.size());
  for (std::size_t i = 0; i < of.history.size(); ++i) {
    history_.push_back(of.whole(*of.history[i]));
    request.history[i] = &history_[i];
  }
  request.fetch = nullptr;
  pending_.reserve(of.pending.size());
  for (std::size_t i = 0; i < of.pending.size(); ++i) {
    pending_.push_back(*of.pending[i]);
    request.pending[i] = &pending_[i];
  }
  if (of.lately != nullptr) {
    lately_ = *of.lately;
    request.lately = &lately_;
  }
  if (of.machine != nullptr) {
    machine_ = *of.machine;
    request.machine = &machine_;
  }
  if (of.evidence != nullptr) {
    evidence_ = *of.evidence;
    request.evidence = &evidence_;
  }
}

Asking::Asking(const LoopParts& parts, Bench* bench, Planted* search)
    : parts_(parts),
      bench_(*bench),
      search_(*search),
      header_(largest_header(*parts.task, parts.settings->target)) {}

ProposalRequest Asking::request(std::int64_t parent, std::vector<const Candidate*> pending) {
  const RunSettings& settings = *parts_.settings;
  const ProposerRow& row = proposer_of(settings);
  const Ledger& ledger = bench_.ledger();
  ProposalRequest request;
  request.task = parts_.task;
  request.target = settings.target;
  request.parent = ledger.find(parent);
  if (settings.feedback != Feedback::kDiagnosed) {
    bare_ = *request.parent;
    bare_.diagnosis = {};
    request.parent = &bare_;
  }
  request.history = ledger.history();
  request.pending = std::move(pending);
  request.task_header = header_;
  request.seed = settings.seed;
  // Several at once let the compiler run ahead of the measurement.
  request.wanted = settings.target == TargetKind::kCuda ? row.batch_cuda : row.batch_cpu;
  if (row.asks_models) {
    request.wanted =
        std::max(1, settings.roles.ideas) * (1 + static_cast<int>(parts_.others.size()));
  }
  const Turn turn = search_.turn();
  if (turn.wanted > 0) request.wanted = turn.wanted;
  request.implementations = turn.implementations;
  if (turn.temperature >= 0) request.temperature = turn.temperature;
  request.feedback = settings.feedback;
  request.machine = bench_.machine();
  request.memory = settings.memory;
  request.earlier = &parts_.facts;
  // Only for proposers that write sources; a tuner does not use it, and it would cost a resume
  // seconds.
  if (row.writes_sources && settings.memory) request.lately = &bench_.facts();
  request.fetch = [this](const Known& known) -> const Known& {
    return *bench_.ledger().find(known.id);
  };
  request.evidence = bench_.evidence(parent);
  return request;
}

Result<std::vector<std::string>> Asking::write_requests(const std::string& folder, int count) {
  const Ledger& ledger = bench_.ledger();
  const std::vector<const Known*> history = ledger.history();
  if (history.empty()) {
    return fail(ErrorKind::kBadInput, "nothing of this run was measured yet",
                "let `kernelpro measure` (or `optimize`) measure its start first");
  }
  KP_ASSIGN(const auto prompts, Prompts::load(parts_.settings->prompts));
  std::vector<std::string> paths;
  for (int i = 0; i < count; ++i) {
    // When the search has given up on every line, the best is still worth an idea.
    const auto chosen = search_.start();
    const Known* best = ledger.best() != nullptr ? ledger.best() : history.front();
    ProposalRequest asking = request(chosen ? *chosen : best->id, {});
    // Choosing the finding to answer is a diagnosis too.
    if (parts_.settings->feedback == Feedback::kDiagnosed) {
      set_focus(requested(folder, asking.parent->candidate), &asking);
    }
    KP_ASSIGN(auto path, write_request(folder, asking, prompts));
    paths.push_back(std::move(path));
  }
  return paths;
}

}  // namespace kernelpro
