// SPDX-License-Identifier: Apache-2.0
// Candidates through a folder. Each request is a folder NNNN with prompt.md, task.h, the parent's
// source and an empty reply/. What a request was about is in the run's store: nothing is read back
// from its folder but replies.
//
// A reply is handed out while it is still in reply/ and moves to taken/ only in a later call, when
// the history shows that the run has it. After a kill in between, it is handed out again and
// recognized by its content hash.
#include <stdio.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <set>
#include <string_view>
#include <thread>

#include "base/clock.h"
#include "base/files.h"
#include "base/text.h"
#include "core/candidate/knobs.h"
#include "write/prompt/prompt.h"
#include "write/prompt/reply.h"
#include "write/prompt/standing.h"
#include "write/proposer.h"
#include "write/tuner/tuner.h"
#include "write/tuning.h"

namespace kernelpro {

namespace {

// One byte over the limit, so that an oversized file is detected.
constexpr std::int64_t kMostBytes = static_cast<std::int64_t>(kMaxReplyBytes) + 1;
constexpr const char* kPrompt = "prompt.md";

// Meant as a kernel by its name, for any target; other files may be incomplete.
bool is_source(const std::string& file) {
  constexpr std::string_view kMeant[] = {"c", "c++", "cc", "cpp", "cu", "cxx", "hip", "py"};
  const std::size_t dot = file.rfind('.');
  if (dot == std::string::npos) return false;
  const std::string end = small_letters(file.substr(dot + 1));
  return std::ranges::find(kMeant, end) != std::end(kMeant);
}

tl::unexpected<Error> other_language(const std::string& suffix) {
  return fail(ErrorKind::kBadInput, "this run's kernels are " + suffix + " or .md files",
              "write it for this run's target, in a file whose name ends in " + suffix);
}

tl::unexpected<Error> unknown_request(const std::string& name) {
  return fail(ErrorKind::kBadInput,
              "this run's store has no request " + name +
                  " (an older version, or another run, may have written it)",
              "put the reply into the folder of a newer request; `kernelpro propose` writes one");
}

// Whether no answer in this request's folder was measured.
bool is_open(const std::string& request) { return list_dir(join(request, "taken")).empty(); }

class Exchange : public Proposer {
 public:
  explicit Exchange(ExchangeSettings settings)
      : settings_(std::move(settings)),
        requests_(std::move(settings_.past)),
        tuner_(make_tuner()) {}

  std::string name() const override { return kExchangeName; }
  std::optional<std::string> finished() const override { return finished_; }

  Result<void> propose(const ProposalRequest& request, const WriterSink& give) override;

 private:
  bool cancelled() const { return settings_.cancelled && settings_.cancelled(); }
  std::string path_of(const std::string& name) const { return join(settings_.folder, name); }
  Result<std::string> open_request(const ProposalRequest& request, const WriterSink& give);
  int collect(const ProposalRequest& request, const WriterSink& give);
  void refuse(const std::string& folder, const std::string& file, const Error& error,
              const WriterSink& give);
  void file_taken(const std::string& folder, const std::string& file, const Known& known,
                  const ProposalRequest& request) const;
  Result<Proposal> read_reply(const std::string& name, const std::string& file,
                              const ProposalRequest& request) const;

