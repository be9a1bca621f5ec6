// SPDX-License-Identifier: Apache-2.0
#include "build/build.h"

#include <future>
#include <utility>
#include <vector>

#include "base/files.h"

namespace kernelpro {

namespace {

// Content-addressed, so that candidates never share a file by mistake.
Result<Binary> module_binary(const Candidate& candidate, const std::string& case_name) {
  Binary binary;
  binary.form = Binary::Form::kModule;
  binary.case_name = case_name;
  binary.hash = candidate.content_hash();
  const std::string folder = join(cache_dir(), "modules");
  binary.module =
      join(folder, binary.hash + "." + std::string(language_row(candidate.language).extension));
  KP_TRY(make_dirs(folder));
  if (!exists(binary.module)) KP_TRY(write_file(binary.module, candidate.source));
  return binary;
}

// Compiles the first case on this thread, and on the cuda target the others in parallel. On the cpu
// target compilers share the cores with measurements, so they run in sequence.
std::vector<CompileResult> compile_all(const Task& task, TargetKind kind,
                                       const std::vector<const Case*>& cases, Compiler& compiler,
                                       const Candidate& candidate) {
  const auto one = [&](const Case* c) { return compiler.compile(task, *c, candidate); };
  const auto when = kind == TargetKind::kCuda ? std::launch::async : std::launch::deferred;
  std::vector<std::future<CompileResult>> others;
  for (std::size_t i = 1; i < cases.size(); ++i) {
    others.push_back(std::async(when, one, cases[i]));
  }
  std::vector<CompileResult> results;
  if (!cases.empty()) results.push_back(one(cases[0]));
  for (auto& other : others) results.push_back(other.get());
  return results;
}

}  // namespace

BuildResult build(const Task& task, TargetKind kind, Compiler& compiler, const Candidate& candidate,
                  double* compile_ms) {
  Subject subject;
  subject.hash = candidate.content_hash();
  const std::vector<const Case*> cases = cases_for(task, kind);
  if (!language_row(candidate.language).compiled) {
    for (const Case* c : cases) {
      KP_ASSIGN(auto binary, module_binary(candidate, c->name));
      subject.binaries.push_back(std::move(binary));
    }
    return subject;
  }
  for (CompileResult& result : compile_all(task, kind, cases, compiler, candidate)) {
    KP_ASSIGN(auto built, std::move(result));
    if (auto* error = std::get_if<CompileError>(&built)) return std::move(*error);
    Binary& binary = std::get<Binary>(built);
    *compile_ms += binary.compile_ms;
    subject.binaries.push_back(std::move(binary));
  }
  return subject;
}

BuiltKernel build_kernel(const Task& task, TargetKind kind, Compiler& compiler,
                         const Candidate& candidate) {
  double ms = 0;
  auto built = build(task, kind, compiler, candidate, &ms);
  return {std::move(built), ms};
}

}  // namespace kernelpro
