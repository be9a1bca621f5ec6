// SPDX-License-Identifier: Apache-2.0
// Samples of reports and programs become places, over recorded disassembly that a stand-in for
// nvdisasm prints.
#include "run/gather/theory.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>

#include "base/files.h"
#include "base/text.h"
#include "core/plan/kernel_name.h"
#include "profile/places/testing/synthetic.h"

namespace kernelpro {
namespace {

const std::string kRoot = KERNELPRO_SOURCE_DIR;
const std::string kFixtures = kRoot + "/src/profile/fixtures";

struct GatheredPlaces : ::testing::Test {
  void SetUp() override {
    const std::string program = join(dir.path(), "bin/nvdisasm");
    ASSERT_TRUE(make_dirs(dirname(program)));
    ASSERT_TRUE(write_file(program, "#!/bin/sh\nexec cat " + kFixtures + "/patterns.sm_90a.txt\n"));
    ASSERT_EQ(::chmod(program.c_str(), 0755), 0);
    ::setenv("CUDA_HOME", dir.path().c_str(), 1);
    std::string image(64, '\0');  // an ELF header of NVIDIA's, and nothing behind it
    image.replace(0, 4,
                  "\x7f"
                  "ELF");
    image[18] = static_cast<char>(190);
    ASSERT_TRUE(write_file(join(dir.path(), "k.cubin"), image));
    kernels = recorded_kernels(kRoot, "patterns.sm_90a.txt");
    ASSERT_FALSE(kernels.empty());
    gathered.basis = "counters";
    gathered.evidence.kernels.push_back({demangled(kernel().name), {}});
  }
  void TearDown() override { ::unsetenv("CUDA_HOME"); }
  // One with lines, long enough for places.
  const SassFunction& kernel() const {
    for (const auto& [name, each] : kernels) {
      if (each.code.size() > 40 && each.code[20].line > 0) return each;
    }
    ADD_FAILURE() << "no recorded kernel has lines";
    return kernels.begin()->second;
  }
  const std::optional<Places>& places() const { return gathered.evidence.kernels[0].facts.places; }
  void sample(Stall stall) {
    KernelSamples samples;
    // As a profiler prints it, which is not how the code names it.
    samples.function = demangled(kernel().name);
    add_samples(kernel(), 20, stall, 100, 80, &samples);
    gathered.samples.source = "ncu";
    gathered.samples.kernels = {samples};
  }
  Result<void> with_code() {
    Theory theory;
    theory.code = join(dir.path(), "k.cubin");
    return add_code(theory, {}, &gathered, {kFixtures});
  }

  const TempDir dir;
  std::map<std::string, SassFunction> kernels;
  Gathered gathered;
};

TEST_F(GatheredPlaces, AreThoseOfTheSamples) {
  sample(Stall::kWait);
  const auto done = with_code();
  ASSERT_TRUE(done) << done.error().text();
  ASSERT_TRUE(places());
  EXPECT_EQ(places()->basis, Places::Basis::kSampled);
  EXPECT_EQ(places()->samples, 100);
  ASSERT_EQ(places()->places.size(), 1u);
  const CodePoint& at = places()->places[0].at;
  EXPECT_EQ(at.offset, static_cast<int>(kernel().code[20].address - kernel().code[0].address));
  EXPECT_EQ(at.line.line, kernel().code[20].line);
  EXPECT_FALSE(at.line.text.empty()) << "the source lies in one of the folders";
  EXPECT_EQ(gathered.evidence.kernels[0].facts.get("samples.taken"), 100);
  EXPECT_TRUE(contains(gathered.basis, "samples of 1 kernel")) << gathered.basis;
}

// A report of Nsight Compute holds instructions without lines.
TEST_F(GatheredPlaces, OfTheProgramsCodeOutrankThoseOfTheReportsInstructions) {
  sample(Stall::kWait);
  ASSERT_TRUE(with_code());
  const std::string basis = gathered.basis;
  std::string bare;
  const auto recorded = read_file(kFixtures + "/patterns.sm_90a.txt");
  ASSERT_TRUE(recorded);
  for (const std::string& line : lines(*recorded)) {
    if (!contains(line, "//## File")) bare += line + "\n";
  }
  add_instructions(bare, &gathered);
  EXPECT_EQ(gathered.basis, basis);
  ASSERT_TRUE(places());
  ASSERT_EQ(places()->places.size(), 1u);
  EXPECT_EQ(places()->places[0].at.line.line, kernel().code[20].line);
}

// An instruction that waits for no scoreboard: the samples are another kernel's.
TEST_F(GatheredPlaces, SamplesThatDoNotFitAreNamedAsMissing) {
  sample(Stall::kLongScoreboard);
  const std::size_t before = gathered.evidence.missing().size();
  ASSERT_TRUE(with_code());
  ASSERT_TRUE(places());
  EXPECT_EQ(places()->basis, Places::Basis::kEstimated);
  ASSERT_GT(gathered.evidence.missing().size(), before);
  EXPECT_TRUE(contains(gathered.evidence.missing().back().reason, "belong to other code"))
      << gathered.evidence.missing().back().reason;
}

TEST_F(GatheredPlaces, WithoutSamplesAreWeighedByTheCounters) {
  ASSERT_TRUE(with_code());
  ASSERT_TRUE(places());
  EXPECT_EQ(places()->basis, Places::Basis::kEstimated);
  Gathered counted;
  std::swap(counted, gathered);
  gathered.evidence.kernels.push_back({demangled(kernel().name), {}});
  Evidence& facts = gathered.evidence.kernels[0].facts;
  facts.set("smsp__average_warps_issue_stalled_wait_per_issue_active.ratio", 3, "ncu");
  ASSERT_TRUE(with_code());
  ASSERT_TRUE(places());
  ASSERT_FALSE(places()->stalls.empty());
  EXPECT_EQ(places()->stalls[0].stall, Stall::kWait);
  EXPECT_NEAR(places()->stalls[0].share, 0.75, 1e-9) << "three warps wait for each that issues";
  EXPECT_FALSE(contains(gathered.basis, "samples")) << gathered.basis;
}

}  // namespace
}  // namespace kernelpro
