// SPDX-License-Identifier: Apache-2.0
// Why a worker of the cpu target ended: the kernel's fault in words.
#include <signal.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <string>

#include "base/text.h"
#include "measure/cpu/session.h"

namespace kernelpro {

namespace {

constexpr std::int64_t kPage = 4096;

struct RefusedCall {
  int number;
  const char* rule;
  const char* what;
};
constexpr RefusedCall kRefused[] = {
    {SYS_clone, "no-new-processes", "tried to start a process (clone)"},
#ifdef SYS_fork
    {SYS_fork, "no-new-processes", "tried to start a process (fork)"},
    {SYS_vfork, "no-new-processes", "tried to start a process (vfork)"},
    {SYS_open, "no-file-writes", "tried to open a file for writing (open)"},
    {SYS_creat, "no-file-writes", "tried to create a file (creat)"},
#endif
    {SYS_execve, "no-programs", "tried to run a program (execve)"},
    {SYS_execveat, "no-programs", "tried to run a program (execveat)"},
    {SYS_socket, "no-network", "tried to open a socket (socket)"},
    {SYS_socketpair, "no-network", "tried to open a socket (socketpair)"},
    {SYS_connect, "no-network", "tried to connect (connect)"},
    {SYS_openat, "no-file-writes", "tried to open a file for writing (openat)"},
    {SYS_unlinkat, "no-file-writes", "tried to remove a file (unlinkat)"},
    {SYS_renameat2, "no-file-writes", "tried to rename a file (renameat2)"},
    {SYS_mkdirat, "no-file-writes", "tried to create a folder (mkdirat)"},
    {SYS_memfd_create, "no-file-writes", "tried to create a file in memory (memfd_create)"},
    {SYS_ptrace, "no-other-processes", "tried to trace a process (ptrace)"},
    {SYS_process_vm_readv, "no-other-processes", "tried to read another process's memory"},
    {SYS_process_vm_writev, "no-other-processes", "tried to write another process's memory"},
    {SYS_kill, "no-other-processes", "tried to send a signal (kill)"},
    {SYS_tkill, "no-other-processes", "tried to send a signal (tkill)"},
    {SYS_tgkill, "no-other-processes", "tried to send a signal (tgkill)"},
    {SYS_rt_sigqueueinfo, "no-other-processes", "tried to send a signal (rt_sigqueueinfo)"},
    {SYS_rt_tgsigqueueinfo, "no-other-processes", "tried to send a signal (rt_tgsigqueueinfo)"},
    {SYS_timer_create, "no-other-processes", "tried to have signals sent (timer_create)"},
    {SYS_setitimer, "no-other-processes", "tried to have signals sent (setitimer)"},
    {SYS_fcntl, "no-other-processes",
     "tried to have signals sent, or to copy the worker's channel (fcntl)"},
    {SYS_read, "own-messages", "tried to read the worker's channel (read)"},
    {SYS_readv, "own-messages", "tried to read the worker's channel (readv)"},
    {SYS_pread64, "own-messages", "tried to read the worker's channel (pread)"},
    {SYS_write, "own-messages", "tried to answer on the worker's channel (write)"},
    {SYS_writev, "own-messages", "tried to answer on the worker's channel (writev)"},
    {SYS_close, "own-messages", "tried to close the worker's channel (close)"},
    {SYS_mmap, "fixed-pages", "tried to map memory over tensors or what guards them (mmap)"},
    {SYS_mremap, "fixed-pages", "tried to move the pages of tensors or onto them (mremap)"},
    {SYS_munmap, "fixed-pages", "tried to unmap tensors or what guards them (munmap)"},
    {SYS_mprotect, "fixed-pages", "tried to change the protection of tensors (mprotect)"},
    {SYS_sendmsg, "own-messages", "tried to send a message (sendmsg)"},
    {SYS_recvmsg, "own-messages", "tried to receive a message (recvmsg)"},
};

// A kernel prints what it likes: only what may be a type's name goes into a reason.
bool is_type_name(const std::string& text) {
  constexpr std::size_t kLongest = 200;
  return !text.empty() && text.size() <= kLongest && std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) != 0 || contains("_:<>,*& ()", std::string(1, static_cast<char>(c)));
  });
}

Outcome explain_refused(int number) {
  for (const RefusedCall& call : kRefused) {
    if (call.number == number) {
      return Rejected{call.rule,
                      std::string("the kernel ") + call.what + "; candidates may only compute"};
    }
  }
  return Rejected{"system-calls", "the kernel made system call number " + std::to_string(number) +
                                      ", which candidates may not make"};
}

}  // namespace

bool CpuSession::near_memory_limit(const Exit& exit) const {
  const std::int64_t mapped = status_.at->mapped_pages * kPage;
  return contains(exit.output, "bad_alloc") || mapped > address_space_ - (1LL << 30) ||
         mapped > address_space_ / 10 * 9;
}

