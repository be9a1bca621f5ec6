// SPDX-License-Identifier: Apache-2.0
// Runs as the live page gets them, and what follows them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/json.h"
#include "serve/runs/runs.h"

namespace kernelpro {

// What changes in a run, or in the list of runs. One thread.
class WebFeed {
 public:
  virtual ~WebFeed() = default;
  // What is new as one server-sent event; "" when nothing is. Call it several times a second.
  virtual std::string next() = 0;
};

// The head of a run (report/page.h) with its state, and the rows after that many evaluations.
Result<Json> read_run(const FoundRun& run, std::int64_t after);
// A run's line in the list; with "error" where the store cannot be read.
Json run_summary(const FoundRun& run);

// An event whenever a run below the folder changes.
std::unique_ptr<WebFeed> list_feed(const std::string& folder);
// An event with the head and new rows after each commit, and when the run starts or stops. The run
// may not exist yet. `known`: "commits" of what the page has read, which is not sent again.
std::unique_ptr<WebFeed> run_feed(const std::string& folder, const std::string& id,
                                  std::int64_t after, std::int64_t known);

}  // namespace kernelpro
