// SPDX-License-Identifier: Apache-2.0
#include "profile/code/cubin.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <cstring>

#include "base/cuda_toolkit.h"
#include "base/files.h"
#include "base/process/subprocess.h"
#include "base/text.h"
#include "profile/code/disassemble.h"

namespace kernelpro {
namespace {

template <class T>
std::string bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// A cubin with nothing but these functions' symbols.
std::string cubin(const std::vector<std::pair<std::string, std::uint64_t>>& functions) {
  std::string strings(1, '\0'), symbols = bytes_of(Elf64_Sym{});
  for (const auto& [name, bytes] : functions) {
    Elf64_Sym symbol{};
    symbol.st_name = static_cast<Elf64_Word>(strings.size());
    symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    symbol.st_shndx = 7;
    symbol.st_size = bytes;
    symbols += bytes_of(symbol);
    strings += name + '\0';
  }
  Elf64_Ehdr head{};
  std::memcpy(head.e_ident, ELFMAG, SELFMAG);
  head.e_ident[EI_CLASS] = ELFCLASS64;
  head.e_ident[EI_DATA] = ELFDATA2LSB;
  head.e_machine = 190;
  head.e_shentsize = sizeof(Elf64_Shdr);
  head.e_shnum = 3;
  head.e_shoff = sizeof head + symbols.size() + strings.size();
  Elf64_Shdr none{}, symtab{}, strtab{};
  symtab.sh_type = SHT_SYMTAB;
  symtab.sh_link = 2;
  symtab.sh_offset = sizeof head;
  symtab.sh_size = symbols.size();
  strtab.sh_type = SHT_STRTAB;
  strtab.sh_offset = sizeof head + symbols.size();
  strtab.sh_size = strings.size();
  return bytes_of(head) + symbols + strings + bytes_of(none) + bytes_of(symtab) + bytes_of(strtab);
}

TEST(Cubin, Functions) {
  const auto functions = cubin_functions(cubin({{"_Z4copyPf", 4096}, {"helper", 32}}));
  ASSERT_EQ(functions.size(), 2u);
  EXPECT_EQ(functions[0].name, "_Z4copyPf");
  EXPECT_EQ(functions[0].symbol, 1u);
  EXPECT_EQ(functions[0].bytes, 4096u);
  EXPECT_EQ(functions[1].symbol, 2u);
}

TEST(Cubin, DamagedOnesHaveNone) {
  const std::string whole = cubin({{"k", 16}});
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_TRUE(cubin_functions(whole.substr(0, length)).empty()) << length;
  }
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string odd = whole;
    odd[i] = static_cast<char>(odd[i] ^ 0xff);
    static_cast<void>(cubin_functions(odd));
    static_cast<void>(cubin_resources(odd));
  }
}

// As ptxas says it of the same code.
TEST(Cubin, Resources) {
  const std::string nvcc = find_cuda_tool("nvcc");
  if (nvcc.empty()) GTEST_SKIP() << "no nvcc here";
  const TempDir folder;
  const std::string source = join(folder.path(), "k.cu");
  ASSERT_TRUE(write_file(source,
                         "extern \"C\" __global__ void a(float* p) {\n"
                         "  __shared__ float s[512];\n"
                         "  s[threadIdx.x] = p[threadIdx.x]; __syncthreads();\n"
                         "  p[threadIdx.x] = s[511 - threadIdx.x];\n}\n"
                         "extern \"C\" __global__ void b(double* p, int n) {\n"
                         "  double l[40];\n"
                         "  for (int i = 0; i < 40; ++i) l[i] = p[i * n];\n"
                         "  for (int k = 0; k < n; ++k) l[k % 40] += l[(k * 7) % 40] * p[k];\n"
                         "  for (int i = 0; i < 40; ++i) p[i] = l[i];\n}\n"));
  for (const char* arch : {"sm_80", "sm_90a"}) {
    const std::string cubin = join(folder.path(), "k.cubin");
    Command command;
    command.argv = {nvcc,   "-cubin", "-Xptxas", "-v", std::string("-arch=") + arch,
                    source, "-o",     cubin};
    const auto exit = run(command);
    ASSERT_TRUE(exit && exit->ok()) << (exit ? exit->output : exit.error().text());
    const auto resources = cubin_resources(*read_file(cubin));
    ASSERT_EQ(resources.size(), 2u);
    const KernelResources &a = resources.at("a"), &b = resources.at("b");
    EXPECT_TRUE(contains(exit->output, "Used " + std::to_string(a.registers) + " registers"));
    EXPECT_TRUE(contains(exit->output, "Used " + std::to_string(b.registers) + " registers"));
    EXPECT_EQ(a.shared_bytes, 2048) << "without what the system keeps";
    EXPECT_EQ(a.stack_bytes, 0);
    EXPECT_EQ(b.stack_bytes, 320);
    EXPECT_LT(b.spill_load_bytes, 0) << "unknown";
  }
  EXPECT_TRUE(cubin_resources("no cubin").empty());
}

