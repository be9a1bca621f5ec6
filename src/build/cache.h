// SPDX-License-Identifier: Apache-2.0
// What compilers made, on disk, by content address. An entry is a folder that appears whole (by one
// rename) and never changes; several threads and processes may share a cache.
//
//   <dir>/builds/<key>/       entries; the folder's modification time is its last use
//   <dir>/staging/XXXXXX/     entries in the making; what a killed process left is swept after a
//   day
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "base/error.h"
#include "core/binary.h"
#include "core/evaluation.h"

namespace kernelpro {

class BuildCache {
 public:
  static constexpr std::int64_t kDefaultMaxBytes = 2LL << 30;

  // `dir`: base/files.h cache_dir() when empty. Creates nothing yet.
  explicit BuildCache(std::string dir, std::int64_t max_bytes = kDefaultMaxBytes);

  // The entry's folder, marked as just used.
  std::optional<std::string> lookup(const std::string& key) const;
  // A fresh folder on the cache's file system, for building in. Fails with kStore.
  Result<std::string> stage() const;
  // Moves a staged folder to its address and returns where it now is. When another thread or
  // process was faster, theirs stays and ours is removed. Fails with kStore.
  Result<std::string> publish(const std::string& staged, const std::string& key) const;
  // Removes a staged folder that is not wanted.
  void discard(const std::string& staged) const;
  // Removes the entries that were not used for longest until at most `max_bytes` remain; entries
  // used within the last hour stay. `publish` calls it now and then.
  void prune() const;

 private:
  std::string builds_;
  std::string staging_;
  std::int64_t max_bytes_;
};

// What an entry holds: a binary, or the source's compile error (which is as cacheable).
using Build = std::variant<Binary, CompileError>;

// Writes <folder>/build.json. Paths of the binary must lie in the folder; they are kept relative.
Result<void> write_build(const std::string& folder, const Build& build);
// Reads it back with absolute paths and compile_ms = 0. nullopt when it is missing or damaged, or
// a file that it names is missing or has another size: then build again.
std::optional<Build> read_build(const std::string& folder);

}  // namespace kernelpro
