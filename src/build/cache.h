// SPDX-License-Identifier: Apache-2.0
// Content-addressed cache of compiler results on disk. An entry is a folder that appears atomically
// (one rename) and never changes; several threads and processes may share a cache.
//
//   <dir>/builds/<key>/       entries; the folder's modification time is its last use
//   <dir>/staging/XXXXXX/     entries in progress; those of killed processes go after a day
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "base/error.h"
#include "core/evaluation/evaluation.h"
#include "core/plan/binary.h"

namespace kernelpro {

class BuildCache {
 public:
  static constexpr std::int64_t kDefaultMaxBytes = 2LL << 30;

  // `dir`: base/files.h cache_dir() when empty. Creates nothing yet.
  explicit BuildCache(std::string dir, std::int64_t max_bytes = kDefaultMaxBytes);

  // The entry's folder; marks it as just used.
  std::optional<std::string> lookup(const std::string& key) const;
  // A fresh folder on the cache's file system to build in. Fails with kStore.
  Result<std::string> stage() const;
  // Moves a staged folder to its address and returns the new path. If another thread or process was
  // first, its entry stays and ours is removed. Fails with kStore.
  Result<std::string> publish(const std::string& staged, const std::string& key) const;
  // Removes an unwanted staged folder.
  void discard(const std::string& staged) const;
  // Evicts the least recently used entries until at most `max_bytes` remain; entries used within
  // the last hour stay. `publish` calls it occasionally.
  void prune() const;

 private:
  std::string builds_;
  std::string staging_;
  std::int64_t max_bytes_;
};

// An entry's content: a binary, or the source's compile error (equally cacheable).
using Build = std::variant<Binary, CompileError>;

// Writes <folder>/build.json. The binary's paths must lie in the folder; they are stored relative.
Result<void> write_build(const std::string& folder, const Build& build);
// Reads it back with absolute paths and compile_ms = 0. nullopt (rebuild) if it is missing or
// damaged, or a file that it names is missing or has another size.
std::optional<Build> read_build(const std::string& folder);

}  // namespace kernelpro
