// SPDX-License-Identifier: Apache-2.0
#include "device/probes.h"

#include <gtest/gtest.h>

#include <set>

namespace kernelpro {
namespace {

TEST(Probes, EachSaysWhatAndHowToGetIt) {
  const std::vector<Probe> probes = probe_machine();
  std::set<std::string> names;
  for (const Probe& probe : probes) {
    EXPECT_TRUE(names.insert(probe.name).second) << probe.name;
    EXPECT_FALSE(probe.found.empty()) << probe.name;
    if (probe.state == ProbeState::kMissing) {
      EXPECT_FALSE(probe.next.empty()) << probe.name;
    }
  }
  for (const char* name : {"host compiler", "OpenMP", "objdump", "perf events", "seccomp",
                           "this build", "driver", "NVRTC", "nvcc", "cache folder"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

TEST(Probes, FindWhatIsThere) {
  for (const Probe& probe : probe_machine()) {
    // This test was compiled here, so there is a compiler.
    if (probe.name == "host compiler") {
      EXPECT_EQ(probe.state, ProbeState::kOk) << probe.found;
    }
  }
}

}  // namespace
}  // namespace kernelpro
