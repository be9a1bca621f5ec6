// SPDX-License-Identifier: Apache-2.0
#include "build/build.h"

#include <algorithm>
#include <functional>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "build/code_hash.h"

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
std::vector<CompileResult> compile_all(TargetKind kind, const std::vector<const Case*>& cases,
                                       const std::function<CompileResult(const Case*)>& one) {
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

// A reference that does not compile is the task's fault. `file` names it in messages.
Result<Binary> usable(CompileResult built, const std::string& file, const Case& c) {
  if (!built) return tl::unexpected<Error>(std::move(built.error()));
  if (const auto* error = std::get_if<CompileError>(&*built)) {
    return fail(ErrorKind::kTask,
                file + " does not compile for case " + c.name + ":\n" + error->log,
                "correct the task's " + file);
  }
  return std::get<Binary>(std::move(*built));
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
  const auto one = [&](const Case* c) { return compiler.compile(task, *c, candidate); };
  for (CompileResult& result : compile_all(kind, cases, one)) {
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
  BuiltKernel kernel;
  kernel.built = build(task, kind, compiler, candidate, &kernel.compile_ms);
  if (kernel.built) {
    const auto* subject = std::get_if<Subject>(&*kernel.built);
    if (subject != nullptr) kernel.code = code_hash(subject->binaries);
  }
  return kernel;
}

Result<References> build_references(const Task& task, TargetKind kind, Compiler& compiler,
                                    Compiler* host) {
  References references;
  const bool cpu = kind == TargetKind::kCpu;
  const std::vector<const Case*> cases = cases_for(task, kind);
  if (task.module || cases.empty() || (cpu ? task.reference_cpp : task.reference_cu).empty()) {
    return references;
  }
  const auto one = [&](const Case* c) { return compiler.compile_reference(task, *c); };
  std::vector<CompileResult> built = compile_all(kind, cases, one);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    KP_ASSIGN(auto binary,
              usable(std::move(built[i]), cpu ? "reference.cpp" : "reference.cu", *cases[i]));
    references.binaries.push_back(std::move(binary));
  }
  if (cpu || host == nullptr || task.reference_cpp.empty()) return references;
  const Case* smallest =
      *std::min_element(cases.begin(), cases.end(), [&](const Case* a, const Case* b) {
        return compulsory_bytes(task, *a) < compulsory_bytes(task, *b);
      });
  KP_ASSIGN(references.host,
            usable(host->compile_reference(task, *smallest), "reference.cpp", *smallest));
  return references;
}

}  // namespace kernelpro
