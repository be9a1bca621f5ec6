// SPDX-License-Identifier: Apache-2.0
#include "serve/web/web.h"

#include <sys/wait.h>

#include <algorithm>

#include "base/clock.h"
#include "base/files.h"
#include "base/text.h"
#include "embedded/live_html.h"
#include "embedded/live_js.h"
#include "report/page.h"
#include "report/report.h"
#include "run/store/store.h"

namespace kernelpro {

WebReply web_refusal(int status, const std::string& why, const std::string& next) {
  return {status, "application/json", dump_json({{"error", why}, {"next", next}}) + "\n"};
}

namespace {

constexpr double kListSeconds = 0.3;  // what a list may spend on runs that it does not know yet

WebReply reply(const Json& json, int status = 200) {
  return {status, "application/json", dump_json(json) + "\n"};
}

WebReply failed(const Error& error) {
  const int status = error.kind == ErrorKind::kBusy       ? 409
                     : error.kind == ErrorKind::kBadInput ? 404
                                                          : 500;
  return web_refusal(status, error.message, error.next);
}

std::optional<FoundRun> find(const std::vector<FoundRun>& all, const std::string& id) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const FoundRun& each) { return each.id == id; });
  return found == all.end() ? std::nullopt : std::optional(*found);
}

// What a candidate was asked for: the exchange's request, or the questions to models.
Result<void> put_writer(const Store& store, const Known& known, Json* json) {
  KP_ASSIGN(const auto writing, store.writing(known.id));
  if (writing) put_writing(*writing, json);
  KP_ASSIGN(const auto calls, store.calls());
  const std::string hash = known.candidate.content_hash();
  for (const ModelCall& call : calls) {
    if (call.gave == hash) (*json)["calls"].push_back(page_call(call));
  }
  return {};
}

Result<Json> read_candidate(const FoundRun& run, std::int64_t id) {
  KP_ASSIGN(const auto store, Store::open(run.path, Store::Mode::kRead));
  const auto one = [&](std::int64_t number) -> Result<StoredCandidate> {
    std::int64_t most = 0;
    KP_TRY(store->briefs([&](StoredBrief each) { most += each.known.id == number; }));
    KP_ASSIGN(const auto waiting, store->waiting());
    for (const StoredCandidate& each : waiting) most += each.known.id == number;
    if (most == 0) {
      return fail(ErrorKind::kBadInput, "there is no candidate " + std::to_string(number),
                  "choose one of the list");
    }
    return store->candidate(number, true);
  };
  KP_ASSIGN(const auto candidate, one(id));
  const std::int64_t parent_id = candidate.known.candidate.origin.parent;
  const auto parent = parent_id > 0 ? one(parent_id) : Result<StoredCandidate>(StoredCandidate());
  Json json = page_candidate(candidate, parent && parent_id > 0 ? &*parent : nullptr);
  KP_TRY(put_writer(*store, candidate.known, &json));
  return json;
}

}  // namespace

std::optional<WebReply> Web::file(const std::string& path) {
  if (path == "/")
    return WebReply{200, "text/html; charset=utf-8", std::string(embedded::live_html)};
  if (path == "/page.css") return WebReply{200, "text/css", std::string(page_style())};
  if (path != "/page.js") return std::nullopt;
  return WebReply{200, "text/javascript; charset=utf-8",
                  page_drawing() + std::string(embedded::live_js)};
}

bool Web::serves(const std::string& path) {
  return path == "/runs" || path == "/events" || path.starts_with("/run/") ||
         path.starts_with("/suite/");
}

WebReply Web::answer(const std::string& method, const std::string& path) {
  reap();
  const std::vector<std::string> words = split(path, '/');  // "", "run", ID, ...
  const bool get = method == "GET";
  if (path == "/runs" && get) return list();
  if (words.size() == 3 && words[1] == "suite" && get) return suite(words[2]);
  if (words.size() < 3 || words[1] != "run") {
    return web_refusal(404, "there is nothing at " + clip(printable(path), 200), "start from /");
  }
  const auto found = find(find_runs(folder_).runs, words[2]);
  if (!found) {
    return web_refusal(404, "there is no such run in " + folder_,
                       "go back to the list; a run in another folder needs --runs DIR");
  }
  if (words.size() == 3 && get) return run(*found);
  if (words.size() == 4 && words[3] == "calls" && get) return calls(*found);
  if (words.size() == 4 && words[3] == "report" && get) {
    auto html = html_report(found->path);
    return html ? WebReply{200, "text/html; charset=utf-8", std::move(*html)}
                : failed(html.error());
  }
  if (words.size() == 5 && words[3] == "candidate" && get) {
    return candidate(*found, std::atoll(words[4].c_str()));
  }
  if (words.size() == 4 && (words[3] == "stop" || words[3] == "resume") && method == "POST") {
    return act(*found, words[3]);
  }
  return web_refusal(404, "there is nothing at " + clip(printable(path), 200), "start from /");
}

