// SPDX-License-Identifier: Apache-2.0
// Models as writers. A call of `propose` runs the first of these that gives something:
//   1. repairs: failed candidates of models that were not repaired yet and that promise to beat the
//      best, whatever their parent;
//   2. the tuner, for a few settings of the knobs that written sources declare;
//   3. new ideas: one call of the planner, then one of the coder per idea, concurrently.
// The choice follows from the request and the recorded calls, so that a resumed run continues as
// the first would have.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <map>
#include <mutex>
#include <set>

#include "base/text.h"
#include "core/candidate/knobs.h"
#include "write/calls.h"
#include "write/code_tools.h"
#include "write/memory.h"
#include "write/model/apis.h"
#include "write/model/client.h"
#include "write/prompt/plan.h"
#include "write/prompt/prompt.h"
#include "write/prompt/recall.h"
#include "write/prompt/reply.h"
#include "write/proposer.h"
#include "write/repairs.h"
#include "write/run_tools.h"
#include "write/talk.h"
#include "write/tuner/tuner.h"
#include "write/tuning.h"
#include "write/waiting.h"

namespace kernelpro {

namespace {

constexpr int kEmptyTurns = 3;  // in a row; after that, give up
constexpr int kPlanTokens = 8000;
constexpr int kSourceTokens = 16000;
constexpr std::size_t kBrokenReplyShown = 64 << 10;

// One source to be written.
struct Job {
  std::string request;
  ModelRole role = ModelRole::kCoder;
  ProposalRequest about;     // with the parent to build on
  std::int64_t repairs = 0;  // candidate
  std::string idea;          // as stored; "" = the idea in the source
  std::string meant;         // what the request asked to try
  FindingRef answers;
  std::string user;  // the user prompt
};

// A call with its answer, perhaps from an earlier sitting.
struct Told {
  ModelCall call;
  std::string why;  // of a failure
  std::optional<FailureKind> failure;
  bool recorded = false;
};

// Prompt text for an idea that several calls implement at the same time.
std::string one_of_several(int one, int of) {
  return "This is implementation " + std::to_string(one) + " of " + std::to_string(of) +
         " of the idea, each written apart and then measured: choose a way to do it that the "
         "others may not choose.";
}

class ModelProposer : public Proposer {
 public:
  explicit ModelProposer(ModelSettings settings)
      : settings_(std::move(settings)),
        roles_(settings_.roles),
        tools_(settings_.knowledge),
        memory_(settings_.past),
        budget_(limits_of(roles_), spend_of(settings_.past)),
        tuner_(make_tuner()) {
    settings_.past.clear();
    if (roles_.planner.empty()) roles_.planner = roles_.coder;
    if (roles_.fixer.empty()) roles_.fixer = roles_.coder;
  }
  Result<void> open();

  std::string name() const override { return kModelName; }
  std::optional<std::string> finished() const override { return finished_; }
  Result<void> propose(const ProposalRequest& request, const WriterSink& give) override;

 private:
  static BudgetLimits limits_of(const RoleSettings& roles);
  bool over() const { return finished_ || (settings_.cancelled && settings_.cancelled()); }
  std::string next_request();

  void repair(const ProposalRequest& request);
  Result<void> tune(const ProposalRequest& request);
  void write(const ProposalRequest& request);
  std::vector<PlannedIdea> plan(const ProposalRequest& request, const std::string& name, int most);

  PromptFields fields(const ProposalRequest& request) const;
  std::string system(const ProposalRequest& request) const;
  std::string prompt_of(ModelRole role, const PromptFields& all) const {
    return settings_.prompts.fill(std::string(model_role_name(role)), all);
  }
  std::string repair_question(const ProposalRequest& request, const std::string& failed,
                              const std::string& idea, const std::string& failure,
                              const std::string& broken) const;
  void run(const std::vector<Job>& jobs, const ProposalRequest& request);
  std::optional<Proposal> run(const Job& job, const std::string& system);
  std::optional<Proposal> read(const Job& job, Told* told);
  Told ask(const Job& job, const std::string& system, int max_tokens);
  void keep(Told* told);
  void give(Proposal proposal);
  void tell_spend();

  ModelSettings settings_;
  RoleSettings roles_;
  CodeTools tools_;
  std::mutex mutex_;  // guards what follows, while jobs run
  CallMemory memory_;
  std::set<std::string> hashes_;      // of all existing candidates, in this turn
  const WriterSink* sink_ = nullptr;  // of this request
  int given_ = 0;                     // candidates, for this request
  std::optional<std::string> finished_;

