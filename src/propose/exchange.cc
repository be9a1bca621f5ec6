// SPDX-License-Identifier: Apache-2.0
// Candidates through a folder. Each request is a folder NNNN with prompt.md, task.h, the parent's
// source, `parent` (its content hash and id) and an empty reply/.
//
// A reply is handed out while it still lies in reply/ and only moves to taken/ in a later call,
// when the history shows that the run has it: a kill in between hands it out again, and its content
// hash then tells that it is known.
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
#include "propose/prompt.h"
#include "propose/proposer.h"

namespace kernelpro {

namespace {

constexpr std::int64_t kMaxReplyBytes = 4 << 20;

Language language_of(TargetKind target) {
  return target == TargetKind::kCpu ? Language::kCpp : Language::kCuda;
}

// "// idea: ..." in the first line, or "".
std::string idea_of(const std::string& source) {
  std::string_view line = std::string_view(source).substr(0, source.find('\n'));
  line = trim(line);
  if (!line.starts_with("//")) return "";
  line = trim(line.substr(2));
  if (!line.starts_with("idea:")) return "";
  return printable(trim(line.substr(5)));
}

class Exchange : public Proposer {
 public:
  explicit Exchange(const ExchangeSettings& settings) : settings_(settings) {}

  std::string name() const override { return "exchange"; }
  std::string credit() const override {
    return "The kernels were written by whoever answered the requests in " + settings_.folder + ".";
  }
  double waited_s() const override { return waited_s_; }
  std::optional<std::string> finished() const override { return finished_; }

  Result<std::vector<Proposal>> propose(const ProposalRequest& request) override;

 private:
  struct Folder {
    std::string path;
    std::string parent_hash;
    std::int64_t parent_id = 0;
  };

  std::vector<Folder> folders() const;
  Result<std::string> open_request(const ProposalRequest& request);
  Result<std::vector<Proposal>> collect(const ProposalRequest& request);
  void refuse(const Folder& folder, const std::string& file, const Error& error);
  void file_taken(const Folder& folder, const std::string& file, const Known& known,
                  const ProposalRequest& request);
  Result<Candidate> read_reply(const std::string& path, const Folder& folder,
                               const ProposalRequest& request) const;

  ExchangeSettings settings_;
  double waited_s_ = 0;
  std::optional<std::string> finished_;
};

std::vector<Exchange::Folder> Exchange::folders() const {
  std::vector<Folder> all;
  for (const std::string& name : list_dir(settings_.folder)) {
    Folder folder{join(settings_.folder, name), "", 0};
    const auto parent = read_file(join(folder.path, "parent"), 4096);
    if (!parent) continue;
    const std::vector<std::string> parts = words(*parent);
    if (parts.size() != 2) continue;
    folder.parent_hash = parts[0];
    folder.parent_id = std::strtoll(parts[1].c_str(), nullptr, 10);
    all.push_back(std::move(folder));
  }
  return all;
}

// The newest request for this parent, else a new one. Its `parent` file is written last: a folder
// without it is one that a kill left unfinished.
Result<std::string> Exchange::open_request(const ProposalRequest& request) {
  const std::string hash = request.parent->candidate.content_hash();
  int last = 0;
  for (const std::string& name : list_dir(settings_.folder)) {
    last = std::max(last, std::atoi(name.c_str()));
  }
  char number[16];
  snprintf(number, sizeof number, "%04d", last + 1);
  const std::string path = join(settings_.folder, number);
  const Candidate& parent = request.parent->candidate;
  KP_TRY(make_dirs(join(path, "reply")));
  KP_TRY(write_file(join(path, "task.h"), request.task_header));
  KP_TRY(write_file(join(path, "parent." + source_extension(parent.language)), parent.source));
  KP_TRY(write_file(join(path, "prompt.md"), exchange_prompt(request, number)));
  KP_TRY(write_file(join(path, "parent"), hash + " " + std::to_string(request.parent->id) + "\n"));
  return path;
}

Result<Candidate> Exchange::read_reply(const std::string& path, const Folder& folder,
                                       const ProposalRequest& request) const {
  auto source = read_file(path, kMaxReplyBytes);
  if (!source) return tl::unexpected<Error>(std::move(source.error()));
  if (trim(*source).empty()) {
    return fail(ErrorKind::kBadInput, "the file is empty", "write the whole source into it");
  }
  if (printable(*source) != replace_all(*source, "\r", "?")) {
    return fail(ErrorKind::kBadInput, "the file is not UTF-8 text", "write plain text");
  }
  auto knobs = parse_knobs(*source, reserved_names(*request.task));
  if (!knobs) return tl::unexpected<Error>(std::move(knobs.error()));
  Candidate candidate;
  candidate.language = language_of(request.target);
  candidate.source = std::move(*source);
  candidate.knobs = default_values(*knobs);
  candidate.origin = {"exchange", folder.parent_id, idea_of(candidate.source), ""};
  return candidate;
}

void Exchange::refuse(const Folder& folder, const std::string& file, const Error& error) {
  const std::string refused = join(folder.path, "refused");
  if (!make_dirs(refused)) return;
  // Best effort: a reply that cannot be moved is only refused again.
  (void)write_file(join(refused, file + ".error.md"), error.text() + "\n");
  (void)::rename(join(join(folder.path, "reply"), file).c_str(), join(refused, file).c_str());
}

void Exchange::file_taken(const Folder& folder, const std::string& file, const Known& known,
                          const ProposalRequest& request) {
  const std::string taken = join(folder.path, "taken");
  if (!make_dirs(taken)) return;
  (void)write_file(join(taken, file + ".result.md"), result_text(known, request.history));
  (void)::rename(join(join(folder.path, "reply"), file).c_str(), join(taken, file).c_str());
}

// New replies to any request, oldest request first; files away those that the history has.
Result<std::vector<Proposal>> Exchange::collect(const ProposalRequest& request) {
  std::map<std::string, const Known*> known;
  std::vector<Proposal> proposals;
  std::set<std::string> given;
  const std::string suffix = "." + source_extension(language_of(request.target));
  for (const Folder& folder : folders()) {
    const std::string replies = join(folder.path, "reply");
    for (const std::string& file : list_dir(replies)) {
      if (file.starts_with('.') || !file.ends_with(suffix)) continue;
      auto candidate = read_reply(join(replies, file), folder, request);
      if (!candidate) {
        refuse(folder, file, candidate.error());
        continue;
      }
      if (known.empty()) {
        for (const Known* each : request.history) known[each->candidate.content_hash()] = each;
      }
      const std::string hash = candidate->content_hash();
      const auto seen = known.find(hash);
      if (seen != known.end()) {
        file_taken(folder, file, *seen->second, request);
      } else if (static_cast<int>(proposals.size()) < request.wanted && given.insert(hash).second) {
        proposals.push_back({std::move(*candidate)});
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
    if (waiting.empty()) {
      for (const Folder& folder : folders()) {
        if (folder.parent_hash == hash && list_dir(join(folder.path, "taken")).empty()) {
          waiting = folder.path;
        }
      }
      if (waiting.empty()) {
        auto path = open_request(request);
        if (!path) return tl::unexpected<Error>(std::move(path.error()));
        waiting = *path;
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
    waited_s_ += real_clock().now_s() - started - waited;
  }
}

}  // namespace

std::unique_ptr<Proposer> make_exchange(const ExchangeSettings& settings) {
  return std::make_unique<Exchange>(settings);
}

}  // namespace kernelpro
