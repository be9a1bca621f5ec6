// SPDX-License-Identifier: Apache-2.0
// `kernelpro diagnose` and `kernelpro tools` through the real binary, on files and without a GPU.
#include "diagnose/diagnose.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/files.h"
#include "base/json.h"
#include "base/process/subprocess.h"
#include "base/text.h"
#include "cli/parse.h"
#include "run/store/store.h"
#include "run/store/tool_record.h"

namespace kernelpro {
namespace {

// A memory-bound kernel at a third of the bandwidth, all loads 32-bit, as ncu exports it.
const std::string kCsv =
    R"csv("ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","device__attribute_display_name","device__attribute_multiprocessor_count","dram__bytes_read.sum","dram__bytes_write.sum","gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed","gpu__time_duration.sum","launch__registers_per_thread"
"","","","","","","","","","","","","","byte","byte","%","ns","register/thread"
"0","1","app","h","void scale<float>(float *, int)","1","7","(256, 1, 1)","(4096, 1, 1)","0","9.0","NVIDIA H100 80GB HBM3","132","1073741824","1073741824","33.1","2000000","16"
)csv";

struct DiagnoseTest : ::testing::Test {
  TempDir dir;
  std::string csv = join(dir.path(), "report.csv");
  void SetUp() override { ASSERT_TRUE(write_file(csv, kCsv)); }

