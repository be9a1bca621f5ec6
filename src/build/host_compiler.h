// SPDX-License-Identifier: Apache-2.0
// Compiles candidates and references of the cpu target: one C++ file plus the generated task.h into
// a shared object. Created by make_cpu_compiler (build/compiler.h).
#pragma once

#include <string>
#include <vector>

#include "build/cached.h"
#include "build/compiler.h"
#include "build/includes.h"

namespace kernelpro {

class HostCompiler : public Compiler {
 public:
  // Finds a working compiler (honoring $CXX) and probes its flags. Runs it up to three times. Fails
  // with kEnvironment.
  static Result<std::unique_ptr<HostCompiler>> make(const CompileSettings& settings);

  CompileResult compile(const Task& task, const Case& c, const Candidate& candidate) override;
  CompileResult compile_reference(const Task& task, const Case& c) override;
  std::string describe() const override;

 private:
  struct Source {
    std::string text;
    std::string original;  // as written, before knobs are set
    const char* file;      // file name in messages
    const char* entry;     // the function that it must define
    const char* signature;
    std::vector<std::string> flags;
    bool library = false;  // it includes from the folders of header libraries
  };

  HostCompiler(CompileSettings settings, std::string program, std::string version);
  const IncludeDirs& libraries(const Source& source) const;
  Result<bool> supports(const std::vector<std::string>& flags) const;
  CompileResult build(const Task& task, const Case& c, const Source& source);
  // One run of the compiler in `folder`.
  Result<Made> run_compiler(const Source& source, const std::string& folder) const;

  CompileSettings settings_;
  BuildCache cache_;
  IncludeDirs includes_;
  std::string program_;
  std::string version_;             // first line of --version
  std::string native_;              // meaning of -march=native here, for cache keys
  std::vector<std::string> flags_;  // of every build
};

}  // namespace kernelpro