std::unique_ptr<WebFeed> Web::feed(const std::string& query) {
  std::string run;
  std::int64_t after = 0, known = -1;
  for (const std::string& part : split(query, '&')) {
    if (part.starts_with("run=")) run = part.substr(4);
    if (part.starts_with("after=")) after = std::atoll(part.c_str() + 6);
    if (part.starts_with("commits=")) known = std::atoll(part.c_str() + 8);
  }
  return run.empty() ? list_feed(folder_) : run_feed(folder_, run, after, known);
}

// The list takes a moment even where there are hundreds of runs: those that time did not suffice
// for come without results, and the page asks again.
WebReply Web::list() {
  const FoundRuns found = find_runs(folder_);
  Json runs = Json::array(), suites = Json::array();
  const double until = real_clock().now_s() + kListSeconds;
  for (const FoundRun& each : found.runs) runs.push_back(summary(each, until));
  for (const FoundRun& each : found.suites) {
    suites.push_back({{"id", each.id}, {"name", each.name}, {"path", absolute(each.path)}});
  }
  return reply({{"folder", absolute(folder_)}, {"runs", runs}, {"suites", suites}});
}

Json Web::summary(const FoundRun& run, double until_s) {
  const RunStamp stamp = run_stamp(run.path);
  Json json;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto known = summaries_.find(run.path);
    if (known != summaries_.end() && known->second.first == stamp) json = known->second.second;
  }
  const bool late = json.is_null() && real_clock().now_s() > until_s;
  if (json.is_null() && !late) {
    json = run_summary(run);
    const std::lock_guard<std::mutex> lock(mutex_);
    summaries_[run.path] = {stamp, json};
  }
  if (late) json = {{"pending", true}};
  json["id"] = run.id;
  json["name"] = run.name;
  json["state"] = run_state(run.path, json.value("finished", false));
  json["changed"] = static_cast<double>(stamp.changed_ns) * 1e-9;
  return json;
}

WebReply Web::run(const FoundRun& run) {
  auto json = read_run(run, 0);
  return json ? reply(*json) : failed(json.error());
}

WebReply Web::candidate(const FoundRun& run, std::int64_t id) {
  auto json = read_candidate(run, id);
  return json ? reply(*json) : failed(json.error());
}

WebReply Web::calls(const FoundRun& run) {
  const auto store = Store::open(run.path, Store::Mode::kRead);
  if (!store) return failed(store.error());
  const auto calls = (*store)->calls();
  if (!calls) return failed(calls.error());
  Json list = Json::array();
  for (const ModelCall& call : *calls) list.push_back(page_call(call));
  return reply(list);
}

WebReply Web::suite(const std::string& id) {
  const FoundRuns found = find_runs(folder_);
  const auto suite = find(found.suites, id);
  if (!suite) return web_refusal(404, "there is no such suite", "go back to the list");
  Json json = {{"name", suite->name}, {"path", absolute(suite->path)}, {"runs", Json::array()}};
  const std::string inside = absolute(suite->path) + "/";
  const double until = real_clock().now_s() + 3 * kListSeconds;
  for (const FoundRun& each : found.runs) {
    if (!absolute(each.path).starts_with(inside)) continue;
    json["runs"].push_back(summary(each, until));
    json["runs"].back()["name"] = absolute(each.path).substr(inside.size());
  }
  // Written at the end of each sitting of the suite.
  if (const auto text = read_file(join(suite->path, "report.json"), 64 << 20)) {
    const Json report = parse_json(*text).value_or(Json());
    for (const char* part : {"measures", "comparisons"}) {
      if (report.is_object() && report.contains(part)) json[part] = report[part];
    }
  }
  return reply(json);
}

WebReply Web::act(const FoundRun& run, const std::string& what) {
  if (what == "stop") {
    const auto stopped = stop_run(run.path);
    return stopped ? reply({{"done", true}}) : failed(stopped.error());
  }
  const auto pid = resume_run(run.path);
  if (!pid) return failed(pid.error());
  const std::lock_guard<std::mutex> lock(mutex_);
  resumed_.push_back(*pid);
  return reply({{"done", true}, {"log", join(absolute(run.path), "resume.log")}});
}

// Runs that were resumed here and have ended.
void Web::reap() {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::erase_if(resumed_, [](pid_t pid) { return ::waitpid(pid, nullptr, WNOHANG) != 0; });
}

}  // namespace kernelpro
