// SPDX-License-Identifier: Apache-2.0
#include "serve/runs/runs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/files.h"
#include "base/hash.h"
#include "base/text.h"
#include "run/store/store.h"

namespace kernelpro {

namespace {

constexpr int kDepth = 4;
constexpr std::size_t kMostRuns = 5000;

std::int64_t nanoseconds(const timespec& time) {
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

void look(const std::string& folder, const std::string& below, int depth, FoundRuns* found) {
  for (const std::string& name : list_dir(folder)) {
    if (name.starts_with(".") || found->runs.size() >= kMostRuns) continue;
    const std::string path = join(folder, name);
    const std::string shown = below.empty() ? name : join(below, name);
    if (is_run(path)) {
      found->runs.push_back({run_address(path), shown, path});
    } else if (depth > 1 && is_dir(path)) {
      if (exists(join(path, "suite.json"))) {
        found->suites.push_back({run_address(path), shown, path});
      }
      look(path, shown, depth - 1, found);
    }
  }
}

std::string file_of(const std::string& path) { return is_dir(path) ? store_path(path) : path; }

}  // namespace

std::string run_address(const std::string& path) { return hash_hex(absolute(path)).substr(0, 12); }

FoundRuns find_runs(const std::string& folder) {
  FoundRuns found;
  look(folder, "", kDepth, &found);
  if (exists(join(folder, "suite.json"))) {
    found.suites.push_back({run_address(folder), basename(absolute(folder)), folder});
  }
  std::vector<std::pair<std::int64_t, FoundRun>> order;
  for (FoundRun& each : found.runs) {
    order.emplace_back(-run_stamp(each.path).changed_ns, std::move(each));
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  found.runs.clear();
  for (auto& [time, each] : order) found.runs.push_back(std::move(each));
  return found;
}

RunStamp run_stamp(const std::string& path) {
  RunStamp stamp;
  const Fd fd(::open(file_of(path).c_str(), O_RDONLY | O_CLOEXEC));
  struct stat about {};
  if (!fd.valid() || ::fstat(fd.get(), &about) != 0) return stamp;
  stamp.size = about.st_size;
  stamp.changed_ns = nanoseconds(about.st_mtim);
  unsigned char bytes[4] = {};
  // Offset 24: the file change counter (sqlite.org/fileformat2.html, 1.3.7).
  if (::pread(fd.get(), bytes, sizeof bytes, 24) == sizeof bytes) {
    for (const unsigned char byte : bytes) stamp.commits = stamp.commits << 8 | byte;
  }
  return stamp;
}

}  // namespace kernelpro
