// SPDX-License-Identifier: Apache-2.0
#include "profile/trace/program.h"

#include <algorithm>
#include <cmath>

#include "base/files.h"
#include "base/process/worker_path.h"
#include "base/text.h"
#include "profile/inject/trace_format.h"
#include "profile/trace/file.h"

namespace kernelpro {

namespace {

constexpr std::size_t kQuoted = 600;  // bytes of a failed program's output

std::string last_words(const Exit& exit) {
  std::string_view output = trim(exit.output);
  if (output.size() > kQuoted) output = output.substr(output.size() - kQuoted);
  return output.empty() ? "" : "; it printed last: " + std::string(output);
}

Command make_command(const std::vector<std::string>& argv, const TraceOptions& options,
                     const std::string& tracer, const std::string& folder, int period = 0) {
  Command command;
  command.argv = argv;
  command.cwd = options.cwd;
  command.env = options.env;
  command.env.push_back("CUDA_INJECTION64_PATH=" + tracer);
  command.env.push_back(std::string(trace_format::kFolderVariable) + "=" + folder);
  if (!options.code) command.env.push_back(std::string(trace_format::kCodeVariable) + "=0");
  if (period > 0) {
    command.env.push_back(std::string(trace_format::kSampleVariable) + "=" +
                          std::to_string(period));
  }
  if (options.ranges && period == 0) command.env.push_back("NVTX_INJECTION64_PATH=" + tracer);
  if (!options.cupti.empty()) {
    command.env.push_back(std::string(trace_format::kCuptiVariable) + "=" + options.cupti);
  }
  command.limits.wall_seconds = options.timeout_s;
  command.limits.output_killed = 1ll << 30;  // the program may print a lot
  return command;
}

// Runs the program; `period` 0: traces it.
Result<TracedProgram> run_traced(const std::vector<std::string>& argv, const TraceOptions& options,
                                 int period) {
  const std::string tracer =
      options.tracer.empty() ? companion_path("libkernelpro_trace.so") : options.tracer;
  if (!exists(tracer)) {
    return fail(ErrorKind::kEnvironment, "the tracer library " + tracer + " does not exist",
                "build kernelpro where CUPTI's headers are (the CUDA toolkit has them)");
  }
  auto folder = std::make_shared<const TempDir>();
  const Command command = make_command(argv, options, absolute(tracer), folder->path(), period);
  KP_ASSIGN(Exit exit, run(command));
  const std::string ended = "the program " + exit.describe(command.limits);
  Result<Trace> trace = read_trace_folder(folder->path());
  if (!trace) {
    return fail(
        ErrorKind::kBadInput,
        (exit.ok() ? std::string("the program did not use CUDA") : ended + " before it used CUDA") +
            last_words(exit),
        "trace a program that launches kernels on this machine's NVIDIA GPU");
  }
  if (!exit.ok()) trace->notes.push_back(ended);
  TracedProgram traced{std::move(*trace), std::move(exit), {}, folder};
  for (const std::string& name : list_dir(folder->path())) {
    if (name.ends_with(trace_format::kCodeSuffix)) {
      traced.code.push_back(join(folder->path(), name));
    }
  }
  std::sort(traced.code.begin(), traced.code.end());
  return traced;
}

}  // namespace

Result<TracedProgram> trace_program(const std::vector<std::string>& argv,
                                    const TraceOptions& options) {
  KP_ASSIGN(TracedProgram traced, run_traced(argv, options, 0));
  const bool failed = !traced.exit.ok();
  const auto& notes = traced.trace.notes;
  if (traced.trace.empty() && notes.size() > (failed ? 1u : 0u)) {
    return fail(ErrorKind::kEnvironment, notes.front(),
                "`kernelpro doctor` shows what this GPU and driver allow");
  }
  return traced;
}

Result<SampleAnswers> sample_program(const std::vector<std::string>& argv,
                                     const TraceOptions& options, int period) {
  KP_ASSIGN(TracedProgram traced, run_traced(argv, options, period));
  SampleAnswers answers = std::move(traced.trace.samples);
  if (answers.kernels.empty()) {
    answers.source.clear();
    answers.missing.push_back({Family::kSamples,
                               traced.trace.notes.empty() ? "CUPTI took no samples of the program"
                                                          : traced.trace.notes.front(),
                               "`kernelpro doctor` shows what this GPU and driver allow"});
  }
  return answers;
}

int sampling_period_of(const Trace& trace) {
  // Clock and multiprocessors of a large GPU; a smaller one gives fewer samples.
  constexpr double kCyclesPerNs = 1.7, kUnits = 132, kMostSamples = 2e6;
  constexpr int kShortest = 8, kLongest = 31;
  double ns = 0;
  for (const Trace::Kernel& kernel : trace.kernels) {
    ns += static_cast<double>(kernel.end - kernel.start);
  }
  int period = kShortest;
  while (period < kLongest && std::ldexp(kMostSamples, period) < kUnits * kCyclesPerNs * ns) {
    ++period;
  }
  return period;
}

}  // namespace kernelpro
