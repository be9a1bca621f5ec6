// SPDX-License-Identifier: Apache-2.0
#include "base/process/sandbox.h"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/process/seccomp.h"
#include "base/text.h"

extern char** environ;

namespace kernelpro {

namespace {

constexpr std::uint32_t kNobody = 65534;
constexpr std::uint32_t kSocketType = 0xf;        // among a socket's flags
constexpr int kSetSignal = 10, kSetOwnerEx = 15;  // of fcntl, as in F_SETSIG, F_SETOWN_EX

// Landlock, beyond what an old linux/landlock.h declares.

struct RulesetAttributes {
  std::uint64_t files = 0;
  std::uint64_t network = 0;  // from version 4 on
  std::uint64_t scoped = 0;   // from version 6 on
};
constexpr std::uint64_t kTruncate = 1ull << 14;  // version 3
constexpr std::uint64_t kIoctlDev = 1ull << 15;  // version 5
constexpr std::uint64_t kTcpBoth = 3;            // bind, connect
constexpr std::uint64_t kScopeBoth = 3;          // abstract sockets, signals
constexpr std::uint64_t kFirstVersion = (1ull << 13) - 1;
constexpr std::uint64_t kReading =
    LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
// Rights valid in a rule on a file (not a folder).
constexpr std::uint64_t kOfFiles = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE |
                                   LANDLOCK_ACCESS_FS_WRITE_FILE | kTruncate | kIoctlDev;

std::uint64_t handled_files(int version) {
  std::uint64_t handled = kFirstVersion;
  if (version >= 2) handled |= LANDLOCK_ACCESS_FS_REFER;
  if (version >= 3) handled |= kTruncate;
  if (version >= 5) handled |= kIoctlDev;
  return handled;
}

Result<void> add_rule(int ruleset, const std::string& path, std::uint64_t rights) {
  const Fd folder(::open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!folder.valid()) {
    if (errno == ENOENT || errno == ENOTDIR || errno == EACCES) return {};
    return fail(ErrorKind::kEnvironment, "cannot open " + path + ": " + std::strerror(errno),
                "check that folder");
  }
  struct stat st {};
  if (::fstat(folder.get(), &st) == 0 && !S_ISDIR(st.st_mode)) rights &= kOfFiles;
  landlock_path_beneath_attr rule{};
  rule.allowed_access = rights;
  rule.parent_fd = folder.get();
  if (::syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0) {
    return fail(ErrorKind::kEnvironment,
                "Landlock refuses a rule for " + path + ": " + std::strerror(errno),
                "report this with your kernel's version");
  }
  return {};
}

Result<Fd> make_ruleset(const Sandbox& sandbox, int version) {
  RulesetAttributes attributes;
  attributes.files = handled_files(version);
  if (version >= 4 && !sandbox.network) attributes.network = kTcpBoth;
  if (version >= 6) attributes.scoped = kScopeBoth;
  const std::size_t size = version >= 6 ? 24 : version >= 4 ? 16 : 8;
  Fd ruleset = above_standard(
      Fd(static_cast<int>(::syscall(SYS_landlock_create_ruleset, &attributes, size, 0))));
  if (!ruleset.valid()) {
    return fail(ErrorKind::kEnvironment,
                std::string("Landlock refuses a ruleset: ") + std::strerror(errno),
                "report this with your kernel's version");
  }
  if (sandbox.read_all) KP_TRY(add_rule(ruleset.get(), "/", kReading));
  for (const std::string& path : sandbox.read) KP_TRY(add_rule(ruleset.get(), path, kReading));
  // Creating device nodes is denied even there.
  const std::uint64_t writing =
      attributes.files &
      ~static_cast<std::uint64_t>(LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK);
  for (const std::string& path : sandbox.write) KP_TRY(add_rule(ruleset.get(), path, writing));
  return ruleset;
}

// Of the calling process. (`exe` leads to its program.)
constexpr const char* kOwnPages[] = {"/proc/self/maps", "/proc/self/smaps", "/proc/self/status",
                                     "/proc/self/stat", "/proc/self/statm", "/proc/self/limits",
                                     "/proc/self/auxv", "/proc/self/comm",  "/proc/self/cmdline",
                                     "/proc/self/exe"};

// Can any user reach this path and, if it is ours to give, use it?
bool reachable_by_all(const std::string& path) {
  std::error_code error;
  std::filesystem::path full = std::filesystem::canonical(path, error);
  if (error) return true;  // missing: skipped
  struct stat st {};
  if (::stat(full.c_str(), &st) != 0) return false;
  const mode_t needed = S_ISDIR(st.st_mode) ? (S_IROTH | S_IXOTH) : S_IROTH;
  if ((st.st_mode & needed) != needed) return false;
  while (full.has_relative_path()) {
    full = full.parent_path();
    if (::stat(full.c_str(), &st) != 0 || (st.st_mode & S_IXOTH) == 0) return false;
  }
  return true;
}

// Gives the writable folders to nobody, if everything stays reachable.
bool give_to_nobody(const Sandbox& sandbox) {
  if (sandbox.read_all) return false;
  for (const std::string& path : sandbox.read) {
    if (!path.starts_with("/etc") && !path.starts_with("/dev") && !reachable_by_all(path)) {
      return false;
    }
  }
  for (const std::string& path : sandbox.write) {
    struct stat st {};
    if (::stat(path.c_str(), &st) != 0 || !S_ISDIR(st.st_mode)) continue;
    if (!reachable_by_all(dirname(path))) return false;
    if (st.st_uid == 0 && ::chown(path.c_str(), kNobody, kNobody) != 0) return false;
  }
  return true;
}

std::vector<sock_filter> make_filter(const Sandbox& sandbox, int landlock) {
  SeccompFilter f;
  const std::uint32_t no = SeccompFilter::refuse(EPERM);
  f.when({SYS_ptrace,
          SYS_process_vm_readv,
          SYS_process_vm_writev,
          SYS_mount,
          SYS_umount2,
          SYS_pivot_root,
          SYS_chroot,
          SYS_unshare,
          SYS_setns,
          SYS_bpf,
          SYS_perf_event_open,
          SYS_add_key,
          SYS_request_key,
          SYS_keyctl,
          SYS_userfaultfd,
          SYS_kexec_load,
          SYS_init_module,
          SYS_finit_module,
          SYS_delete_module,
          SYS_swapon,
          SYS_swapoff,
          SYS_reboot,
          SYS_sethostname,
          SYS_setdomainname,
          SYS_settimeofday,
          SYS_clock_settime,
          SYS_adjtimex,
          SYS_clock_adjtime,
          SYS_quotactl,
          SYS_acct,
          SYS_open_by_handle_at,
          SYS_name_to_handle_at,
          SYS_kcmp,
          SYS_personality,
          SYS_syslog,
          SYS_vhangup},
         no);
#ifdef __x86_64__
  f.when({SYS_iopl, SYS_ioperm}, no);
#endif
  // pidfd_getfd, open_tree ... fspick, mount_setattr: the same numbers everywhere.
  f.when({438, 428, 429, 430, 431, 432, 433, 442}, no);
  // System V objects and message queues would outlive the process.
  f.when({SYS_shmget, SYS_msgget, SYS_semget, SYS_mq_open}, no);
  // Filters cannot see io_uring's operations; 425-427 everywhere.
  f.when({425, 426, 427}, SeccompFilter::refuse(ENOSYS));
  // No new namespaces. clone3's flags cannot be inspected; the C library falls back to clone.
  f.when(SYS_clone3, SeccompFilter::refuse(ENOSYS));
  f.when_any(SYS_clone, 0,
             CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
                 CLONE_NEWPID | CLONE_NEWNET,
             no);
  f.when_equal(SYS_ioctl, 1, TIOCSTI, no);
  f.when_equal(SYS_ioctl, 1, 0x541c, no);  // TIOCLINUX
  if (!sandbox.network) {
    f.when_not(SYS_socket, 0, AF_UNIX, SeccompFilter::refuse(EACCES));
    // As if nothing listened: CUDA looks for its multi-process server this way and continues
    // without. Listening stays allowed: CUDA listens on a Unix socket at startup, and no other kind
    // of socket exists here.
    f.when(SYS_connect, SeccompFilter::refuse(ENOENT));
    // Datagrams go to any name without a connection.
    for (const long call : {SYS_socket, SYS_socketpair}) {
      f.when_masked(call, 1, kSocketType, SOCK_DGRAM, SeccompFilter::refuse(EACCES));
    }
  }
  // A descriptor whose owner is another process sends signals to it.
  for (const int owning : {F_SETOWN, kSetOwnerEx, kSetSignal}) {
    f.when_equal(SYS_fcntl, 1, static_cast<std::uint32_t>(owning), no);
  }
  for (const std::uint32_t owning : {FIOSETOWN, SIOCSPGRP}) f.when_equal(SYS_ioctl, 1, owning, no);
  if (landlock < 6) {
    // From version 6 on, Landlock keeps signals inside.
    f.when({SYS_kill, SYS_tkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo, 424}, no);
  }
  return f.finish(SeccompFilter::allow());
}

int limit(int resource, std::int64_t value) {
  rlimit old{};
  const auto kind = static_cast<__rlimit_resource>(resource);
  if (::getrlimit(kind, &old) != 0) return errno;
  const rlim_t wanted = std::min(static_cast<rlim_t>(value), old.rlim_max);
  const rlimit both{wanted, wanted};
  return ::setrlimit(kind, &both) == 0 ? 0 : errno;
}

int drop_capabilities() {
  for (int capability = 0; capability < 64; ++capability) {
    if (::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0) break;  // not ours to drop, or the end
  }
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2] = {};
  return ::syscall(SYS_capset, &header, none) == 0 ? 0 : errno;
}

// Async-signal-safe.
void allow_own_pages(int ruleset) {
  for (const char* page : kOwnPages) {
    const int own = ::open(page, O_PATH | O_CLOEXEC);
    if (own < 0) continue;
    landlock_path_beneath_attr rule{};
    rule.allowed_access = LANDLOCK_ACCESS_FS_READ_FILE;
    rule.parent_fd = own;
    ::syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    ::close(own);
  }
}

// A process may name its own threads through /proc: CUDA does, and fails without it.
// Async-signal-safe; applies to the calling process.
int allow_own_names(int ruleset, int version) {
  allow_own_pages(ruleset);
  const int own = ::open("/proc/self/task", O_PATH | O_CLOEXEC);
  if (own < 0) return 0;  // no /proc: nothing to allow
  landlock_path_beneath_attr rule{};
  rule.allowed_access = kReading | LANDLOCK_ACCESS_FS_WRITE_FILE;
  if (version >= 3) rule.allowed_access |= kTruncate;
  rule.parent_fd = own;
  const long added =
      ::syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
  const int error = added == 0 ? 0 : errno;
  ::close(own);
  return error;
}

// Of a folder of libraries, what compilers and linkers open: libraries, start-up code, loaders, and
// the folders of toolchains. Not what else lies there: packages of languages, databases, the name
// of the system.
void add_libraries(const std::string& folder, std::vector<std::string>* parts) {
  for (const std::string& name : list_dir(folder)) {
    const bool library = name.starts_with("lib") &&
                         (contains(name, ".so") || name.ends_with(".a") || name.ends_with(".spec"));
    const bool loader = name.starts_with("ld-") || name.starts_with("ld.");
    const bool object = name.ends_with(".o");
    bool toolchain = false;
    for (const char* start : {"gcc", "clang", "llvm", "cuda", "nvidia-cuda", "bfd-plugins",
                              "compat-ld", "gold-ld", "mold", "nvvm", "x86-64-v"}) {
      toolchain = toolchain || name.starts_with(start);
    }
    if (library || loader || object || toolchain) parts->push_back(join(folder, name));
    if (contains(name, "-linux-")) add_libraries(join(folder, name), parts);
  }
}

// Of /usr, which a compiler has among its roots, what compilers, headers and libraries need: not
// what else was installed there, nor settings such as the time zone (/usr/share, /usr/local/bin).
// /lib and its like are often the same folders by another name.
std::vector<std::string> parts_for_compilers(const std::string& root) {
  std::vector<std::string> parts;
  for (const char* libraries : {"/lib", "/lib32", "/lib64", "/libx32"}) {
    if (root == libraries) add_libraries(root, &parts);
  }
  if (!parts.empty()) return parts;
  if (root != "/usr" && root != "/usr/local") return {root};
  for (const char* top : {"/usr/", "/usr/local/"}) {
    for (const char* name : {"include", "libexec"}) parts.push_back(std::string(top) + name);
    for (const char* name : {"lib", "lib32", "lib64", "libx32"}) {
      add_libraries(std::string(top) + name, &parts);
    }
  }
  parts.push_back(root + "/bin");
  for (const std::string& name : list_dir("/usr/local")) {
    if (name.starts_with("cuda")) parts.push_back("/usr/local/" + name);
  }
  for (const std::string& name : list_dir("/usr")) {  // of compilers for other systems
    if (contains(name, "-linux-gnu")) parts.push_back("/usr/" + name);
  }
  return parts;
}

}  // namespace

