// SPDX-License-Identifier: Apache-2.0
// ncu's CSV in all its layouts, with the oddities seen in practice.
#include "profile/import/ncu.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>

#include "base/files.h"
#include "base/text.h"

namespace kernelpro {
namespace {

const std::string kMeta =
    R"("ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC")";

std::string meta(int id, const std::string& kernel, const std::string& grid = "(4096, 1, 1)") {
  return "\"" + std::to_string(id) + "\",\"4711\",\"app\",\"127.0.0.1\",\"" + kernel +
         "\",\"1\",\"7\",\"(256, 1, 1)\",\"" + grid + "\",\"0\",\"9.0\"";
}

// `ncu --page raw --csv`: units in the second row, numbers with thousands separators.
const std::string kWide =
    "==PROF== Connected to process 4711 (/opt/app)\n"
    "max error 0.000000\n"
    "==PROF== Profiling \"axpy\" - 0: 0%....50%....100% - 8 passes\n"
    "==PROF== Disconnected from process 4711\n" +
    kMeta +
    R"(,"device__attribute_display_name","device__attribute_multiprocessor_count","dram__bytes_read.sum","dram__bytes_write.sum","gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed","gpu__time_duration.sum","launch__registers_per_thread","launch__cluster_size","LTS.TriageCompute.lts__t_sectors_srcunit_tex.sum","smsp__average_warp_latency_per_inst_issued.ratio","sm__inst_executed_pipe_tma.sum"
"","","","","","","","","","","","","","Mbyte","Mbyte","%","usecond","register/thread","","sector","inst","inst"
)" + meta(0, "void axpy<float>(float *, const float *, float, int)") +
    R"(,"NVIDIA H100 80GB HBM3","132","1,073.74","536.87","81.50","640.25","18","0","33,554,432","12.5","n/a"
)" + meta(1, "void axpy<float>(float *, const float *, float, int)") +
    R"(,"NVIDIA H100 80GB HBM3","132","1,073.74","536.87","83.50","619.75","18","0","33,554,432","13.5","n/a"
)" + meta(2, "scale(float *)", "(8, 1, 1)") +
    R"(,"NVIDIA H100 80GB HBM3","132","0.50","0.50","2.00","20.00","12","2","4,096","20","nan"
)";

Result<NcuImport> import(const std::string& text, NcuSettings settings = {}) {
  return import_ncu_csv(text, settings);
}

