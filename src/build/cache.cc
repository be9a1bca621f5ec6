// SPDX-License-Identifier: Apache-2.0
#include "build/cache.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/json.h"

namespace kernelpro {

namespace fs = std::filesystem;
using json = Json;

namespace {

constexpr int kBuildFormat = 1;
constexpr int kPublishesPerPrune = 128;
constexpr std::time_t kInUseSeconds = 3600;
constexpr std::time_t kStaleSeconds = 86400;

std::time_t last_use(const std::string& path) {
  struct stat st {};
  return ::stat(path.c_str(), &st) == 0 ? st.st_mtime : 0;
}

void remove_folder(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
}

std::int64_t folder_bytes(const std::string& path) {
  std::int64_t bytes = 0;
  for (const std::string& name : list_dir(path)) {
    struct stat st {};
    if (::stat(join(path, name).c_str(), &st) == 0) bytes += st.st_blocks * 512;
  }
  return bytes;
}

std::int64_t file_bytes(const std::string& path) {
  struct stat st {};
  return ::stat(path.c_str(), &st) == 0 ? st.st_size : -1;
}

}  // namespace

BuildCache::BuildCache(std::string dir, std::int64_t max_bytes) : max_bytes_(max_bytes) {
  if (dir.empty()) dir = cache_dir();
  builds_ = join(absolute(dir), "builds");
  staging_ = join(absolute(dir), "staging");
}

std::optional<std::string> BuildCache::lookup(const std::string& key) const {
  const std::string path = join(builds_, key);
  if (!is_dir(path)) return std::nullopt;
  ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
  return path;
}

Result<std::string> BuildCache::stage() const {
  KP_TRY(make_dirs(staging_));
  std::string path = join(staging_, "XXXXXX");
  if (::mkdtemp(path.data()) == nullptr) {
    return fail(ErrorKind::kStore,
                "cannot create a folder in " + staging_ + ": " + std::strerror(errno),
                "free some space there, or point KERNELPRO_CACHE at a folder that can be written");
  }
  return path;
}

Result<std::string> BuildCache::publish(const std::string& staged, const std::string& key) const {
  static std::atomic<int> publishes{0};
  KP_TRY(make_dirs(builds_));
  const std::string path = join(builds_, key);
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (::rename(staged.c_str(), path.c_str()) == 0) {
      if (publishes.fetch_add(1) % kPublishesPerPrune == 0) prune();
      return path;
    }
    if (errno != EEXIST && errno != ENOTEMPTY) break;
    if (read_build(path)) {
      discard(staged);
      return path;
    }
    // The existing entry is damaged (a full disk, a lost write): remove it and retry once.
    remove_folder(path);
  }
  const int error = errno;
  discard(staged);
  return fail(ErrorKind::kStore, "cannot write " + path + ": " + std::strerror(error),
              "free some space there, or point KERNELPRO_CACHE at a folder that can be written");
}

void BuildCache::discard(const std::string& staged) const { remove_folder(staged); }

void BuildCache::prune() const {
  const std::time_t now = std::time(nullptr);
  for (const std::string& name : list_dir(staging_)) {
    const std::string path = join(staging_, name);
    if (now - last_use(path) > kStaleSeconds) remove_folder(path);
  }
  struct Entry {
    std::time_t used;
    std::int64_t bytes;
    std::string path;
  };
  std::vector<Entry> entries;
  std::int64_t total = 0;
  for (const std::string& name : list_dir(builds_)) {
    std::string path = join(builds_, name);
    entries.push_back({last_use(path), folder_bytes(path), path});
    total += entries.back().bytes;
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const Entry& entry : entries) {
    if (total <= max_bytes_ || now - entry.used < kInUseSeconds) break;
    // Rename first, so that nobody finds half an entry.
    const Result<std::string> grave = stage();
    if (!grave) break;
    if (::rename(entry.path.c_str(), grave->c_str()) == 0) total -= entry.bytes;
    remove_folder(*grave);
  }
}

Result<void> write_build(const std::string& folder, const Build& build) {
  json j{{"format", kBuildFormat}};
  if (const CompileError* error = std::get_if<CompileError>(&build)) {
    j["error"] = error->log;
  } else {
    const Binary& binary = std::get<Binary>(build);
    json files = json::object();
    const auto add = [&](const char* role, const std::string& path) {
      if (path.empty()) return;
      const std::string name = basename(path);
      files[role] = {{"name", name}, {"bytes", file_bytes(join(folder, name))}};
    };
    add("shared_object", binary.shared_object);
    add("cubin", binary.cubin);
    json resources = json::object();
    for (const auto& [name, r] : binary.resources) {
      resources[name] = {r.registers, r.stack_bytes, r.spill_store_bytes, r.spill_load_bytes,
                         r.shared_bytes};
    }
    j["binary"] = {{"form", static_cast<int>(binary.form)},
                   {"case", binary.case_name},
                   {"hash", binary.hash},
                   {"files", files},
                   {"resources", resources},
                   {"warnings", binary.warnings}};
    if (!binary.plan.nodes.empty()) j["binary"]["plan"] = plan_to_json(binary.plan);
  }
  return write_file(join(folder, "build.json"), dump_json(j, 1));
}

namespace {
std::optional<Binary> binary_from(const std::string& folder, const json& j) {
  Binary binary;
  binary.form = static_cast<Binary::Form>(j.at("form").get<int>());
  binary.case_name = j.at("case").get<std::string>();
  binary.hash = j.at("hash").get<std::string>();
  binary.warnings = j.at("warnings").get<std::string>();
  for (const auto& [role, file] : j.at("files").items()) {
    const std::string path = join(folder, file.at("name").get<std::string>());
    if (file_bytes(path) != file.at("bytes").get<std::int64_t>()) return std::nullopt;
    (role == "cubin" ? binary.cubin : binary.shared_object) = path;
  }
  for (const auto& [name, r] : j.at("resources").items()) {
    binary.resources[name] = {r.at(0).get<int>(), r.at(1).get<int>(), r.at(2).get<int>(),
                              r.at(3).get<int>(), r.at(4).get<int>()};
  }
  if (j.contains("plan")) {
    std::optional<LaunchPlan> plan = plan_from_json(j.at("plan").get<std::string>());
    if (!plan) return std::nullopt;
    binary.plan = std::move(*plan);
  }
  return binary;
}
}  // namespace

std::optional<Build> read_build(const std::string& folder) {
  const Result<std::string> text = read_file(join(folder, "build.json"));
  if (!text) return std::nullopt;
  try {
    const json j = parse_json(*text).value_or(json());
    if (j.at("format").get<int>() != kBuildFormat) return std::nullopt;
    if (j.contains("error")) return Build(CompileError{j.at("error").get<std::string>()});
    std::optional<Binary> binary = binary_from(folder, j.at("binary"));
    if (!binary) return std::nullopt;
    return Build(std::move(*binary));
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

}  // namespace kernelpro
