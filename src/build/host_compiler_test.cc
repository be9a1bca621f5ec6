// SPDX-License-Identifier: Apache-2.0
// Uses this machine's real compiler.
#include "build/host_compiler.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>

#include "base/files.h"
#include "base/text.h"

namespace kernelpro {
namespace {

constexpr const char* kSource =
    "// @knob TILE 1 2 : tile\n#include \"task.h\"\n"
    "extern \"C\" void launch(const Args& a) { a.y[0] = a.x[0] + N + TILE; }\n";

struct FakeArgs {
  const float* x;
  float* y;
};

class HostCompilerTest : public ::testing::Test {
 protected:
  HostCompilerTest() {
    task_.name = "t";
    task_.tensors = {{"x", Role::kInput, DType::kFp32, {"N"}, {}, 0},
                     {"y", Role::kOutput, DType::kFp32, {"N"}, {}, 0}};
    c_.name = "small";
    c_.dims["N"] = 7;
    settings_.cache_dir = dir_.path();
    settings_.timeout_s = 30;
  }
  std::unique_ptr<Compiler> make() {
    auto compiler = make_cpu_compiler(settings_);
    EXPECT_TRUE(compiler) << compiler.error().text();
    return std::move(*compiler);
  }
  std::variant<Binary, CompileError> compile(Compiler& compiler, const std::string& source,
                                             const KnobValues& knobs = {}) {
    Candidate candidate;
    candidate.source = source;
    candidate.knobs = knobs;
    CompileResult result = compiler.compile(task_, c_, candidate);
    EXPECT_TRUE(result) << result.error().text();
    return *result;
  }
  std::string error_of(const std::string& source) {
    const auto compiler = make();
    const auto built = compile(*compiler, source);
    const auto* error = std::get_if<CompileError>(&built);
    EXPECT_NE(error, nullptr);
    return error != nullptr ? error->log : "";
  }