TEST(Ncu, WidePageWithUnitsRow) {
  EXPECT_TRUE(is_ncu_csv(kWide));
  const auto got = import(kWide);
  ASSERT_TRUE(got) << got.error().text();
  EXPECT_EQ(got->launches, 3);
  EXPECT_EQ(got->device.name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(got->device.arch(), "sm_90");
  ASSERT_EQ(got->evidence.kernels.size(), 2u);
  const KernelEvidence& axpy = got->evidence.kernels[0];
  EXPECT_EQ(axpy.name, "void axpy<float>(float *, const float *, float, int)");
  // Sums of both launches, means weighted by time.
  EXPECT_DOUBLE_EQ(*axpy.facts.get("dram__bytes_read.sum"), 2 * 1073.74e6);
  EXPECT_DOUBLE_EQ(*axpy.facts.get("gpu__time_duration.sum"), 1260e3);
  EXPECT_NEAR(*axpy.facts.get("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"),
              (81.5 * 640.25 + 83.5 * 619.75) / 1260, 1e-9);
  EXPECT_DOUBLE_EQ(*axpy.facts.get("lts__t_sectors_srcunit_tex.sum"), 2 * 33554432.0);
  EXPECT_DOUBLE_EQ(*axpy.facts.get("launch__registers_per_thread"), 18);
  EXPECT_DOUBLE_EQ(*axpy.facts.get("launch__cluster_size"), 1);
  EXPECT_DOUBLE_EQ(*axpy.facts.get("launch__block_size"), 256);
  EXPECT_DOUBLE_EQ(*axpy.facts.get("launch__grid_size"), 4096);
  EXPECT_DOUBLE_EQ(*axpy.facts.get("kernel.launches"), 2);
  EXPECT_DOUBLE_EQ(*axpy.facts.get("kernel.share"), 1260.0 / 1280);
  EXPECT_FALSE(axpy.facts.get("sm__inst_executed_pipe_tma.sum"));
  EXPECT_DOUBLE_EQ(*got->evidence.kernels[1].facts.get("launch__cluster_size"), 2);
  EXPECT_DOUBLE_EQ(*got->evidence.get("timing.median"), 1280);
  EXPECT_DOUBLE_EQ(*got->evidence.get("plan.kernels"), 3);
  EXPECT_DOUBLE_EQ(*got->evidence.get("machine.parallel_units"), 132);
  EXPECT_EQ(got->evidence.texts.at("arch"), "sm_90");
  EXPECT_TRUE(contains(join_text(got->notes, "\n"), "sm__inst_executed_pipe_tma.sum"));
}

TEST(Ncu, CallsDivideSums) {
  const auto got = import(kWide, {2, "axpy"});
  ASSERT_TRUE(got) << got.error().text();
  ASSERT_EQ(got->evidence.kernels.size(), 1u);
  const Evidence& axpy = got->evidence.kernels[0].facts;
  EXPECT_DOUBLE_EQ(*axpy.get("dram__bytes_read.sum"), 1073.74e6);
  EXPECT_DOUBLE_EQ(*axpy.get("kernel.launches"), 1);
  EXPECT_DOUBLE_EQ(*got->evidence.get("timing.median"), 630);
  const auto none = import(kWide, {1, "gemm"});
  ASSERT_FALSE(none);
  EXPECT_TRUE(contains(none.error().message, "gemm"));
}

std::string long_row(int id, const std::string& kernel, const std::string& metric,
                     const std::string& unit, const std::string& value) {
  return meta(id, kernel) + ",\"Command line profiler metrics\",\"" + metric + "\",\"" + unit +
         "\",\"" + value + "\"\n";
}
const std::string kLongHeader =
    kMeta + ",\"Section Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n";

TEST(Ncu, LongPage) {
  const std::string text = "==PROF== Connected to process 1\n" + kLongHeader +
                           long_row(0, "k(int)", "gpu__time_duration.sum", "us", "211.94") +
                           "printed, by the program\n" +
                           long_row(0, "k(int)", "dram__bytes_read.sum", "Gbyte", "1.5") +
                           long_row(1, "k(int)", "gpu__time_duration.sum", "us", "1,205.00") +
                           long_row(1, "k(int)", "dram__bytes_read.sum", "", "n/a");
  const auto got = import(text);
  ASSERT_TRUE(got) << got.error().text();
  EXPECT_EQ(got->launches, 2);
  ASSERT_EQ(got->evidence.kernels.size(), 1u);
  const Evidence& k = got->evidence.kernels[0].facts;
  EXPECT_DOUBLE_EQ(*k.get("gpu__time_duration.sum"), 1416.94e3);
  // A launch without the value counts as the other.
  EXPECT_DOUBLE_EQ(*k.get("dram__bytes_read.sum"), 3e9);
}

TEST(Ncu, SameIdInTwoProcesses) {
  std::string other = long_row(0, "k(int)", "gpu__time_duration.sum", "ns", "500");
  other = replace_all(other, "\"4711\"", "\"4712\"");
  const auto got =
      import(kLongHeader + long_row(0, "k(int)", "gpu__time_duration.sum", "ns", "300") + other);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->launches, 2);
}

TEST(Ncu, DetailsPageWithDisplayNames) {
  const std::string head =
      kMeta +
      R"(,"Section Name","Metric Name","Metric Unit","Metric Value","Rule Name","Rule Type","Rule Description")" +
      "\n";
  const auto row = [](const std::string& section, const std::string& name, const std::string& unit,
                      const std::string& value) {
    return meta(0, "add(float*)") + ",\"" + section + "\",\"" + name + "\",\"" + unit + "\",\"" +
           value + "\",\"\",\"\",\"\"\n";
  };
  const auto got = import(
      head + row("GPU Speed Of Light Throughput", "Duration", "usecond", "2.85") +
      row("GPU Speed Of Light Throughput", "DRAM Throughput", "%", "14.26") +
      row("Memory Workload Analysis", "DRAM Throughput", "byte/s", "12,943,820,224") +
      row("Launch Statistics", "Registers Per Thread", "register/thread", "16") +
      meta(0, "add(float*)") +
      ",\"SpeedOfLight\",\"\",\"\",\"\",\"SOLBottleneck\",\"OPT\",\"look, at \"\"this\"\"\nand "
      "that\"\n" +
      row("Occupancy", "Block Limit SM", "block", "32"));
  ASSERT_TRUE(got) << got.error().text();
  const Evidence& k = got->evidence.kernels.at(0).facts;
  EXPECT_DOUBLE_EQ(*k.get("gpu__time_duration.sum"), 2850);
  EXPECT_DOUBLE_EQ(*k.get("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"), 14.26);
  EXPECT_DOUBLE_EQ(*k.get("launch__registers_per_thread"), 16);
  EXPECT_DOUBLE_EQ(*k.get("launch__occupancy_limit_blocks"), 32);
  EXPECT_TRUE(contains(join_text(got->notes, "\n"), "--page raw"));
}

