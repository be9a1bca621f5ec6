// SPDX-License-Identifier: Apache-2.0
// Header libraries, with the real nvcc and NVRTC.
#include "build/includes.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/text.h"
#include "build/compiler.h"

namespace kernelpro {
namespace {

TEST(Includes, NamesAreThoseOfTheDirectives) {
  const auto names = included_names(
      "#include \"task.h\"\n  #  include <a/b.hpp> // why\n// #include <no.h>\n/* #include <no.h>\n"
      "#include <no.h>\n*/ int x;\n#include <c.h>\n#define include <d>\n#include MACRO\n");
  EXPECT_EQ(names, (std::vector<std::string>{"task.h", "a/b.hpp", "c.h"}));
  EXPECT_TRUE(included_names("").empty());
}

TEST(Includes, OnlyWhatIsInTheFoldersCounts) {
  const TempDir dir;
  ASSERT_TRUE(make_dirs(join(dir.path(), "lib/a")));
  ASSERT_TRUE(write_file(join(dir.path(), "lib/a/x.h"), "#pragma once\n"));
  ASSERT_TRUE(write_file(join(dir.path(), "secret.h"), "int secret;\n"));
  const IncludeDirs dirs({join(dir.path(), "lib")});
  EXPECT_EQ(dirs.used_by("#include <a/x.h>\n#include <a/y.h>\n#include <../secret.h>\n#include <" +
                         join(dir.path(), "secret.h") + ">\n"),
            std::vector<std::string>{"a/x.h"});
  EXPECT_TRUE(IncludeDirs({}).used_by("#include <a/x.h>\n").empty());
  EXPECT_EQ(IncludeDirs({}).fingerprint(), "");
  const std::string before = IncludeDirs(dirs.folders()).fingerprint();
  EXPECT_EQ(before, dirs.fingerprint());
  ASSERT_TRUE(write_file(join(dir.path(), "lib/a/x.h"), "#pragma once\nint more;\n"));
  EXPECT_NE(before, IncludeDirs(dirs.folders()).fingerprint());
}

TEST(Includes, LinesStayWhereTheFirstCommentsLeaveRoom) {
  const std::string code = "// idea\n\n#include <a/x.h>\n#include \"task.h\"\nint line5;\n";
  const Hoisted roomy = hoisted({"a/x.h"}, code);
  EXPECT_EQ(roomy.shift, 0);
  EXPECT_EQ(roomy.library, "#include <a/x.h>\n");
  EXPECT_EQ(roomy.text,
            "#include \"kernelpro_library.h\"\n#pragma nv_hdrstop\n"
            "#include \"task.h\"\n\nint line5;\n");
  const Hoisted tight = hoisted({"a/x.h"}, "#include \"task.h\"\n#include <a/x.h>\nint line3;\n");
  EXPECT_EQ(tight.shift, 1);
  EXPECT_EQ(shifted_back("kernel.cu(4): error\nx.h(4): kernel.cu(", "kernel.cu", tight.shift),
            "kernel.cu(3): error\nx.h(4): kernel.cu(");
}

// Both forms with a template library; the file next to it must stay out of reach.
class LibraryTest : public testing::Test {
 protected:
  void SetUp() override {
    library_ = join(dir_.path(), "lib");
    ASSERT_TRUE(make_dirs(join(library_, "own")));
    ASSERT_TRUE(write_file(join(library_, "own/scale.hpp"),
                           "#pragma once\ntemplate <int A> __host__ __device__ constexpr float "
                           "scaled(float x) { return A * x; }\nconstexpr int limit() { return 4; }"
                           "\n"));
    ASSERT_TRUE(write_file(join(dir_.path(), "beside.h"), "int beside;\n"));
    task_.name = "t";
    task_.tensors = {{"x", Role::kInput, DType::kFp32, {"N"}, {}, 0},
                     {"y", Role::kOutput, DType::kFp32, {"N"}, {}, 0}};
    task_.cases = {{"c", {{"N", 1000}}, true, {}}, {"d", {{"N", 2000}}, true, {}}};
    settings_.cache_dir = join(dir_.path(), "cache");
    settings_.cuda_arch = "sm_90a";
    settings_.include_dirs = {library_};
    auto compiler = make_cuda_compiler(settings_);
    if (!compiler) GTEST_SKIP() << compiler.error().text();
    compiler_ = std::move(*compiler);
  }
  std::string compile(const std::string& source, int c = 0) {
    const CompileResult result = compiler_->compile(task_, task_.cases[static_cast<std::size_t>(c)],
                                                    {Language::kCuda, source, {}, {}});
    if (!result) return result.error().text();
    const auto* error = std::get_if<CompileError>(&*result);
    if (error != nullptr) return error->log;
    plan_ = std::get<Binary>(*result).plan;
    return "";
  }

  TempDir dir_;
  std::string library_;
  Task task_;
  CompileSettings settings_;
  std::unique_ptr<Compiler> compiler_;
  LaunchPlan plan_;
};

constexpr const char* kKernel = R"(
#include "task.h"
#include <own/scale.hpp>
__global__ void k(const float* x, float* y) {
  // limit() is a function of the host's alone, as CuTe has them
  if (threadIdx.x < limit()) y[threadIdx.x] = scaled<3>(x[threadIdx.x]) + N;
}
)";
constexpr const char* kPlan = "KP_LAUNCH(k, kp::dim(N), kp::dim(32), 0, arg::x, arg::y)\n";
constexpr const char* kHost =
    "extern \"C\" void launch(const Args& a, cudaStream_t s) { k<<<1, 32, 0, s>>>(a.x, a.y); }\n";

TEST_F(LibraryTest, BothFormsFindIt) {
  EXPECT_EQ(compile(kKernel + std::string(kPlan)), "");
  EXPECT_EQ(plan_.nodes.at(0).grid[0], 1000u);
  // Another case with the same precompiled library.
  EXPECT_EQ(compile(kKernel + std::string(kPlan), 1), "");
  EXPECT_EQ(plan_.nodes.at(0).grid[0], 2000u);
  EXPECT_EQ(compile(kKernel + std::string(kHost)), "");
}

TEST_F(LibraryTest, MistakesKeepTheirLines) {
  const std::string log =
      compile(replace_all(kKernel, "scaled<3>", "scalled<3>") + std::string(kPlan));
  EXPECT_TRUE(contains(log, "kernel.cu(6)")) << log;
  EXPECT_TRUE(contains(log, "scalled")) << log;
  const std::string host =
      compile(replace_all(kKernel, "scaled<3>", "scalled<3>") + std::string(kHost));
  EXPECT_TRUE(contains(host, "kernel.cu(6)")) << host;
}

TEST_F(LibraryTest, NothingElseIsWithinReach) {
  const std::string name = join(dir_.path(), "beside.h");
  const std::string source = "#include \"" + name + "\"\n" + kKernel;
  EXPECT_NE(compile(source + kPlan), "");
  EXPECT_NE(compile(source + kHost), "");
}

TEST_F(LibraryTest, AChangedLibraryIsCompiledAnew) {
  ASSERT_EQ(compile(kKernel + std::string(kPlan)), "");
  ASSERT_TRUE(write_file(join(library_, "own/scale.hpp"), "#error \"not today\"\n"));
  auto again = make_cuda_compiler(settings_);
  ASSERT_TRUE(again);
  compiler_ = std::move(*again);
  EXPECT_TRUE(contains(compile(kKernel + std::string(kPlan)), "not today"));
}

}  // namespace
}  // namespace kernelpro
