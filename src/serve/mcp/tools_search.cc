// SPDX-License-Identifier: Apache-2.0
// optimize, follow, stop and list_runs: searches that go on by themselves.
#include <algorithm>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/files.h"
#include "base/text.h"
#include "core/machine/ceiling_json.h"
#include "report/view.h"
#include "run/store/store.h"
#include "serve/mcp/arguments.h"
#include "serve/mcp/resources.h"
#include "serve/mcp/tools.h"
#include "serve/runs/runs.h"

namespace kernelpro {

namespace {

constexpr std::size_t kLatest = 8;  // candidates that `follow` shows
constexpr std::size_t kListed = 50;
constexpr double kLongestWait = 60;

struct Look {
  FoundRun run;
  std::optional<RunView> view;  // nullopt: nothing is stored yet
  bool running = false;
  std::string state;  // run_state
};

Result<Look> look_at(const FoundRun& run) {
  Look look;
  look.run = run;
  KP_ASSIGN(const auto store, Store::open(run.path, Store::Mode::kRead));
  KP_ASSIGN(look.view, load_brief_view(*store, run.path));
  look.running = run_holder(run.path).has_value();
  look.state = run_state(run.path, look.view->confirmation.has_value());
  return look;
}

std::string candidate_line(const Story& story, const StoredCandidate& candidate) {
  const Known& known = candidate.known;
  std::string text = "- " + std::to_string(known.id);
  if (known.candidate.origin.parent != 0) {
    text += " (from " + std::to_string(known.candidate.origin.parent) + ")";
  }
  text += ": " + clip(one_line(idea_text(known.candidate.origin)), 160) + " => ";
  if (known.evaluation.correct() == nullptr) {
    return text + clip(one_line(outcome_summary(known.evaluation.outcome)), 160) + "\n";
  }
  text += human_us(score_us(known.evaluation));
  if (const double ratio = story.speedup_of(known.id); ratio > 0) {
    text += ", " + speedup_text(ratio) + " the " + std::string(baseline_words(story));
  }
  return text + (story.best == &candidate ? " (best)\n" : "\n");
}

Json run_json(const Look& look, const Story& story) {
  Json json = {{"run", look.run.name},
               {"id", look.run.id},
               {"state", look.state},
               {"task", look.view->header.task.name},
               {"target", target_name(look.view->header.target)},
               {"evaluations", story.evaluated},
               {"failed", story.failed},
               {"best", story.best != nullptr ? Json(story.best->known.id) : Json(nullptr)},
               {"best_us", story.final_us},
               {"speedup", story.speedup},
               {"low", story.low},
               {"high", story.high},
               {"confirmed", story.confirmed}};
  put_fraction(story.fraction, &json);
  return json;
}

std::string next_step(const Look& look) {
  if (look.running) return "It goes on: follow again with wait_s, or stop it.\n";
  const std::string report = run_resource(look.run, "report.txt") + "\n";
  if (look.view->confirmation) return "It is finished; its report is " + report;
  return "It was stopped before its end; the command kernelpro resume continues it. Its report "
         "is " +
         report;
}

}  // namespace

Result<ToolAnswer> optimize_tool(Desk& desk, const Json& arguments, Ticket& ticket) {
  const JsonReader given(arguments);
  const TaskChoice choice = task_choice(arguments);
  KP_TRY(desk.runners().check_idle());
  KP_ASSIGN(const std::string task, desk.find_task(choice.task));
  std::vector<std::string> words = {"optimize", task};
  const auto put = [&](const std::string& option, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {option, value});
  };
  const auto put_number = [&](const std::string& option, const char* name) {
    if (given.member(name) != nullptr) put(option, std::to_string(given.integer(name)));
  };
  put("--target", choice.target);
  put("--precision", given.text("precision"));
  put("--model", given.text("model"));
  put("--language", given.text("language"));
  put_number("--evaluations", "evaluations");
  put_number("--seconds", "seconds");
  put_number("--max-tokens", "max_tokens");
  if (const std::string from = given.text("start_from"); !from.empty()) {
    KP_ASSIGN(const FoundRun run, desk.runners().find(from));
    put("--start-from", run.path);
  }
  desk.add_options(choice, &words);
  ticket.phase("releasing what is prepared");
  desk.cool();
  ticket.phase("starting the search");
  const std::string stem = basename(task).substr(0, basename(task).find('.'));
  KP_ASSIGN(const Runners::Started started,
            desk.runners().start(stem, std::move(words), [&] { return ticket.cancelled(); }));
  const std::string name = basename(started.path);
  std::string text = "The search began: run " + name + ". ";
  if (!started.exists) text += "It still prepares: references and ceilings. ";
  text +=
      "It goes on by itself, also when this client leaves. While it runs, no kernel is evaluated "
      "here.\nNext: follow it with wait_s, or stop it.\n";
  return ToolAnswer{
      text, {{"run", name}, {"id", run_address(started.path)}, {"folder", absolute(started.path)}}};
}