TEST(Ncu, GermanNumbers) {
  const auto got =
      import(kLongHeader + long_row(0, "k()", "gpu__time_duration.sum", "usecond", "1.234,50") +
             long_row(0, "k()", "dram__bytes_read.sum", "byte", "2.048"));
  ASSERT_TRUE(got);
  const Evidence& k = got->evidence.kernels.at(0).facts;
  EXPECT_DOUBLE_EQ(*k.get("gpu__time_duration.sum"), 1234500);
  EXPECT_DOUBLE_EQ(*k.get("dram__bytes_read.sum"), 2048);
}

TEST(Ncu, OtherChipsAndVersionsNames) {
  const auto got = import(
      kLongHeader + long_row(0, "k()", "gpu__time_duration.avg", "nsecond", "1000") +
      long_row(0, "k()", "dram__bytes_op_read.sum", "Kbyte", "64") +
      long_row(0, "k()", "dram__sectors_write.sum", "sector", "100") +
      long_row(0, "k()", "inst_executed", "inst", "77") +
      long_row(0, "k()", "smsp__issue_active.avg.pct_of_peak_sustained_active", "%", "40") +
      long_row(0, "k()", "sm__cycles_active.avg", "cycle", "900") +
      long_row(0, "k()", "sm__cycles_elapsed.max", "cycle", "1,800") +
      long_row(0, "k()", "sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_active", "%", "50") +
      long_row(0, "k()", "smsp__average_warp_latency_issue_stalled_barrier.ratio", "cycle", "3.5"));
  ASSERT_TRUE(got);
  const Evidence& k = got->evidence.kernels.at(0).facts;
  EXPECT_DOUBLE_EQ(*k.get("gpu__time_duration.sum"), 1000);
  EXPECT_DOUBLE_EQ(*k.get("dram__bytes_read.sum"), 64000);
  EXPECT_DOUBLE_EQ(*k.get("dram__bytes_write.sum"), 3200);
  EXPECT_DOUBLE_EQ(*k.get("smsp__inst_executed.sum"), 77);
  EXPECT_DOUBLE_EQ(*k.get("smsp__issue_active.avg.per_cycle_active"), 0.4);
  EXPECT_DOUBLE_EQ(*k.get("sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_elapsed"), 25);
  EXPECT_DOUBLE_EQ(*k.get("smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio"), 3.5);
}

TEST(Ncu, UnitsThatDoNotFitAreSaid) {
  const auto got = import(kLongHeader + long_row(0, "k()", "gpu__time_duration.sum", "ns", "10") +
                          long_row(0, "k()", "dram__bytes_read.sum", "furlong", "3"));
  ASSERT_TRUE(got);
  EXPECT_FALSE(got->evidence.kernels.at(0).facts.get("dram__bytes_read.sum"));
  EXPECT_TRUE(contains(join_text(got->notes, "\n"), "furlong"));
}

TEST(Ncu, CutOffAnywhere) {
  for (std::size_t length = 0; length < kWide.size(); length += 7) {
    const auto got = import(kWide.substr(0, length));
    if (!got) {
      EXPECT_FALSE(got.error().next.empty());
    }
  }
  // Cut in the middle of the last row: the rest counts, with a note.
  const auto got = import(kWide.substr(0, kWide.size() - 40));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->launches, 3);
  EXPECT_TRUE(contains(join_text(got->notes, "\n"), "cut off")) << join_text(got->notes, "\n");
}

TEST(Ncu, RefusedPermissionHasItsRemedy) {
  const auto got = import(
      "==PROF== Connected to process 1\n==ERROR== ERR_NVGPUCTRPERM - The user does not have "
      "permission to access NVIDIA GPU Performance Counters on the target device 0.\n");
  ASSERT_FALSE(got);
  EXPECT_TRUE(contains(got.error().next, "NVreg_RestrictProfilingToAdminUsers"))
      << got.error().next;
  const auto other = import("just some text\n");
  ASSERT_FALSE(other);
  EXPECT_TRUE(contains(other.error().next, "--page raw --csv"));
}

