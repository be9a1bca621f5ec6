// SPDX-License-Identifier: Apache-2.0
#include "run/store/run_text.h"

#include <algorithm>

#include "base/json.h"
#include "base/text.h"
#include "run/store/brief.h"

namespace kernelpro {

namespace {

constexpr std::int64_t kFormat = 1;
// Writing a value back recurses as deep as it nests; ours nest far less.
constexpr int kDeepest = 100;

// The store keeps these values as JSON text, with "" for none.
void put(const char* name, const std::string& text, Json* line) {
  if (auto json = parse_json(text)) (*line)[name] = std::move(*json);
}
std::string get(const JsonReader& line, const char* name) {
  const Json* json = line.member(name);
  return json == nullptr ? "" : dump_json(*json);
}

Json named(const char* name, Json value) {
  Json line;
  line[name] = std::move(value);
  return line;
}

Json header_line(const RunHeader& header) {
  Json run = {{"format", kFormat},
              {"id", header.id},
              {"created", header.created},
              {"version", header.version},
              {"target", target_name(header.target)}};
  put("machine", machine_to_json(header.machine), &run);
  put("settings", header.settings_json, &run);
  put("task", task_to_json(header.task), &run);
  put("record", header.record_json, &run);
  put("recorded", header.recorded_json, &run);
  put("facts", header.facts_json, &run);
  return named("run", std::move(run));
}

// Times are in the evaluation too; here they are for people and their tools.
void put_times(const StoredRun& run, const StoredCandidate& each, Json* line) {
  const double us = score_us(each.known.evaluation);
  if (us <= 0) return;
  (*line)["time_us"] = us;
  const std::int64_t parent = each.known.candidate.origin.parent;
  if (parent < 1 || parent > static_cast<std::int64_t>(run.candidates.size())) return;
  const StoredCandidate& before = run.candidates[static_cast<std::size_t>(parent - 1)];
  const double before_us = before.evaluated ? score_us(before.known.evaluation) : 0;
  if (before_us > 0) (*line)["speedup_over_parent"] = before_us / us;
}

void put_step(const ToolStep& step, Json* line) {
  (*line)["step"] = {{"tool", step.tool},   {"tag", step.tag},           {"likely", step.likely},
                     {"upper", step.upper}, {"measured", step.measured}, {"record", step.record}};
}

void put_writing(const Writing& writing, const std::string& source, Json* line) {
  (*line)["request"] = writing.request;
  (*line)["writer"] = writing.writer;
  put("usage", writing.usage, line);
  (*line)["prompt"] = writing.prompt;
  if (writing.reply != source) (*line)["reply"] = writing.reply;
}

Json candidate_line(const StoredRun& run, const StoredCandidate& each) {
  const Known& known = each.known;
  const Candidate& candidate = known.candidate;
  const Origin& origin = candidate.origin;
  Json line = {{"candidate", known.id},
               {"parent", origin.parent},
               {"repairs", origin.repairs},
               {"proposer", origin.proposer},
               {"idea", origin.idea},
               {"answers", origin.answers.text()},
               {"language", language_name(candidate.language)},
               {"knobs", candidate.knobs}};
  if (each.evaluated) {
    line["position"] = each.order;
    line["at_s"] = each.at_s;
    put_times(run, each, &line);
    put("evaluation", evaluation_to_json(known.evaluation), &line);
    const auto step = run.steps.find(known.id);
    if (step != run.steps.end()) put_step(step->second, &line);
    put("diagnosis", diagnosis_to_json(known.diagnosis), &line);
  }
  line["source"] = candidate.source;
  const auto writing = run.writings.find(known.id);
  if (writing != run.writings.end()) put_writing(writing->second, candidate.source, &line);
  if (each.evaluated) put("evidence", evidence_to_json(each.evidence), &line);
  return line;
}

Json call_line(const ModelCall& c) {
  Json call = {{"request", c.request},
               {"role", model_role_name(c.role)},
               {"model", c.model},
               {"parent", c.parent},
               {"repairs", c.repairs},
               {"idea", c.idea},
               {"outcome", call_outcome_name(c.outcome)},
               {"gave", c.gave}};
  put("usage", c.usage, &call);
  call["prompt"] = c.prompt;
  call["tools"] = c.tools;
  call["reply"] = c.reply;
  return named("call", std::move(call));
}

Json request_line(const ExchangeRequest& r) {
  return named("request", {{"name", r.name},
                           {"parent", r.parent},
                           {"answers", r.answers.text()},
                           {"prompt", r.prompt}});
}

Json closed_line(const ClosedLine& c) {
  return named("closed",
               {{"candidate", c.candidate}, {"after", c.after}, {"proposer", c.proposer}});
}

Json confirmation_line(const StoredConfirmation& c) {
  Json confirmation = {{"best", c.best},
                       {"stopped_by", c.stopped_by},
                       {"own_ms_per_evaluation", c.own_ms_per_evaluation}};
  put("evaluation", evaluation_to_json(c.evaluation), &confirmation);
  Json held_out = Json::array();
  for (const HeldOut& each : c.held_out) {
    held_out.push_back({{"case", each.case_name}, {"problem", each.problem}});
    put("evaluation", evaluation_to_json(each.evaluation), &held_out.back());
  }
  confirmation["held_out"] = std::move(held_out);
  return named("confirmation", std::move(confirmation));
}

// The functions below return what is wrong with a line; null: nothing.

const char* read_header(const JsonReader& line, RunHeader* header) {
  if (line.member("run") == nullptr) return "it does not begin with a run";
  const JsonReader run(line.object("run"));
  if (run.integer("format") != kFormat) return "its format is not one that this version knows";
  auto task = task_from_json(get(run, "task"));
  const auto target = target_from_name(run.text("target"));
  auto machine = machine_from_json(get(run, "machine"));
  if (!task || !target || !machine) return "its task, target or machine cannot be read";
  *header = {std::move(*task),    *target,
             std::move(*machine), get(run, "settings"),
             run.text("created"), run.text("version"),
             get(run, "record"),  get(run, "recorded"),
             get(run, "facts"),   run.text("id")};
  return nullptr;
}

const char* read_result(const JsonReader& line, StoredCandidate* stored) {
  auto evaluation = evaluation_from_json(get(line, "evaluation"));
  auto diagnosis = diagnosis_from_json(get(line, "diagnosis"));
  auto evidence = evidence_from_json(get(line, "evidence"));
  if (!evaluation || !diagnosis || !evidence) {
    return "its evaluation, diagnosis or evidence cannot be read";
  }
  stored->evaluated = true;
  stored->order = line.integer("position");
  stored->at_s = line.real("at_s");
  stored->known.evaluation = std::move(*evaluation);
  stored->known.diagnosis = std::move(*diagnosis);
  stored->evidence = std::move(*evidence);
  return nullptr;
}

const char* read_origin(const JsonReader& line, std::int64_t id, Origin* origin) {
  *origin = {line.text("proposer"), line.integer("parent"), line.text("idea"),
             FindingRef::parse(line.text("answers")), line.integer("repairs")};
  const auto is_earlier = [&](std::int64_t other) { return other >= 0 && other < id; };
  if (is_earlier(origin->parent) && is_earlier(origin->repairs)) return nullptr;
  return "its parent, or what it repairs, is not an earlier candidate";
}

const char* read_candidate(const JsonReader& line, StoredRun* run) {
  StoredCandidate stored;
  Known& known = stored.known;
  known.id = line.integer("candidate");
  if (known.id != static_cast<std::int64_t>(run->candidates.size()) + 1) {
    return "candidates are not numbered 1, 2, ...";
  }
  Candidate& candidate = known.candidate;
  const auto language = language_from_name(line.text("language"));
  if (!language) return "its language is unknown";
  candidate.language = *language;
  candidate.source = line.text("source");
  if (!knobs_from_text(get(line, "knobs"), &candidate.knobs)) return "its knobs cannot be read";
  if (const char* wrong = read_origin(line, known.id, &candidate.origin)) return wrong;
  if (line.member("position") != nullptr) {
    if (const char* wrong = read_result(line, &stored)) return wrong;
    if (line.member("step") != nullptr) {
      const JsonReader step(line.object("step"));
      run->steps[known.id] = {
          known.id,           step.text("tool"),     step.text("tag"),   step.real("likely"),
          step.real("upper"), step.real("measured"), step.text("record")};
    }
  }
  if (line.member("writer") != nullptr) {
    run->writings[known.id] = {line.text("request"), line.text("writer"), line.text("prompt"),
                               line.text("reply", candidate.source), get(line, "usage")};
  }
  run->candidates.push_back(std::move(stored));
  return nullptr;
}

const char* read_call(const JsonReader& call, StoredRun* run) {
  const auto role = model_role_from_name(call.text("role"));
  if (!role) return "a question to a model has no known role";
  run->calls.push_back({call.text("request"), *role, call.text("model"), call.integer("parent"),
                        call.integer("repairs"), call.text("idea"),
                        call_outcome_from_name(call.text("outcome")), call.text("prompt"),
                        call.text("tools"), call.text("reply"), get(call, "usage"),
                        call.text("gave")});
  return nullptr;
}

// Whether `id` is a candidate of the lines read so far.
bool is_known(std::int64_t id, const StoredRun& run) {
  return id >= 1 && id <= static_cast<std::int64_t>(run.candidates.size());
}

const char* read_request(const JsonReader& request, StoredRun* run) {
  run->requests.push_back({request.text("name"), request.integer("parent"),
                           FindingRef::parse(request.text("answers")), request.text("prompt")});
  const std::string& name = run->requests.back().name;
  const auto same = std::count_if(run->requests.begin(), run->requests.end(),
                                  [&](const ExchangeRequest& each) { return each.name == name; });
  if (same != 1) return "another request has its name";
  return is_known(run->requests.back().parent, *run) ? nullptr : "its parent is unknown";
}

const char* read_closed(const JsonReader& closed, StoredRun* run) {
  run->closed.push_back(
      {closed.integer("candidate"), closed.integer("after"), closed.text("proposer")});
  const std::int64_t id = run->closed.back().candidate;
  const bool evaluated =
      is_known(id, *run) && run->candidates[static_cast<std::size_t>(id - 1)].evaluated;
  return evaluated ? nullptr : "its candidate was not evaluated";
}

const char* read_confirmation(const JsonReader& line, StoredRun* run) {
  auto evaluation = evaluation_from_json(get(line, "evaluation"));
  if (!evaluation) return "the winner's evaluation cannot be read";
  StoredConfirmation& read = run->confirmation.emplace();
  read = {line.integer("best"),
          std::move(*evaluation),
          line.text("stopped_by"),
          line.real("own_ms_per_evaluation"),
          {}};
  for (const Json& each : line.array("held_out")) {
    const JsonReader one(each);
    auto held_out = evaluation_from_json(get(one, "evaluation"));
    if (!held_out) return "a held-out case cannot be read";
    read.held_out.push_back({one.text("case"), std::move(*held_out), one.text("problem")});
  }
  const bool known = is_known(read.best, *run) &&
                     run->candidates[static_cast<std::size_t>(read.best - 1)].evaluated;
  return known ? nullptr : "the winner was not evaluated";
}

const char* read_line(const std::string& text, bool first, StoredRun* run) {
  if (nests_deeper(text, kDeepest)) return "it nests too deep";
  const auto json = parse_json(text);
  if (!json || !json->is_object()) return "it is not a JSON object";
  const JsonReader line(*json);
  if (first) return read_header(line, &run->header);
  if (line.member("candidate") != nullptr) return read_candidate(line, run);
  if (line.member("request") != nullptr) {
    return read_request(JsonReader(line.object("request")), run);
  }
  if (line.member("call") != nullptr) return read_call(JsonReader(line.object("call")), run);
  if (line.member("closed") != nullptr) return read_closed(JsonReader(line.object("closed")), run);
  if (line.member("confirmation") != nullptr) {
    return read_confirmation(JsonReader(line.object("confirmation")), run);
  }
  return "it is none of the things that a run holds";
}

bool positions_are_whole(const StoredRun& run) {
  std::vector<std::int64_t> positions;
  for (const StoredCandidate& each : run.candidates) {
    if (each.evaluated) positions.push_back(each.order);
  }
  std::sort(positions.begin(), positions.end());
  for (std::size_t i = 0; i < positions.size(); ++i) {
    if (positions[i] != static_cast<std::int64_t>(i) + 1) return false;
  }
  return true;
}

}  // namespace

std::string run_to_text(const StoredRun& run, bool written) {
  std::string text;
  const auto add = [&](const Json& line) { text += dump_json(line) + "\n"; };
  if (!written) add(header_line(run.header));
  for (const StoredCandidate& each : run.candidates) {
    if (!written || run.writings.count(each.known.id) > 0) add(candidate_line(run, each));
  }
  if (written) return text;
  for (const ExchangeRequest& request : run.requests) add(request_line(request));
  for (const ModelCall& call : run.calls) add(call_line(call));
  for (const ClosedLine& closed : run.closed) add(closed_line(closed));
  if (run.confirmation) add(confirmation_line(*run.confirmation));
  return text;
}

Result<StoredRun> run_from_text(const std::string& text, const std::string& name) {
  const auto refuse = [&](const std::string& what) {
    return fail(ErrorKind::kStore, name + " is not a run as text: " + what,
                "name a run's folder, or a file that kernelpro trajectories wrote");
  };
  StoredRun run;
  std::size_t number = 0;
  for (const std::string& line : lines(text)) {
    const char* wrong = read_line(line, ++number == 1, &run);
    if (wrong != nullptr) return refuse("line " + std::to_string(number) + ": " + wrong);
  }
  if (number == 0) return refuse("it is empty");
  if (!positions_are_whole(run)) return refuse("positions of evaluations are not 1, 2, ...");
  return run;
}

}  // namespace kernelpro
