// SPDX-License-Identifier: Apache-2.0
#include "compile/cached.h"

#include "base/clock.h"

namespace kernelpro {

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
  const Result<std::string> folder = cache.stage();
  if (!folder) return tl::unexpected<Error>(folder.error());
  const auto give_up = [&](const Error& error) {
    cache.discard(*folder);
    return tl::unexpected<Error>(error);
  };
  Result<Made> made = make(*folder);
  if (!made) return give_up(made.error());
  const double ms = (real_clock().now_s() - start) * 1e3;
  if (!made->certain) {
    cache.discard(*folder);
    return finished(std::move(made->build), ms);
  }
  if (auto* binary = std::get_if<Binary>(&made->build)) {
    binary->hash = key;
    binary->case_name = case_name;
  }
  if (auto written = write_build(*folder, made->build); !written) return give_up(written.error());
  const Result<std::string> entry = cache.publish(*folder, key);
  if (!entry) return tl::unexpected<Error>(entry.error());
  std::optional<Build> kept = read_build(*entry);
  if (!kept) {
    return fail(ErrorKind::kStore, "the cache entry " + *entry + " cannot be read back",
                "check that its disk has space left");
  }
  return finished(std::move(*kept), ms);
}

}  // namespace kernelpro
