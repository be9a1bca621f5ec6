// SPDX-License-Identifier: Apache-2.0
#include "machine/doctor/probes.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <set>

#include "base/clock.h"
#include "base/files.h"
#include "machine/doctor/python.h"

namespace kernelpro {
namespace {

// Result of probe_machine() here, computed once.
const std::vector<Probe>& probed() {
  static const std::vector<Probe> all = probe_machine();
  return all;
}

TEST(Probes, EachSaysWhatAndHowToGetIt) {
  const std::vector<Probe>& probes = probed();
  std::set<std::string> names;
  for (const Probe& probe : probes) {
    EXPECT_TRUE(names.insert(probe.name).second) << probe.name;
    EXPECT_FALSE(probe.found.empty()) << probe.name;
    if (probe.state != ProbeState::kOk) {
      EXPECT_FALSE(probe.next.empty()) << probe.name;
    }
  }
  for (const char* name : {"host compiler", "OpenMP", "objdump", "perf events", "files", "network",
                           "this build", "driver", "NVRTC", "nvcc", "headers", "ptxas",
                           "compute-sanitizer", "python", "GPU leases", "cache folder"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

TEST(Probes, GroupsStayTogether) {
  std::set<std::string> done;
  std::string group;
  for (const Probe& probe : probed()) {
    if (probe.group == group) continue;
    EXPECT_TRUE(done.insert(probe.group).second) << probe.group;
    group = probe.group;
  }
}

TEST(Probes, TakeNoLongerThanAPersonWaits) {
  // About one second on an idle machine. Retry: the machine may be busy once, but not every time.
  double seconds = 0;
  for (int attempt = 0; attempt < 5; ++attempt) {
    const double begin = real_clock().now_s();
    probe_machine();
    seconds = real_clock().now_s() - begin;
    if (seconds < 10) break;
  }
  EXPECT_LT(seconds, 10);
}

TEST(Probes, APythonThatHangsOrIsNoneIsToldSo) {
  TempDir dir;
  const std::string fake = join(dir.path(), "python");
  ASSERT_TRUE(write_file(fake, "#!/bin/sh\necho nonsense\n"));
  ASSERT_EQ(::chmod(fake.c_str(), 0755), 0);
  ::setenv("KERNELPRO_PYTHON", fake.c_str(), 1);
  const std::vector<Probe> probes = probe_python();
  EXPECT_EQ(probes.at(0).state, ProbeState::kMissing);
  EXPECT_NE(probes.at(0).found.find("does not start"), std::string::npos) << probes.at(0).found;
  EXPECT_EQ(probe_torch_device().state, ProbeState::kMissing);
  ::unsetenv("KERNELPRO_PYTHON");
}

TEST(Probes, FindWhatIsThere) {
  for (const Probe& probe : probed()) {
    // This test was compiled here, so there is a compiler.
    if (probe.name == "host compiler") {
      EXPECT_EQ(probe.state, ProbeState::kOk) << probe.found;
    }
  }
}

}  // namespace
}  // namespace kernelpro
