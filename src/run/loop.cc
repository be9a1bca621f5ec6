// SPDX-License-Identifier: Apache-2.0
#include "run/loop.h"

#include <algorithm>
#include <optional>

#include "base/clock.h"
#include "base/text.h"
#include "run/bench.h"
#include "run/planted.h"
#include "run/start.h"
#include "search/stoppers.h"
#include "task/header.h"

namespace kernelpro {

namespace {

constexpr const char* kInterrupted = "interrupted";
constexpr int kSweptAtOnce = 48;  // proposals of a sweep, which are built side by side

std::unique_ptr<Stopper> make_stopper(const RunSettings& settings) {
  std::vector<std::unique_ptr<Stopper>> all;
  all.push_back(stop_near_ceiling(settings.near_ceiling));
  all.push_back(stop_after_evaluations(settings.max_evaluations));
  all.push_back(stop_after_seconds(settings.max_seconds));
  all.push_back(stop_at_plateau(settings.plateau));
  return first_of(std::move(all));
}

// task.h of the timed case that moves most bytes.
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

class Loop {
 public:
  explicit Loop(const LoopParts& parts)
      : parts_(parts),
        task_(*parts.task),
        settings_(*parts.settings),
        bench_(bench_parts()),
        ledger_(bench_.ledger()),
        stopper_(make_stopper(settings_)),
        planted_(parts.search) {}

  Result<RunResult> run();
  Result<std::vector<std::string>> write_requests(const std::string& folder, int count);

 private:
  BenchParts bench_parts() const;
  Result<void> restore();
  Result<void> first(const Candidate& start);
  Result<std::string> search_until_stopped();
  Result<void> expand(std::int64_t parent, bool started);
  Result<bool> evaluate_all(std::int64_t parent, bool started, std::vector<Known>* fresh);
  // `built`: when it was built ahead; null builds it now.
  Result<std::optional<NodeResult>> evaluate(Known known, const BuiltKernel* built = nullptr);
  RunResult result(const std::string& stopped_by) const;
  NodeResult node_result(const Known& known) const {
    return kernelpro::node_result(ledger_, known.id, settings_.feedback);
  }
  std::optional<std::string> stop_reason() const;
  ProposalRequest request(std::int64_t parent);
  const Machine* machine() const {
    return parts_.target != nullptr ? parts_.target->machine.get() : parts_.machine;
  }
  void tell(const std::string& event, const Known* known, const std::string& detail) const;
  double elapsed_s() const { return before_s_ + real_clock().now_s() - started_; }
  double own_s() const;

  // Runs `work` without counting its time as the loop's own.
  template <class Work>
  auto outside(Work work) {
    const double from = real_clock().now_s();
    auto value = work();
    outside_s_ += real_clock().now_s() - from;
    return value;
  }

