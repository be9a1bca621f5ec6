// SPDX-License-Identifier: Apache-2.0
// Candidates through a folder. Each request is a folder NNNN with prompt.md, task.h, the parent's
// source, `parent` (its content hash and id), `focus` (what it asks to try), `answers` (the
// finding) and an empty reply/.
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
#include <thread>

#include "base/clock.h"
#include "base/files.h"
#include "base/text.h"
#include "core/knobs.h"
#include "write/prompt/prompt.h"
#include "write/prompt/reply.h"
#include "write/proposer.h"

namespace kernelpro {

namespace {

// One byte over the limit, so that an oversized file is detected.
constexpr std::int64_t kMostBytes = static_cast<std::int64_t>(kMaxReplyBytes) + 1;

struct Folder {
  std::string path, name;
  std::string parent_hash;
};

std::vector<Folder> folders_in(const std::string& exchange) {
  std::vector<Folder> all;
  for (const std::string& name : list_dir(exchange)) {
    Folder folder{join(exchange, name), name, ""};
    const auto parent = read_file(join(folder.path, "parent"), 4096);
    if (!parent) continue;
    const std::vector<std::string> parts = words(*parent);
    if (parts.size() != 2) continue;
    folder.parent_hash = parts[0];
    all.push_back(std::move(folder));
  }
  return all;
}

// The finding that a request asks to address; empty: none.
FindingRef answers_in(const Folder& folder) {
  const auto answers = read_file(join(folder.path, "answers"), 4096);
  return FindingRef::parse(answers ? printable(*answers) : "");
}

// A kernel by its name, for any target; other files may be notes or incomplete.
bool is_source(const std::string& file) {
  return std::any_of(languages().begin(), languages().end(), [&](const LanguageRow& row) {
    return file.ends_with("." + std::string(row.extension));
  });
}

tl::unexpected<Error> other_language(const std::string& suffix) {
  return fail(ErrorKind::kBadInput, "this run's kernels are " + suffix + " files",
              "write it for this run's target, and give its name the end " + suffix);
}

tl::unexpected<Error> unknown_parent(const std::string& folder) {
  return fail(ErrorKind::kBadInput,
              "the file `parent` in " + folder + " names no candidate of this run",
              "leave that file as it was written, or put the reply into another request's folder");
}

class Exchange : public Proposer {
 public:
  explicit Exchange(const ExchangeSettings& settings) : settings_(settings) {}

  std::string name() const override { return "exchange"; }
  std::string credit() const override {
    return "The kernels are replies to the requests in " + settings_.folder + ".";
  }
  std::optional<std::string> finished() const override { return finished_; }

  Result<std::vector<Proposal>> propose(const ProposalRequest& request) override;

 private:
  Result<std::vector<Proposal>> collect(const ProposalRequest& request);
  void refuse(const Folder& folder, const std::string& file, const Error& error);
  void file_taken(const Folder& folder, const std::string& file, const Known& known,
                  const ProposalRequest& request);
  Result<Proposal> read_reply(const std::string& path, const Folder& folder,
                              const ProposalRequest& request) const;