Result<ToolAnswer> follow_tool(Desk& desk, const Json& arguments, Ticket& ticket) {
  const JsonReader given(arguments);
  KP_ASSIGN(const FoundRun run, desk.runners().find(given.text("run")));
  const double until =
      real_clock().now_s() + std::min(static_cast<double>(given.integer("wait_s")), kLongestWait);
  ticket.phase("following " + run.name);
  const auto goes_on = [&] { return run_holder(run.path) || desk.runners().running(run.path); };
  while (real_clock().now_s() < until && !ticket.cancelled() && goes_on()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  if (!is_run(run.path)) {
    const bool running = desk.runners().running(run.path);
    return ToolAnswer{
        "Run " + run.name +
            (running ? " still prepares.\n" : " ended before anything was stored.\n") +
            "It said last:\n" + fenced(desk.runners().said(run.path, 8)),
        {{"run", run.name}, {"id", run.id}, {"state", running ? "running" : "ended"}}};
  }
  KP_ASSIGN(const Look look, look_at(run));
  const Story story = tell(*look.view);
  std::string text = "Run " + run.name + " of task " + printable(look.view->header.task.name) +
                     ": " + look.state + ". " + verdict(*look.view, story) + "\n" +
                     std::to_string(story.evaluated) + " evaluated, " +
                     std::to_string(story.failed) + " of them failed.\n";
  const auto& all = look.view->candidates;
  std::vector<const StoredCandidate*> evaluated;
  for (const StoredCandidate& each : all) {
    if (each.order > 0) evaluated.push_back(&each);
  }
  const std::size_t first = evaluated.size() > kLatest ? evaluated.size() - kLatest : 0;
  if (!evaluated.empty()) text += "The latest:\n";
  for (std::size_t i = first; i < evaluated.size(); ++i) {
    text += candidate_line(story, *evaluated[i]);
  }
  const std::string said = desk.runners().said(run.path, look.running ? 1 : 4);
  if (!said.empty()) text += "It said last:\n" + fenced(said);
  text += next_step(look);
  Json json = run_json(look, story);
  json["resources"] = {run_resource(run, "report.html"), run_resource(run, "kernel")};
  return ToolAnswer{page_of(text, arguments), std::move(json)};
}

Result<ToolAnswer> stop_tool(Desk& desk, const Json& arguments, Ticket&) {
  KP_ASSIGN(const FoundRun run, desk.runners().find(JsonReader(arguments).text("run")));
  KP_TRY(desk.runners().stop(run.path));
  return ToolAnswer{"Run " + run.name +
                        " was asked to stop: it ends after the step that it is in. follow shows "
                        "when, and what it found; kernelpro resume continues it.\n",
                    {{"run", run.name}, {"id", run.id}}};
}

Result<ToolAnswer> list_runs_tool(Desk& desk, const Json& arguments, Ticket&) {
  const std::vector<FoundRun> runs = find_runs(desk.runners().folder()).runs;
  std::string text;
  Json list = Json::array();
  for (const FoundRun& each : runs) {
    if (list.size() >= kListed) break;
    const auto look = look_at(each);
    if (!look) {
      text += "- " + each.name + ": " + one_line(look.error().message) + "\n";
      continue;
    }
    const Story story = tell(*look->view);
    text += "- " + each.name + ": " + look->state + ", " + std::to_string(story.evaluated) +
            " evaluated";
    if (story.best != nullptr) {
      text +=
          ", best " + human_us(story.final_us) + ", " + speedup_text(story.speedup) + " the start";
    }
    text += "\n";
    list.push_back(run_json(*look, story));
  }
  if (runs.empty()) text = "There is no run yet in " + desk.runners().folder() + ".\n";
  return ToolAnswer{page_of(text, arguments), {{"runs", std::move(list)}, {"count", runs.size()}}};
}

}  // namespace kernelpro
