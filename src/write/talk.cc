// SPDX-License-Identifier: Apache-2.0
#include "write/talk.h"

#include <set>
#include <utility>

#include "base/text.h"
#include "write/prompt/prompt.h"

namespace kernelpro {

namespace {

constexpr std::size_t kCallsInARound = 8;
constexpr std::size_t kMostAnswered = 96 << 10;  // bytes of all look-ups of one question

void count(const Usage& usage, const std::optional<double>& cost, int attempts, CallUsage* sum) {
  ++sum->requests;
  sum->attempts += attempts;
  sum->tokens += usage;
  if (cost) {
    sum->cost_usd += *cost;
  } else if (usage.total() > 0) {
    sum->cost_known = false;
  }
}

class Lookups {
 public:
  explicit Lookups(const Talk& talk)
      : tools_(talk.tools), language_(talk.language), run_tools_(talk.run_tools) {}

  std::vector<ToolSpec> specs() const {
    std::vector<ToolSpec> all;
    if (tools_ != nullptr && !tools_->libraries().empty()) all = tools_->specs();
    if (run_tools_ != nullptr) {
      all.insert(all.end(), run_tools_->specs().begin(), run_tools_->specs().end());
    }
    return all;
  }

  // Every call gets a result, or the API would reject the conversation.
  std::vector<ToolResult> answer(const std::vector<ToolCall>& calls, bool last, Said* said) {
    std::vector<ToolResult> results;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      CodeTools::Answered answered = one(calls[i], i, last, said);
      said->tools += "### " + printable(calls[i].name) + " " + printable(calls[i].arguments) +
                     "\n" + fenced(answered.text);
      results.push_back({calls[i].id, std::move(answered.text), answered.failed});
    }
    return results;
  }

 private:
  CodeTools::Answered one(const ToolCall& call, std::size_t place, bool last, Said* said) {
    const auto refuse = [&](const char* why) {
      ++said->usage.tools["refused"];
      return CodeTools::Answered{why, true, false};
    };
    if (last) return refuse("No look-ups are left for this question. Answer it now.");
    if (place >= kCallsInARound) return refuse("Too many look-ups at once; make fewer per turn.");
    if (!asked_.insert({call.name, call.arguments}).second) {
      return refuse("You have looked this up already: the answer is above.");
    }
    if (answered_ >= kMostAnswered) {
      return refuse("The look-ups have used up the available space. Answer now.");
    }
    CodeTools::Answered answered = ask(call);
    ++said->usage.tools[answered.unknown ? "unknown" : answered.failed ? "refused" : call.name];
    answered_ += answered.text.size();
    return answered;
  }

  CodeTools::Answered ask(const ToolCall& call) {
    if (run_tools_ != nullptr && run_tools_->has(call.name)) {
      return run_tools_->call(call.name, call.arguments);
    }
    if (tools_ != nullptr) return tools_->call(call.name, call.arguments, language_);
    return {"There is no such tool.", true, true};
  }

  CodeTools* tools_;
  Language language_;
  const RunTools* run_tools_;
  std::set<std::pair<std::string, std::string>> asked_;
  std::size_t answered_ = 0;
};

}  // namespace

Said talk(ChatClient& client, const Talk& question) {
  ChatRequest request;
  request.system = question.system;
  request.messages.push_back({Speaker::kUser, question.user, {}, {}});
  request.max_tokens = question.max_tokens;
  request.temperature = question.temperature;
  Lookups lookups(question);
  request.tools = lookups.specs();
  const bool tools = !request.tools.empty();
  CallOptions options;
  options.cancelled = question.cancelled;
  Said said;
  for (int round = 0;; ++round) {
    ChatResult result = client.complete(request, options);
    if (!result) {
      const Failure& failure = result.error();
      count(failure.wasted, failure.cost_usd, failure.attempts, &said.usage);
      if (failure.attempts == 0) --said.usage.requests;  // it was not sent
      said.outcome = outcome_of(failure.kind);
      said.why = failure.message + (failure.next.empty() ? "" : "; " + failure.next);
      said.failure = failure.kind;
      said.text = failure.partial;
      return said;
    }
    Usage paid = result->usage;
    paid += result->wasted;
    count(paid, result->cost_usd, result->attempts, &said.usage);
    said.usage.seconds += result->seconds;
    if (result->calls.empty()) {
      said.outcome = CallOutcome::kReply;
      said.text = std::move(result->text);
      return said;
    }
    // The model knows that its look-ups are used up and still continues.
    if (!tools || round > question.rounds) {
      said.outcome = CallOutcome::kToolLoop;
      said.why = tools ? "the model went on looking things up after " +
                             std::to_string(question.rounds) + " rounds"
                       : "the model called a tool where none is offered";
      said.text = std::move(result->text);
      return said;
    }
    auto results = lookups.answer(result->calls, round >= question.rounds, &said);
    request.messages.push_back(
        {Speaker::kAssistant, std::move(result->text), std::move(result->calls), {}});
    request.messages.push_back({Speaker::kUser, "", {}, std::move(results)});
    // The next round repeats all of this.
    request.stable_messages = static_cast<int>(request.messages.size());
  }
}

}  // namespace kernelpro