int landlock_version() {
  constexpr int kVersion = 1;  // LANDLOCK_CREATE_RULESET_VERSION
  const long version = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, kVersion);
  return version > 0 ? static_cast<int>(version) : 0;
}

Sandbox compiler_sandbox(const std::string& folder, const std::vector<std::string>& roots,
                         double cpu_seconds) {
  Sandbox sandbox;
  for (const std::string& root : system_roots()) {
    // A source could include a device that never ends, where this machine stands, or what is
    // installed. Links are followed all the same.
    const bool about_machine = root == "/etc/localtime" || root.starts_with("/etc/ld.so.conf") ||
                               root == "/etc/ld.so.preload" || root == "/etc/alternatives";
    if (root.starts_with("/dev/") || about_machine) continue;
    for (std::string& path : parts_for_compilers(root)) sandbox.read.push_back(std::move(path));
  }
  for (const std::string& root : roots) {
    for (std::string& path : parts_for_compilers(root)) sandbox.read.push_back(std::move(path));
  }
  sandbox.write = {folder, "/dev/null"};
  sandbox.own_pages = false;
  sandbox.max_processes = 128;
  sandbox.file_bytes = 256 << 20;
  sandbox.open_files = 1024;
  sandbox.cpu_seconds = cpu_seconds;
  return sandbox;
}