  ExchangeSettings settings_;
  std::vector<ExchangeRequest> requests_;  // oldest first
  std::unique_ptr<Proposer> tuner_;
  std::optional<std::string> finished_;
  std::set<std::string> refused_;  // paths of replies
};

Result<Proposal> Exchange::read_reply(const std::string& name, const std::string& file,
                                      const ProposalRequest& request) const {
  const auto asked = std::find_if(requests_.begin(), requests_.end(),
                                  [&](const ExchangeRequest& each) { return each.name == name; });
  if (asked == requests_.end()) return unknown_request(name);
  KP_ASSIGN(auto reply, read_file(join(join(path_of(name), "reply"), file), kMostBytes));
  const Language language = wanted_dialect(request).language;
  KP_ASSIGN(auto source, source_of_reply(reply, language));
  const auto parent = std::find_if(request.history.begin(), request.history.end(),
                                   [&](const KnownPtr& each) { return each->id == asked->parent; });
  const Diagnosis offered = parent != request.history.end() ? (*parent)->diagnosis : Diagnosis();
  const FindingRef asked_for = offers_one(offered) ? asked->answers : FindingRef();
  const Origin origin{this->name(), asked->parent, idea_of(source),
                      named_answer(source, offered).value_or(asked_for)};
  KP_ASSIGN(auto candidate, candidate_of(*request.task, language, std::move(source), origin));
  return Proposal{std::move(candidate),
                  Writing{name, this->name(), asked->prompt, std::move(reply), ""}};
}

void Exchange::refuse(const std::string& folder, const std::string& file, const Error& error,
                      const WriterSink& give) {
  const std::string refused = join(folder, "refused");
  const bool there = make_dirs(refused).has_value();
  const std::string reply = join(join(folder, "reply"), file);
  // Best effort: a reply that cannot be moved is just refused again.
  if (there) (void)write_file(join(refused, file + ".error.md"), error.text() + "\n");
  const bool moved = there && ::rename(reply.c_str(), join(refused, file).c_str()) == 0;
  if (!refused_.insert(reply).second && !moved) return;  // already reported
  give(WriterNote{Event::kRefused, reply + ": " + error.message + "; " + error.next +
                                       (moved ? " (moved to " + refused + ")"
                                              : " (it cannot be moved to " + refused + ")")});
}

void Exchange::file_taken(const std::string& folder, const std::string& file, const Known& known,
                          const ProposalRequest& request) const {
  const std::string taken = join(folder, "taken");
  if (!make_dirs(taken)) return;
  (void)write_file(join(taken, file + ".result.md"), result_text(known, request));
  (void)::rename(join(join(folder, "reply"), file).c_str(), join(taken, file).c_str());
}

// Gives new replies to any request, oldest request first, and files away those already in the
// history. Returns how many it gave.
int Exchange::collect(const ProposalRequest& request, const WriterSink& give) {
  std::map<std::string, const Known*> known;
  int count = 0;
  std::set<std::string> given;  // to be measured
  for (const Candidate& each : request.pending) given.insert(each.content_hash());
  const LanguageRow& written = language_row(wanted_dialect(request).language);
  const std::string suffix = "." + std::string(written.extension);
  for (const std::string& name : list_dir(settings_.folder)) {
    const std::string folder = path_of(name);
    for (const std::string& file : list_dir(join(folder, "reply"))) {
      const bool named = file.ends_with(suffix) || file.ends_with(".md");
      if (file.starts_with('.') || (!named && !is_source(file))) continue;
      auto proposal =
          named ? read_reply(name, file, request) : Result<Proposal>(other_language(suffix));
      if (!proposal) {
        refuse(folder, file, proposal.error(), give);
        continue;
      }
      if (known.empty()) {
        for (const KnownPtr& each : request.history) known[content_hash(*each)] = each.get();
      }
      const std::string hash = proposal->candidate.content_hash();
      const auto seen = known.find(hash);
      if (seen != known.end()) {
        file_taken(folder, file, *seen->second, request);
      } else if (count < request.wanted && given.insert(hash).second) {
        give(std::move(*proposal));
        ++count;
      }
    }
  }
  return count;
}

// The folder of an unanswered request about this parent, or of a new one; "": the run is ending.
Result<std::string> Exchange::open_request(const ProposalRequest& request, const WriterSink& give) {
  for (auto asked = requests_.rbegin(); asked != requests_.rend(); ++asked) {
    const std::string folder = path_of(asked->name);
    if (asked->parent != request.parent->id || !exists(join(folder, kPrompt))) continue;
    if (is_open(folder)) return folder;
  }
  requests_.push_back(next_request(settings_.folder, requests_, request, settings_.prompts));
  give(requests_.back());
  if (cancelled()) return std::string();  // perhaps it could not be stored
  return write_request(settings_.folder, requests_.back(), request);
}

Result<void> Exchange::propose(const ProposalRequest& request, const WriterSink& give) {
  KP_TRY(make_dirs(settings_.folder));
  std::string waiting;
  const double started = real_clock().now_s();
  while (collect(request, give) == 0) {
    // Before anybody is asked: the next request then builds on tuned sources.
    KP_ASSIGN(const int tuned,
              tune_written(request, settings_.tune, Tuned::kWritten, *tuner_, give));
    if (tuned > 0) return {};
    if (!settings_.write) {
      finished_ = refused_.empty() ? "every reply was measured"
                                   : "every usable reply was measured (refused: " +
                                         std::to_string(refused_.size()) + ")";
      return {};
    }
    if (cancelled()) return {};
    if (waiting.empty()) {
      KP_ASSIGN(waiting, open_request(request, give));
      if (waiting.empty()) return {};
      give(WriterNote{Event::kWaiting, "read " + join(waiting, kPrompt) +
                                           " and put a complete file into " +
                                           join(waiting, "reply")});
    }
    const double waited = real_clock().now_s() - started;
    if (waited >= settings_.wait_s) {
      finished_ = kNoReply + human_seconds(settings_.wait_s);
      return {};
    }
    std::this_thread::sleep_for(
        std::chrono::duration<double>(std::min(settings_.poll_s, settings_.wait_s - waited)));
  }
  return {};
}

}  // namespace

namespace {

// 0: not a request's folder. Others may lie beside them.
int request_number(const std::string& name) {
  const bool digits = !name.empty() && name.size() < 10 &&
                      name.find_first_not_of("0123456789") == std::string::npos;
  return digits ? std::atoi(name.c_str()) : 0;
}

}  // namespace

std::vector<std::string> open_requests(const std::string& folder) {
  std::vector<std::string> open;
  for (const std::string& name : list_dir(folder)) {
    const std::string request = join(folder, name);
    if (request_number(name) > 0 && exists(join(request, kPrompt)) && is_open(request)) {
      open.push_back(request);
    }
  }
  return open;
}

ExchangeRequest next_request(const std::string& folder, const std::vector<ExchangeRequest>& past,
                             const ProposalRequest& request, const Prompts& prompts) {
  int last = 0;
  for (const std::string& name : list_dir(folder)) last = std::max(last, request_number(name));
  for (const ExchangeRequest& each : past) last = std::max(last, request_number(each.name));
  char number[16];
  snprintf(number, sizeof number, "%04d", last + 1);
  return {number, request.parent->id, request.answers, exchange_prompt(request, number, prompts)};
}

// Writes the prompt last: a folder without it was left unfinished by a kill.
Result<std::string> write_request(const std::string& folder, const ExchangeRequest& asked,
                                  const ProposalRequest& request) {
  const std::string path = join(folder, asked.name);
  const Candidate& parent = request.parent->candidate;
  KP_TRY(make_dirs(join(path, "reply")));
  KP_TRY(write_file(join(path, "task.h"), request.task_header));
  const std::string extension(language_row(parent.language).extension);
  KP_TRY(write_file(join(path, "parent." + extension), parent.source));
  if (shows_best(request)) {
    const Candidate& best = request.best->candidate;
    const std::string end(language_row(best.language).extension);
    KP_TRY(write_file(join(path, "best." + end), best.source));
  }
  KP_TRY(write_file(join(path, kPrompt), asked.prompt));
  return path;
}

std::unique_ptr<Proposer> make_exchange(ExchangeSettings settings) {
  return std::make_unique<Exchange>(std::move(settings));
}

}  // namespace kernelpro
