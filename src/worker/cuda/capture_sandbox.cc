// SPDX-License-Identifier: Apache-2.0
#include "worker/cuda/capture_sandbox.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace kernelpro {

namespace {

const char* call_name(long number) {
  switch (number) {
    case SYS_fork:
    case SYS_vfork:
    case SYS_clone:
      return "fork";
    case SYS_execve:
    case SYS_execveat:
      return "exec";
    case SYS_socket:
      return "socket";
    case SYS_open:
    case SYS_creat:
    case SYS_openat:
    case SYS_openat2:
      return "file-write";
    default:
      return "system-call";
  }
}

// Async-signal-safe. A candidate that replaces this handler gains nothing: the call stays refused.
void on_refused(int, siginfo_t* info, void*) {
  const char* const head = "kernelpro: refused: ";
  const char* const name = call_name(info->si_syscall);
  [[maybe_unused]] ssize_t n = ::write(2, head, std::strlen(head));
  n = ::write(2, name, std::strlen(name));
  n = ::write(2, "\n", 1);
  ::_exit(kRefusedStatus);
}

using Program = std::vector<sock_filter>;

sock_filter statement(std::uint16_t code, std::uint32_t k) { return BPF_STMT(code, k); }

void load(Program* p, std::size_t offset) {
  p->push_back(statement(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset)));
}

std::uint32_t argument(int index) {
  return static_cast<std::uint32_t>(offsetof(seccomp_data, args) +
                                    static_cast<std::size_t>(index) * sizeof(std::uint64_t));
}

void give(Program* p, std::uint32_t action) { p->push_back(statement(BPF_RET | BPF_K, action)); }

void refuse(Program* p, long number) {
  p->push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(number), 0, 1));
  give(p, SECCOMP_RET_TRAP);
}

// Refuses `number` when argument `index` & mask is (or, with `absent`, is not) zero.
void refuse_if_bits(Program* p, long number, int index, std::uint32_t mask, bool absent) {
  p->push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(number), 0, 4));
  load(p, argument(index));
  p->push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, mask, static_cast<std::uint8_t>(absent ? 1 : 0),
                        static_cast<std::uint8_t>(absent ? 0 : 1)));
  give(p, SECCOMP_RET_TRAP);
  give(p, SECCOMP_RET_ALLOW);
}

void refuse_if_equal(Program* p, long number, int index, std::uint32_t value) {
  p->push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(number), 0, 4));
  load(p, argument(index));
  p->push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1));
  give(p, SECCOMP_RET_TRAP);
  load(p, offsetof(seccomp_data, nr));
}

Program filter() {
  Program p;
  load(&p, offsetof(seccomp_data, arch));
  p.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0));
  give(&p, SECCOMP_RET_KILL_PROCESS);
  load(&p, offsetof(seccomp_data, nr));
  // The x32 table would walk around the filter.
  p.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000u, 0, 1));
  give(&p, SECCOMP_RET_TRAP);
  for (const long number : {SYS_fork, SYS_vfork, SYS_execve, SYS_execveat, SYS_ptrace,
                            SYS_process_vm_readv, SYS_process_vm_writev, SYS_creat, SYS_openat2,
                            SYS_unlink, SYS_unlinkat, SYS_rename, SYS_renameat, SYS_renameat2,
                            SYS_kill, SYS_mount, SYS_bpf, SYS_io_uring_setup, SYS_pidfd_open}) {
    refuse(&p, number);
  }
  // glibc falls back to clone, whose flags a filter can see.
  p.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1));
  give(&p, SECCOMP_RET_ERRNO | ENOSYS);
  for (const std::uint32_t family : {AF_INET, AF_INET6, AF_PACKET}) {
    refuse_if_equal(&p, SYS_socket, 0, family);
  }
  refuse_if_bits(&p, SYS_clone, 0, CLONE_THREAD, true);
  refuse_if_bits(&p, SYS_open, 1, O_CREAT | O_TRUNC, false);
  refuse_if_bits(&p, SYS_openat, 2, O_CREAT | O_TRUNC, false);
  give(&p, SECCOMP_RET_ALLOW);
  return p;
}

}  // namespace

bool enter_capture_sandbox() {
  struct sigaction action {};
  action.sa_sigaction = on_refused;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGSYS, &action, nullptr);
  Program program = filter();
  sock_fprog fprog{static_cast<unsigned short>(program.size()), program.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &fprog) == 0;
}

}  // namespace kernelpro
