// SPDX-License-Identifier: Apache-2.0
#include "core/evaluation/evaluation.h"

#include <algorithm>
#include <iterator>

#include "base/json.h"
#include "base/rows.h"
#include "base/statistics/statistics.h"
#include "base/text.h"

namespace kernelpro {

namespace {
template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

struct OutcomeRow {
  OutcomeKind kind;
  std::string_view name;
};
constexpr OutcomeRow kOutcomes[] = {
    {OutcomeKind::kCompileError, "compile-error"}, {OutcomeKind::kCrashed, "crashed"},
    {OutcomeKind::kTimedOut, "timed-out"},         {OutcomeKind::kWrongResult, "wrong-result"},
    {OutcomeKind::kRejected, "rejected"},          {OutcomeKind::kCorrect, "correct"},
};
static_assert(rows_are_in_order(kOutcomes, &OutcomeRow::kind));
static_assert(std::size(kOutcomes) == std::variant_size_v<Outcome>);

}  // namespace

OutcomeKind outcome_kind(const Outcome& outcome) {
  return static_cast<OutcomeKind>(outcome.index());
}

std::string_view outcome_name(OutcomeKind kind) {
  return kOutcomes[static_cast<std::size_t>(kind)].name;
}

std::string outcome_name(const Outcome& outcome) {
  return std::string(outcome_name(outcome_kind(outcome)));
}

std::optional<OutcomeKind> outcome_kind_from_name(std::string_view name) {
  for (const OutcomeRow& row : kOutcomes) {
    if (row.name == name) return row.kind;
  }
  return std::nullopt;
}

Outcome bare_outcome(OutcomeKind kind) {
  switch (kind) {
    case OutcomeKind::kCompileError:
      return CompileError();
    case OutcomeKind::kCrashed:
      return Crashed();
    case OutcomeKind::kTimedOut:
      return TimedOut();
    case OutcomeKind::kWrongResult:
      return WrongResult();
    case OutcomeKind::kRejected:
      return Rejected();
    case OutcomeKind::kCorrect:
      break;
  }
  return Correct();
}

bool has_label(const Correct& correct, Label label) {
  const auto& labels = correct.labels;
  return std::find(labels.begin(), labels.end(), label_name(label)) != labels.end();
}

bool is_host_form(const Correct& correct) { return has_label(correct, Label::kHostForm); }

bool is_screened(const Evaluation& evaluation) {
  return evaluation.correct() != nullptr && evaluation.correct()->observed.contains(kScreened);
}

Borne borne_by(const Correct* start) { return start == nullptr ? Borne() : start->labels; }

bool is_partial(const Correct& correct, const Borne& borne) {
  return std::ranges::any_of(correct.labels, [&](const std::string& label) {
    return is_partial(label) && std::ranges::find(borne, label) == borne.end();
  });
}

bool outranks(const Correct& a, const Correct& b, const Borne& borne) {
  if (is_host_form(a) != is_host_form(b)) return is_host_form(b);
  return !is_partial(a, borne) && is_partial(b, borne);
}

bool beats(const Correct& a, double cost_a, const Correct& b, double cost_b, const Borne& borne) {
  return outranks(a, b, borne) || (cost_a < cost_b && !outranks(b, a, borne));
}

bool perhaps_killed(const Outcome& outcome) {
  const auto* crashed = std::get_if<Crashed>(&outcome);
  return crashed != nullptr && crashed->by != Crashed::By::kItself;
}

namespace {

// The first line of a compiler's log that states an error: "In function ..." comes before it.
std::string first_error(const std::string& log) {
  for (const std::string& line : lines(log)) {
    if (contains(line, "error")) return std::string(trim(line));
  }
  return first_line(log);
}

}  // namespace

std::string outcome_summary(const Outcome& outcome) {
  return std::visit(
      Overloaded{[](const CompileError& o) { return "does not compile: " + first_error(o.log); },
                 [](const Crashed& o) { return "crashed: " + o.reason; },
                 [](const TimedOut& o) {
                   return "ran longer than " + human_seconds(o.seconds) + " while " + o.phase;
                 },
                 [](const WrongResult& o) {
                   return "wrong result in " + o.tensor + " (case " + o.case_name +
                          "): " + o.reason;
                 },
                 [](const Rejected& o) { return "rejected (" + o.rule + "): " + o.reason; },
                 [](const Correct& o) {
                   std::string text(outcome_name(OutcomeKind::kCorrect));
                   for (const Timing& t : o.timings)
                     text += ", " + t.case_name + " " + human_us(t.median_us);
                   if (o.energy) text += ", " + number(o.energy->millijoules, 4) + " mJ a call";
                   return text;
                 }},
      outcome);
}

std::string energy_text(const Energy& e) {
  std::string text = number(e.millijoules, 4) + " mJ a call in case " + e.case_name + " (" +
                     number(e.low, 4) + " to " + number(e.high, 4) + "; " + number(e.busy_w, 3) +
                     " W, of which idle " + number(e.idle_w, 3) + " W; " +
                     std::to_string(e.windows) + " windows of " + number(e.window_s, 2) +
                     " s vary by " + number(100 * e.variation, 2) + " %; " + e.method + ")";
  if (e.versus) {
    text += ", " + number(1 / e.versus->ratio, 4) + " of the incumbent's (" +
            number(1 / e.versus->high, 4) + " to " + number(1 / e.versus->low, 4) + ")";
  }
  return text;
}

double score_us(const Evaluation& evaluation) {
  const Correct* correct = evaluation.correct();
  if (correct == nullptr || correct->timings.empty()) return 0;
  if (correct->timings.size() == 1) return correct->timings.front().median_us;  // to the last bit
  std::vector<double> times;
  for (const Timing& t : correct->timings) times.push_back(t.median_us);
  return geometric_mean(times);
}

namespace {
Json energy_json(const Energy& e) {
  Json json = {{"case", e.case_name},
               {"millijoules", e.millijoules},
               {"low", e.low},
               {"high", e.high},
               {"variation", e.variation},
               {"windows", e.windows},
               {"window_s", e.window_s},
               {"busy_w", e.busy_w},
               {"idle_w", e.idle_w},
               {"call_us", e.call_us},
               {"method", e.method}};
  if (e.versus) {
    json["versus"] = {{"ratio", e.versus->ratio}, {"low", e.versus->low}, {"high", e.versus->high}};
  }
  return json;
}
}  // namespace

std::string evaluation_to_json(const Evaluation& evaluation) {
  Json o = {{"kind", outcome_name(evaluation.outcome)}};
  std::visit(Overloaded{[&](const CompileError& v) { o["log"] = v.log; },
                        [&](const Crashed& v) {
                          o["reason"] = v.reason;
                          o["output"] = v.output;
                        },
                        [&](const TimedOut& v) {
                          o["seconds"] = v.seconds;
                          o["phase"] = v.phase;
                        },
                        [&](const WrongResult& v) {
                          o["case"] = v.case_name;
                          o["tensor"] = v.tensor;
                          o["reason"] = v.reason;
                          o["error"] = std::isfinite(v.error) ? Json(v.error) : Json(nullptr);
                          o["tolerance"] = v.tolerance;
                        },
                        [&](const Rejected& v) {
                          o["rule"] = v.rule;
                          o["reason"] = v.reason;
                        },
                        [&](const Correct& v) {
                          Json timings = Json::array();
                          for (const Timing& t : v.timings) {
                            timings.push_back({{"case", t.case_name},
                                               {"median_us", t.median_us},
                                               {"low_us", t.low_us},
                                               {"high_us", t.high_us},
                                               {"samples", t.samples},
                                               {"method", t.method}});
                          }
                          o["timings"] = timings;
                          o["max_error"] = v.max_error;
                          if (v.versus) {
                            o["versus"] = {{"incumbent", v.versus->incumbent},
                                           {"ratio", v.versus->ratio},
                                           {"low", v.versus->low},
                                           {"high", v.versus->high}};
                          }
                          if (v.energy) o["energy"] = energy_json(*v.energy);
                          o["observed"] = v.observed;
                          if (!v.labels.empty()) o["labels"] = v.labels;
                          if (!v.notes.empty()) o["notes"] = v.notes;
                        }},
             evaluation.outcome);
  return dump_json({{"outcome", o},
                    {"compile_ms", evaluation.compile_ms},
                    {"run_ms", evaluation.run_ms},
                    {"trust", evaluation.trust},
                    {"code", evaluation.code}});
}

namespace {
Energy read_energy(const JsonReader& r) {
  Energy e;
  e.case_name = r.text("case");
  e.millijoules = r.real("millijoules");
  e.low = r.real("low");
  e.high = r.real("high");
  e.variation = r.real("variation");
  e.windows = static_cast<int>(r.integer("windows"));
  e.window_s = r.real("window_s");
  e.busy_w = r.real("busy_w");
  e.idle_w = r.real("idle_w");
  e.call_us = r.real("call_us");
  e.method = r.text("method");
  if (r.member("versus") != nullptr) {
    const JsonReader v(r.object("versus"));
    e.versus = {v.real("ratio", 1), v.real("low", 1), v.real("high", 1)};
  }
  return e;
}

Correct read_correct(const JsonReader& o) {
  Correct v;
  for (const Json& t : o.array("timings")) {
    const JsonReader r(t);
    v.timings.push_back({r.text("case"), r.real("median_us"), r.real("low_us"), r.real("high_us"),
                         static_cast<int>(r.integer("samples")), r.text("method")});
  }
  v.max_error = o.real("max_error");
  if (o.member("versus") != nullptr) {
    const JsonReader r(o.object("versus"));
    v.versus = {r.text("incumbent"), r.real("ratio", 1), r.real("low", 1), r.real("high", 1)};
  }
  if (o.member("energy") != nullptr) v.energy = read_energy(JsonReader(o.object("energy")));
  for (const auto& [name, value] : o.object("observed").items()) {
    if (value.is_number()) v.observed[name] = value.get<double>();
  }
  const auto texts = [&](const char* member, std::vector<std::string>* out) {
    for (const Json& text : o.array(member)) {
      if (text.is_string()) out->push_back(text.get<std::string>());
    }
  };
  texts("labels", &v.labels);
  texts("notes", &v.notes);
  return v;
}

std::optional<Outcome> read_outcome(const JsonReader& o) {
  const std::optional<OutcomeKind> kind = outcome_kind_from_name(o.text("kind"));
  if (!kind) return std::nullopt;
  switch (*kind) {
    case OutcomeKind::kCompileError:
      return CompileError{o.text("log")};
    case OutcomeKind::kCrashed:
      return Crashed{o.text("reason"), o.text("output")};
    case OutcomeKind::kTimedOut:
      return TimedOut{o.real("seconds"), o.text("phase")};
    case OutcomeKind::kWrongResult:
      return WrongResult{o.text("case"), o.text("tensor"), o.text("reason"),
                         o.real("error", INFINITY), o.real("tolerance")};
    case OutcomeKind::kRejected:
      return Rejected{o.text("rule"), o.text("reason")};
    case OutcomeKind::kCorrect:
      break;
  }
  return read_correct(o);
}
}  // namespace

std::optional<Evaluation> evaluation_from_json(const std::string& json) {
  const std::optional<Json> root = parse_json(json);
  if (!root) return std::nullopt;
  const JsonReader r(*root);
  const std::optional<Outcome> outcome = read_outcome(JsonReader(r.object("outcome")));
  if (!outcome) return std::nullopt;
  return Evaluation{*outcome, r.real("compile_ms"), r.real("run_ms"), r.text("trust"),
                    r.text("code")};
}

}  // namespace kernelpro
