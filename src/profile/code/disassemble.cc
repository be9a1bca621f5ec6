// SPDX-License-Identifier: Apache-2.0
#include "profile/code/disassemble.h"

#include <unistd.h>

#include <filesystem>

#include "base/files.h"
#include "base/process/subprocess.h"
#include "base/text.h"
#include "core/cuda_tools.h"

namespace kernelpro {

namespace {

constexpr std::int64_t kMaxText = 64 << 20;

bool older(const std::string& path, const std::string& than) {
  std::error_code error;
  const auto a = std::filesystem::last_write_time(path, error);
  const auto b = std::filesystem::last_write_time(than, error);
  return !error && a < b;
}

// The first line of a cached text names the tool and its options; nothing else is added.
Result<Disassembly> from_cache(const std::string& path, const std::string& binary,
                               const std::string& tool, const std::string& options) {
  if (older(path, binary)) return fail(ErrorKind::kEnvironment, path + " is outdated", "delete it");
  KP_ASSIGN(std::string kept, read_file(path, kMaxText));
  const std::size_t end = kept.find('\n');
  if (end == std::string::npos || kept.substr(0, end) != "tool: " + tool + " " + options) {
    return fail(ErrorKind::kEnvironment, path + " is of another tool or damaged", "delete it");
  }
  return Disassembly{kept.substr(end + 1), tool};
}

Result<Disassembly> run_tool(const std::string& tool, const std::string& program,
                             const std::vector<std::string>& options, const std::string& binary,
                             const std::string& cache) {
  const std::string asked = join_text(options, " ");
  if (Result<Disassembly> kept = from_cache(cache, binary, tool, asked)) return kept;
  Command command;
  command.argv = {program};
  command.argv.insert(command.argv.end(), options.begin(), options.end());
  command.argv.push_back(binary);
  command.env = {"LC_ALL=C"};
  command.limits.output_kept = kMaxText;
  command.limits.output_killed = kMaxText;
  KP_ASSIGN(Exit exit, run(command));
  if (!exit.ok()) {
    return fail(
        ErrorKind::kEnvironment,
        tool + " could not read " + basename(binary) + ": it " + exit.describe(command.limits),
        "run " + tool + " on the file by hand to see why");
  }
  // In a read-only folder we only lose the cache.
  if (::access(dirname(cache).c_str(), W_OK) == 0) {
    static_cast<void>(write_file(cache, "tool: " + tool + " " + asked + "\n" + exit.output));
  }
  return Disassembly{std::move(exit.output), tool};
}

}  // namespace

Result<Disassembly> disassemble_host(const std::string& shared_object) {
  const std::string objdump = find_program("objdump");
  if (objdump.empty()) {
    return fail(ErrorKind::kEnvironment, "objdump was not found", "install the package binutils");
  }
  const std::string file = absolute(shared_object);
  return run_tool("objdump", objdump, {"-d", "--no-show-raw-insn", "-M", "intel", "-j", ".text"},
                  file, file + ".objdump.txt");
}

Result<Disassembly> disassemble_cubin(const std::string& cubin) {
  const std::string file = absolute(cubin);
  const std::string nvdisasm = find_cuda_tool("nvdisasm");
  if (!nvdisasm.empty()) {
    // The encoding holds stall counts and scoreboards; line numbers need -lineinfo.
    return run_tool("nvdisasm", nvdisasm, {"-c", "-hex", "-gi"}, file, file + ".sass.txt");
  }
  const std::string cuobjdump = find_cuda_tool("cuobjdump");
  if (!cuobjdump.empty()) {
    return run_tool("cuobjdump", cuobjdump, {"-sass"}, file, file + ".sass.txt");
  }
  return fail(ErrorKind::kEnvironment, "neither nvdisasm nor cuobjdump was found",
              "install NVIDIA's nvdisasm (the toolkit's package cuda-nvdisasm, or the wheel "
              "nvidia-cuda-nvdisasm) and put it on PATH");
}

}  // namespace kernelpro
