// SPDX-License-Identifier: Apache-2.0
#include "serve/web/feed.h"

#include <algorithm>

#include "base/clock.h"
#include "base/files.h"
#include "report/page.h"
#include "run/store/store.h"

namespace kernelpro {

namespace {

constexpr double kLookForRuns = 1;  // seconds between looks through the folders
constexpr double kLookForHolder = 1;
// After reading a run the feed rests for so many times as long as that took: a page costs at most a
// fifth of a processor, however large the run.
constexpr double kRest = 4;

std::string event(const std::string& name, const Json& data) {
  return "event: " + name + "\ndata: " + dump_json(data) + "\n\n";
}

class ListFeed : public WebFeed {
 public:
  explicit ListFeed(std::string folder) : folder_(std::move(folder)) {}

  std::string next() override {
    const double now = real_clock().now_s();
    if (now < due_) return "";
    due_ = now + kLookForRuns;
    std::string sight;
    const FoundRuns found = find_runs(folder_);
    for (const FoundRun& each : found.runs) {
      const RunStamp stamp = run_stamp(each.path);
      sight += each.id + " " + std::to_string(stamp.commits) + " " + std::to_string(stamp.size) +
               " " + std::to_string(stamp.changed_ns) +
               (run_holder(each.path) ? " running\n" : "\n");
    }
    for (const FoundRun& each : found.suites) sight += each.id + "\n";
    if (sight == seen_) return "";
    seen_ = std::move(sight);
    return event("runs", Json::object());
  }

 private:
  const std::string folder_;
  std::string seen_;
  double due_ = 0;
};

class RunFeed : public WebFeed {
 public:
  RunFeed(std::string folder, std::string id, std::int64_t after, std::int64_t known)
      : folder_(std::move(folder)), id_(std::move(id)), after_(after), known_(known) {}

  std::string next() override {
    const double now = real_clock().now_s();
    if (run_.path.empty() && !look(now)) return "";
    if (now < rest_until_) return "";
    const RunStamp stamp = run_stamp(run_.path);
    if (stamp.size < 0) return "";
    if (known_ == stamp.commits) {
      seen_ = stamp;
      running_ = run_holder(run_.path).has_value();
    }
    known_ = -1;
    bool changed = !(stamp == seen_);
    if (changed || now >= holder_due_) {
      holder_due_ = now + kLookForHolder;
      const bool running = run_holder(run_.path).has_value();
      changed |= running != running_;
      running_ = running;
    }
    if (!changed) return "";
    seen_ = stamp;
    auto json = read_run(run_, after_);
    rest_until_ = real_clock().now_s() + kRest * (real_clock().now_s() - now);
    if (!json)
      return event("trouble", {{"error", json.error().message}, {"next", json.error().next}});
    for (const Json& row : (*json)["rows"])
      after_ = std::max(after_, row["order"].get<std::int64_t>());
    return event("run", *json);
  }

 private:
  bool look(double now) {
    if (now < due_) return false;
    due_ = now + kLookForRuns;
    for (FoundRun& each : find_runs(folder_).runs) {
      if (each.id == id_) run_ = std::move(each);
    }
    return !run_.path.empty();
  }

  const std::string folder_, id_;
  std::int64_t after_, known_;
  FoundRun run_;
  RunStamp seen_;
  bool running_ = false;
  double due_ = 0, holder_due_ = 0, rest_until_ = 0;
};

}  // namespace

Result<Json> read_run(const FoundRun& run, std::int64_t after) {
  const RunStamp stamp = run_stamp(run.path);  // before reading: a commit in between is seen later
  KP_ASSIGN(const auto store, Store::open(run.path, Store::Mode::kRead));
  KP_ASSIGN(const auto view, load_brief_view(*store, run.path));
  const Story story = tell(view);
  Json json = {{"commits", stamp.commits},
               {"head", page_head(view, story)},
               {"rows", page_rows(view, story, after)}};
  // Candidates in brief lack the load under which they were timed; the saved report has it.
  json["head"]["load"] = "";
  json["head"]["id"] = run.id;
  json["head"]["state"] = run_state(run.path, view.confirmation.has_value());
  return json;
}

Json run_summary(const FoundRun& run) {
  const auto read = [&]() -> Result<Json> {
    KP_ASSIGN(const auto store, Store::open(run.path, Store::Mode::kRead));
    KP_ASSIGN(const auto view, load_brief_view(*store, run.path));
    const Story story = tell(view);
    Json json = {{"task", view.header.task.name},       {"target", target_name(view.header.target)},
                 {"machine", view.header.machine.name}, {"created", view.header.created},
                 {"evaluated", story.evaluated},        {"finished", view.confirmation.has_value()},
                 {"seconds", view.run_seconds}};
    if (story.best == nullptr) return json;
    json["speedup"] = story.speedup;
    json["best_us"] = story.final_us;
    if (story.fraction > 0) json["fraction"] = std::min(story.fraction, kBeyondCeiling);
    return json;
  };
  auto json = read();
  return json ? std::move(*json) : Json{{"error", json.error().message}};
}

std::unique_ptr<WebFeed> list_feed(const std::string& folder) {
  return std::make_unique<ListFeed>(folder);
}

std::unique_ptr<WebFeed> run_feed(const std::string& folder, const std::string& id,
                                  std::int64_t after, std::int64_t known) {
  return std::make_unique<RunFeed>(folder, id, after, known);
}

}  // namespace kernelpro
