// SPDX-License-Identifier: Apache-2.0
#include "profile/trace/program.h"

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
                     const std::string& tracer, const std::string& folder) {
  Command command;
  command.argv = argv;
  command.cwd = options.cwd;
  command.env = options.env;
  command.env.push_back("CUDA_INJECTION64_PATH=" + tracer);
  command.env.push_back(std::string(trace_format::kFolderVariable) + "=" + folder);
  if (options.ranges) command.env.push_back("NVTX_INJECTION64_PATH=" + tracer);
  if (!options.cupti.empty()) {
    command.env.push_back(std::string(trace_format::kCuptiVariable) + "=" + options.cupti);
  }
  command.limits.wall_seconds = options.timeout_s;
  command.limits.output_killed = 1ll << 30;  // the program may print a lot
  return command;
}

}  // namespace

Result<TracedProgram> trace_program(const std::vector<std::string>& argv,
                                    const TraceOptions& options) {
  const std::string tracer =
      options.tracer.empty() ? companion_path("libkernelpro_trace.so") : options.tracer;
  if (!exists(tracer)) {
    return fail(ErrorKind::kEnvironment, "the tracer library " + tracer + " does not exist",
                "build kernelpro where CUPTI's headers are (the CUDA toolkit has them)");
  }
  const TempDir folder;
  const Command command = make_command(argv, options, absolute(tracer), folder.path());
  KP_ASSIGN(Exit exit, run(command));
  const std::string ended = "the program " + exit.describe(command.limits);
  Result<Trace> trace = read_trace_folder(folder.path());
  if (!trace) {
    return fail(
        ErrorKind::kBadInput,
        (exit.ok() ? std::string("the program did not use CUDA") : ended + " before it used CUDA") +
            last_words(exit),
        "trace a program that launches kernels on this machine's NVIDIA GPU");
  }
  if (trace->empty() && !trace->notes.empty()) {
    return fail(ErrorKind::kEnvironment, trace->notes.front(),
                "`kernelpro doctor` shows what this GPU and driver allow");
  }
  if (!exit.ok()) trace->notes.push_back(ended);
  return TracedProgram{std::move(*trace), std::move(exit)};
}

Result<Trace> trace_program(const std::vector<std::string>& argv, double timeout_s) {
  TraceOptions options;
  options.timeout_s = timeout_s;
  KP_ASSIGN(TracedProgram traced, trace_program(argv, options));
  return std::move(traced.trace);
}

}  // namespace kernelpro
