// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <set>

#include "base/files.h"
#include "base/text.h"
#include "cli/commands.h"
#include "core/json.h"
#include "core/knobs.h"
#include "diagnose/diagnose.h"
#include "report/view.h"
#include "run/target.h"
#include "task/loader.h"

namespace kernelpro {

namespace {

constexpr OptionSpec kOptions[] = {
    {"TASK", "", "", "Folder with the task's task.toml.", true},
    {"KERNEL", "", "", "Source file of the candidate (.cpp or .cu).", true},
    {"--target", "TARGET", "auto", "Where it runs; by default what the file's name says.", false,
     "auto|cpu|cuda"},
    {"--knob", "NAME=VALUE...", "", "Value of a knob; the first one of its list by default."},
    {"--timeout", "S", "30", "Longest time for one call."},
    {"--seed", "N", "1", "Inputs are drawn from it."},
    {"--json", "", "", "Print the evaluation, the evidence and the diagnosis as JSON."},
};

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

TargetKind target_of(const Options& options) {
  if (const auto target = target_from_name(options.text("--target"))) return *target;
  const std::string file = options.text("KERNEL");
  return ends_with(file, ".cu") ? TargetKind::kCuda : TargetKind::kCpu;
}

std::vector<std::string> dimension_names(const Task& task) {
  std::set<std::string> names;
  for (const Case& c : task.cases) {
    for (const auto& [name, value] : c.dims) names.insert(name);
  }
  return {names.begin(), names.end()};
}

Candidate make_candidate(const Task& task, TargetKind target, const std::string& source) {
  Candidate candidate;
  candidate.language = target == TargetKind::kCuda ? Language::kCuda : Language::kCpp;
  candidate.source = source;
  candidate.knobs = default_values(require(parse_knobs(source, dimension_names(task))));
  candidate.origin.proposer = "given";
  return candidate;
}

void set_knobs(const Options& options, Candidate* candidate) {
  if (!options.has("--knob")) return;
  for (const std::string& setting : lines(options.text("--knob"))) {
    const std::size_t equals = setting.find('=');
    const std::string name = setting.substr(0, equals);
    if (equals == std::string::npos || equals + 1 == setting.size()) {
      throw Fatal({ErrorKind::kBadInput, "--knob \"" + setting + "\" is not NAME=VALUE",
                   "write it as in --knob TILE=32"});
    }
    const auto knob = candidate->knobs.find(name);
    if (knob == candidate->knobs.end()) {
      throw Fatal({ErrorKind::kBadInput, "the kernel has no knob \"" + name + "\"",
                   candidate->knobs.empty()
                       ? "leave --knob out, or declare it: // @knob " + name + " 16 32"
                       : "it has " + knobs_to_text(candidate->knobs)});
    }
    knob->second = setting.substr(equals + 1);
  }
}

// The task's starting kernel, for comparison; nullopt when there is none or it does not build.
std::optional<Subject> starting_subject(const Task& task, TargetKind kind, Target& target) {
  const std::string& source = kind == TargetKind::kCuda ? task.kernel_cu : task.kernel_cpp;
  if (source.empty()) return std::nullopt;
  double compile_ms = 0;
  auto built = build(task, kind, *target.compiler, make_candidate(task, kind, source), &compile_ms);
  if (!built || !std::holds_alternative<Subject>(*built)) return std::nullopt;
  return std::get<Subject>(*built);
}

Json parsed(const std::string& text) { return parse_json(text).value_or(Json()); }

void print_text(const Evaluation& evaluation, const Diagnosis& diagnosis) {
  std::printf("%s\n", outcome_summary(evaluation.outcome).c_str());
  const Correct* correct = evaluation.correct();
  if (correct == nullptr) return;
  for (const Timing& timing : correct->timings) {
    std::printf("  %-16s %s (95 %% interval %s to %s, %d samples, %s)\n", timing.case_name.c_str(),
                human_us(timing.median_us).c_str(), human_us(timing.low_us).c_str(),
                human_us(timing.high_us).c_str(), timing.samples, timing.method.c_str());
  }
  if (correct->versus) {
    std::printf("  %s the starting kernel's speed (%s to %s)\n",
                speedup_text(correct->versus->ratio).c_str(),
                speedup_text(correct->versus->low).c_str(),
                speedup_text(correct->versus->high).c_str());
  }
  std::printf("\n%s", diagnosis_to_text(diagnosis).c_str());
}

Evaluation judge(const Task& task, TargetKind kind, Target& target, const Candidate& candidate,
                 Evidence* evidence) {
  require(target.evaluator->prepare());
  double compile_ms = 0;
  auto built = require(build(task, kind, *target.compiler, candidate, &compile_ms));
  Evaluation evaluation;
  if (auto* error = std::get_if<CompileError>(&built)) {
    evaluation.outcome = std::move(*error);
  } else {
    const Subject& subject = std::get<Subject>(built);
    const std::optional<Subject> start = starting_subject(task, kind, target);
    const bool same = start && start->hash == subject.hash;
    evaluation = require(target.evaluator->evaluate(subject, start && !same ? &*start : nullptr));
    *evidence = observe(task, kind, target, subject, evaluation);
  }
  evaluation.compile_ms = compile_ms;
  return evaluation;
}

int run_evaluate(const Options& options) {
  const Task task = require(load_task(options.text("TASK")));
  const TargetKind kind = target_of(options);
  const std::string source = require(read_file(options.text("KERNEL"), 4 << 20));
  Candidate candidate = make_candidate(task, kind, source);
  set_knobs(options, &candidate);
  RunSettings settings;
  settings.target = kind;
  settings.timeout_s = options.real("--timeout");
  settings.seed = static_cast<std::uint64_t>(options.integer("--seed"));

  Target target = require(make_target(task, settings));
  Evidence evidence;
  const Evaluation evaluation = judge(task, kind, target, candidate, &evidence);
  const Diagnosis diagnosis = evaluation.correct() != nullptr ? diagnose(evidence) : Diagnosis();
  if (options.flag("--json")) {
    const Json json = {{"outcome", outcome_name(evaluation.outcome)},
                       {"time_us", score_us(evaluation)},
                       {"knobs", candidate.knobs},
                       {"evaluation", parsed(evaluation_to_json(evaluation))},
                       {"evidence", parsed(evidence_to_json(evidence))},
                       {"diagnosis", parsed(diagnosis_to_json(diagnosis))}};
    std::printf("%s\n", dump_json(json, 2).c_str());
  } else {
    print_text(evaluation, diagnosis);
  }
  return evaluation.correct() != nullptr ? 0 : 1;
}

}  // namespace

const Subcommand kEvaluate{"evaluate", "Check, time and diagnose one kernel.", kOptions,
                           run_evaluate};

}  // namespace kernelpro
