// SPDX-License-Identifier: Apache-2.0
#include "build/cached.h"

#include "base/clock.h"
#include "base/text.h"

namespace kernelpro {

namespace {

constexpr const char* kKillers[] = {"Killed", "Terminated", "Interrupt", "Hangup"};

// Matches the last lines printed by GCC's driver and collect2, Clang's and nvcc. Only whole lines
// at the end count: a source can make the compiler print such words, but not end with them.
std::string killed_part(const std::string& output) {
  std::vector<std::string> all = lines(trim(output));
  if (!all.empty() && all.back() == "compilation terminated.") all.pop_back();
  if (all.empty()) return "";
  const std::string& last = all.back();
  for (const std::string killer : kKillers) {
    const bool gcc = contains(last, ": fatal error: " + killer + " signal terminated program ");
    const bool linker = last.starts_with("collect2: fatal error: ld terminated with signal ") &&
                        last.ends_with("[" + killer + "]");
    const bool clang = last.ends_with(": error: unable to execute command: " + killer);
    if ((gcc && !contains(last.substr(0, last.find(": fatal error: ")), " ")) || linker || clang) {
      return last;
    }
  }
  for (const char* number : {"9", "15", "2", "1"}) {
    if (last.starts_with("nvcc error") &&
        contains(last, std::string("' died due to signal ") + number + " ")) {
      return last;
    }
  }
  return "";
}

Error killed_error(const std::string& how, int times) {
  return {ErrorKind::kEnvironment,
          "a compiler was killed " + std::to_string(times) + " times in a row: " + how,
          "something outside KernelPro kills its processes: dmesg names victims of the "
          "out-of-memory killer; free memory, then continue: kernelpro resume RUN"};
}

}  // namespace

std::string killed_from_outside(const Exit& exit) {
  if (exit.from_outside()) return exit.describe({});
  return exit.kind == Exit::Kind::kExited && exit.code != 0 ? killed_part(exit.output) : "";
}

Result<Made> make_unless_killed(const BuildCache& cache, std::string* folder,
                                const std::function<Result<Made>(const std::string&)>& make) {
  Result<Made> made = make(*folder);
  for (int times = 1; made && !made->killed.empty(); ++times) {
    if (times == kMostKilledCompilers) {
      return tl::unexpected<Error>(killed_error(made->killed, times));
    }
    cache.discard(*folder);
    KP_ASSIGN(*folder, cache.stage());
    made = make(*folder);
  }
  return made;
}

CompileResult cached_build(const BuildCache& cache, const std::string& key,
                           const std::string& case_name,
                           const std::function<Result<Made>(const std::string& folder)>& make) {
  const auto finished = [&](Build build, double ms) -> CompileResult {
    if (auto* error = std::get_if<CompileError>(&build)) return *error;
    Binary binary = std::get<Binary>(std::move(build));
    binary.case_name = case_name;  // equal cases of different names share an entry
    binary.compile_ms = ms;
    return binary;
  };
  if (const auto folder = cache.lookup(key)) {
    if (auto build = read_build(*folder)) return finished(std::move(*build), 0);
  }
  const double start = real_clock().now_s();
  KP_ASSIGN(std::string folder, cache.stage());
  const auto give_up = [&](const Error& error) {
    cache.discard(folder);
    return tl::unexpected<Error>(error);
  };
  Result<Made> made = make_unless_killed(cache, &folder, make);
  if (!made) return give_up(made.error());
  const double ms = (real_clock().now_s() - start) * 1e3;
  if (!made->certain) {
    cache.discard(folder);
    return finished(std::move(made->build), ms);
  }
  if (auto* binary = std::get_if<Binary>(&made->build)) {
    binary->hash = key;
    binary->case_name = case_name;
  }
  if (auto written = write_build(folder, made->build); !written) return give_up(written.error());
  KP_ASSIGN(const std::string entry, cache.publish(folder, key));
  std::optional<Build> kept = read_build(entry);
  if (!kept) {
    return fail(ErrorKind::kStore, "the cache entry " + entry + " cannot be read back",
                "check that its disk has space left");
  }
  return finished(std::move(*kept), ms);
}

}  // namespace kernelpro
