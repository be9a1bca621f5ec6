// SPDX-License-Identifier: Apache-2.0
// Role cuda-compile: NVRTC in a separate process, so that a source that hangs or crashes the
// compiler costs only this process. Serves any number of compilations. Its working directory must
// be writable and holds precompiled headers.
#if KERNELPRO_HAVE_CUDA

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <set>
#include <string_view>
#include <utility>

#include "base/cuda_toolkit.h"
#include "base/hash.h"
#include "measure/worker/cuda/message.h"
#include "measure/worker/cuda/nvrtc.h"
#include "measure/worker/roles.h"

namespace kernelpro {

namespace {

// "12.10" is after "12.8".
bool at_least(const std::string& version, int major, int minor) {
  const std::size_t dot = version.find('.');
  const int found = std::atoi(version.c_str());
  const int after = dot == std::string::npos ? 0 : std::atoi(version.c_str() + dot + 1);
  return found > major || (found == major && after >= minor);
}

std::vector<std::string> options_for(const std::string& arch, const std::string& version) {
  std::vector<std::string> options = {"-arch=" + arch, "-std=c++20", "-lineinfo", "-default-device",
                                      "--ptxas-options=-v"};
  // From 13.0 on NVRTC has its own cache, which returns a cubin without ptxas's report.
  if (at_least(version, 13, 0)) options.emplace_back("-no-cache");
  if (at_least(version, 12, 8)) {
    options.insert(options.end(), {"-pch", "-pch-messages=false"});
  }
  const std::string include = find_cuda_headers();
  if (!include.empty()) {
    options.push_back("-I" + include);
    options.push_back("-I" + include + "/cccl");
  }
  return options;
}

Result<Fd> in_memory(const std::string& bytes) {
  Fd file(::memfd_create("cubin", MFD_CLOEXEC));
  std::size_t done = 0;
  while (file.valid() && done < bytes.size()) {
    const ssize_t n = ::write(file.get(), bytes.data() + done, bytes.size() - done);
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  if (file.valid() && done == bytes.size()) return file;
  return fail(ErrorKind::kEnvironment,
              std::string("no memory for the compiler's result: ") + std::strerror(errno),
              "free some memory");
}

// A precompiled header is matched by the names of its includes, not by the texts that we supply
// under those names: each has its own folder.
std::string pch_option(const std::string& text) {
  const std::string folder = hash_hex(text);
  ::mkdir(folder.c_str(), 0700);
  return "-pch-dir=" + folder;
}

// With -default-device constants are variables, which ptxas gets to see by their names. It names
// shared memory SMEM, and takes the address of such a variable for that of shared memory: the
// kernel writes anywhere (CUDA 13.0). And a label of inline assembly must not have a variable's
// name. So such constants get another name, unless a directive speaks of it.
constexpr const char* kReserved = "SMEM";

bool in_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Where `name` stands as a word, from `at` on.
std::size_t find_word(const std::string& text, const std::string& name, std::size_t at) {
  for (at = text.find(name, at); at != std::string::npos; at = text.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if ((at == 0 || !in_name(text[at - 1])) && (end == text.size() || !in_name(text[end]))) break;
  }
  return at;
}

bool has_directive_about(const std::string& source, const std::string& name) {
  for (std::size_t at = find_word(source, name, 0); at != std::string::npos;
       at = find_word(source, name, at + 1)) {
    const std::size_t line = source.rfind('\n', at) + 1;
    if (source[source.find_first_not_of(" \t", line)] == '#') return true;
  }
  return false;
}

// Whether one is declared: `constexpr int N = 4, W = 7;`, `const int W{7};`.
bool has_constant(const std::string& source, const std::string& name) {
  constexpr std::size_t kDeclaration = 400;  // bytes before the name
  for (std::size_t at = find_word(source, name, 0); at != std::string::npos;
       at = find_word(source, name, at + 1)) {
    const std::size_t next = source.find_first_not_of(" \t\n", at + name.size());
    if (next == std::string::npos) continue;
    if (std::string_view("={[").find(source[next]) == std::string_view::npos) continue;
    const std::size_t length = std::min(at, kDeclaration);
    std::string before = source.substr(at - length, length);
    before = before.substr(before.rfind(';') + 1);
    for (const char* word : {"constexpr", "const"}) {
      if (find_word(before, word, 0) != std::string::npos) return true;
    }
  }
  return false;
}

// Where the string literal that begins at `at` ends: behind its closing quote. `inside`: its text,
// with a space for each escape.
std::size_t read_literal(const std::string& source, std::size_t at, std::string* inside) {
  constexpr std::size_t kMostDelimiter = 16;
  const std::size_t open = source.find('(', at);
  if (at > 0 && source[at - 1] == 'R' && open != std::string::npos &&
      open - at <= kMostDelimiter + 1) {
    const std::string end = ")" + source.substr(at + 1, open - at - 1) + "\"";
    const std::size_t close = std::min(source.find(end, open), source.size());
    *inside = source.substr(open + 1, close - open - 1);
    return std::min(close + end.size(), source.size());
  }
  std::size_t i = at + 1;
  while (i < source.size() && source[i] != '"' && source[i] != '\n') {
    const bool escape = source[i] == '\\';
    *inside += escape ? ' ' : source[i];
    i += escape ? 2 : 1;
  }
  return std::min(i + 1, source.size());
}

void add_labels(const std::string& text, std::set<std::string>* labels) {
  std::string name;
  for (std::size_t k = 0; k < text.size(); ++k) {
    if (in_name(text[k])) {
      name += text[k];
      continue;
    }
    const bool scope = k + 1 < text.size() && text[k + 1] == ':';
    if (text[k] == ':' && !scope && !name.empty()) labels->insert(name);
    name.clear();
  }
}

// Labels in string literals, as in "{\n W: bra W;"; more than so many are no inline assembly.
std::set<std::string> labels_of(const std::string& source) {
  constexpr std::size_t kMostLabels = 64;
  std::set<std::string> labels;
  std::size_t i = 0;
  while (i < source.size() && labels.size() < kMostLabels) {
    if (source[i] == '\'' && i + 2 < source.size()) {  // a character, perhaps a quote
      i += source[i + 1] == '\\' ? 4 : source[i + 2] == '\'' ? 3 : 1;
    } else if (source[i] == '"') {
      std::string inside;
      i = read_literal(source, i, &inside);
      add_labels(inside, &labels);
    } else {
      ++i;
    }
  }
  return labels;
}

// Options that rename them.
std::vector<std::string> renamings(const std::string& source) {
  std::vector<std::string> options;
  const auto rename = [&](const std::string& name) {
    if (!has_directive_about(source, name)) options.push_back("-D" + name + "=kp_" + name);
  };
  rename(kReserved);
  for (const std::string& name : labels_of(source)) {
    if (name != kReserved && has_constant(source, name)) rename(name);
  }
  return options;
}

void serve_compile(WorkerChannel* channel, const WorkerCommand& command,
                   std::vector<std::string> options) {
  const bool precompiles = std::find(options.begin(), options.end(), "-pch") != options.end();
  for (const Json& folder : JsonReader(command.json).array("include_dirs")) {
    if (folder.is_string()) options.push_back("-I" + folder.get<std::string>());
  }
  const std::string header = command.text("header"), library = command.text("library");
  const std::string source = command.text("source");
  for (std::string& option : renamings(source)) options.push_back(std::move(option));
  if (precompiles) options.push_back(pch_option(library.empty() ? header : library));
  std::vector<NvrtcHeader> headers = {{"task.h", header}};
  if (!library.empty()) headers.push_back({"kernelpro_library.h", library});
  Result<NvrtcOutput> output = nvrtc_compile(source, command.text("file"), headers, options);
  if (!output) return channel->answer_error(output.error());
  const Result<Fd> cubin = in_memory(output->cubin);
  if (!cubin) return channel->answer_error(cubin.error());
  channel->answer({{"compiled", output->ok}, {"log", output->log}}, {cubin->get()});
}

// NVRTC's first compilation in a process takes several times as long: do it while nothing waits.
void warm_up(const std::vector<std::string>& options) {
  (void)nvrtc_compile("__global__ void warm(float* x) { x[threadIdx.x] *= 2; }\n", "warm.cu", {},
                      options);
}

}  // namespace

int cuda_compile(int, char**) {
  WorkerChannel channel;
  const Result<std::string> version = nvrtc_version();
  while (const std::optional<WorkerCommand> command = channel.next()) {
    if (!version) {
      channel.answer_error(version.error());
      continue;
    }
    const std::vector<std::string> options = options_for(command->text("arch"), *version);
    if (command->verb() == "version") {
      channel.answer({{"version", *version}});
      warm_up(options);
    } else {
      serve_compile(&channel, *command, options);
    }
  }
  return 0;
}

}  // namespace kernelpro

#endif