Sandbox candidate_python_sandbox(const std::string& folder, const std::vector<std::string>& roots) {
  Sandbox sandbox;
  sandbox.read = system_roots();
  sandbox.read.insert(sandbox.read.end(), roots.begin(), roots.end());
  for (std::string& path : gpu_system_files()) sandbox.read.push_back(std::move(path));
  for (const char* path : {"/opt", "/etc/passwd", "/etc/group", "/etc/nsswitch.conf",
                           "/etc/mime.types", "/etc/OpenCL", "/etc/nvidia", "/run/nvidia"}) {
    sandbox.read.emplace_back(path);
  }
  for (const std::string& name : list_dir("/etc")) {
    if (name.starts_with("python3")) sandbox.read.push_back("/etc/" + name);  // sitecustomize
  }
  sandbox.write = {folder, "/dev/null", "/dev/zero"};
  for (const std::string& name : list_dir("/dev")) {
    if (name.starts_with("nvidia")) sandbox.write.push_back("/dev/" + name);
  }
  sandbox.max_processes = 4096;
  sandbox.file_bytes = 8LL << 30;
  sandbox.open_files = 65536;
  return sandbox;
}

Result<PreparedSandbox> PreparedSandbox::make(const Sandbox& sandbox) {
  PreparedSandbox prepared;
  prepared.landlock_abi_ = landlock_version();
  prepared.own_pages_ = sandbox.own_pages;
  prepared.file_bytes_ = sandbox.file_bytes;
  prepared.open_files_ = sandbox.open_files;
  prepared.data_bytes_ = sandbox.data_bytes;
  prepared.cpu_seconds_ = sandbox.cpu_seconds;
  if (prepared.landlock_abi_ > 0) {
    KP_ASSIGN(prepared.ruleset_, make_ruleset(sandbox, prepared.landlock_abi_));
  } else if (::geteuid() == 0 && give_to_nobody(sandbox)) {
    prepared.nobody_ = kNobody;
  }
  prepared.filter_ = make_filter(sandbox, prepared.landlock_abi_);
  return prepared;
}

