// SPDX-License-Identifier: Apache-2.0
#include "base/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace kernelpro {

namespace fs = std::filesystem;

namespace {
constexpr std::size_t kReadStep = 64 << 10;

std::string env_or(const char* name, const std::string& otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : otherwise;
}
}  // namespace

Result<std::string> read_file(const std::string& path, std::int64_t max_bytes) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) {
    return fail(ErrorKind::kBadInput, "cannot read " + path + ": " + std::strerror(errno),
                "check the path and its permissions");
  }
  struct stat st {};
  if (::fstat(fd.get(), &st) != 0 || !S_ISREG(st.st_mode)) {
    return fail(ErrorKind::kBadInput, path + " is not a regular file", "name a file, not a folder");
  }
  if (st.st_size > max_bytes) {
    return fail(ErrorKind::kBadInput,
                path + " has " + std::to_string(st.st_size) + " bytes; at most " +
                    std::to_string(max_bytes) + " are read",
                "give a smaller file");
  }
  // A size is only a hint: files of /proc have none.
  std::string bytes(static_cast<std::size_t>(st.st_size) + 1, '\0');
  std::size_t done = 0;
  for (;;) {
    if (done == bytes.size()) bytes.resize(bytes.size() + kReadStep);
    const ssize_t n = ::read(fd.get(), bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      return fail(ErrorKind::kBadInput, "cannot read " + path + ": " + std::strerror(errno),
                  "check the disk and the path's permissions");
    }
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
    if (done > static_cast<std::size_t>(max_bytes)) {
      return fail(ErrorKind::kBadInput,
                  path + " has more than the " + std::to_string(max_bytes) + " bytes that are read",
                  "give a smaller file");
    }
  }
  bytes.resize(done);
  return bytes;
}

Result<void> write_file(const std::string& path, std::string_view bytes) {
  static std::atomic<unsigned> count{0};  // threads may write the same path
  const std::string temporary =
      path + ".tmp" + std::to_string(::getpid()) + "-" + std::to_string(count++);
  const auto failed = [&](int error) {
    ::unlink(temporary.c_str());
    return fail(ErrorKind::kStore, "cannot write " + path + ": " + std::strerror(error),
                error == ENOSPC ? "free some space on that disk and run the command again"
                                : "check that the folder exists and can be written to");
  };
  Fd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd.valid()) return failed(errno);
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::write(fd.get(), bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed(errno);
    done += static_cast<std::size_t>(n);
  }
  if (::close(fd.release()) != 0) return failed(errno);
  if (::rename(temporary.c_str(), path.c_str()) != 0) return failed(errno);
  return {};
}

Result<void> make_dirs(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error && !is_dir(path)) {
    return fail(ErrorKind::kStore, "cannot create the folder " + path + ": " + error.message(),
                "choose another folder or fix its permissions");
  }
  return {};
}

bool exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

bool is_dir(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

std::vector<std::string> list_dir(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string join(std::string_view dir, std::string_view name) {
  return (fs::path(dir) / fs::path(name)).string();
}

std::string dirname(const std::string& path) { return fs::path(path).parent_path().string(); }
std::string basename(const std::string& path) { return fs::path(path).filename().string(); }

std::string absolute(const std::string& path) {
  std::error_code error;
  const fs::path result = fs::absolute(path, error).lexically_normal();
  return error ? path : result.string();
}

std::string executable_dir() {
  char buffer[PATH_MAX];
  const ssize_t n = ::readlink("/proc/self/exe", buffer, sizeof buffer - 1);
  if (n <= 0) return ".";
  buffer[n] = '\0';
  return dirname(buffer);
}

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return ::access(name.c_str(), X_OK) == 0 ? name : "";
  const std::string path = env_or("PATH", "/usr/local/bin:/usr/bin:/bin");
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    const std::string candidate = join(path.substr(begin, end - begin), name);
    if (end > begin && ::access(candidate.c_str(), X_OK) == 0 && !is_dir(candidate)) {
      return candidate;
    }
    begin = end + 1;
  }
  return "";
}

std::string cache_dir() {
  const std::string own = env_or("KERNELPRO_CACHE", "");
  if (!own.empty()) return own;
  const std::string xdg = env_or("XDG_CACHE_HOME", "");
  if (!xdg.empty()) return join(xdg, "kernelpro");
  const std::string home = env_or("HOME", "");
  if (!home.empty() && ::access(home.c_str(), W_OK) == 0) return join(home, ".cache/kernelpro");
  return join(env_or("TMPDIR", "/tmp"), "kernelpro-cache-" + std::to_string(::getuid()));
}

std::string config_file(const std::string& name) {
  const std::string xdg = env_or("XDG_CONFIG_HOME", "");
  if (xdg.starts_with('/')) return join(join(xdg, "kernelpro"), name);
  const std::string home = env_or("HOME", "");
  return home.empty() ? "" : join(join(home, ".config/kernelpro"), name);
}

TempDir::TempDir() {
  std::string pattern = join(env_or("TMPDIR", "/tmp"), "kernelpro-XXXXXX");
  if (::mkdtemp(pattern.data()) == nullptr) {
    throw Fatal({ErrorKind::kEnvironment,
                 "cannot create a temporary folder " + pattern + ": " + std::strerror(errno),
                 "point TMPDIR at a folder that can be written to"});
  }
  path_ = pattern;
}

TempDir::~TempDir() {
  std::error_code error;
  fs::remove_all(path_, error);
}

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this != &other) reset(other.release());
  return *this;
}

int Fd::release() {
  const int fd = fd_;
  fd_ = -1;
  return fd;
}

void Fd::reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

Fd above_standard(Fd fd) {
  constexpr int kFirst = 10;
  if (!fd.valid() || fd.get() >= kFirst) return fd;
  Fd moved(::fcntl(fd.get(), F_DUPFD_CLOEXEC, kFirst));
  return moved.valid() ? std::move(moved) : std::move(fd);
}

}  // namespace kernelpro
