// SPDX-License-Identifier: Apache-2.0
#include "measure/worker/cuda/capture_sandbox.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "base/files.h"
#include "base/process/hidden_files.h"
#include "base/process/sandbox.h"
#include "base/process/seccomp.h"

namespace kernelpro {

namespace {

constexpr std::uint32_t kSocketType = 0xf;        // among a socket's flags
constexpr int kSetSignal = 10, kSetOwnerEx = 15;  // of fcntl, as in F_SETSIG, F_SETOWN_EX

// A rule and the calls that break it, whatever their arguments. Numbers above 424 are the same on
// all architectures, but missing from some C libraries' headers.
struct Rule {
  const char* name;
  std::vector<long> calls;
};

const std::vector<Rule>& rules() {
  static const std::vector<Rule> all = {
      {"fork",
       {
#ifdef SYS_fork
           SYS_fork,
           SYS_vfork,
#endif
       }},
      {"exec", {SYS_execve, SYS_execveat}},
      {"trace",
       {SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_kcmp, 434 /* pidfd_open */,
        438 /* pidfd_getfd */, 440 /* process_madvise */}},
      {"file-write",
       {
#ifdef SYS_open
           SYS_creat,     SYS_unlink,    SYS_rename,    SYS_link,      SYS_symlink,   SYS_mkdir,
           SYS_rmdir,     SYS_mknod,     SYS_chmod,     SYS_chown,     SYS_lchown,
#endif
           SYS_unlinkat,  SYS_renameat,  SYS_renameat2, SYS_linkat,    SYS_symlinkat, SYS_mkdirat,
           SYS_mknodat,   SYS_fchmod,    SYS_fchmodat,  SYS_fchown,    SYS_fchownat,  SYS_truncate,
           SYS_ftruncate, SYS_fallocate, SYS_setxattr,  SYS_lsetxattr, SYS_fsetxattr, SYS_openat2}},
      {"shared-memory",
       {SYS_memfd_create, SYS_shmget, SYS_shmat, SYS_msgget, SYS_semget, SYS_mq_open,
        447 /* memfd_secret */}},
      {"signal",
       {SYS_kill, SYS_tkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo,
        424 /* pidfd_send_signal */}},
      {"socket", {SYS_connect, SYS_bind, SYS_listen, SYS_accept, SYS_accept4}},
      {"io-uring", {425, 426, 427}},
      {"bpf", {SYS_bpf}},
      {"perf", {SYS_perf_event_open}},
      {"namespace", {SYS_unshare, SYS_setns, SYS_chroot, SYS_pivot_root}},
      {"mount",
       {SYS_mount, SYS_umount2, 428, 429, 430, 431, 432, 433, 442, SYS_swapon, SYS_swapoff}},
      {"kernel",
       {SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_kexec_load, SYS_reboot,
        SYS_add_key, SYS_request_key, SYS_keyctl, SYS_userfaultfd, SYS_open_by_handle_at,
        SYS_settimeofday, SYS_clock_settime, SYS_adjtimex, SYS_sethostname}},
      {"process",
       {SYS_setsid, SYS_setpgid, SYS_setuid, SYS_setgid, SYS_setresuid, SYS_setresgid,
        SYS_setgroups, SYS_capset, SYS_personality}},
  };
  return all;
}

const char* rule_of(long number) {
  switch (number) {
    case SYS_clone:
      return "fork";
    case SYS_socket:
    case SYS_socketpair:
      return "socket";
    case SYS_tgkill:
    case SYS_fcntl:
    case SYS_ioctl:
      return "signal";
    case SYS_prctl:
      return "process";
#ifdef SYS_open
    case SYS_open:
#endif
    case SYS_openat:
      return "file-write";
    default:
      break;
  }
  for (const Rule& rule : rules()) {
    for (const long call : rule.calls) {
      if (call == number) return rule.name;
    }
  }
  return "system-call";
}

// Async-signal-safe: the rules were made before. Replacing the handler is refused.
void on_refused(int, siginfo_t* info, void*) {
  const char* const head = "\nkernelpro: refused: ";
  const char* const name = rule_of(info->si_syscall);
  [[maybe_unused]] ssize_t n = ::write(2, head, std::strlen(head));
  n = ::write(2, name, std::strlen(name));
  n = ::write(2, "\n", 1);
  ::_exit(kRefusedStatus);
}

std::vector<sock_filter> filter() {
  SeccompFilter f;
  const std::uint32_t trap = SeccompFilter::trap();
  for (const Rule& rule : rules()) {
    for (const long call : rule.calls) f.when(call, trap);
  }
  // Threads but no processes. glibc falls back to clone, whose flags a filter can see.
  f.when(SYS_clone3, SeccompFilter::refuse(ENOSYS));
  f.when_none(SYS_clone, 0, CLONE_THREAD, trap);
  f.when_not(SYS_socket, 0, AF_UNIX, trap);
  // Datagrams go to any name without a connection.
  for (const long call : {SYS_socket, SYS_socketpair}) {
    f.when_masked(call, 1, kSocketType, SOCK_DGRAM, trap);
  }
  // A descriptor whose owner is another process sends signals to it.
  for (const int owning : {F_SETOWN, kSetOwnerEx, kSetSignal}) {
    f.when_equal(SYS_fcntl, 1, static_cast<std::uint32_t>(owning), trap);
  }
  for (const std::uint32_t owning : {FIOSETOWN, SIOCSPGRP}) {
    f.when_equal(SYS_ioctl, 1, owning, trap);
  }
  // Signals to itself, so that abort works, but not the one that reports refusals.
  f.when_not(SYS_tgkill, 0, static_cast<std::uint32_t>(::getpid()), trap);
  f.when_equal(SYS_rt_sigaction, 0, SIGSYS, SeccompFilter::refuse(EPERM));
  constexpr std::uint32_t kMaking = O_CREAT | O_TRUNC;
#ifdef SYS_open
  f.when_any(SYS_open, 1, kMaking, trap);
#endif
  f.when_any(SYS_openat, 2, kMaking, trap);
  // Outliving its parents; raising limits.
  f.when_equal(SYS_prctl, 0, PR_SET_PDEATHSIG, trap);
  f.when_equal(SYS_prctl, 0, PR_SET_SECCOMP, SeccompFilter::refuse(EPERM));
  f.when_not(SYS_prlimit64, 0, 0, SeccompFilter::refuse(EPERM));
  // Refused without ending the process: a driver may try them in passing.
  f.when({SYS_setpriority, SYS_ioprio_set, SYS_sched_setscheduler, SYS_sched_setparam,
          SYS_sched_setattr, SYS_migrate_pages, SYS_move_pages},
         SeccompFilter::refuse(EPERM));
  f.when_not(SYS_sched_setaffinity, 0, 0, SeccompFilter::refuse(EPERM));
  if (landlock_version() == 0) {
    // Existing files stay unwritable; only Landlock could exempt the GPU's device files.
    constexpr std::uint32_t kWriting = O_WRONLY | O_RDWR;
#ifdef SYS_open
    f.when_any(SYS_open, 1, kWriting, SeccompFilter::refuse(EACCES));
#endif
    f.when_any(SYS_openat, 2, kWriting, SeccompFilter::refuse(EACCES));
  }
  f.when(SYS_setrlimit, SeccompFilter::refuse(EPERM));
  f.when_equal(SYS_ioctl, 1, TIOCSTI, SeccompFilter::refuse(EPERM));
  return f.finish(SeccompFilter::allow());
}

// Files: where the kernel has Landlock. Covers this thread and those that it starts, so everything
// that a candidate runs.
Sandbox files_of(const std::string& object) {
  Sandbox sandbox;
  sandbox.read = system_roots();
  for (std::string& path : gpu_system_files()) sandbox.read.push_back(std::move(path));
  for (const char* path : {"/usr/local/cuda", "/etc/nvidia"}) sandbox.read.emplace_back(path);
  sandbox.read.push_back(object);  // what lies beside it is not its business
  sandbox.write = {"/dev/null", "/dev/zero"};
  for (const std::string& name : list_dir("/dev")) {
    if (name.starts_with("nvidia")) sandbox.write.push_back("/dev/" + name);
  }
  sandbox.file_bytes = 0;
  sandbox.open_files = 0;
  return sandbox;
}

// The driver's management library, which names other processes and the board. Nothing that
// captures needs it.
std::vector<std::string> management_libraries() {
  std::vector<std::string> found;
  for (const char* folder :
       {"/usr/lib/x86_64-linux-gnu/", "/usr/lib/aarch64-linux-gnu/", "/usr/lib64/", "/usr/lib/",
        "/usr/lib/wsl/lib/", "/usr/lib/wsl/drivers/", "/usr/local/nvidia/lib64/",
        "/usr/local/nvidia/lib/", "/usr/lib/x86_64-linux-gnu/nvidia/current/"}) {
    for (const std::string& name : list_dir(folder)) {
      if (name.starts_with("libnvidia-ml.so")) found.push_back(folder + name);
    }
  }
  return found;
}

}  // namespace

Result<void> enter_capture_sandbox(const std::string& object) {
  struct sigaction action {};
  action.sa_sigaction = on_refused;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  ::sigaction(SIGSYS, &action, nullptr);
  sigset_t unblocked;
  sigemptyset(&unblocked);
  sigaddset(&unblocked, SIGSYS);
  ::sigprocmask(SIG_UNBLOCK, &unblocked, nullptr);
  const auto failed = [](int error) {
    return fail(ErrorKind::kEnvironment,
                std::string("the capture process cannot be confined: ") + std::strerror(error),
                "run on a kernel with CONFIG_SECCOMP_FILTER; `kernelpro doctor` shows what it has");
  };
  KP_ASSIGN(const PreparedSandbox files, PreparedSandbox::make(files_of(object)));
  static_cast<void>(hide_files(management_libraries()));
  if (const int error = files.enter(); error != 0) return failed(error);
  const std::vector<sock_filter> code = filter();
  const sock_fprog program{static_cast<unsigned short>(code.size()),
                           const_cast<sock_filter*>(code.data())};
  // All threads, including CUDA's own: a candidate shares their memory.
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0) {
    return {};
  }
  const int error = install_seccomp(code);
  if (error != 0) return failed(error);
  return {};
}

int own_threads() {
  int count = 0;
  for (const std::string& id : list_dir("/proc/self/task")) {
    const Result<std::string> name = read_file("/proc/self/task/" + id + "/comm");
    if (name && !name->starts_with("cuda")) ++count;
  }
  return count;
}

}  // namespace kernelpro
