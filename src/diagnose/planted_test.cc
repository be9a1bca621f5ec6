// SPDX-License-Identifier: Apache-2.0
// Whole diagnoses of recorded kernels whose truth is known: the flaw was planted, or the search
// went on and found what was to be won. The recordings are real (fixtures/*.json).
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "diagnose/diagnose.h"
#include "diagnose/tools.h"

namespace kernelpro {
namespace {

struct Truth {
  std::string recording;
  std::string first;   // the first finding's tool; "" = no finding
  std::string tag;     // of its first prescription
  std::string mended;  // recording of the same task without that flaw; "" = none
};

const std::vector<Truth> kTruths = {
    {"axpy-many_launches", "launch-bound", "algorithm", "axpy-sound"},
    {"axpy-one_block", "small-grid", "grid-size", "axpy-sound"},
    {"axpy-scalar", "scalar-loads", "vectorize", "axpy-sound"},
    {"axpy-sound", "at-bandwidth-ceiling", "algorithm", ""},
    {"gemm_bf16-ffma", "missing-tensor-cores", "tensor-cores", "gemm_bf16-wmma"},
    {"gemm_bf16-wmma", "missing-tensor-cores", "tensor-cores", ""},
    {"mix-spill", "register-spill", "registers", "mix-sound"},
    {"mix-sound", "", "", ""},
    // Candidates of real searches.
    {"h200-softmax-default", "scalar-loads", "vectorize", ""},
    {"h200-softmax-narrow", "scalar-loads", "vectorize", "h200-softmax-wide"},
    {"h200-softmax-wide", "far-from-both-ceilings", "passes", ""},
    {"h200-softmax-two-warps", "", "", ""},
    {"h200-softmax-ceiling", "at-bandwidth-ceiling", "algorithm", ""},
    {"h200-matmul-default", "far-from-both-ceilings", "tile-size", ""},
    {"h200-matmul-tail", "small-grid", "grid-size", ""},
    {"h200-matmul-wide", "", "", ""},
    {"cpu-softmax-default", "scalar-code", "vectorize", ""},
    {"cpu-softmax-packed", "far-from-both-ceilings", "passes", ""},
    {"cpu-matmul-scalar", "scalar-code", "vectorize", "cpu-matmul-vec4"},
    {"cpu-matmul-vec4", "one-thread-busy", "threads", ""},
    {"cpu-matmul-one-thread", "one-thread-busy", "threads", "cpu-matmul-both"},
    {"cpu-matmul-both", "", "", ""},
};

Evidence recorded(const std::string& name) {
  const std::string path =
      std::string(KERNELPRO_SOURCE_DIR) + "/src/diagnose/fixtures/" + name + ".json";
  const auto json = nlohmann::ordered_json::parse(*read_file(path));
  const auto evidence = evidence_from_json(json.at("evidence").dump());
  EXPECT_TRUE(evidence.has_value()) << name;
  return evidence.value_or(Evidence());
}

TEST(Planted, TheFlawComesFirst) {
  for (const Truth& truth : kTruths) {
    const Diagnosis diagnosis = diagnose(recorded(truth.recording));
    const bool none = diagnosis.findings.empty();
    ASSERT_EQ(none ? "" : diagnosis.findings[0].tool, truth.first) << truth.recording;
    if (none) continue;
    EXPECT_EQ(diagnosis.findings[0].prescriptions.at(0).tag, truth.tag) << truth.recording;
    EXPECT_EQ(diagnosis.findings[0].stop, truth.first.rfind("at-", 0) == 0) << truth.recording;
  }
}

// The upper gain is a bound, and the likely one is within a factor of three of what mending won.
TEST(Planted, GainsHoldAgainstTheMendedKernel) {
  int pairs = 0;
  for (const Truth& truth : kTruths) {
    if (truth.mended.empty()) continue;
    ++pairs;
    const Evidence flawed = recorded(truth.recording);
    const double won = *flawed.get("timing.median") / *recorded(truth.mended).get("timing.median");
    const Finding finding = diagnose(flawed).findings.at(0);
    SCOPED_TRACE(truth.recording + " won " + std::to_string(won) + ", likely " +
                 std::to_string(finding.likely_speedup) + ", upper " +
                 std::to_string(finding.upper_speedup));
    EXPECT_LE(won, finding.upper_speedup);
    EXPECT_LE(finding.likely_speedup, finding.upper_speedup);
    EXPECT_LT(finding.likely_speedup, 3 * won);
    EXPECT_LT(won, 3 * finding.likely_speedup);
  }
  EXPECT_GE(pairs, 8);
}

TEST(Planted, CatchAllsComeLast) {
  for (const Truth& truth : kTruths) {
    const Diagnosis diagnosis = diagnose(recorded(truth.recording));
    for (std::size_t i = 0; i + 1 < diagnosis.findings.size(); ++i) {
      EXPECT_NE(diagnosis.findings[i].tool, "far-from-both-ceilings") << truth.recording;
    }
  }
}

TEST(Planted, SoundKernelsAreSaidToBeAtTheCeiling) {
  const Diagnosis diagnosis = diagnose(recorded("axpy-sound"));
  EXPECT_GT(diagnosis.fraction_of_ceiling, 1);
  EXPECT_NE(diagnosis.summary.find("at the ceiling"), std::string::npos) << diagnosis.summary;
  EXPECT_NE(diagnosis.findings.at(0).cause.find("at the ceiling"), std::string::npos);
}

}  // namespace
}  // namespace kernelpro
