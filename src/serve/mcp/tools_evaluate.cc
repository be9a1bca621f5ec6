// SPDX-License-Identifier: Apache-2.0
// evaluate, compare and finish: the tools that run kernels.
#include <algorithm>

#include "base/files.h"
#include "base/text.h"
#include "core/candidate/language.h"
#include "report/export/export.h"
#include "report/export/export_text.h"
#include "report/report.h"
#include "report/view.h"
#include "serve/mcp/arguments.h"
#include "serve/mcp/resources.h"
#include "serve/mcp/tools.h"
#include "task/load/header.h"
#include "write/prompt/reply.h"

namespace kernelpro {

namespace {

Error cancelled_error() {
  return {ErrorKind::kEnvironment, "the call was cancelled", "call again"};
}

Result<Sitting::Given> given_source(const Sitting& sitting, const Json& arguments,
                                    const char* name) {
  const JsonReader given(arguments);
  Sitting::Given one;
  const TargetKind target = sitting.settings().target;
  one.kernel.language =
      language_from_name(given.text("language")).value_or(native_language(target).language);
  const LanguageRow& row = language_row(one.kernel.language);
  if (row.target != target) {
    return fail(ErrorKind::kBadInput,
                "a " + std::string(row.name) + " kernel does not run on the " +
                    std::string(target_name(target)) + " target",
                "leave the language out, or name the other target");
  }
  KP_ASSIGN(one.kernel.source, source_of_reply(given.text(name), one.kernel.language));
  for (const auto& [knob, value] : given.object("knobs").items()) {
    one.kernel.knobs[knob] = value.get<std::string>();
  }
  one.idea = printable(clip(given.text("idea"), 1000));
  if (one.idea.empty()) one.idea = idea_of(one.kernel.source);
  one.answers = FindingRef::parse(printable(clip(given.text("answers"), 200)));
  one.parent = given.integer("parent");
  return one;
}

Result<Sitting::Evaluated> evaluate(Sitting& sitting, const Sitting::Given& given, Ticket& ticket) {
  KP_ASSIGN(auto done,
            sitting.evaluate(given, [&](const std::string& phase) { ticket.phase(phase); }));
  if (!done) return tl::unexpected<Error>(cancelled_error());
  return std::move(*done);
}

// One side of a comparison: an evaluated candidate by number, or a source to evaluate now.
Result<Sitting::RowPtr> side(Sitting& sitting, const Json& arguments, const std::string& which,
                             Ticket& ticket) {
  const JsonReader given(arguments);
  const std::string source = "source_" + which;
  if (given.member(source.c_str()) != nullptr) {
    KP_ASSIGN(auto one, given_source(sitting, arguments, source.c_str()));
    KP_ASSIGN(auto done, evaluate(sitting, one, ticket));
    return done.row;
  }
  const std::int64_t id = given.integer(("candidate_" + which).c_str());
  if (id == 0 && which == "b" && sitting.best() != nullptr) return sitting.best();
  auto row = sitting.row(id);
  if (row != nullptr) return row;
  return fail(ErrorKind::kBadInput,
              "this run has no candidate " + std::to_string(id) + " that was evaluated",
              "give candidate_" + which + " as history lists it, or source_" + which);
}

// Writes the winner's files; returns their paths, most important first.
Result<std::vector<std::string>> write_winner(const Sitting& sitting, const Known& winner) {
  std::vector<std::string> paths;
  const std::string folder = join(sitting.directory(), "winner");
  KP_TRY(make_dirs(folder));
  const auto write = [&](const std::string& path, const std::string& text) -> Result<void> {
    paths.push_back(absolute(path));
    return write_file(path, text);
  };
  const LanguageRow& language = language_row(winner.candidate.language);
  KP_TRY(write(join(folder, kernel_file_name(language)),
               with_fixed_knobs(winner.candidate.source, winner.candidate.knobs)));
  const TargetKind target = sitting.settings().target;
  for (const Case* c : cases_for(sitting.task(), target)) {
    if (!c->timed) continue;
    KP_TRY(write(join(folder, "task.h"), task_header(sitting.task(), *c, target)));
    break;
  }
  if (language.instead_of_export.empty()) {
    ExportRequest request;
    request.task = &sitting.task();
    KP_ASSIGN(request.c, export_case(sitting.task(), language.target, ""));
    request.candidate = winner.candidate;
    request.device = sitting.machine();
    KP_ASSIGN(auto files, export_kernel(request));
    const std::string exported = join(sitting.directory(), "export");
    KP_TRY(make_dirs(exported));
    for (const ExportedFile& file : files) KP_TRY(write(join(exported, file.name), file.text));
  }
  KP_ASSIGN(auto html, html_report(sitting.directory()));
  KP_TRY(write(join(sitting.directory(), "report.html"), html));
  return paths;
}

}  // namespace

Result<ToolAnswer> evaluate_tool(Desk& desk, const Json& arguments, Ticket& ticket) {
  KP_TRY(desk.runners().check_idle());
  KP_ASSIGN(auto sitting, desk.sit(task_choice(arguments), ticket));
  KP_ASSIGN(const auto given, given_source(*sitting, arguments, "source"));
  KP_ASSIGN(const auto done, evaluate(*sitting, given, ticket));
  const Sitting::Row& row = *done.row;
  std::string text = row_text(*sitting, row);
  if (done.again) text = "This source was evaluated before; its result:\n" + text;
  if (row.known.evaluation.correct() != nullptr) {
    text += "\n" + diagnosis_to_text(row.known.diagnosis);
  }
  if (!done.note.empty()) text += "Note: " + one_line(done.note) + "\n";
  if (text.size() > kPageBytes) {
    text = clip(text, kPageBytes) + "\n[diagnose with candidate " + std::to_string(row.known.id) +
           " shows everything]\n";
  }
  Json json = row_json(*sitting, row);
  json["again"] = done.again;
  json["outside_ms"] = done.outside_ms;
  json["run"] = absolute(sitting->directory());
  return ToolAnswer{std::move(text), std::move(json)};
}

Result<ToolAnswer> compare_tool(Desk& desk, const Json& arguments, Ticket& ticket) {
  KP_TRY(desk.runners().check_idle());
  KP_ASSIGN(auto found, desk.sit(task_choice(arguments), ticket));
  Sitting& sitting = *found;
  // Resolve b first: it defaults to the best so far, which evaluating a may change.
  auto b = side(sitting, arguments, "b", ticket);
  if (!b && JsonReader(arguments).member("source_a") == nullptr) {
    return tl::unexpected<Error>(std::move(b.error()));
  }
  KP_ASSIGN(auto a, side(sitting, arguments, "a", ticket));
  // There was no b yet; evaluating a has added the start.
  if (!b) b = side(sitting, arguments, "b", ticket);
  if (!b) return tl::unexpected<Error>(std::move(b.error()));
  for (const auto& row : {a, *b}) {
    if (row->known.evaluation.correct() != nullptr) continue;
    return ToolAnswer{"There is nothing to compare.\n" + row_text(sitting, *row),
                      {{"a", a->known.id},
                       {"b", (*b)->known.id},
                       {"ratio", nullptr},
                       {"wrong", row_json(sitting, *row)}}};
  }
  const std::string names = "candidate " + std::to_string(a->known.id) + " and candidate " +
                            std::to_string((*b)->known.id);
  if (a->known.id == (*b)->known.id) {
    return fail(ErrorKind::kBadInput, "both sides are candidate " + std::to_string(a->known.id),
                "name two kernels that differ");
  }
  const auto was = sitting.best();
  KP_ASSIGN(auto duel,
            sitting.compare(*a, **b, [&](const std::string& phase) { ticket.phase(phase); }));
  if (!duel) return tl::unexpected<Error>(cancelled_error());
  const Correct* correct = duel->correct();
  if (correct == nullptr || !correct->versus) {
    return ToolAnswer{"Timing " + names + " in turn failed this time: " +
                          one_line(outcome_summary(duel->outcome)) + "\n",
                      {{"a", a->known.id}, {"b", (*b)->known.id}, {"ratio", nullptr}}};
  }
  const Correct::Versus& v = *correct->versus;
  const auto now = sitting.best();
  const std::string meaning = v.low > 1    ? "a is faster"
                              : v.high < 1 ? "b is faster"
                                           : "no difference is shown";
  return ToolAnswer{
      "a = candidate " + std::to_string(a->known.id) + ", b = candidate " +
          std::to_string((*b)->known.id) +
          "\ntime of b over time of a, timed in turn: " + number(v.ratio) + " (95 % interval " +
          number(v.low) + " to " + number(v.high) + "): " + meaning + ".\n" +
          (now == nullptr || now == was
               ? ""
               : "The best is now candidate " + std::to_string(now->known.id) + ".\n"),
      {{"a", a->known.id},
       {"b", (*b)->known.id},
       {"ratio", v.ratio},
       {"low", v.low},
       {"high", v.high},
       {"meaning", meaning}}};
}

Result<ToolAnswer> finish_tool(Desk& desk, const Json& arguments, Ticket& ticket) {
  KP_TRY(desk.runners().check_idle());
  KP_ASSIGN(auto found, desk.sit_again(task_choice(arguments)));
  Sitting& sitting = *found;
  KP_ASSIGN(auto done, sitting.finish([&](const std::string& phase) { ticket.phase(phase); }));
  if (!done) return tl::unexpected<Error>(cancelled_error());
  const RunResult& result = *done;
  const auto winner = sitting.row(result.best);
  if (winner == nullptr) {
    return fail(ErrorKind::kTask, "no candidate was confirmed in fresh processes",
                "evaluate others; history shows each one's first result");
  }
  ticket.phase("writing the report");
  KP_ASSIGN(const auto paths, write_winner(sitting, winner->known));
  const auto baseline = sitting.baseline();
  const bool start = baseline != nullptr && baseline->known.id == result.best;
  std::string text = "Candidate " + std::to_string(result.best) +
                     " won, confirmed in fresh "
                     "processes: " +
                     human_us(result.best_us) + " a call, ";
  text += start ? "which is the starting kernel itself.\n"
                : speedup_text(result.speedup) + " (" + speedup_text(result.speedup_low) + " to " +
                      speedup_text(result.speedup_high) + ") the start.\n";
  text += result.held_out;
  text += how_many(result.evaluations, "evaluation") + ". Files:\n";
  for (const std::string& path : paths) text += "- " + path + "\n";
  const FoundRun run{run_address(sitting.directory()), "", sitting.directory()};
  text += "The same for clients elsewhere: " + run_resource(run, "report.html") + ", " +
          run_resource(run, "kernel") + "\n";
  return ToolAnswer{std::move(text),
                    {{"candidate", result.best},
                     {"time_us", result.best_us},
                     {"speedup", result.speedup},
                     {"low", result.speedup_low},
                     {"high", result.speedup_high},
                     {"evaluations", result.evaluations},
                     {"held_out", result.held_out},
                     {"run", absolute(sitting.directory())},
                     {"resources", {run_resource(run, "report.html"), run_resource(run, "kernel")}},
                     {"files", paths}}};
}

}  // namespace kernelpro
