// SPDX-License-Identifier: Apache-2.0
#include "base/process/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/process/processes.h"
#include "base/process/rest_watch.h"
#include "base/process/spawn.h"
#include "base/process/warden.h"
#include "base/text.h"

namespace kernelpro {

namespace {

constexpr double kWatchStep = 0.02;  // minimum seconds between checks of a child's memory
constexpr double kWatchShare = 50;   // a check may take at most 1/50 of our time

std::atomic<bool> leaving_behind{false};

// Which limit a child and its descendants exceed. A limit of 0 is none.
std::optional<Exit::Kind> excess(const TreeUse& use, std::int64_t memory, int processes) {
  if (memory > 0 && use.resident_bytes > memory) return Exit::Kind::kOutOfMemory;
  if (processes > 0 && use.threads > processes) return Exit::Kind::kTooManyProcesses;
  return std::nullopt;
}

// REQUIRES: the child has not been reaped.
void kill_tree(pid_t pid, bool warden) {
  if (warden) {
    ::kill(pid, SIGTERM);  // it kills the rest
    return;
  }
  ::kill(-pid, SIGKILL);
  ::kill(pid, SIGKILL);
}

}  // namespace

std::string signal_name(int signal) {
  const char* name = ::strsignal(signal);
  return name != nullptr ? name : "signal " + std::to_string(signal);
}

bool Exit::from_outside() const {
  return kind == Kind::kSignalled && !by_us &&
         (code == SIGKILL || code == SIGTERM || code == SIGINT || code == SIGHUP);
}

std::string Exit::describe(const Limits& limits) const {
  switch (kind) {
    case Kind::kExited:
      return "ended with exit status " + std::to_string(code);
    case Kind::kSignalled:
      return "was ended by signal " + std::to_string(code) + " (" + signal_name(code) + ")" +
             (code == SIGXFSZ   ? ": it wrote a file beyond the limit on sizes"
              : code == SIGXCPU ? ": it used more processor time than its limit"
                                : "");
    case Kind::kTimedOut:
      return "ran longer than " + human_seconds(limits.wall_seconds) + " and was ended";
    case Kind::kFlooded:
      return "printed more than " + human_bytes(static_cast<double>(limits.output_killed)) +
             " and was ended";
    case Kind::kOutOfMemory:
      return "used more than " + human_bytes(static_cast<double>(limits.memory_bytes)) +
             " of memory and was ended";
    case Kind::kTooManyProcesses:
      return "started too many processes or threads and was ended";
  }
  return "";
}

Result<Child> Child::start(const Command& command) { return start(command, true); }

Result<Child> Child::start(const Command& command, bool with_channel) {
  std::pair<Channel, Fd> ends;
  if (with_channel) ends = Channel::pair();
  KP_ASSIGN(Started started, spawn(command, ends.second.get()));
  Child child;
  child.pid_ = started.pid;
  child.channel_ = std::move(ends.first);
  child.channel_.accept_at_most(command.limits.frame_bytes, command.limits.frame_fds);
  child.output_ = std::move(started.output);
  child.report_ = std::move(started.report);
  child.limits_ = command.limits;
  child.max_processes_ = command.sandbox ? command.sandbox->max_processes : 0;
  child.started_ = real_clock().now_s();
  if (command.limits.at_rest) {
    child.rest_ = std::make_unique<RestWatch>([pid = child.pid_, warden = child.report_.valid(),
                                               memory = child.limits_.memory_bytes,
                                               processes = child.max_processes_] {
      const auto why = excess(tree_use(pid, !warden), memory, processes);
      if (why) kill_tree(pid, warden);
      return why ? static_cast<int>(*why) : 0;
    });
  }
  return child;
}

Child::Child() = default;

Child::Child(Child&& other) noexcept { *this = std::move(other); }

Child& Child::operator=(Child&& other) noexcept {
  if (this == &other) return *this;
  if (running()) finish();
  pid_ = std::exchange(other.pid_, -1);
  channel_ = std::move(other.channel_);
  output_ = std::move(other.output_);
  report_ = std::move(other.report_);
  limits_ = other.limits_;
  max_processes_ = other.max_processes_;
  next_look_ = other.next_look_;
  rest_ = std::move(other.rest_);
  output_seen_ = other.output_seen_;
  started_ = other.started_;
  reaped_ = other.reaped_;
  verdict_ = other.verdict_;
  ended_by_us_ = other.ended_by_us_;
  exit_ = std::move(other.exit_);
  return *this;
}

void leave_children_behind() { leaving_behind = true; }

Child::~Child() {
  if (!running()) return;
  kill_group();
  finish();
}

void Child::kill_group() {
  if (reaped_ || pid_ <= 0) return;
  ended_by_us_ = true;
  kill_tree(pid_, report_.valid());
}

// A warden that was itself killed has not reported: use its own status.
void Child::take_report(int* status) {
  WardenReport report;
  if (!report_.valid()) return;
  if (::read(report_.get(), &report, sizeof report) != static_cast<ssize_t>(sizeof report)) return;
  *status = report.status;
  exit_.cpu_seconds = report.cpu_seconds;
  exit_.max_rss_bytes = report.max_rss_bytes;
}

void Child::drain() {
  char buffer[16384];
  while (output_.valid()) {
    const ssize_t n = ::read(output_.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return;  // no more for now
    if (n == 0) {
      output_.reset();
      return;
    }
    output_seen_ += n;
    const std::int64_t room = limits_.output_kept - static_cast<std::int64_t>(exit_.output.size());
    if (room > 0) {
      exit_.output += printable(
          std::string_view(buffer, static_cast<std::size_t>(std::min<std::int64_t>(n, room))));
    }
    if (output_seen_ > limits_.output_killed) {
      if (!verdict_) verdict_ = Exit::Kind::kFlooded;
      kill_group();
      return;
    }
  }
}

bool Child::reap() {
  if (reaped_) return true;
  int status = 0;
  rusage usage{};
  pid_t r;
  do r = ::wait4(pid_, &status, WNOHANG, &usage);
  while (r < 0 && errno == EINTR);
  if (r == 0) return false;
  reaped_ = true;
  ::kill(-pid_, SIGKILL);  // anything left in its group
  exit_.wall_seconds = real_clock().now_s() - started_;
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  exit_.cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  exit_.max_rss_bytes = usage.ru_maxrss * 1024LL;
  take_report(&status);
  exit_.by_us = ended_by_us_;
  if (verdict_) {
    exit_.kind = *verdict_;
    exit_.code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
  } else if (WIFSIGNALED(status)) {
    exit_.kind = Exit::Kind::kSignalled;
    exit_.code = WTERMSIG(status);
  } else {
    exit_.kind = Exit::Kind::kExited;
    exit_.code = WEXITSTATUS(status);
  }
  return true;
}

bool Child::send(std::string_view bytes, const std::vector<int>& fds) {
  return running() && channel_.send(bytes, fds) == ChannelState::kOk;
}

std::optional<Frame> Child::receive(double timeout_s, const std::function<double()>& patience) {
  double end = real_clock().now_s() + timeout_s;
  const bool watched = limits_.memory_bytes > 0 || max_processes_ > 0 || in_cancel_scope();
  while (running()) {
    const bool cancelled = cancel_requested();
    double left = cancelled ? 0 : end - real_clock().now_s();
    if (left <= 0 && !cancelled && patience) {
      left = patience();
      end = real_clock().now_s() + left;
    }
    if (left <= 0) {
      verdict_ = Exit::Kind::kTimedOut;
      limits_.wall_seconds = timeout_s;
      kill_group();
      return std::nullopt;
    }
    pollfd polled[2] = {{channel_.fd(), POLLIN, 0}, {output_.get(), POLLIN, 0}};
    const int step = static_cast<int>(1 + 1e3 * std::min(left, watched ? kWatchStep : 1.0));
    ::poll(polled, output_.valid() ? 2 : 1, step);
    if (output_.valid() && polled[1].revents != 0) drain();
    if (verdict_) return std::nullopt;
    if (polled[0].revents != 0) {
      Frame frame;
      if (channel_.receive(&frame, std::max(left, 0.1)) == ChannelState::kOk) return frame;
      return std::nullopt;
    }
    if (over_limits()) return std::nullopt;
  }
  return std::nullopt;
}

bool Child::has_spoken() const {
  pollfd polled{channel_.fd(), POLLIN, 0};
  return ::poll(&polled, 1, 0) > 0;
}

bool Child::end_for(Exit::Kind why) {
  verdict_ = why;
  kill_group();
  return true;
}

// From here on only the owner's thread looks at the child, which may then be reaped.
void Child::end_rest() {
  if (rest_ == nullptr) return;
  const int why = rest_->end();
  rest_.reset();
  if (why == 0) return;
  ended_by_us_ = true;
  if (!verdict_) verdict_ = static_cast<Exit::Kind>(why);
}

bool Child::over_limits() {
  const double now = real_clock().now_s();
  if ((limits_.memory_bytes <= 0 && max_processes_ <= 0) || now < next_look_) return false;
  const TreeUse use = tree_use(pid_, !report_.valid());
  const double after = real_clock().now_s();
  next_look_ = after + std::max(kWatchStep, kWatchShare * (after - now));
  const std::optional<Exit::Kind> why = excess(use, limits_.memory_bytes, max_processes_);
  return why && end_for(*why);
}

const Exit& Child::finish() {
  if (pid_ <= 0) return exit_;
  end_rest();
  // Give a child that has just closed its channel a moment to exit.
  const double end = real_clock().now_s() + (verdict_ ? 0.0 : 0.05);
  while (!reap()) {
    drain();
    if (real_clock().now_s() >= end) {
      kill_group();
      if (leaving_behind) break;
    }
    ::usleep(500);
  }
  drain();
  channel_.close();
  output_.reset();
  report_.reset();
  pid_ = -1;
  return exit_;
}

const Exit& Child::wait(double timeout_s) {
  if (pid_ <= 0) return exit_;
  end_rest();
  channel_.close();
  const double end = real_clock().now_s() + timeout_s;
  while (!verdict_ && !reap()) {
    const double left = cancel_requested() ? 0 : end - real_clock().now_s();
    if (left <= 0) {
      verdict_ = Exit::Kind::kTimedOut;
      limits_.wall_seconds = timeout_s;
      kill_group();
      break;
    }
    pollfd polled{output_.get(), POLLIN, 0};
    if (output_.valid()) {
      ::poll(&polled, 1, 5);
      drain();
    } else {
      ::usleep(1000);
    }
    if (over_limits()) break;
  }
  return finish();
}

Result<Exit> run(const Command& command) {
  KP_ASSIGN(Child child, Child::start(command, false));
  return child.wait(command.limits.wall_seconds);
}

}  // namespace kernelpro
