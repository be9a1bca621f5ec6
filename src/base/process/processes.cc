// SPDX-License-Identifier: Apache-2.0
#include "base/process/processes.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <unordered_map>

namespace kernelpro {

namespace {

struct StatLine {
  char text[1024];
  const char* fields = nullptr;  // after the name
};

// /proc/PID/stat: the name in parentheses may contain anything, so count fields from the last ')'.
bool read_stat_line(const char* pid, StatLine* line) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%s/stat", pid);
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t n = ::read(fd, line->text, sizeof line->text - 1);
  ::close(fd);
  if (n <= 0) return false;
  line->text[n] = '\0';
  const char* name_end = std::strrchr(line->text, ')');
  if (name_end == nullptr) return false;
  line->fields = name_end + 1;
  return true;
}

bool read_stat(const char* pid, ProcessInfo* info) {
  StatLine line;
  if (!read_stat_line(pid, &line)) return false;
  char state = 0;
  int parent = 0, group = 0;
  long long threads = 0, resident = 0;
  unsigned long long start = 0;
  // state ppid pgrp session tty tpgid flags minflt cminflt majflt cmajflt utime stime cutime cstime
  // priority nice num_threads itrealvalue starttime vsize rss
  const int got =
      std::sscanf(line.fields,
                  " %c %d %d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %lld %*d %llu "
                  "%*u %lld",
                  &state, &parent, &group, &threads, &start, &resident);
  if (got != 6) return false;
  static const long page = ::sysconf(_SC_PAGESIZE);
  info->pid = static_cast<pid_t>(std::atoi(pid));
  info->parent = parent;
  info->group = group;
  info->start = start;
  info->resident_bytes = resident * page;
  info->threads = threads;
  info->zombie = state == 'Z' || state == 'X';
  return true;
}

double seconds_of(pid_t pid) {
  StatLine line;
  if (!read_stat_line(std::to_string(pid).c_str(), &line)) return 0;
  unsigned long long own = 0, system = 0;
  long long children = 0, children_system = 0;
  const int got =
      std::sscanf(line.fields, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %lld %lld",
                  &own, &system, &children, &children_system);
  if (got != 4) return 0;
  static const double tick = 1.0 / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return (static_cast<double>(own + system) + static_cast<double>(children + children_system)) *
         tick;
}

// Children of every thread of a process; false when the kernel does not list them.
bool list_children(pid_t pid, std::vector<pid_t>* children) {
  char path[96];
  std::snprintf(path, sizeof path, "/proc/%d/task", static_cast<int>(pid));
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path), ::closedir);
  if (folder == nullptr) return true;  // gone
  while (const dirent* entry = ::readdir(folder.get())) {
    if (entry->d_name[0] < '0' || entry->d_name[0] > '9') continue;
    std::snprintf(path, sizeof path, "/proc/%d/task/%.20s/children", static_cast<int>(pid),
                  entry->d_name);
    const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path, "re"), std::fclose);
    if (file == nullptr && errno == ENOENT && ::access("/proc/thread-self/children", F_OK) != 0) {
      return false;
    }
    int child = 0;
    while (file != nullptr && std::fscanf(file.get(), "%d", &child) == 1) {
      children->push_back(child);
    }
  }
  return true;
}

std::vector<pid_t> tree_of(pid_t root) {
  constexpr std::size_t kMost = 100'000;
  std::vector<pid_t> tree = {root};
  for (std::size_t i = 0; i < tree.size() && tree.size() < kMost; ++i) {
    if (!list_children(tree[i], &tree)) {
      tree = descendants(root);
      tree.insert(tree.begin(), root);
      break;
    }
  }
  return tree;
}

// Pages of memory, and those of them that are shared. False: it has none, being dead.
bool read_pages(const std::string& statm, long long* resident, long long* shared) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(statm.c_str(), "re"), std::fclose);
  return file != nullptr && std::fscanf(file.get(), "%*d %lld %lld", resident, shared) == 2 &&
         *resident > 0;
}

// The same where a process's first thread has ended: any living one knows.
bool read_pages_of_threads(const std::string& process, long long* resident, long long* shared) {
  const std::string tasks = process + "/task";
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(tasks.c_str()), ::closedir);
  if (folder == nullptr) return false;
  while (const dirent* entry = ::readdir(folder.get())) {
    if (entry->d_name[0] == '.') continue;
    if (read_pages(tasks + "/" + entry->d_name + "/statm", resident, shared)) return true;
  }
  return false;
}

void add_use(pid_t pid, TreeUse* use, std::int64_t* most_shared) {
  const std::string number = std::to_string(pid);
  const std::string process = "/proc/" + number;
  ProcessInfo info;
  if (!read_stat(number.c_str(), &info)) return;
  long long resident = 0, shared = 0;
  if (!read_pages(process + "/statm", &resident, &shared) &&
      !read_pages_of_threads(process, &resident, &shared)) {
    return;
  }
  static const long page = ::sysconf(_SC_PAGESIZE);
  use->resident_bytes += (resident - shared) * page;
  *most_shared = std::max<std::int64_t>(*most_shared, shared * page);
  use->threads += info.threads;
  ++use->processes;
}

}  // namespace

int last_processor(pid_t thread) {
  constexpr int kFieldsBefore = 36;  // from the state on
  StatLine line;
  if (!read_stat_line(std::to_string(thread).c_str(), &line)) return -1;
  const char* at = line.fields;
  for (int i = 0; i < kFieldsBefore && at != nullptr; ++i) at = std::strchr(at + 1, ' ');
  int cpu = -1;
  return at != nullptr && std::sscanf(at, "%d", &cpu) == 1 ? cpu : -1;
}

double processor_seconds(const std::vector<pid_t>& pids) {
  double sum = 0;
  for (const pid_t pid : pids) sum += seconds_of(pid);
  return sum;
}

std::vector<ProcessInfo> all_processes() {
  std::vector<ProcessInfo> result;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc"), ::closedir);
  if (folder == nullptr) return result;
  while (const dirent* entry = ::readdir(folder.get())) {
    if (entry->d_name[0] < '0' || entry->d_name[0] > '9') continue;
    ProcessInfo info;
    if (read_stat(entry->d_name, &info)) result.push_back(info);
  }
  return result;
}

std::vector<ProcessInfo> descendants(const std::vector<ProcessInfo>& all, pid_t root) {
  std::unordered_multimap<pid_t, const ProcessInfo*> children;
  for (const ProcessInfo& info : all) children.emplace(info.parent, &info);
  std::vector<ProcessInfo> result;
  std::vector<pid_t> open = {root};
  // A snapshot with reused pids could contain a cycle.
  while (!open.empty() && result.size() <= all.size()) {
    const auto [begin, end] = children.equal_range(open.back());
    open.pop_back();
    for (auto it = begin; it != end; ++it) {
      result.push_back(*it->second);
      open.push_back(it->second->pid);
    }
  }
  return result;
}

std::vector<pid_t> descendants(pid_t root) {
  std::vector<pid_t> pids;
  for (const ProcessInfo& info : descendants(all_processes(), root)) pids.push_back(info.pid);
  return pids;
}

TreeUse tree_use(pid_t root, bool count_root) {
  TreeUse use;
  std::int64_t most_shared = 0;
  for (const pid_t pid : tree_of(root)) {
    if (pid != root || count_root) add_use(pid, &use, &most_shared);
  }
  use.resident_bytes += most_shared;
  return use;
}

}  // namespace kernelpro