  Exit kernelpro(std::vector<std::string> arguments) {
    Command command;
    command.argv = {join(executable_dir(), "kernelpro")};
    command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
    command.env = {"KERNELPRO_STATE=" + dir.path(), "KERNELPRO_CACHE=" + dir.path()};
    command.limits.wall_seconds = 600;
    command.limits.output_kept = 4 << 20;
    const auto exit = run(command);
    EXPECT_TRUE(exit.has_value());
    return exit ? *exit : Exit();
  }
};

TEST_F(DiagnoseTest, ImportedCountersWithTheoryByHand) {
  const Exit exit = kernelpro(
      {"diagnose", csv, "--bytes", "2147483648", "--flops", "268435456", "--dtype", "fp32"});
  EXPECT_TRUE(exit.ok()) << exit.output;
  // Lines break where the path of the folder leaves room.
  std::string said = exit.output;
  std::replace(said.begin(), said.end(), '\n', ' ');
  EXPECT_TRUE(contains(said, "hardware counters of Nsight Compute")) << exit.output;
  EXPECT_TRUE(contains(said, "nominal peaks of NVIDIA H100 80GB HBM3")) << exit.output;
  EXPECT_TRUE(contains(said, "In theory memory bounds")) << exit.output;
  EXPECT_FALSE(contains(exit.output, "\x1b[")) << "colour in a pipe";
}

// A later version of the kernel: fewer registers, and slower.
TEST_F(DiagnoseTest, CompareTwoReports) {
  const std::string later = join(dir.path(), "later.csv");
  ASSERT_TRUE(write_file(later, replace_all(kCsv, "\"2000000\",\"16\"", "\"2500000\",\"12\"")));
  const Exit exit = kernelpro({"compare", csv, later});
  EXPECT_TRUE(exit.ok()) << exit.output;
  EXPECT_TRUE(contains(exit.output, "**0.8x** as fast")) << exit.output;
  EXPECT_TRUE(contains(exit.output, "| 16 | 12 | -25 % |")) << exit.output;
  EXPECT_EQ(kernelpro({"compare", csv, later, "--at-least", "0.75"}).code, 0);
  EXPECT_EQ(kernelpro({"compare", csv, later, "--at-least", "0.97"}).code, 1);
  EXPECT_EQ(kernelpro({"compare", csv, csv, "--at-least", "0.97"}).code, 0);
  const Exit json = kernelpro({"compare", csv, later, "--json"});
  EXPECT_EQ(parse_json(json.output)->value("speedup", 0.0), 0.8) << json.output;
  const std::string source = join(dir.path(), "kernel.cu");
  ASSERT_TRUE(write_file(source, "x"));
  const Exit no_task = kernelpro({"compare", source, source});
  EXPECT_EQ(no_task.code, 2);
  EXPECT_TRUE(contains(no_task.output, "--task")) << no_task.output;
}

// The text that ncu prints, written by hand after its layout; pasted, or piped.
TEST_F(DiagnoseTest, NcusDetailsAsText) {
  const std::string details = join(dir.path(), "details.txt");
  ASSERT_TRUE(write_file(
      details,
      "  scale(float *, int) (4096, 1, 1)x(256, 1, 1), Context 1, Stream 7, Device 0, CC 9.0\n"
      "    Section: GPU Speed Of Light Throughput\n"
      "    Metric Name             Metric Unit Metric Value\n"
      "    DRAM Throughput                   %        33.10\n"
      "    Duration                         us     2,000.00\n"
      "    L2 Hit Rate                       %        12.00\n"
      "    Section: Launch Statistics\n"
      "    Registers Per Thread register/thread          16\n"));
  const std::vector<std::string> theory = {"--bytes", "2147483648", "--device", "H100", "--json"};
  std::vector<std::string> arguments = {"diagnose", details};
  arguments.insert(arguments.end(), theory.begin(), theory.end());
  const Exit named = kernelpro(arguments);
  ASSERT_TRUE(named.ok()) << named.output;
  const auto json = parse_json(named.output);
  ASSERT_TRUE(json) << named.output;
  const Json& kernel = (*json)["evidence"]["kernels"].at(0);
  EXPECT_EQ(kernel["name"], "scale(float *, int)");
  EXPECT_TRUE(contains((*json)["notes"].dump(), "L2 Hit Rate")) << (*json)["notes"];
  Command piped;
  piped.argv = {"sh", "-c",
                join(executable_dir(), "kernelpro") + " diagnose - " + join_text(theory, " ") +
                    " < " + details};
  piped.env = {"KERNELPRO_STATE=" + dir.path(), "KERNELPRO_CACHE=" + dir.path()};
  const auto exit = run(piped);
  ASSERT_TRUE(exit && exit->ok());
  const auto same = parse_json(exit->output);
  ASSERT_TRUE(same) << exit->output;
  EXPECT_EQ((*same)["diagnosis"].dump(), (*json)["diagnosis"].dump());
  EXPECT_EQ((*same)["subject"], "standard input");
}

// ncu's source page alone, written by hand after its layout.
TEST_F(DiagnoseTest, NcusSourcePage) {
  const std::string page = join(dir.path(), "source.csv");
  ASSERT_TRUE(write_file(page,
                         "\"Kernel Name\",\"scale(float *, int)\",\n"
                         "\"Address\",\"Source\",\"stall_long_sb\",\"stall_wait\"\n"
                         "\"0x7fc48541d900\",\"      LDG.E R2, [R4.64] \",\"0\",\"2\"\n"
                         "\"0x7fc48541d910\",\"      FADD R3, R2, R2 \",\"90\",\"2\"\n"
                         "\"0x7fc48541d920\",\"      STG.E [R4.64], R3 \",\"0\",\"6\"\n"
                         "\"0x7fc48541d930\",\"      EXIT \",\"0\",\"0\"\n"));
  const Exit exit = kernelpro({"diagnose", page, "--device", "H100", "--json"});
  ASSERT_TRUE(exit.ok()) << exit.output;
  const auto json = parse_json(exit.output);
  ASSERT_TRUE(json) << exit.output;
  const std::string basis = (*json)["basis"].get<std::string>();
  EXPECT_TRUE(contains(basis, "program-counter samples")) << basis;
  EXPECT_TRUE(contains(basis, "instructions of 1 kernel")) << basis;
  ASSERT_EQ((*json)["evidence"]["kernels"].size(), 1u);
  const Json& places = (*json)["evidence"]["kernels"][0]["places"];
  EXPECT_EQ(places["basis"], "sampled") << places;
  EXPECT_EQ(places["samples"], 100);
  EXPECT_TRUE(contains(places["places"][0]["at"]["code"].dump(), "FADD R3, R2, R2")) << places;
}

// A program under the tracer with a fake CUPTI, which loads a module; a stand-in disassembles it.
TEST_F(DiagnoseTest, AProgramBringsItsMachineCode) {
  const std::string program = join(executable_dir(), "kernelpro-traced");
  const std::string cupti = join(executable_dir(), "libkernelpro_fake_cupti.so");
  if (!exists(program) || !exists(cupti)) GTEST_SKIP() << "build test_profile_trace first";
  std::string image(64, '\0');  // an ELF header of NVIDIA's, and nothing behind it
  image.replace(0, 4,
                "\x7f"
                "ELF");
  image[18] = static_cast<char>(190);
  const std::string module = join(dir.path(), "module");
  ASSERT_TRUE(write_file(module, image));
  const auto sass =
      read_file(std::string(KERNELPRO_SOURCE_DIR) + "/src/profile/fixtures/sm_90a.nvdisasm.txt");
  ASSERT_TRUE(sass);
  ASSERT_TRUE(write_file(join(dir.path(), "sass"), replace_all(*sass, "copy128", "_Z3addPKfPfi")));
  ASSERT_TRUE(make_dirs(join(dir.path(), "bin")));
  const auto disassembler = [&](const std::string& script) {
    const std::string path = join(dir.path(), "bin/nvdisasm");
    ASSERT_TRUE(write_file(path, "#!/bin/sh\n" + script));
    ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
  };
  const auto diagnosed = [&] {
    Command command;
    command.argv = {join(executable_dir(), "kernelpro"),
                    "diagnose",
                    "--no-counters",
                    "--json",
                    "--",
                    program,
                    "exit",
                    module};
    command.env = {"KERNELPRO_STATE=" + dir.path(), "KERNELPRO_CACHE=" + dir.path(),
                   "KERNELPRO_TRACE_CUPTI=" + cupti, "CUDA_HOME=" + dir.path()};
    command.limits.output_kept = 4 << 20;
    const auto exit = run(command);
    EXPECT_TRUE(exit && exit->ok()) << (exit ? exit->output : exit.error().text());
    return exit ? parse_json(exit->output).value_or(Json()) : Json();
  };
  disassembler("exec cat " + join(dir.path(), "sass") + "\n");
  const Json with = diagnosed();
  EXPECT_TRUE(contains(with["basis"].dump(), "machine code of 1 kernel")) << with["basis"];
  EXPECT_TRUE(contains(with["evidence"].dump(), "sass.hot.instructions")) << with["notes"];
  // Too much code: a diagnosis without, which says so.
  disassembler("exec head -c 80000000 /dev/zero\n");
  const Json without = diagnosed();
  EXPECT_FALSE(contains(without["basis"].dump(), "machine code")) << without["basis"];
  EXPECT_TRUE(contains(without["notes"].dump(), "64 MiB")) << without["notes"];
  EXPECT_EQ(without["evidence"]["kernels"].size(), 1u);
}

TEST_F(DiagnoseTest, SavedEvidenceGivesTheSameDiagnosis) {
  const std::string saved = join(dir.path(), "evidence.json");
  const Exit first =
      kernelpro({"diagnose", csv, "--bytes", "2147483648", "--json", "--evidence", saved});
  ASSERT_TRUE(first.ok()) << first.output;
  const Exit again = kernelpro({"diagnose", saved, "--json"});
  ASSERT_TRUE(again.ok()) << again.output;
  const auto a = parse_json(first.output);
  const auto b = parse_json(again.output);
  ASSERT_TRUE(a && b);
  EXPECT_EQ((*a)["diagnosis"].dump(), (*b)["diagnosis"].dump());
  // Its own output can be read back.
  ASSERT_TRUE(write_file(saved, first.output));
  const Exit third = kernelpro({"diagnose", saved, "--for-model"});
  EXPECT_TRUE(third.ok()) << third.output;
  EXPECT_EQ(third.output.rfind("## Diagnosis", 0), 0u) << third.output;
}

TEST_F(DiagnoseTest, KeepsItInTheRun) {
  const std::string run = join(dir.path(), "run");
  const std::string recorded =
      std::string(KERNELPRO_SOURCE_DIR) + "/results/exchange/softmax.jsonl";
  ASSERT_TRUE(kernelpro({"pack", recorded, run}).ok());
  {
    const auto store = Store::open(run, Store::Mode::kWrite);
    ASSERT_TRUE(store) << store.error().text();
    ASSERT_TRUE((*store)->revise({{2, Diagnosis{}, std::nullopt}}));
  }
  EXPECT_EQ(kernelpro({"diagnose", run, "--keep"}).code, 2) << "which of its candidates?";
  const Exit exit = kernelpro({"diagnose", run + ":2", "--keep", "--no-record", "--for-model"});
  ASSERT_TRUE(exit.ok()) << exit.output;
  const auto store = Store::open(run, Store::Mode::kRead);
  ASSERT_TRUE(store) << store.error().text();
  const auto kept = (*store)->candidate(2, true);
  ASSERT_TRUE(kept) << kept.error().text();
  EXPECT_GT(kept->known.diagnosis.floor_us, 0);
  EXPECT_EQ(diagnosis_to_text(kept->known.diagnosis), exit.output);
  EXPECT_FALSE(kept->evidence.items().empty()) << "what was observed stays";
}

TEST_F(DiagnoseTest, AllShowsToolsNumbersAndWhatIsMissing) {
  const Exit exit = kernelpro({"diagnose", csv, "--all"});
  ASSERT_TRUE(exit.ok()) << exit.output;
  EXPECT_TRUE(contains(exit.output, "could not run")) << exit.output;
  EXPECT_TRUE(contains(exit.output, "dram__bytes_read.sum")) << exit.output;
  EXPECT_TRUE(contains(exit.output, "missing")) << exit.output;
  for (const std::string& line : lines(exit.output)) EXPECT_LE(line.size(), 130u) << line;
}

TEST_F(DiagnoseTest, BadInput) {
  ASSERT_TRUE(write_file(join(dir.path(), "empty.csv"), ""));
  ASSERT_TRUE(write_file(join(dir.path(), "text.csv"), "hello, world\n1,2\n"));
  ASSERT_TRUE(write_file(join(dir.path(), "cut.json"), "{\"items\": {"));
  ASSERT_TRUE(write_file(join(dir.path(), "k.cu"), "__global__ void k() {}\n"));
  const std::vector<std::vector<std::string>> faults = {
      {"diagnose"},
      {"diagnose", join(dir.path(), "absent.csv")},
      {"diagnose", join(dir.path(), "empty.csv")},
      {"diagnose", join(dir.path(), "text.csv")},
      {"diagnose", join(dir.path(), "cut.json")},
      {"diagnose", join(dir.path(), "k.cu")},
      {"diagnose", csv, "--kernel", "nothing-of-that-name"},
      {"diagnose", csv, "--calls", "0"},
      {"diagnose", csv, "--", "true"},
      {"diagnose", csv, "--record", join(dir.path(), "absent.json")},
      {"diagnose", csv, "--keep"},
  };
  for (const auto& arguments : faults) {
    const Exit exit = kernelpro(arguments);
    EXPECT_EQ(exit.code, 2) << join_text(arguments, " ") << "\n" << exit.output;
    EXPECT_TRUE(contains(exit.output, "next:")) << exit.output;
  }
}

TEST_F(DiagnoseTest, AnUnknownGpuIsSaid) {
  const std::string other = join(dir.path(), "other.csv");
  std::string text = replace_all(kCsv, "NVIDIA H100 80GB HBM3", "Future GPU");
  text = replace_all(text, "\"33.1\"", "\"n/a\"");
  ASSERT_TRUE(write_file(other, text));
  const Exit exit = kernelpro({"diagnose", other, "--bytes", "2147483648", "--all"});
  ASSERT_TRUE(exit.ok()) << exit.output;
  EXPECT_TRUE(contains(exit.output, "--device")) << exit.output;
  const Exit named = kernelpro({"diagnose", other, "--bytes", "2147483648", "--device", "H100"});
  EXPECT_TRUE(contains(named.output, "In theory memory bounds")) << named.output;
}

// Compiled at a station, not run: static evidence in every build that has a CUDA compiler.
TEST_F(DiagnoseTest, AKernelForAGpuThatIsNotHereIsCompiledAlone) {
  const std::string task = std::string(KERNELPRO_SOURCE_DIR) + "/examples/softmax";
  const std::string kernel = join(task, "kernel.cu");
  const Exit exit = kernelpro({"diagnose", kernel, "--task", task, "--device", "H100", "--json"});
  if (exit.code == 3) GTEST_SKIP() << exit.output;  // no CUDA compiler
  ASSERT_TRUE(exit.ok()) << exit.output;
  EXPECT_TRUE(contains(exit.output, "compiling alone, for sm_90a")) << exit.output;
  EXPECT_TRUE(contains(exit.output, "and not run")) << exit.output;
  EXPECT_TRUE(contains(exit.output, "\"launch__registers_per_thread\"")) << exit.output;
  EXPECT_FALSE(contains(exit.output, "\"timing.median\"")) << exit.output;
  const std::string broken = join(dir.path(), "broken.cu");
  ASSERT_TRUE(write_file(broken, "#include \"task.h\"\nint nonsense = nothing;\n"));
  const Exit refused = kernelpro({"diagnose", broken, "--task", task, "--device", "H100"});
  EXPECT_EQ(refused.code, 2) << refused.output;
  EXPECT_TRUE(contains(refused.output, "does not compile")) << refused.output;
}

TEST_F(DiagnoseTest, TheRecordMovesTheLikelyGain) {
  const std::vector<std::string> ask = {"diagnose", csv, "--bytes", "2147483648", "--json"};
  const auto likely = [&](const std::string& output) {
    const auto json = parse_json(output);
    EXPECT_TRUE(json) << output;
    const Json& findings = (*json)["diagnosis"]["findings"];
    return findings.empty()
               ? std::pair<std::string, double>{"", 0}
               : std::pair<std::string, double>{findings[0]["tool"].get<std::string>(),
                                                findings[0]["likely_speedup"].get<double>()};
  };
  const auto before = likely(kernelpro(ask).output);
  ASSERT_FALSE(before.first.empty());
  ASSERT_GT(before.second, 1.1);
  const std::string record = join(dir.path(), "tools.json");
  for (int i = 0; i < 60; ++i) {
    ASSERT_TRUE(add_to_record(record, {1, before.first, "", before.second, before.second, 1, ""}));
  }
  const std::string output = kernelpro(ask).output;
  EXPECT_LT(likely(output).second, before.second);
  EXPECT_TRUE(contains(output, read_record(record, true)->hash()));
  std::vector<std::string> without = ask;
  without.push_back("--no-record");
  EXPECT_DOUBLE_EQ(likely(kernelpro(without).output).second, before.second);
}

// A third of the time is copies from pageable memory; the file's name gives no hint.
TEST_F(DiagnoseTest, NsysTrace) {
  std::string rows =
      "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem "
      "(MB),Bytes (MB),Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,GreenCtx,Strm,Name\n";
  for (int i = 0; i < 20; ++i) {
    const auto at = [&](int us) { return std::to_string(1000 * (i * 1000 + us)); };
    rows += at(0) + ",300000," + std::to_string(2 * i) +
            ",,,,,,,,,,8.000,26666,Pageable,Device,NVIDIA H100 80GB HBM3 (0),1,,7,[CUDA memcpy "
            "Host-to-Device]\n";
    rows += at(310) + ",600000," + std::to_string(2 * i + 1) +
            ",132,1,1,256,1,1,32,0,0,,,,,NVIDIA H100 80GB HBM3 (0),1,,7,\"void work<float>(float "
            "*)\"\n";
  }
  const std::string path = join(dir.path(), "anything.txt");
  ASSERT_TRUE(write_file(path, rows));
  const Exit exit = kernelpro({"diagnose", path, "--json"});
  ASSERT_TRUE(exit.ok()) << exit.output;
  const auto json = parse_json(exit.output);
  ASSERT_TRUE(json) << exit.output;
  EXPECT_EQ((*json)["evidence"]["kernels"].at(0)["name"], "void work<float>(float *)");
  EXPECT_TRUE(contains((*json)["diagnosis"].dump(), "host-copies")) << exit.output;
  EXPECT_EQ((*json)["ceilings"].get<std::string>().rfind("nominal peaks", 0), 0u);
}

TEST_F(DiagnoseTest, ToolsShowTheRecord) {
  const Exit bare = kernelpro({"tools"});
  ASSERT_TRUE(bare.ok()) << bare.output;
  EXPECT_TRUE(contains(bare.output, "scalar-loads"));
  EXPECT_TRUE(contains(bare.output, "nothing in it yet"));
  ASSERT_TRUE(add_to_record(join(dir.path(), "tools.json"),
                            {1, "scalar-loads", "vectorize", 1.5, 2.0, 1.4, ""}));
  const auto json = parse_json(kernelpro({"tools", "scalar-loads", "--json"}).output);
  ASSERT_TRUE(json);
  const Json& tool = (*json)["tools"].at(0);
  EXPECT_EQ(tool["name"], "scalar-loads");
  EXPECT_EQ(tool["record"]["tried"], 1);
  EXPECT_NEAR(tool["record"]["mean_gain"].get<double>(), 1.4, 1e-9);
  EXPECT_FALSE(tool["needs"].empty());
  EXPECT_EQ(kernelpro({"tools", "no-such-tool"}).code, 2);
}

TEST(Parse, WordsBehindTwoDashesAreAProgram) {
  const auto options =
      parse_options(*find_subcommand("diagnose"),
                    {"--timeout", "5", "--", "python", "-c", "print(1)\n", "--all"});
  ASSERT_TRUE(options) << options.error().text();
  EXPECT_EQ(options->rest, (std::vector<std::string>{"python", "-c", "print(1)\n", "--all"}));
  EXPECT_FALSE(options->flag("--all"));
  EXPECT_EQ(options->real("--timeout"), 5);
}

}  // namespace
}  // namespace kernelpro