TEST(Ncu, PeakOfMemoryFromItsOwnPercentages) {
  std::string text = replace_all(kWide, "NVIDIA H100 80GB HBM3", "Some New GPU");
  const auto got = import(text);
  ASSERT_TRUE(got);
  const double rate = (1073.74e6 + 536.87e6) / 619.75e-6 / 0.835;
  EXPECT_NEAR(got->device.bytes_per_s, rate, 1e-6 * rate);
}

TEST(Ncu, MissingCountersAreMissing) {
  const auto got = import(kWide);
  ASSERT_TRUE(got);
  const Missing* missing = why_missing(got->evidence, "smsp__inst_executed.sum");
  ASSERT_NE(missing, nullptr);
  EXPECT_FALSE(missing->next.empty());
  EXPECT_EQ(why_missing(got->evidence, "dram__bytes_read.sum"), nullptr) << "the report has it";
}

// Stands in for ncu: prints what it was given, and the arguments to a file.
void put_program(const std::string& path, const std::string& script) {
  ASSERT_TRUE(write_file(path, "#!/bin/sh\n" + script));
  ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
}

struct NcuProgram : ::testing::Test {
  TempDir dir;
  std::string home = join(dir.path(), "cuda");
  void SetUp() override {
    ASSERT_TRUE(make_dirs(join(home, "bin")));
    ::setenv("CUDA_HOME", home.c_str(), 1);
  }
  void TearDown() override { ::unsetenv("CUDA_HOME"); }
};

TEST_F(NcuProgram, ReportsAreExported) {
  const std::string source =
      "\"Kernel Name\",\"_Z5scalePf\"\n\"Address\",\"Source\",\"stall_wait\"\n"
      "\"0x7f0000000000\",\"EXIT\",\"5\"\n";
  const std::string program = join(dir.path(), "app");
  ASSERT_TRUE(write_file(join(dir.path(), "raw"), kWide));
  ASSERT_TRUE(write_file(join(dir.path(), "source"), source));
  ASSERT_TRUE(write_file(program, "a program"));
  ASSERT_TRUE(write_file(join(dir.path(), "session"), "Launch Settings\n  Executable   " + program +
                                                          "\n  Command line  " +
                                                          join(home, "bin/ncu") + "\n  Folder  " +
                                                          dir.path() + "\n  Arguments  /gone\n"));
  put_program(join(home, "bin/ncu"),
              "cd " + dir.path() + "\necho \"$@\" >> arguments\nexec cat \"$4\"\n");
  const auto got = import_ncu_report(join(dir.path(), "x.ncu-rep"), {});
  ASSERT_TRUE(got) << got.error().text();
  EXPECT_EQ(got->launches, 3);
  const auto arguments = read_file(join(dir.path(), "arguments"));
  ASSERT_TRUE(arguments);
  EXPECT_TRUE(contains(*arguments, "--page raw --csv --print-units base")) << *arguments;
  EXPECT_TRUE(contains(*arguments, "--page source --csv --print-source sass")) << *arguments;
  ASSERT_EQ(got->samples.kernels.size(), 1u);
  EXPECT_EQ(got->samples.kernels[0].function, "_Z5scalePf");
  EXPECT_TRUE(contains(got->sass, "EXIT"));
  EXPECT_EQ(got->programs, (std::vector<std::string>{program, "app"}));
}

TEST_F(NcuProgram, AReportWithoutSourceCountersSaysSo) {
  ASSERT_TRUE(write_file(join(dir.path(), "raw"), kWide));
  put_program(join(home, "bin/ncu"), "cd " + dir.path() + "\nexec cat \"$4\"\n");
  const auto got = import_ncu_report(join(dir.path(), "x.ncu-rep"), {});
  ASSERT_TRUE(got) << got.error().text();
  EXPECT_TRUE(got->samples.kernels.empty());
  EXPECT_TRUE(std::any_of(got->evidence.missing().begin(), got->evidence.missing().end(),
                          [](const Missing& missing) {
                            return missing.family == Family::kSamples && !missing.next.empty();
                          }));
}

TEST_F(NcuProgram, AnOlderNcuRefuses) {
  put_program(join(home, "bin/ncu"),
              "echo '==ERROR== The file was created by a newer version of the tool.'\nexit 1\n");
  const auto got = import_ncu_report(join(dir.path(), "x.ncu-rep"), {});
  ASSERT_FALSE(got);
  EXPECT_TRUE(contains(got.error().message, "newer version")) << got.error().message;
  EXPECT_TRUE(contains(got.error().next, "--page raw --csv"));
}

}  // namespace
}  // namespace kernelpro
