// SPDX-License-Identifier: Apache-2.0
#include "standing.h"

#include <cstdio>
#include <cstdlib>

#include "base/clock.h"
#include "build/build.h"

namespace kernelpro::bench {

namespace {

constexpr const char* kDeviceCode =
    "#include \"task.h\"\n"
    "__device__ inline float leak(float v) { return v > 0 ? v : 0.25f * v; }\n"
    "__global__ void __launch_bounds__(256) leaky(const float* x, float* y) {\n"
    "  const long long i = 1ll * blockIdx.x * 256 + threadIdx.x;\n"
    "  if (i >= N / 4) return;\n"
    "  const float4 v = reinterpret_cast<const float4*>(x)[i];\n"
    "  reinterpret_cast<float4*>(y)[i] = {leak(v.x), leak(v.y), leak(v.z), leak(v.w)};\n"
    "  BODY\n"
    "}\n";
constexpr const char* kPlanForm =
    "KP_LAUNCH(leaky, kp::dim((N / 4 + 255) / 256), kp::dim(256), 0, arg::x, arg::y)\n";
constexpr const char* kHostForm =
    "extern \"C\" void launch(const Args& a, cudaStream_t stream) {\n"
    "  leaky<<<(N / 4 + 255) / 256, 256, 0, stream>>>(a.x, a.y);\n"
    "}\n";
constexpr const char* kCpuCode =
    "#include \"task.h\"\n"
    "extern \"C\" int fork();\n"
    "extern \"C\" void launch(const Args& a) {\n"
    "#pragma omp parallel for if (N > 200000)\n"
    "  for (long long i = 0; i < N; ++i) a.y[i] = a.x[i] > 0 ? a.x[i] : 0.25f * a.x[i];\n"
    "  BODY\n"
    "}\n";

std::string with_body(std::string source, const std::string& body) {
  const std::size_t at = source.find("BODY");
  return source.replace(at, 4, body);
}

}  // namespace

void give_up(const Error& error) {
  std::fprintf(stderr, "bench_evaluation: %s\n", error.text().c_str());
  std::exit(static_cast<int>(error.kind));
}

Task leaky_task(std::int64_t n) {
  Task task;
  task.name = "leaky";
  Tensor x;
  x.name = "x";
  x.shape = {"N"};
  Tensor y = x;
  y.name = "y";
  y.role = Role::kOutput;
  task.tensors = {x, y};
  Case c;
  c.name = "only";
  c.dims = {{"N", n}};
  c.timed = true;
  task.cases = {c};
  task.reference_cpp =
      "#include \"task.h\"\n"
      "extern \"C\" void reference(const ReferenceArgs& a) {\n"
      "  for (long long i = 0; i < N; ++i) a.y[i] = a.x[i] > 0 ? a.x[i] : 0.25 * a.x[i];\n"
      "}\n";
  // One core would take minutes: use only the GPU reference.
  if (n > (1 << 28)) task.reference_cpp.clear();
  task.reference_cu =
      "#include \"task.h\"\n"
      "__global__ void leaky(const float* x, double* y) {\n"
      "  const long long i = 1ll * blockIdx.x * 256 + threadIdx.x;\n"
      "  if (i < N) y[i] = x[i] > 0 ? x[i] : 0.25 * x[i];\n"
      "}\n"
      "extern \"C\" void reference(const ReferenceArgs& a, cudaStream_t stream) {\n"
      "  leaky<<<(N + 255) / 256, 256, 0, stream>>>(a.x, a.y);\n"
      "}\n";
  return task;
}

Candidate kernel(TargetKind target, const std::string& form, const std::string& body,
                 const std::string& note) {
  Candidate candidate;
  const bool cpu = target == TargetKind::kCpu;
  candidate.language = cpu ? Language::kCpp : Language::kCuda;
  candidate.source = with_body(cpu ? kCpuCode : kDeviceCode, body);
  if (!cpu) candidate.source += form == "host" ? kHostForm : kPlanForm;
  candidate.source += "// " + note + "\n";
  return candidate;
}

Standing::Standing(Task given, TargetKind kind, double timeout_s, int standby)
    : task(std::move(given)) {
  settings.target = kind;
  settings.timeout_s = timeout_s;
  settings.standby = standby;
  target = must(make_target(task, settings));
  must(prepare_target(task, kind, target));
}

std::variant<Subject, CompileError> Standing::build(const Candidate& candidate) const {
  double compile_ms = 0;
  return must(kernelpro::build(task, settings.target, *target.compiler, candidate, &compile_ms));
}

Subject Standing::subject(const Candidate& candidate) const {
  auto built = build(candidate);
  if (const auto* error = std::get_if<CompileError>(&built)) {
    give_up({ErrorKind::kInternal, "the bench's own kernel does not compile:\n" + error->log,
             "correct bench/evaluation/standing.cc"});
  }
  return std::get<Subject>(std::move(built));
}

Evaluation Standing::evaluate(const Subject& candidate, const Subject* incumbent) const {
  return must(target.evaluator->evaluate(candidate, incumbent));
}

const Correct& correct_or_give_up(const Evaluation& evaluation) {
  const Correct* correct = evaluation.correct();
  if (correct == nullptr) {
    give_up({ErrorKind::kInternal,
             "the bench's own kernel failed: " + outcome_summary(evaluation.outcome),
             "run it again, or report this"});
  }
  return *correct;
}

std::int64_t elements_for(TargetKind target, int us) {
  if (target == TargetKind::kCuda) return us <= 5 ? 1 << 20 : 32 << 20;
  return us <= 5 ? 16 << 10 : 1 << 20;
}

std::string machine_line(const Target& target) {
  return "\nmachine: " + target.machine->name +
         (target.machine->versions.empty() ? "" : ", " + target.machine->versions) + "; " +
         utc_now() + "\n";
}

}  // namespace kernelpro::bench