Outcome CpuSession::explain(double timeout_s, const std::string& phase) {
  if (child_.pid() > 0) go_on();
  const Exit exit = child_.finish();
  const int refused = status_.at->system_call;
  if (refused >= 0) return explain_refused(refused);
  if (status_.at->float_state != 0) {
    return Rejected{"float-state",
                    "the kernel left the processor's floating-point state changed (rounding, "
                    "flushing of tiny numbers, exceptions, MMX): restore it before returning"};
  }
  if (status_.at->signal_state != 0) {
    return Rejected{
        "signal-state",
        "the kernel returned with its caller's signal mask, fault handlers or alternate "
        "stack changed: restore them before returning"};
  }
  if (status_.at->registers != 0) {
    return Rejected{
        "registers",
        "the kernel returned with a callee-saved register (rbx, rbp, r12 to r15) or the "
        "thread pointer changed: restore them before returning"};
  }
  if (would_not_stop_) {
    return Crashed{"the kernel's process did not stop when told to, and was ended, while " + phase,
                   clip(exit.output, 2048)};
  }
  switch (exit.kind) {
    case Exit::Kind::kTimedOut:
      return TimedOut{timeout_s, phase};
    case Exit::Kind::kFlooded:
    case Exit::Kind::kTooManyProcesses:
      return Crashed{"the kernel " + exit.describe(limits_) + " while " + phase,
                     clip(exit.output, 1024)};
    case Exit::Kind::kOutOfMemory:
      return Crashed{"the kernel used more than the memory limit of " +
                         human_bytes(static_cast<double>(limits_.memory_bytes)) + " while " + phase,
                     clip(exit.output, 2048)};
    case Exit::Kind::kSignalled:
      return explain_signal(exit, phase);
    case Exit::Kind::kExited:
      return Crashed{"the kernel ended its process with exit status " + std::to_string(exit.code) +
                         " instead of returning, while " + phase,
                     clip(exit.output, 2048)};
  }
  return Crashed{"the worker ended", exit.output};
}

Outcome CpuSession::explain_signal(const Exit& exit, const std::string& phase) const {
  if (exit.code == SIGXFSZ) {
    return Rejected{"no-file-writes", "the kernel tried to write to a file"};
  }
  if (exit.code == SIGSYS) {  // the report itself was blocked
    return Rejected{"system-calls",
                    "the kernel made a system call that candidates may not make, with signals "
                    "blocked, as system and posix_spawn do to start a process"};
  }
  // Its channel is closed, or holds what no worker sends.
  if (exit.by_us && exit.code == SIGKILL) {
    return Rejected{"own-messages", "the kernel wrote to the worker's channel, or closed it"};
  }
  const std::string output = clip(exit.output, 2048);
  // The system-call filter keeps a kernel from sending these to itself.
  if (exit.from_outside()) {
    return Crashed{"the worker process " + exit.describe(limits_) + ", while " + phase, output,
                   Crashed::By::kOutside};
  }
  std::string reason = "the kernel was ended by signal " + std::to_string(exit.code) + " (" +
                       signal_name(exit.code) + ")";
  if (exit.code == SIGABRT && contains(output, "terminate called")) {
    reason = "the kernel threw an exception out of launch";
    const std::size_t type = output.find("instance of '");
    if (type != std::string::npos) {
      const std::size_t from = type + 13;
      const std::string name = output.substr(from, output.find('\'', from) - from);
      if (is_type_name(name)) reason += " (" + name + ")";
    }
  }
  if (near_memory_limit(exit)) {
    return Crashed{reason + " at the memory limit of " +
                       human_bytes(static_cast<double>(address_space_)) +
                       " of address space, while " + phase,
                   output};
  }
  if ((exit.code == SIGSEGV || exit.code == SIGBUS) && status_.at->signal == exit.code) {
    reason += ": it " + explain_address(status_.at->address, status_.at->is_write != 0);
  }
  return Crashed{reason + ", while " + phase, output};
}

std::string CpuSession::buffer_name(std::size_t slot) const {
  return is_workspace(slot) ? "the workspace"
                            : "tensor " + tensors_[slot % tensors_.size()].tensor->name;
}

std::string CpuSession::explain_address(std::uint64_t address, bool is_write) const {
  constexpr std::int64_t kNear = 16 << 20;  // a stray access this far off is still attributed
  const char* verb = is_write ? "wrote" : "read";
  if (address < 65536) {
    return std::string(verb) + (is_write ? " to" : " from") + " a null pointer";
  }
  std::size_t best = addresses_.size();
  std::int64_t best_distance = kNear;
  for (std::size_t i = 0; i < addresses_.size(); ++i) {
    if (addresses_[i] == 0 || i >= buffers_.slots().size()) continue;
    const std::int64_t at = static_cast<std::int64_t>(address - addresses_[i]);
    const std::int64_t bytes = buffers_.slots()[i].bytes;
    if (at >= 0 && at < bytes) {
      return std::string(verb) + " " + (is_write ? "to input " : "") + buffer_name(i) +
             (is_write ? ", which is read-only" : "");
    }
    const std::int64_t distance = at < 0 ? -at : at - bytes;
    if (distance >= best_distance) continue;
    best_distance = distance;
    best = i;
  }
  if (best == addresses_.size()) {
    return std::string(verb) + " at an address that belongs to no tensor";
  }
  const Shaped& tensor = tensors_[best % tensors_.size()];
  const std::int64_t element =
      is_workspace(best) ? 1 : tensor.bytes / std::max<std::int64_t>(1, tensor.elements);
  return describe_stray(buffer_name(best), buffers_.slots()[best].bytes, element,
                        static_cast<std::int64_t>(address - addresses_[best]), is_write);
}

std::string describe_stray(const std::string& name, std::int64_t bytes, std::int64_t element_bytes,
                           std::int64_t at, bool is_write) {
  const std::string verb = is_write ? "wrote" : "read";
  if (at < 0) {
    const std::int64_t index = (at - element_bytes + 1) / element_bytes;
    return verb + " before the start of " + name + " (element " + std::to_string(index) + ")";
  }
  const std::int64_t index = at / element_bytes;
  return verb + " past the end of " + name + " (element " + std::to_string(index) + "; it has " +
         std::to_string(bytes / element_bytes) + ")";
}

}  // namespace kernelpro
