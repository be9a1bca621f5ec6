// SPDX-License-Identifier: Apache-2.0
// The live page: its files, and JSON about the runs below a folder, read from their stores.
// docs/live-page.md lists the addresses. Knows nothing of sockets and tokens: serve/http asks it
// once a request may be answered. Any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "serve/runs/runs.h"
#include "serve/web/feed.h"

namespace kernelpro {

struct WebReply {
  int status = 200;
  std::string type = "application/json";
  std::string body;
};

// An error as the page reads it: {"error", "next"} (docs/live-page.md).
WebReply web_refusal(int status, const std::string& why, const std::string& next);

class Web {
 public:
  // `folder`: with the runs.
  explicit Web(std::string folder) : folder_(std::move(folder)) {}

  // The files of the page, which hold no secret; nullopt for any other path.
  static std::optional<WebReply> file(const std::string& path);
  // Whether `answer` or `feed` knows the path.
  static bool serves(const std::string& path);
  // `method`: GET, or POST for what acts.
  WebReply answer(const std::string& method, const std::string& path);
  // For /events; `query`: "run=ID&after=N&commits=N", or "" for the list.
  std::unique_ptr<WebFeed> feed(const std::string& query);

 private:
  WebReply list();
  WebReply run(const FoundRun& run);
  WebReply candidate(const FoundRun& run, std::int64_t id);
  WebReply calls(const FoundRun& run);
  WebReply suite(const std::string& id);
  WebReply act(const FoundRun& run, const std::string& what);
  Json summary(const FoundRun& run, double until_s);
  void reap();

  const std::string folder_;
  std::mutex mutex_;                                            // guards the members below
  std::map<std::string, std::pair<RunStamp, Json>> summaries_;  // by path
  std::vector<pid_t> resumed_;
};

}  // namespace kernelpro