  TempDir dir_;
  Task task_;
  Case c_;
  CompileSettings settings_;
};

float run(const Binary& binary) {
  void* library = ::dlopen(binary.shared_object.c_str(), RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(library, nullptr) << ::dlerror();
  const auto launch = reinterpret_cast<void (*)(const FakeArgs&)>(::dlsym(library, "launch"));
  const float x = 1;
  float y = 0;
  launch({&x, &y});
  ::dlclose(library);
  return y;
}

TEST_F(HostCompilerTest, BuildsWithKnobsAndRemembers) {
  const auto compiler = make();
  const auto one = compile(*compiler, kSource, {{"TILE", "1"}});
  const auto two = compile(*compiler, kSource, {{"TILE", "2"}});
  ASSERT_TRUE(std::holds_alternative<Binary>(one) && std::holds_alternative<Binary>(two));
  EXPECT_EQ(run(std::get<Binary>(one)), 9);
  EXPECT_EQ(run(std::get<Binary>(two)), 10);
  EXPECT_GT(std::get<Binary>(one).compile_ms, 0);
  const auto again = compile(*make(), kSource, {{"TILE", "1"}});
  EXPECT_EQ(std::get<Binary>(again).compile_ms, 0);
  EXPECT_EQ(std::get<Binary>(again).shared_object, std::get<Binary>(one).shared_object);
  c_.dims["N"] = 8;
  const auto other = compile(*compiler, kSource, {{"TILE", "1"}});
  EXPECT_EQ(run(std::get<Binary>(other)), 10);
  EXPECT_TRUE(contains(compiler->describe(), "-O3")) << compiler->describe();
}

TEST_F(HostCompilerTest, ErrorsNameTheUsersLines) {
  const std::string log = error_of(
      "#include \"task.h\"\n\nextern \"C\" void launch(const Args& a) {\n"
      "  a.y[0] = undefined_name;\n}\n");
  EXPECT_TRUE(contains(log, "kernel.cpp:4")) << log;
  EXPECT_FALSE(contains(log, dir_.path())) << log;
}

TEST_F(HostCompilerTest, AMissingLaunchIsNamed) {
  const std::string log = error_of("#include \"task.h\"\nvoid start(const Args&) {}\n");
  EXPECT_TRUE(contains(log, "does not define `extern \"C\" void launch(const Args& args)`")) << log;
}

TEST_F(HostCompilerTest, UndefinedFunctionsAreFoundWhenLinking) {
  const std::string log = error_of(
      "#include \"task.h\"\nvoid nowhere();\n"
      "extern \"C\" void launch(const Args&) { nowhere(); }\n");
  EXPECT_TRUE(contains(log, "nowhere")) << log;
}

TEST_F(HostCompilerTest, ATemplateBombEndsInTime) {
  settings_.timeout_s = 2;
  const std::string log = error_of(
      "#include \"task.h\"\ntemplate <int N, int M> struct B { static constexpr int v = B<N - 1, 2 "
      "* M>::v "
      "+ B<N - 1, 2 * M + 1>::v; };\ntemplate <int M> struct B<0, M> { static constexpr int v = M; "
      "};\n"
      "extern \"C\" void launch(const Args& a) { a.y[0] = B<28, 0>::v; }\n");
  EXPECT_FALSE(log.empty());
  EXPECT_LT(log.size(), 6000u);
}

TEST_F(HostCompilerTest, ReferencesAreBuiltToo) {
  task_.reference_cpp =
      "#include \"task.h\"\nextern \"C\" void reference(const ReferenceArgs& a) { a.y[0] = N; }\n";
  const CompileResult built = make()->compile_reference(task_, c_);
  ASSERT_TRUE(built);
  EXPECT_TRUE(std::holds_alternative<Binary>(*built));
}

TEST_F(HostCompilerTest, ACacheThatCannotBeWrittenIsTheMachinesFault) {
  settings_.cache_dir = "/proc/nowhere";
  const auto compiler = make_cpu_compiler(settings_);
  ASSERT_FALSE(compiler);
  EXPECT_EQ(compiler.error().kind, ErrorKind::kStore);
}

// A real compiler that is killed whenever it sees a marked source.
TEST_F(HostCompilerTest, WhatTheMachineKillsIsNotTheSourcesFault) {
  const std::string real = find_program("c++");
  const std::string folder = join(dir_.path(), "toolchain/bin"), script = join(folder, "cxx");
  ASSERT_TRUE(make_dirs(folder));
  ASSERT_TRUE(write_file(script,
                         "#!/bin/sh\ncase \"$*\" in *kernel.cpp*) grep -q KILLED kernel.cpp "
                         "&& kill -9 $$;; esac\nexec " +
                             real + " \"$@\"\n"));
  ASSERT_EQ(::chmod(script.c_str(), 0755), 0);
  ASSERT_EQ(setenv("CXX", script.c_str(), 1), 0);
  const auto compiler = make();
  unsetenv("CXX");
  ASSERT_TRUE(contains(compiler->describe(), "-O3"));
  Candidate candidate;
  candidate.source = std::string("// KILLED\n") + kSource;
  candidate.knobs = {{"TILE", "1"}};
  const CompileResult killed = compiler->compile(task_, c_, candidate);
  ASSERT_FALSE(killed) << "a verdict: " << std::get<CompileError>(*killed).log;
  EXPECT_EQ(killed.error().kind, ErrorKind::kEnvironment);
  EXPECT_TRUE(contains(killed.error().text(), "signal 9")) << killed.error().text();
  EXPECT_TRUE(std::holds_alternative<Binary>(compile(*compiler, kSource, {{"TILE", "1"}})));
}

TEST_F(HostCompilerTest, MayIncludeFromTheFoldersThatTheUserNames) {
  const TempDir library;
  const std::string header = join(library.path(), "mine/add.h");
  ASSERT_TRUE(make_dirs(dirname(header)));
  ASSERT_TRUE(write_file(header, "inline float more(float x) { return x + 1; }\n"));
  const std::string source =
      "#include \"task.h\"\n#include <mine/add.h>\n"
      "extern \"C\" void launch(const Args& args) { args.y[0] = more(args.x[0]); }\n";
  EXPECT_TRUE(contains(error_of(source), "mine/add.h")) << "nobody named its folder";
  settings_.include_dirs = {library.path()};
  const auto first = compile(*make(), source);
  ASSERT_TRUE(std::holds_alternative<Binary>(first)) << std::get<CompileError>(first).log;
  ASSERT_TRUE(write_file(header, "no code\n"));
  EXPECT_TRUE(contains(error_of(source), "add.h:1")) << "a changed header is compiled anew";
}

}  // namespace
}  // namespace kernelpro