  Budget budget_;
  std::map<ModelRole, std::unique_ptr<ChatClient>> clients_;
  std::unique_ptr<Proposer> tuner_;
  std::string last_failure_;
  int empty_turns_ = 0;
  std::int64_t told_calls_ = 0;
};

BudgetLimits ModelProposer::limits_of(const RoleSettings& roles) {
  BudgetLimits limits;
  if (roles.max_tokens > 0) limits.tokens = roles.max_tokens;
  if (roles.max_usd > 0) limits.usd = roles.max_usd;
  if (roles.max_calls > 0) limits.calls = roles.max_calls;
  return limits;
}

Result<void> ModelProposer::open() {
  const std::pair<ModelRole, const std::string*> wanted[] = {{ModelRole::kPlanner, &roles_.planner},
                                                             {ModelRole::kCoder, &roles_.coder},
                                                             {ModelRole::kFixer, &roles_.fixer}};
  for (const auto& [role, spec] : wanted) {
    if (spec->empty()) {
      return fail(ErrorKind::kBadInput, "no model is named to write kernels",
                  "name one: --model " + model_forms());
    }
    KP_ASSIGN(auto settings, settings_for(*spec));
    if (roles_.max_usd > 0 && !settings.price) {
      return fail(
          ErrorKind::kBadInput,
          "the price of " + settings.spec.name + " is unknown, so --max-usd cannot be enforced",
          "add it to the price table (docs/models.md), or limit tokens: --max-tokens");
    }
    settings.budget = &budget_;
    KP_ASSIGN(clients_[role], make_client(settings));
  }
  return {};
}

std::string ModelProposer::next_request() {
  char number[16];
  std::snprintf(number, sizeof number, "%04d", memory_.next_request());
  return number;
}

Result<void> ModelProposer::propose(const ProposalRequest& request, const WriterSink& give) {
  sink_ = &give;
  given_ = 0;
  while (given_ == 0 && !over()) {
    hashes_.clear();
    for (const KnownPtr& known : request.history) hashes_.insert(memory_.hash_of(*known));
    for (const Candidate& each : request.pending) hashes_.insert(each.content_hash());
    repair(request);
    if (given_ == 0 && !over()) KP_TRY(tune(request));
    if (given_ == 0 && !over()) write(request);
    empty_turns_ = given_ == 0 ? empty_turns_ + 1 : 0;
    if (empty_turns_ >= kEmptyTurns && !over()) {
      finished_ = "the models gave no kernel " + std::to_string(kEmptyTurns) +
                  " times in a row; the last time: " + last_failure_;
    }
  }
  tell_spend();
  return {};
}

// What the models have cost, whenever that has changed.
void ModelProposer::tell_spend() {
  const Spend spend = budget_.spent();
  if (spend.calls == told_calls_) return;
  told_calls_ = spend.calls;
  (*sink_)(WriterNote{Event::kNote, "models so far: " + spend_text(spend)});
}

void ModelProposer::give(Proposal proposal) {
  const std::lock_guard lock(mutex_);
  ++given_;
  (*sink_)(std::move(proposal));
}

void ModelProposer::repair(const ProposalRequest& request) {
  std::vector<Job> jobs;
  std::string name;
  for (const KnownPtr& failed :
       worth_repairing(memory_.to_repair(request.history, roles_.fixes), request)) {
    if (static_cast<int>(jobs.size()) >= request.wanted) break;
    const Origin& origin = failed->candidate.origin;
    const bool repaired =
        std::any_of(request.pending.begin(), request.pending.end(),
                    [&](const Candidate& each) { return each.origin.repairs == failed->id; });
    if (repaired) continue;
    const auto parent =
        std::find_if(request.history.begin(), request.history.end(),
                     [&](const KnownPtr& known) { return known->id == origin.parent; });
    if (parent == request.history.end()) continue;
    if (name.empty()) name = next_request();
    Job job;
    job.request = name + "." + std::to_string(jobs.size() + 1);
    job.role = ModelRole::kFixer;
    job.about = request;
    if (job.about.parent->id != origin.parent) job.about.evidence.reset();
    job.about.parent = *parent;
    job.repairs = failed->id;
    job.answers = origin.answers;
    job.meant = job.idea = origin.idea;
    job.user = repair_question(
        job.about, "candidate " + std::to_string(failed->id), job.meant,
        failure_text(failed->evaluation.outcome),
        fenced(failed->candidate.source, language_row(failed->candidate.language).fence));
    jobs.push_back(std::move(job));
  }
  run(jobs, request);
}

// A few settings of a source with uncertain numbers cost less than another idea.
Result<void> ModelProposer::tune(const ProposalRequest& request) {
  KP_ASSIGN(const int given,
            tune_written(request, roles_.tune, Tuned::kWrittenAndParent, *tuner_, *sink_));
  given_ += given;
  return {};
}

void ModelProposer::write(const ProposalRequest& request) {
  const int each = std::max(1, request.implementations);
  const int most = std::max(1, std::min(request.wanted / each, roles_.ideas));
  const std::string name = next_request();
  const std::vector<PlannedIdea> ideas =
      roles_.one_call ? ideas_without_planner(request, most) : plan(request, name, most);
  std::vector<Job> jobs;
  for (const PlannedIdea& idea : ideas) {
    PromptFields all = fields(request);
    all["idea"] = idea.text;
    if (!idea.answers.empty() && !roles_.one_call) {
      all["idea"] += "\n\nIt answers the finding `" + idea.answers.text() + "`.";
    }
    const std::string text = all["idea"];
    for (int one = 1; one <= each; ++one) {
      Job job;
      job.request = name + "." + std::to_string(jobs.size() + 1);
      job.role = ModelRole::kCoder;
      job.about = request;
      job.idea = roles_.one_call ? "" : idea.text;
      job.meant = idea.text;
      // A planner names what its idea answers; without one the finding was only asked for.
      if (!roles_.one_call || offers_one(request.parent->diagnosis)) job.answers = idea.answers;
      if (each > 1) all["idea"] = text + "\n\n" + one_of_several(one, each);
      job.user = prompt_of(ModelRole::kCoder, all);
      jobs.push_back(std::move(job));
    }
  }
  run(jobs, request);
}

std::vector<PlannedIdea> ModelProposer::plan(const ProposalRequest& request,
                                             const std::string& name, int most) {
  Job job;
  job.request = name;
  job.role = ModelRole::kPlanner;
  job.about = request;
  PromptFields all = fields(request);
  all["ideas"] = std::to_string(most);
  job.user = prompt_of(ModelRole::kPlanner, all);
  Told told = ask(job, system(request), kPlanTokens);
  std::vector<PlannedIdea> ideas;
  if (told.call.outcome == CallOutcome::kReply) {
    static const Diagnosis nothing;
    const bool diagnosed = request.feedback == Feedback::kDiagnosed;
    ideas = ideas_of(told.call.reply, diagnosed ? request.parent->diagnosis : nothing, most);
    if (ideas.empty()) {
      told.call.outcome = CallOutcome::kNoIdeas;
      told.why = "the plan has no line that begins with IDEA:";
    }
  }
  keep(&told);
  return ideas;
}

PromptFields ModelProposer::fields(const ProposalRequest& request) const {
  PromptFields all = prompt_fields(request, settings_.prompts);
  if (request.memory) all["tried"] += memory_.lost_text();
  return all;
}

std::string ModelProposer::system(const ProposalRequest& request) const {
  const PromptFields all = prompt_fields(request, settings_.prompts);
  std::string library;
  if (!tools_.libraries().empty()) {
    library = settings_.prompts.fill("library", {{"libraries", join_text(tools_.libraries(), ", ")},
                                                 {"rounds", std::to_string(roles_.tool_rounds)}});
  }
  return task_prompt(all, settings_.prompts, library);
}

std::string ModelProposer::repair_question(const ProposalRequest& request,
                                           const std::string& failed, const std::string& idea,
                                           const std::string& failure,
                                           const std::string& broken) const {
  PromptFields all = fields(request);
  all["failed"] = failed;
  all["idea"] = idea;
  all["failure"] = failure;
  all["cures"] = cures_text(request, failure);
  all["broken"] = broken;
  return prompt_of(ModelRole::kFixer, all);
}

void ModelProposer::run(const std::vector<Job>& jobs, const ProposalRequest& request) {
  if (jobs.empty()) return;
  const std::string text = system(request);
  std::vector<std::future<void>> running;
  for (const Job& job : jobs) {
    running.push_back(std::async(std::launch::async, [this, &job, &text] {
      if (auto proposal = run(job, text)) give(std::move(*proposal));
    }));
  }
  for (auto& each : running) each.get();
}

// Repeats until there is a source: an answer without one goes to the fixer, as often as a failed
// candidate would.
std::optional<Proposal> ModelProposer::run(const Job& job, const std::string& text) {
  Job now = job;
  for (int repairs = 0;; ++repairs) {
    Told told = ask(now, text, kSourceTokens);
    if (told.call.outcome != CallOutcome::kReply) {
      keep(&told);
      return std::nullopt;
    }
    std::optional<Proposal> proposal = read(now, &told);
    keep(&told);
    const bool mendable = call_outcome_row(told.call.outcome).mendable;
    if (proposal || !mendable || repairs >= roles_.fixes) return proposal;
    now.role = ModelRole::kFixer;
    const std::string shown = clip(told.call.reply, kBrokenReplyShown);
    const std::lock_guard lock(mutex_);
    const char* failed = told.call.outcome == CallOutcome::kBadKnobs
                             ? "a kernel whose knobs cannot be read"
                             : "an answer without a usable kernel";
    now.user = repair_question(job.about, failed, job.meant, told.why + "\n", fenced(shown));
  }
}

// The candidate in an answer; nullopt: `told` has the reason.
std::optional<Proposal> ModelProposer::read(const Job& job, Told* told) {
  const ProposalRequest& about = job.about;
  ModelCall& call = told->call;
  const auto refuse = [&](CallOutcome outcome, const std::string& why) {
    call.outcome = outcome;
    told->why = why;
    return std::optional<Proposal>();
  };
  const Language language = wanted_dialect(about).language;
  auto source = source_of_reply(call.reply, language);
  if (!source)
    return refuse(CallOutcome::kNoCode, source.error().message + ": " + source.error().next);
  Origin origin{name(), about.parent->id, job.idea.empty() ? idea_of(*source) : job.idea,
                named_answer(*source, about.parent->diagnosis).value_or(job.answers), job.repairs};
  if (origin.idea.empty()) origin.idea = "no idea is named";
  auto candidate = candidate_of(*about.task, language, std::move(*source), std::move(origin));
  if (!candidate)
    return refuse(CallOutcome::kBadKnobs,
                  candidate.error().message + ": " + candidate.error().next);
  const std::string hash = candidate->content_hash();
  {
    const std::lock_guard lock(mutex_);
    if (!hashes_.insert(hash).second) {
      return refuse(CallOutcome::kDuplicate, "the source was measured already");
    }
  }
  call.gave = hash;
  return Proposal{std::move(*candidate),
                  Writing{call.request, call.model,
                          call.prompt + (call.tools.empty() ? "" : "\n\n" + call.tools), call.reply,
                          call.usage}};
}

Told ModelProposer::ask(const Job& job, const std::string& text, int max_tokens) {
  Told told;
  ModelCall& call = told.call;
  ChatClient& client = *clients_.at(job.role);
  call.request = job.request;
  call.role = job.role;
  call.model = client.name();
  call.parent = job.about.parent->id;
  call.repairs = job.repairs;
  call.idea = job.idea;
  call.prompt = text + "\n\n---\n\n" + job.user;
  {
    const std::lock_guard lock(mutex_);
    if (auto earlier = memory_.take(call)) {
      told.call = std::move(*earlier);
      told.recorded = true;
      return told;
    }
  }
  Talk question;
  question.system = text;
  question.user = job.user;
  question.max_tokens = max_tokens;
  question.tools = &tools_;
  question.language = wanted_dialect(job.about).language;
  const RunTools run_tools(job.about);
  question.run_tools = &run_tools;
  question.rounds = roles_.tool_rounds;
  question.cancelled = settings_.cancelled;
  question.temperature = job.about.temperature;
  const Waiting waiting([&](double waited_s) {
    const std::lock_guard lock(mutex_);
    (*sink_)(WriterNote{Event::kWaiting, call.model + " was asked as " +
                                             std::string(model_role_name(job.role)) + " (" +
                                             job.request + ") " + human_seconds(waited_s) +
                                             " ago and has not answered; Ctrl-C ends the run"});
  });
  Said said = talk(client, question);
  call.outcome = said.outcome;
  call.tools = std::move(said.tools);
  call.reply = std::move(said.text);
  call.usage = usage_to_json(said.usage, job.role);
  told.why = std::move(said.why);
  told.failure = said.failure;
  return told;
}

// Gives the run a call and its result, and stops writing when no other call can do better.
void ModelProposer::keep(Told* told) {
  const std::lock_guard lock(mutex_);
  ModelCall& call = told->call;
  if (!told->recorded) {
    // A request that was not sent leaves no trace but the reason why the run ends.
    const bool sent =
        told->failure != FailureKind::kBudget || usage_from_json(call.usage).requests > 0;
    if (sent) (*sink_)(call);
  }
  memory_.learn(call);
  if (call.outcome == CallOutcome::kReply) return;
  const std::string what = std::string(model_role_name(call.role)) + " " + call.request + ": " +
                           std::string(call_outcome_name(call.outcome)) + ": " +
                           first_line(printable(told->why));
  (*sink_)(WriterNote{Event::kModel, what});
  last_failure_ = what;
  if (told->failure == FailureKind::kBudget) {
    finished_ = "the budget of models is used up: " + first_line(told->why);
  } else if (told->failure == FailureKind::kAuth || told->failure == FailureKind::kUnknownModel) {
    finished_ = call.model + " cannot be asked: " + first_line(told->why);
  }
}

}  // namespace

Result<std::unique_ptr<Proposer>> make_model(ModelSettings settings) {
  auto proposer = std::make_unique<ModelProposer>(std::move(settings));
  KP_TRY(proposer->open());
  return Result<std::unique_ptr<Proposer>>(std::move(proposer));
}

}  // namespace kernelpro
