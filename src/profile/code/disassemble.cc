// SPDX-License-Identifier: Apache-2.0
#include "profile/code/disassemble.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/cuda_toolkit.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/process/subprocess.h"
#include "base/text.h"
#include "profile/code/cubin.h"

namespace kernelpro {

namespace {

constexpr std::int64_t kMaxText = 64 << 20;
constexpr std::int64_t kMaxCubin = 1 << 30;
constexpr std::uint64_t kMaxCode = 3 << 20;  // gives some 50 MiB of text, without line numbers

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
  if (exit.kind == Exit::Kind::kFlooded) {
    return fail(ErrorKind::kEnvironment,
                tool + " of " + basename(binary) + " was stopped: its text exceeds 64 MiB",
                "give a file with the kernels that matter alone", Cause::kTooMuch);
  }
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

namespace {

// Of a cubin's functions, those to disassemble.
struct Selection {
  std::vector<std::string> names, symbols;  // empty: all
  int left_out = 0;
};

Selection select(const std::string& cubin, const std::vector<std::string>& only) {
  Selection selection;
  const Result<std::string> image = read_file(cubin, kMaxCubin);
  std::vector<CubinFunction> functions =
      image ? cubin_functions(*image) : std::vector<CubinFunction>();
  const std::size_t there = functions.size();
  const auto wanted = [&](const CubinFunction& function) {
    return std::find(only.begin(), only.end(), function.name) != only.end();
  };
  if (std::any_of(functions.begin(), functions.end(), wanted)) {
    std::erase_if(functions, [&](const CubinFunction& function) { return !wanted(function); });
  }
  std::uint64_t bytes = 0;
  for (const CubinFunction& function : functions) bytes += function.bytes;
  const std::size_t asked = functions.size();
  if (bytes > kMaxCode) {
    std::stable_sort(
        functions.begin(), functions.end(),
        [](const CubinFunction& a, const CubinFunction& b) { return a.bytes > b.bytes; });
    bytes = 0;
    std::erase_if(functions, [&](const CubinFunction& function) {
      if (bytes + function.bytes > kMaxCode) return true;
      bytes += function.bytes;
      return false;
    });
  }
  selection.left_out = static_cast<int>(asked - functions.size());
  if (functions.size() == there) return selection;
  std::sort(functions.begin(), functions.end(),
            [](const CubinFunction& a, const CubinFunction& b) { return a.symbol < b.symbol; });
  for (const CubinFunction& function : functions) {
    selection.names.push_back(function.name);
    selection.symbols.push_back(std::to_string(function.symbol));
  }
  return selection;
}

}  // namespace

Result<Disassembly> disassemble_cubin(const std::string& cubin,
                                      const std::vector<std::string>& only) {
  const std::string file = absolute(cubin);
  const Selection selection = select(file, only);
  const bool part = !selection.names.empty();
  if (!part && selection.left_out > 0) {
    return fail(ErrorKind::kEnvironment,
                "the functions of " + basename(cubin) + " are too large to disassemble",
                "give a cubin with smaller kernels");
  }
  // Each selection has its own cached text.
  const std::string cache =
      file + (part ? "." + hash_hex(join_text(selection.symbols, ",")).substr(0, 12) : "") +
      ".sass.txt";
  const auto run_with = [&](const std::string& tool, const std::string& program,
                            std::vector<std::string> options,
                            const std::vector<std::string>& functions) -> Result<Disassembly> {
    if (part) options.insert(options.end(), {"-fun", join_text(functions, ",")});
    Result<Disassembly> made = run_tool(tool, program, options, file, cache);
    if (made) made->left_out = selection.left_out;
    return made;
  };
  const std::string nvdisasm = find_cuda_tool("nvdisasm");
  if (!nvdisasm.empty()) {
    // The encoding holds stall counts and scoreboards; line numbers need -lineinfo.
    auto made = run_with("nvdisasm", nvdisasm, {"-c", "-hex", "-gi"}, selection.symbols);
    // Chains of inlined functions can take more room than the code: better without lines than
    // nothing.
    if (!made && made.error().cause == Cause::kTooMuch) {
      made = run_with("nvdisasm", nvdisasm, {"-c", "-hex"}, selection.symbols);
    }
    return made;
  }
  const std::string cuobjdump = find_cuda_tool("cuobjdump");
  if (!cuobjdump.empty()) return run_with("cuobjdump", cuobjdump, {"-sass"}, selection.names);
  return fail(ErrorKind::kEnvironment, "neither nvdisasm nor cuobjdump was found",
              "install NVIDIA's nvdisasm (the toolkit's package cuda-nvdisasm, or the wheel "
              "nvidia-cuda-nvdisasm) and put it on PATH");
}

}  // namespace kernelpro