  ExchangeSettings settings_;
  std::optional<std::string> finished_;
  std::set<std::string> refused_;  // paths of replies
};

Result<Proposal> Exchange::read_reply(const std::string& path, const Folder& folder,
                                      const ProposalRequest& request) const {
  KP_ASSIGN(auto reply, read_file(path, kMostBytes));
  const Language language = native_language(request.target).language;
  KP_ASSIGN(auto source, source_of_reply(reply, language));
  KP_ASSIGN(auto knobs, parse_knobs(source, reserved_names(*request.task)));
  Proposal proposal;
  Candidate& candidate = proposal.candidate;
  candidate.language = language;
  candidate.source = std::move(source);
  candidate.knobs = default_values(knobs);
  candidate.origin = {name(), 0, idea_of(candidate.source), answers_in(folder)};
  auto prompt = read_file(join(folder.path, "prompt.md"), kMostBytes);
  proposal.writing =
      Writing{folder.name, name(), prompt ? printable(*prompt) : "", std::move(reply), ""};
  return proposal;
}

void Exchange::refuse(const Folder& folder, const std::string& file, const Error& error) {
  const std::string refused = join(folder.path, "refused");
  if (!make_dirs(refused)) return;
  const std::string reply = join(join(folder.path, "reply"), file);
  // Best effort: a reply that cannot be moved is just refused again.
  (void)write_file(join(refused, file + ".error.md"), error.text() + "\n");
  const bool moved = ::rename(reply.c_str(), join(refused, file).c_str()) == 0;
  if (!refused_.insert(reply).second && !moved) return;  // already reported
  if (settings_.refused) {
    settings_.refused(reply + ": " + error.message + "; " + error.next + " (moved to " + refused +
                      ")");
  }
}

void Exchange::file_taken(const Folder& folder, const std::string& file, const Known& known,
                          const ProposalRequest& request) {
  const std::string taken = join(folder.path, "taken");
  if (!make_dirs(taken)) return;
  (void)write_file(join(taken, file + ".result.md"),
                   result_text(known, request.history, request.feedback));
  (void)::rename(join(join(folder.path, "reply"), file).c_str(), join(taken, file).c_str());
}

// New replies to any request, oldest request first; files away those already in the history.
Result<std::vector<Proposal>> Exchange::collect(const ProposalRequest& request) {
  std::map<std::string, const Known*> known;
  std::vector<Proposal> proposals;
  std::set<std::string> given;  // to be measured
  for (const Candidate* each : request.pending) given.insert(each->content_hash());
  const std::string suffix = "." + std::string(native_language(request.target).extension);
  for (const Folder& folder : folders_in(settings_.folder)) {
    const std::string replies = join(folder.path, "reply");
    for (const std::string& file : list_dir(replies)) {
      const bool named = file.ends_with(suffix) || file.ends_with(".md");
      if (file.starts_with('.') || (!named && !is_source(file))) continue;
      auto proposal = named ? read_reply(join(replies, file), folder, request)
                            : Result<Proposal>(other_language(suffix));
      if (known.empty()) {
        for (const Known* each : request.history) known[content_hash(*each)] = each;
      }
      const auto parent = known.find(folder.parent_hash);
      if (proposal && parent == known.end()) proposal = unknown_parent(folder.path);
      if (!proposal) {
        refuse(folder, file, proposal.error());
        continue;
      }
      proposal->candidate.origin.parent = parent->second->id;
      const std::string hash = proposal->candidate.content_hash();
      const auto seen = known.find(hash);
      if (seen != known.end()) {
        file_taken(folder, file, request.whole(*seen->second), request);
      } else if (static_cast<int>(proposals.size()) < request.wanted && given.insert(hash).second) {
        proposals.push_back(std::move(*proposal));
      }
    }
  }
  return proposals;
}

Result<std::vector<Proposal>> Exchange::propose(const ProposalRequest& request) {
  KP_TRY(make_dirs(settings_.folder));
  const std::string hash = request.parent->candidate.content_hash();
  std::string waiting;
  const double started = real_clock().now_s();
  for (;;) {
    auto proposals = collect(request);
    if (!proposals || !proposals->empty()) return proposals;
    if (!settings_.write) {
      finished_ = refused_.empty() ? "every reply was measured"
                                   : "every usable reply was measured (refused: " +
                                         std::to_string(refused_.size()) + ")";
      return proposals;
    }
    if (waiting.empty()) {
      for (const Folder& folder : folders_in(settings_.folder)) {
        if (folder.parent_hash == hash && list_dir(join(folder.path, "taken")).empty()) {
          waiting = folder.path;
        }
      }
      if (waiting.empty()) {
        KP_ASSIGN(waiting, write_request(settings_.folder, request, settings_.prompts));
      }
      if (settings_.note) {
        settings_.note("waiting for a kernel: read " + join(waiting, "prompt.md") +
                       " and put a complete file into " + join(waiting, "reply"));
      }
    }
    const double waited = real_clock().now_s() - started;
    if (settings_.cancelled && settings_.cancelled()) return proposals;
    if (waited >= settings_.wait_s) {
      finished_ = "no reply came within " + human_seconds(settings_.wait_s);
      return proposals;
    }
    std::this_thread::sleep_for(
        std::chrono::duration<double>(std::min(settings_.poll_s, settings_.wait_s - waited)));
  }
}

}  // namespace

// Writes `parent` last: a folder without it was left unfinished by a kill.
Result<std::string> write_request(const std::string& folder, const ProposalRequest& request,
                                  const Prompts& prompts) {
  int last = 0;
  for (const std::string& name : list_dir(folder)) last = std::max(last, std::atoi(name.c_str()));
  char number[16];
  snprintf(number, sizeof number, "%04d", last + 1);
  const std::string path = join(folder, number);
  const Candidate& parent = request.parent->candidate;
  KP_TRY(make_dirs(join(path, "reply")));
  KP_TRY(write_file(join(path, "task.h"), request.task_header));
  const std::string extension(language_row(parent.language).extension);
  KP_TRY(write_file(join(path, "parent." + extension), parent.source));
  KP_TRY(write_file(join(path, "prompt.md"), exchange_prompt(request, number, prompts)));
  KP_TRY(write_file(join(path, "focus"), request.focus + "\n"));
  KP_TRY(write_file(join(path, "answers"), request.answers.text() + "\n"));
  KP_TRY(write_file(join(path, "parent"),
                    parent.content_hash() + " " + std::to_string(request.parent->id) + "\n"));
  return path;
}

std::vector<FindingRef> requested(const std::string& folder, const Candidate& parent) {
  std::vector<FindingRef> all;
  const std::string hash = parent.content_hash();
  for (const Folder& each : folders_in(folder)) {
    if (each.parent_hash == hash) all.push_back(answers_in(each));
  }
  return all;
}

std::unique_ptr<Proposer> make_exchange(const ExchangeSettings& settings) {
  return std::make_unique<Exchange>(settings);
}

}  // namespace kernelpro
