// SPDX-License-Identifier: Apache-2.0
#include "measure/cuda/profile.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/cuda_toolkit.h"
#include "base/files.h"
#include "base/process/subprocess.h"
#include "base/process/worker_path.h"
#include "base/text.h"
#include "core/plan/worker_role.h"
#include "core/task/key.h"
#include "measure/cuda/replay.h"
#include "measure/cuda/worker.h"

namespace kernelpro {

namespace {

constexpr double kLoadTimeout = 60;
constexpr double kNcuTimeout = 120;
constexpr unsigned kAgainAfterUs = 300'000;
constexpr std::size_t kMostSaid = 400;
constexpr int kPatient = 2;  // candidates in a row that went without: one attempt each from then on

Json metrics_json(CounterSet set) {
  Json all = Json::array();
  for (const std::string& name : counters_of(set)) all.push_back(name);
  return all;
}

Missing why_not(const Answer& answer) {
  return missing_from(answer, Family::kCounters, "profiled", "use `ncu` and import its report");
}

}  // namespace

void CudaProfile::start_ahead(const Task& task, const std::vector<CudaCase>& cases) {
  if (out_of_reach_) return;
  if (link_ && !link_->running()) link_.reset();
  if (link_) return;
  Result<CudaLink> link = CudaLink::start(WorkerRole::kCudaProfiler, gpu_);
  if (!link) return;  // reported when counters are requested
  link_ = std::move(*link);
  prepared_ = CounterSet::kOff;
  post_cases(*link_, task, cases, fresh_secret());
}

bool CudaProfile::prepare(const Task& task, const std::vector<CudaCase>& cases, CounterSet set) {
  start_ahead(task, cases);
  if (link_ && prepared_ != set) {
    link_->post({{"do", "prepare"}, {"metrics", metrics_json(set)}});
    prepared_ = set;
  }
  settle();
  return link_ && prepared_ == set;
}

void CudaProfile::settle() {
  if (!link_) return;
  const Answer answer = link_->settle(kStartTimeout);
  if (std::holds_alternative<Reply>(answer)) return;
  const auto* refusal = std::get_if<Refusal>(&answer);
  failed_ = why_not(answer);
  const RefusalKind kind = refusal != nullptr ? refusal->kind : RefusalKind::kNone;
  if (kind == RefusalKind::kBusy) {
    prepared_ = CounterSet::kOff;  // to be asked again
    return;
  }
  const bool forbidden = kind == RefusalKind::kForbidden;
  if (forbidden || kind == RefusalKind::kUnavailable) out_of_reach_ = failed_;
  if (forbidden) try_ncu_ = false;  // what keeps CUPTI from the counters keeps ncu too
  link_.reset();
}

void CudaProfile::release() {
  settle();
  if (!link_) return;
  prepared_ = CounterSet::kOff;
  if (!std::holds_alternative<Reply>(link_->ask({{"do", "release"}}, kStartTimeout))) link_.reset();
}

CounterAnswers CudaProfile::collect(const Task& task, const std::vector<CudaCase>& cases,
                                    const CudaCase& state, const Binary& binary,
                                    const LaunchPlan& plan, CounterSet set, double timeout_s) {
  const double start = real_clock().now_s();
  bool prepared = prepare(task, cases, set);
  // A monitor may hold them for long, and each attempt waits.
  if (!prepared && !out_of_reach_ && without_ < kPatient) {
    // The previous process may be slow to release the counters.
    ::usleep(kAgainAfterUs);
    prepared = prepare(task, cases, set);
  }
  without_ = prepared ? 0 : without_ + 1;
  const double ready = real_clock().now_s();
  CounterAnswers answers;
  if (out_of_reach_) {
    answers = without_cupti(state, binary, plan, set);
  } else if (!prepared) {
    answers.missing.push_back(
        failed_.value_or(Missing{Family::kCounters, "the profiling process cannot be started",
                                 "run again; `kernelpro doctor` shows what is missing"}));
  } else {
    move_to(*link_, task, cases, binary.place);
    answers = ask(state, binary, plan, set, timeout_s);
  }
  answers.set = set;
  answers.phases_ms["start"] = (ready - start) * 1e3;
  answers.phases_ms["total"] = (real_clock().now_s() - start) * 1e3;
  return answers;
}

CounterAnswers CudaProfile::without_cupti(const CudaCase& state, const Binary& binary,
                                          const LaunchPlan& plan, CounterSet set) {
  CounterAnswers answers;
  answers.missing.push_back(*out_of_reach_);
  if (!try_ncu_ || !binary.images.empty()) return answers;  // ncu's replay has one image
  auto report = ncu_report(binary, plan, state, set, kNcuTimeout, gpu_);
  if (report) {
    answers.source = "ncu";
    answers.report = std::move(*report);
    answers.missing.clear();
    return answers;
  }
  try_ncu_ = false;
  answers.missing.push_back({Family::kCounters, report.error().message, report.error().next});
  return answers;
}

CounterAnswers CudaProfile::ask(const CudaCase& state, const Binary& binary, const LaunchPlan& plan,
                                CounterSet set, double timeout_s) {
  CounterAnswers answers;
  const auto give_up = [&](const Answer& answer) {
    answers.missing.push_back(why_not(answer));
    link_.reset();  // whatever state it is in
    return answers;
  };
  const Answer loaded =
      link_->ask(load_command(state.c->name, "candidate", binary, plan), kLoadTimeout);
  if (!std::holds_alternative<Reply>(loaded)) return give_up(loaded);
  const Answer profiled = link_->ask({{"do", "profile"},
                                      {"case", state.c->name},
                                      {"subject", "candidate"},
                                      {"set", 0},
                                      {"metrics", metrics_json(set)}},
                                     timeout_s);
  const auto* reply = std::get_if<Reply>(&profiled);
  if (reply == nullptr) return give_up(profiled);
  auto read = counter_answers_from_json(dump_json(JsonReader(reply->json).object("answers")));
  if (read) return std::move(*read);
  answers.missing.push_back(
      {Family::kCounters, "the profiling process's answer cannot be read", "run again"});
  return answers;
}

Result<std::string> ncu_report(const Binary& binary, const LaunchPlan& plan, const CudaCase& state,
                               CounterSet set, double timeout_s, const std::string& gpu) {
  const std::string ncu = find_cuda_tool("ncu");
  if (ncu.empty()) {
    return fail(ErrorKind::kEnvironment, "Nsight Compute (ncu) was not found",
                "install Nsight Compute, or CUPTI with the CUDA toolkit");
  }
  KP_ASSIGN(const std::string worker, worker_path());
  const TempDir folder;
  const std::string replay = join(folder.path(), "replay.json");
  KP_TRY(write_replay(replay, binary, plan, placed(state.layout, binary.place), state.judged));
  const std::string report = join(folder.path(), "report.csv");
  Command command;
  // The replay marks where launches start to count; clocks stay as for timing.
  command.argv = {ncu,
                  "--csv",
                  "--page",
                  "raw",
                  "--print-units",
                  "base",
                  "--log-file",
                  report,
                  "--profile-from-start",
                  "off",
                  "--clock-control",
                  "none",
                  "--metrics",
                  join_text(counters_of(set), ","),
                  worker,
                  worker_role_name(WorkerRole::kCudaReplay),
                  replay};
  command.env = {"LC_ALL=C"};
  if (!gpu.empty()) command.env.push_back("CUDA_VISIBLE_DEVICES=" + gpu);
  command.limits.wall_seconds = timeout_s;
  KP_ASSIGN(const auto exit, run(command));
  Result<std::string> text = read_file(report);
  if (text && contains(*text, "gpu__time_duration")) return text;
  const std::string said = exit.output + (text ? *text : std::string());
  return fail(ErrorKind::kEnvironment,
              "ncu gave no report: " + (trim(said).empty() ? exit.describe(command.limits)
                                                           : clip(trim(said), kMostSaid)),
              contains(said, "ERR_NVGPUCTRPERM")
                  ? "let users read counters: load the nvidia module with "
                    "NVreg_RestrictProfilingToAdminUsers=0, or run as root or with CAP_SYS_ADMIN"
                  : "run ncu on a program of your own to see whether it works here");
}

}  // namespace kernelpro