  const LoopParts& parts_;
  const Task& task_;
  const RunSettings& settings_;
  Bench bench_;
  const Ledger& ledger_;  // the bench's
  std::unique_ptr<Stopper> stopper_;
  Planted planted_;                       // the search
  std::vector<StoredCandidate> waiting_;  // stored by an earlier sitting, not evaluated
  std::string header_;
  double started_ = 0;    // of this sitting
  double before_s_ = 0;   // run time of earlier sittings
  double outside_s_ = 0;  // building ahead; starting
  double own_marked_ = 0;
  int evaluated_now_ = 0;
};

double Loop::own_s() const {
  return real_clock().now_s() - started_ - outside_s_ - bench_.outside_s() -
         parts_.proposer->waited_s();
}

std::optional<std::string> Loop::stop_reason() const {
  if (stop_requested()) return kInterrupted;
  Standing standing;
  standing.evaluations = ledger_.evaluations();
  standing.elapsed_s = elapsed_s();
  standing.since_best = ledger_.since_best();
  standing.has_correct = ledger_.best() != nullptr;
  if (ledger_.best() != nullptr) {
    standing.fraction_of_ceiling = ledger_.best()->diagnosis.fraction_of_ceiling;
  }
  return stopper_->reason(standing);
}

void Loop::tell(const std::string& event, const Known* known, const std::string& detail) const {
  if (!parts_.observer) return;
  Progress p;
  p.event = event;
  p.detail = detail;
  if (known != nullptr) {
    p.candidate = known->id;
    p.outcome = outcome_name(known->evaluation.outcome);
    p.knobs = knobs_to_text(known->candidate.knobs);
    p.time_us = score_us(known->evaluation);
  }
  p.evaluations = ledger_.evaluations();
  p.failures = ledger_.failures();
  p.failures_by_kind = ledger_.failures_by_kind();
  if (const Known* best = ledger_.best()) {
    p.best_us = score_us(best->evaluation);
    p.best_speedup = ledger_.best_speedup();
    p.fraction_of_ceiling = best->diagnosis.fraction_of_ceiling;
  }
  p.elapsed_s = elapsed_s();
  p.left_s = std::max(0.0, settings_.max_seconds - p.elapsed_s);
  p.max_evaluations = settings_.max_evaluations;
  parts_.observer(p);
}

BenchParts Loop::bench_parts() const {
  BenchParts bench;
  bench.task = &task_;
  bench.settings = &settings_;
  bench.store = parts_.store;
  bench.target = parts_.target;
  bench.maker = parts_.maker;
  bench.record = parts_.record;
  bench.machine = machine();
  bench.stop = stop_requested;
  bench.elapsed_s = [this] { return elapsed_s(); };
  return bench;
}

// Rebuilds ledger and search from the store.
Result<void> Loop::restore() {
  before_s_ = parts_.store->run_seconds();
  auto waiting = bench_.restore();
  if (!waiting) return tl::unexpected<Error>(std::move(waiting.error()));
  waiting_ = std::move(*waiting);
  for (const Known* known : ledger_.history()) {
    planted_.place(known->candidate.origin.parent, known->id, node_result(*known));
  }
  return {};
}

Result<void> Loop::first(const Candidate& start) {
  std::vector<Candidate> all = {start};
  all.insert(all.end(), parts_.seeds.begin(), parts_.seeds.end());
  auto ids = parts_.store->add(all);
  if (!ids) return tl::unexpected<Error>(std::move(ids.error()));
  for (std::size_t i = 0; i < all.size(); ++i) {
    if ((*ids)[i] == 0) continue;  // the same as one before it
    StoredCandidate root;
    root.known.id = (*ids)[i];
    root.known.candidate = std::move(all[i]);
    waiting_.push_back(std::move(root));
  }
  return {};
}

// Takes a stored candidate through to its committed evaluation; nullopt when asked to stop before
// that (the candidate then waits for the next sitting).
Result<std::optional<NodeResult>> Loop::evaluate(Known known, const BuiltKernel* built) {
  auto verdict = bench_.evaluate(std::move(known), built);
  if (!verdict) return tl::unexpected<Error>(std::move(verdict.error()));
  if (!*verdict) return std::optional<NodeResult>();
  if (!(*verdict)->note.empty()) tell("note", nullptr, (*verdict)->note);
  const Known& stored = *(*verdict)->known;
  const std::string detail = outcome_summary(stored.evaluation.outcome);
  tell("evaluated", &stored, detail);
  if ((*verdict)->better) tell("best", &stored, detail);
  ++evaluated_now_;
  if (parts_.own_ms != nullptr) {
    parts_.own_ms->push_back(1000 * (own_s() - own_marked_));
    own_marked_ = own_s();
  }
  return std::optional<NodeResult>(node_result(stored));
}

ProposalRequest Loop::request(std::int64_t parent) {
  ProposalRequest request;
  request.task = &task_;
  request.target = settings_.target;
  request.parent = ledger_.find(parent);
  request.history = ledger_.history();
  request.task_header = header_;
  request.seed = settings_.seed;
  // Several at once let the compiler run ahead of the measurement. The tuner learns from each, so
  // it gets no more than that takes, and none where both share the cores.
  const bool cuda = settings_.target == TargetKind::kCuda;
  request.wanted = settings_.proposer != "tuner" ? 4 : cuda ? 2 : 1;
  if (settings_.proposer == "sweep") request.wanted = kSweptAtOnce;
  if (settings_.proposer == "model") request.wanted = std::max(1, settings_.roles.ideas);
  const Turn turn = parts_.search->turn();
  if (turn.wanted > 0) request.wanted = turn.wanted;
  request.implementations = turn.implementations;
  if (turn.temperature >= 0) request.temperature = turn.temperature;
  request.feedback = settings_.feedback;
  request.machine = machine();
  request.memory = settings_.memory;
  request.earlier = &parts_.facts;
  // Only those who write sources are told; telling a tuner would cost a resume seconds.
  const bool writes = settings_.proposer == "model" || settings_.proposer == "exchange";
  if (writes && settings_.memory) request.lately = &bench_.facts();
  request.fetch = [this](const Known& known) -> const Known& { return *ledger_.find(known.id); };
  request.evidence = bench_.evidence(parent);
  return request;
}

// One turn: ask for a change of `parent`, store it, evaluate it, let the search learn. `started`:
// the search waits for the turn's result.
Result<void> Loop::expand(std::int64_t parent, bool started) {
  auto proposals = parts_.proposer->propose(request(parent));
  if (!proposals) return tl::unexpected<Error>(std::move(proposals.error()));
  std::vector<Known> fresh;
  if (!proposals->empty()) {
    auto ids = parts_.store->add_proposals(*proposals);
    if (!ids) return tl::unexpected<Error>(std::move(ids.error()));
    for (std::size_t i = 0; i < ids->size(); ++i) {
      if ((*ids)[i] == 0) continue;  // known already
      fresh.push_back({(*ids)[i], std::move((*proposals)[i].candidate), {}, {}});
    }
  }
  auto waits = evaluate_all(parent, started, &fresh);
  if (!waits) return tl::unexpected<Error>(std::move(waits.error()));
  if (*waits) parts_.search->cancel(parent);
  if (fresh.empty() && started && !stop_requested()) parts_.search->close(parent);
  return {};
}

// Evaluates proposals in order; the compiler is ahead of the measurement, but on the cpu target,
// where they would share the cores. What a stopper leaves out waits in the store. True when the
// search still waits for the result of `parent`'s turn.
Result<bool> Loop::evaluate_all(std::int64_t parent, bool started, std::vector<Known>* fresh) {
  std::vector<Candidate> to_build;
  if (fresh->size() > 1) {
    for (const Known& known : *fresh) to_build.push_back(known.candidate);
  }
  BuildPool pool(task_, settings_.target, *parts_.target->compiler, to_build, 0);
  if (settings_.target == TargetKind::kCpu) outside([&] { return pool.join(), true; });
  for (std::size_t i = 0; i < fresh->size(); ++i) {
    if (i > 0 && stop_reason()) break;
    const std::int64_t id = (*fresh)[i].id;
    // A reply to an older request belongs below that request's parent.
    const std::int64_t under = (*fresh)[i].candidate.origin.parent;
    const BuiltKernel* built = to_build.empty() ? nullptr : outside([&] { return &pool.get(i); });
    auto node = evaluate(std::move((*fresh)[i]), built);
    if (!node) return tl::unexpected<Error>(std::move(node.error()));
    if (!*node) break;
    if (started && under == parent) {
      parts_.search->finalize(parent, id, **node);
      started = false;
    } else {
      parts_.search->restore(under, id, **node);
    }
  }
  return started;
}

// Why the search ended.
Result<std::string> Loop::search_until_stopped() {
  for (StoredCandidate& each : waiting_) {
    if (auto reason = stop_reason(); reason && ledger_.evaluations() > 0) return *reason;
    const std::int64_t id = each.known.id;
    const std::int64_t parent = each.known.candidate.origin.parent;
    auto node = evaluate(std::move(each.known));
    if (!node) return tl::unexpected<Error>(std::move(node.error()));
    if (!*node) return std::string(kInterrupted);
    planted_.place(parent, id, **node);
  }
  for (;;) {
    if (auto reason = stop_reason()) return *reason;
    if (auto reason = parts_.proposer->finished()) return *reason;
    auto parent = parts_.search->start();
    const bool started = parent.has_value();
    if (!started && parts_.only_replies) parent = ledger_.history().front()->id;
    if (!parent) return std::string("nothing is left to try: every line of change is exhausted");
    KP_TRY(expand(*parent, started));
  }
}

RunResult Loop::result(const std::string& stopped_by) const {
  RunResult result;
  result.stopped_by = stopped_by;
  result.evaluations = ledger_.evaluations();
  result.own_ms_per_evaluation = evaluated_now_ == 0 ? 0 : 1000 * own_s() / evaluated_now_;
  if (const Known* best = ledger_.best()) {
    result.best = best->id;
    result.best_us = score_us(best->evaluation);
    result.fraction_of_ceiling = best->diagnosis.fraction_of_ceiling;
    result.speedup = result.speedup_low = result.speedup_high = ledger_.best_speedup();
  }
  return result;
}

Result<RunResult> Loop::run() {
  started_ = real_clock().now_s();
  KP_TRY(restore());
  header_ = largest_header(task_, settings_.target);
  if (ledger_.evaluations() == 0 && waiting_.empty()) {
    auto start = start_candidate(task_, settings_.target);
    if (!start) return tl::unexpected<Error>(std::move(start.error()));
    KP_TRY(first(*start));
  }
  tell("prepared", nullptr,
       parts_.target->machine->name + "; " + parts_.target->compiler->describe());
  // What was spent so far is the cost of starting, not of an evaluation.
  outside_s_ += own_s();
  own_marked_ = own_s();
  auto stopped_by = search_until_stopped();
  if (!stopped_by) return tl::unexpected<Error>(std::move(stopped_by.error()));
  RunResult found = result(*stopped_by);
  tell("stopped", ledger_.best(), *stopped_by);
  if (ledger_.best() == nullptr || *stopped_by == kInterrupted) return found;
  KP_TRY(bench_.confirm([this](const std::string& event, const Known& known,
                               const std::string& detail) { tell(event, &known, detail); },
                        &found));
  return found;
}

// What a request shall ask to try: the findings of its parent in turn, then anything.
void set_focus(const std::vector<std::string>& asked, ProposalRequest* request) {
  for (const Finding& finding : request->parent->diagnosis.findings) {
    if (finding.stop || finding.prescriptions.empty()) continue;
    const std::string text = "Answer the finding " + finding.tool + ": " + finding.cause;
    if (std::find(asked.begin(), asked.end(), text) != asked.end()) continue;
    request->focus = text;
    request->answers = finding.tool + ": " + finding.prescriptions.front().tag;
    return;
  }
}

Result<std::vector<std::string>> Loop::write_requests(const std::string& folder, int count) {
  KP_TRY(restore());
  header_ = largest_header(task_, settings_.target);
  const std::vector<const Known*> history = ledger_.history();
  if (history.empty()) {
    return fail(ErrorKind::kBadInput, "nothing of this run was measured yet",
                "let `kernelpro measure` (or `optimize`) measure its start first");
  }
  const auto prompts = Prompts::load(settings_.prompts);
  if (!prompts) return tl::unexpected<Error>(prompts.error());
  std::vector<std::string> paths;
  for (int i = 0; i < count; ++i) {
    // Where the search has had enough of every line, the best is still worth an idea.
    const auto chosen = parts_.search->start();
    const Known* best = ledger_.best() != nullptr ? ledger_.best() : history.front();
    ProposalRequest asking = request(chosen ? *chosen : best->id);
    // Which finding to answer is a diagnosis too.
    if (settings_.feedback == Feedback::kDiagnosed) {
      set_focus(requested(folder, asking.parent->candidate), &asking);
    }
    auto path = write_request(folder, asking, *prompts);
    if (!path) return tl::unexpected<Error>(std::move(path.error()));
    paths.push_back(std::move(*path));
  }
  return paths;
}

}  // namespace

Result<std::vector<std::string>> write_requests(const LoopParts& parts, const std::string& folder,
                                                int count) {
  return Loop(parts).write_requests(folder, count);
}

Result<RunResult> run_loop(const LoopParts& parts) { return Loop(parts).run(); }

}  // namespace kernelpro