int PreparedSandbox::enter() const {
  int error = limit(RLIMIT_CORE, 0);
  if (error == 0 && file_bytes_ > 0) error = limit(RLIMIT_FSIZE, file_bytes_);
  if (error == 0 && open_files_ > 0) error = limit(RLIMIT_NOFILE, open_files_);
  if (error == 0 && data_bytes_ > 0) error = limit(RLIMIT_DATA, data_bytes_);
  if (error == 0 && cpu_seconds_ > 0) {
    error = limit(RLIMIT_CPU, static_cast<std::int64_t>(cpu_seconds_) + 1);
  }
  if (error == 0 && nobody_ != 0) {
    if (::setgroups(0, nullptr) != 0 || ::setresgid(nobody_, nobody_, nobody_) != 0 ||
        ::setresuid(nobody_, nobody_, nobody_) != 0) {
      error = errno;
    }
  }
  if (error == 0 && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) error = errno;
  if (error == 0) error = drop_capabilities();
  if (error == 0 && own_pages_ && ruleset_.valid())
    error = allow_own_names(ruleset_.get(), landlock_abi_);
  if (error == 0 && ruleset_.valid() &&
      ::syscall(SYS_landlock_restrict_self, ruleset_.get(), 0) != 0) {
    error = errno;
  }
  if (error != 0) return error;
  // If the kernel has no filters (ENOSYS, EINVAL), `doctor` reports it.
  error = install_seccomp(filter_);
  return error == ENOSYS || error == EINVAL ? 0 : error;
}

std::vector<std::string> secret_variables() {
  std::vector<std::string> names;
  for (char** e = environ; *e != nullptr; ++e) {
    const std::string entry = *e;
    std::string name = entry.substr(0, entry.find('='));
    std::string upper = name;
    std::transform(upper.begin(), upper.end(), upper.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    for (const char* sign : {"KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL"}) {
      if (contains(upper, sign)) {
        names.push_back(name);
        break;
      }
    }
  }
  return names;
}

}  // namespace kernelpro
