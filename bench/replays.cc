// SPDX-License-Identifier: Apache-2.0
// Writes input for the role cuda-replay, for tools that profile a whole process: one call of each
// kernel in its task's last timed case. Needs a GPU to capture host code.
//   bench_replays TASK FOLDER KERNEL.cu...  ->  FOLDER/0.json, FOLDER/1.json, ...
// A kernel that does not build or cannot be captured is reported on stderr and skipped.
#include <cstdio>
#include <string>

#include "base/files.h"
#include "build/build.h"
#include "core/plan/protocol.h"
#include "core/plan/worker_role.h"
#include "core/task/key.h"
#include "measure/ceilings/ceilings.h"
#include "measure/cuda/capture.h"
#include "measure/cuda/replay.h"
#include "measure/station/target.h"
#include "task/open/open_task.h"

namespace kernelpro {
namespace {

constexpr std::uint64_t kGranularity = 2 << 20;
constexpr std::uint64_t kBase = 0x200000000000;
constexpr std::uint64_t kSeed = 1;
constexpr double kTimeout = 60;  // seconds: a compilation, a capture

const Case* timed_case(const Task& task) {
  const Case* last = nullptr;
  for (const Case* c : cases_for(task, TargetKind::kCuda)) {
    if (c->timed) last = c;
  }
  return last;
}

Result<LaunchPlan> plan_of(const Binary& binary, const AddressLayout& layout) {
  if (binary.form == Binary::Form::kPlanForm) return binary.plan;
  KP_ASSIGN(CudaLink link, CudaLink::start(WorkerRole::kCudaCapture));
  KP_ASSIGN(auto captured, capture_plan(std::move(link), binary, "launch", layout, kTimeout));
  if (auto* plan = std::get_if<LaunchPlan>(&captured)) return std::move(*plan);
  return fail(ErrorKind::kBadInput, outcome_summary(std::get<Outcome>(captured)),
              "evaluate the kernel first");
}

Result<void> write_one(const Task& task, const Case& c, Compiler& compiler, const std::string& file,
                       const std::string& to) {
  KP_ASSIGN(const auto source, read_file(file));
  Candidate candidate;
  candidate.language = Language::kCuda;
  candidate.source = source;
  double compile_ms = 0;
  KP_ASSIGN(const auto built, build(task, TargetKind::kCuda, compiler, candidate, &compile_ms));
  if (const auto* error = std::get_if<CompileError>(&built)) {
    return fail(ErrorKind::kBadInput, error->log, "evaluate the kernel first");
  }
  const std::vector<JudgeTensor> tensors = judge_tensors(task, c, Policy::kContract, true);
  std::vector<std::uint64_t> sizes;
  for (const JudgeTensor& tensor : tensors) sizes.push_back(tensor.bytes);
  const AddressLayout layout =
      make_layout(sizes, static_cast<std::uint64_t>(workspace_bytes(task, c)), kGranularity, kBase);
  for (const Binary& binary : std::get<Subject>(built).binaries) {
    if (binary.case_name != c.name) continue;
    KP_ASSIGN(const LaunchPlan plan, plan_of(binary, layout));
    return write_replay(to, binary, plan, layout, tensors, key_of(kSeed));
  }
  return fail(ErrorKind::kInternal, "nothing was built for case " + c.name, "report it");
}

int fail_with(const Error& error) {
  std::fprintf(stderr, "%s\n", error.text().c_str());
  return 2;
}

int main_of_replays(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: bench_replays TASK FOLDER KERNEL.cu...\n");
    return 2;
  }
  OpenSettings open;
  open.target = TargetKind::kCuda;
  const auto opened = open_task(argv[1], open);
  if (!opened) return fail_with(opened.error());
  const Case* c = timed_case(opened->task);
  const Result<Machine> machine = describe_cuda_machine();
  if (!machine) return fail_with(machine.error());
  CompileSettings settings;
  settings.timeout_s = kTimeout;
  settings.cuda_arch = machine->arch;
  const auto compiler = make_cuda_compiler(settings);
  if (!compiler) return fail_with(compiler.error());
  int status = c == nullptr ? 2 : 0;
  for (int i = 3; c != nullptr && i < argc; ++i) {
    const std::string to = join(argv[2], std::to_string(i - 3) + ".json");
    const Result<void> written = write_one(opened->task, *c, **compiler, argv[i], to);
    if (written) continue;
    std::fprintf(stderr, "%s: %s\n", argv[i], written.error().text().c_str());
    status = 1;
  }
  return status;
}

}  // namespace
}  // namespace kernelpro

int main(int argc, char** argv) { return kernelpro::main_of_replays(argc, argv); }