// A stand-in for nvdisasm that prints its arguments, or more than is read.
struct CubinProgram : ::testing::Test {
  TempDir dir;
  void SetUp() override {
    ASSERT_TRUE(make_dirs(join(dir.path(), "bin")));
    ::setenv("CUDA_HOME", dir.path().c_str(), 1);
  }
  void TearDown() override { ::unsetenv("CUDA_HOME"); }
  void disassembler(const std::string& script) {
    const std::string path = join(dir.path(), "bin/nvdisasm");
    ASSERT_TRUE(write_file(path, "#!/bin/sh\n" + script));
    ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
  }
  std::string file(const std::string& image, const std::string& name = "k.cubin") {
    const std::string path = join(dir.path(), name);
    EXPECT_TRUE(write_file(path, image));
    return path;
  }
};

TEST_F(CubinProgram, OnlyWhatIsWanted) {
  disassembler("echo \"$@\"\n");
  const std::string path = file(cubin({{"a", 16}, {"b", 16}, {"c", 16}}));
  EXPECT_FALSE(contains(disassemble_cubin(path)->text, "-fun"));
  EXPECT_TRUE(contains(disassemble_cubin(path, {"c", "a", "of another file"})->text, "-fun 1,3 "));
  EXPECT_TRUE(contains(disassemble_cubin(path, {"b"})->text, "-fun 2 ")) << "not the text before";
  EXPECT_FALSE(contains(disassemble_cubin(path, {"elsewhere"})->text, "-fun"));
}

TEST_F(CubinProgram, TheLargestThatFitAreChosen) {
  disassembler("echo \"$@\"\n");
  const std::string path = file(cubin({{"a", 2 << 20}, {"b", 2 << 20}, {"c", 1 << 19}}));
  const auto text = disassemble_cubin(path);
  ASSERT_TRUE(text) << text.error().text();
  EXPECT_TRUE(contains(text->text, "-fun 1,3 ")) << text->text;
  EXPECT_EQ(text->left_out, 1);
  const auto huge = disassemble_cubin(file(cubin({{"a", 1 << 30}})));
  ASSERT_FALSE(huge);
  EXPECT_EQ(huge.error().kind, ErrorKind::kEnvironment);
}

TEST_F(CubinProgram, WithoutLinesWhereThoseAreTooMany) {
  disassembler("case \"$*\" in *-gi*) exec head -c 80000000 /dev/zero ;; esac\necho \"$@\"\n");
  const auto text = disassemble_cubin(file(cubin({{"a", 16}})));
  ASSERT_TRUE(text) << text.error().text();
  EXPECT_TRUE(contains(text->text, "-hex")) << text->text;
  disassembler("exec head -c 80000000 /dev/zero\n");
  const auto none = disassemble_cubin(file(cubin({{"b", 16}}), "other"));
  ASSERT_FALSE(none);
  EXPECT_TRUE(contains(none.error().message, "64 MiB")) << none.error().message;
  EXPECT_FALSE(none.error().next.empty());
}

}  // namespace
}  // namespace kernelpro
