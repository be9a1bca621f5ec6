// SPDX-License-Identifier: Apache-2.0
// Stations elsewhere: the far end is this test program itself, run as `station --stdio SESSION`,
// with fake targets. What crosses is real: processes, pipes and sockets, which the tests cut.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <random>
#include <set>
#include <sstream>
#include <thread>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/process/processes.h"
#include "base/process/subprocess.h"
#include "base/text.h"
#include "measure/remote/address.h"
#include "measure/remote/connection.h"
#include "measure/remote/frames.h"
#include "measure/remote/remote_station.h"
#include "measure/remote/resident.h"
#include "measure/station/testing/fake_target.h"

namespace kernelpro {
namespace {

using testing::fake_station;
using testing::fake_task;
using testing::FakeSettings;
using testing::knob;

std::vector<std::string> words_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

// V=16 does not compile; the one after a "slow" in the log's folder takes until it is cancelled.
FakeSettings fake() {
  FakeSettings settings;
  settings.landscape = [](const KnobValues& k) {
    return knob(k, "V") == 16 ? 0 : 100 / knob(k, "V");
  };
  if (const char* log = std::getenv("KERNELPRO_TEST_LOG")) settings.log = log;
  settings.before_evaluate = [slow = dirname(settings.log) + "/slow"] {
    do {
      ::usleep(3000);
    } while (exists(slow) && !cancel_requested());
  };
  return settings;
}

// The program as the far end: before main, so that no test runs.
const bool far_end = [] {
  const std::vector<std::string> words = words_of(::getpid());
  if (words.size() < 4 || words[1] != "station") return false;
  const auto done =
      words[2] == "--stdio" ? relay(words[3]) : reside(words[3], fake_station(fake()));
  if (!done) ::dprintf(STDERR_FILENO, "%s\n", done.error().message.c_str());
  ::_exit(done ? 0 : 1);
}();

class Remote : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_FALSE(far_end);
    set("XDG_CONFIG_HOME", folder_.path());
    set("XDG_RUNTIME_DIR", folder_.path());
    set("KERNELPRO_TEST_LOG", log());
    set("KERNELPRO_STATION_GRACE", "30");
    ASSERT_TRUE(make_dirs(join(folder_.path(), "kernelpro")));
    ASSERT_TRUE(write_file(stations_file(), "[box]\ncommand = [\"" + program() +
                                                "\", \"station\", \"--stdio\"]\n[none]\ncommand = "
                                                "[\"/bin/sh\", \"-c\", \"echo no route >&2\"]\n"));
  }
  void TearDown() override {
    for (const auto& [name, value] : before_) {
      value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
    }
  }

  void cut_often(int wanted, const std::string& address, const std::function<int()>& cut);
  std::string program() const {
    return join(executable_dir(), basename(words_of(::getpid()).front()));
  }
  std::string in(const std::string& name) const { return join(folder_.path(), name); }
  void set(const std::string& name, const std::string& value) {
    const char* old = std::getenv(name.c_str());
    before_.emplace(name, old != nullptr ? std::optional<std::string>(old) : std::nullopt);
    ::setenv(name.c_str(), value.c_str(), 1);
  }
  std::string log() const { return join(folder_.path(), "log"); }
  std::vector<std::string> logged() const { return lines(read_file(log()).value_or("")); }

  // The processes that carry connections ("--stdio") or keep sessions ("--reside").
  std::vector<pid_t> all(const std::string& kind) const {
    std::vector<pid_t> found;
    for (const ProcessInfo& process : all_processes()) {
      const std::vector<std::string> words = words_of(process.pid);
      if (words.size() < 4 || words[1] != "station" || words[2] != kind) continue;
      if (!process.zombie && ours(process.pid)) found.push_back(process.pid);
    }
    return found;
  }
  int kill_all(const std::string& kind) const {
    int killed = 0;
    for (const pid_t pid : all(kind)) killed += ::kill(pid, SIGKILL) == 0 ? 1 : 0;
    return killed;
  }

  static Order order(const std::string& v, int i = 0) {
    Order order;
    order.candidate.source = fake_task().kernel_cpp + "// " + std::to_string(i) + "\n";
    order.candidate.knobs = {{"V", v}};
    return order;
  }

 private:
  // By its environment: another test program may run beside this one.
  bool ours(pid_t pid) const {
    std::ifstream file("/proc/" + std::to_string(pid) + "/environ", std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str().find("KERNELPRO_TEST_LOG=" + log()) != std::string::npos;
  }

  TempDir folder_;
  std::map<std::string, std::optional<std::string>> before_;
};

bool within(double seconds, const std::function<bool()>& holds) {
  const double until = real_clock().now_s() + seconds;
  while (!holds()) {
    if (real_clock().now_s() > until) return false;
    ::usleep(2000);
  }
  return true;
}

TEST_F(Remote, AnAddressBecomesACommandThatAShellCannotMisread) {
  ::unsetenv("KERNELPRO_SSH");
  const auto plain = station_address("ssh://me@box.example:2222/opt/kp/bin/kernelpro");
  ASSERT_TRUE(plain) << plain.error().text();
  EXPECT_EQ(plain->name, "me@box.example");
  EXPECT_EQ(plain->command.front(), "ssh");
  const std::vector<std::string> end(plain->command.end() - 7, plain->command.end());
  EXPECT_EQ(end, (std::vector<std::string>{"-p", "2222", "--", "me@box.example",
                                           "/opt/kp/bin/kernelpro", "station", "--stdio"}));
  EXPECT_EQ(station_address("ssh://box")->command.rbegin()[2], "kernelpro");
  EXPECT_EQ(station_address("ssh://box/~/bin/kernelpro")->command.rbegin()[2], "~/bin/kernelpro");
  EXPECT_EQ(station_address("ssh://me@[fe80::1]:22")->name, "me@fe80::1");
  for (const char* bad : {"ssh://", "ssh://-oProxyCommand=x", "ssh://box;id", "ssh://a b",
                          "ssh://box:port", "ssh://box/$(id)", "ssh://-l@box", "nowhere", ""}) {
    const auto refused = station_address(bad);
    ASSERT_FALSE(refused) << bad;
    EXPECT_EQ(refused.error().kind, ErrorKind::kBadInput);
    EXPECT_NE(refused.error().next.find("ssh://USER@HOST"), std::string::npos);
  }
}

TEST_F(Remote, AnErrorCrossesWithItsKindAndCause) {
  const Error error{ErrorKind::kTask, "no", "do this", Cause::kGone};
  const Error back = error_from_json(error_to_json(error));
  EXPECT_EQ(back.kind, error.kind);
  EXPECT_EQ(back.cause, error.cause);
  EXPECT_EQ(back.text(), error.text());
  EXPECT_EQ(error_from_json("nonsense").kind, ErrorKind::kInternal);
}

TEST_F(Remote, MeasuresAsTheStationItselfDoes) {
  const Task task = fake_task();
  const Stations there = remote_stations("box", task, StationSettings());
  const Stations here = fake_station(fake())(task, StationSettings());
  ASSERT_EQ(there.size(), 1u);
  ASSERT_TRUE(there.front()) << there.front().error().text();
  Station& station = **there.front();
  EXPECT_EQ(machine_to_json(station.machine()), machine_to_json((*here.front())->machine()));
  EXPECT_EQ(station.compiler(), "fake compiler");
  EXPECT_EQ(station.name(), "box");
  ASSERT_TRUE(station.prepare());
  ASSERT_TRUE((*here.front())->prepare());

  Order versus = order("4");
  versus.incumbent = order("1").candidate;
  std::vector<std::string> phases;
  const auto measured = station.measure(versus, [&](const std::string& p) { phases.push_back(p); });
  const auto same = (*here.front())->measure(versus, {});
  ASSERT_TRUE(measured && same);
  ASSERT_TRUE(measured->evaluation && same->evaluation);
  EXPECT_EQ(measured->evaluation->correct()->versus->ratio,
            same->evaluation->correct()->versus->ratio);
  EXPECT_EQ(evidence_to_json(measured->evidence), evidence_to_json(same->evidence));
  EXPECT_NE(std::find(phases.begin(), phases.end(), "checking and timing"), phases.end());

  const auto failing = station.build(order("16").candidate);
  ASSERT_TRUE(failing && failing->error);
  std::atomic<bool> done{false};
  const Building building = station.begin(order("2").candidate, [&] { done = true; });
  ASSERT_TRUE(building.get());
  EXPECT_TRUE(within(30, [&] { return done.load(); }));
  EXPECT_FALSE(*station.remeasure());
}

// Connections cut at random moments, the first answers among them: every order is answered, and
// each is measured once.
void Remote::cut_often(int wanted, const std::string& address, const std::function<int()>& cut) {
  const Task task = fake_task();
  const Stations there = remote_stations(address, task, StationSettings());
  ASSERT_TRUE(there.front()) << there.front().error().text();
  Station& station = **there.front();
  ASSERT_TRUE(station.prepare());
  std::atomic<bool> over{false};
  std::atomic<int> cuts{0};
  std::thread cutter([&] {
    std::mt19937 random(7);
    while (!over && cuts < wanted) {
      ::usleep(static_cast<useconds_t>(random() % 60000));
      cuts += cut();
    }
  });
  int measured = 0;
  std::set<std::string> hashes;
  for (int i = 0; cuts < wanted && i < 5000; ++i) {
    const Order each = order(i % 2 == 0 ? "2" : "4", i);
    hashes.insert(each.candidate.content_hash());
    const auto answer = station.measure(each, {});
    ASSERT_TRUE(answer) << answer.error().text();
    ASSERT_TRUE(answer->evaluation);
    ++measured;
  }
  over = true;
  cutter.join();
  EXPECT_GE(cuts.load(), wanted);
  std::printf("%d connections cut, %d orders measured\n", cuts.load(), measured);
  const std::vector<std::string> log = logged();
  EXPECT_EQ(static_cast<int>(log.size()), measured);
  EXPECT_EQ(std::set<std::string>(log.begin(), log.end()), hashes);
}

TEST_F(Remote, CutConnectionsLoseNothingAndMeasureNothingTwice) {
  cut_often(50, "box", [this] { return kill_all("--stdio"); });
}

// A server of our own on loopback, as this user.
class OverSsh : public Remote {
 protected:
  void SetUp() override {
    Remote::SetUp();
    const std::string server = exists("/usr/sbin/sshd") ? "/usr/sbin/sshd" : find_program("sshd");
    if (server.empty() || find_program("ssh").empty() || find_program("ssh-keygen").empty()) {
      GTEST_SKIP() << "no sshd here (Debian: apt install openssh-server)";
    }
    ASSERT_TRUE(::getuid() != 0 || make_dirs("/run/sshd"));
    for (const char* key : {"host", "user"}) {
      Command keygen;
      keygen.argv = {"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", in(key)};
      const auto made = run(keygen);
      ASSERT_TRUE(made && made->ok());
    }
    const int port = free_port();
    const std::string config =
        "Port " + std::to_string(port) + "\nListenAddress 127.0.0.1\nHostKey " + in("host") +
        "\nAuthorizedKeysFile " + in("user.pub") +
        "\nPidFile none\nStrictModes no\nUsePAM no\nLogLevel ERROR\nSetEnv "
        "KERNELPRO_TEST_LOG=" +
        log() + " XDG_RUNTIME_DIR=" + in("") + " KERNELPRO_STATION_GRACE=30\n";
    ASSERT_TRUE(write_file(in("sshd_config"), config));
    Command daemon;
    daemon.argv = {server, "-D", "-e", "-f", in("sshd_config")};
    auto started = Child::start(daemon);
    ASSERT_TRUE(started) << started.error().text();
    server_ = std::move(*started);
    set("KERNELPRO_SSH", "ssh -F none -i " + in("user") +
                             " -oStrictHostKeyChecking=no -oUserKnownHostsFile=/dev/null "
                             "-oLogLevel=ERROR");
    address_ = "ssh://127.0.0.1:" + std::to_string(port) + program();
    ASSERT_TRUE(within(30, [&] { return answers(port); }));
    const auto probe = Connection::to(address_);
    if (!probe) GTEST_SKIP() << "sshd does not let us in here: " << probe.error().message;
  }

  std::string address_;

 private:
  static sockaddr_in loopback(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }
  static int free_port() {
    const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    return ntohs(address.sin_port);
  }
  static bool answers(int port) {
    const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in address = loopback(port);
    return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) ==
           0;
  }
  Child server_;
};

// $KERNELPRO_CUTS: how often, by default 8 times: each login takes half a second.
TEST_F(OverSsh, CutConnectionsLoseNothingAndMeasureNothingTwice) {
  const char* often = std::getenv("KERNELPRO_CUTS");
  cut_often(often != nullptr ? std::atoi(often) : 8, address_,
            [this] { return kill_all("--stdio"); });
}

// How long an order takes besides the measurement; results/stations.md has the figure.
TEST_F(OverSsh, AnOrderCostsLittle) {
  const Task task = fake_task();
  const Stations there = remote_stations(address_, task, StationSettings());
  const Stations here = fake_station(fake())(task, StationSettings());
  ASSERT_TRUE(there.front()) << there.front().error().text();
  std::vector<double> over_ms;
  for (int i = 0; i < 60; ++i) {
    double ms[2] = {};
    for (const int far : {0, 1}) {
      Station& station = far != 0 ? **there.front() : **here.front();
      ASSERT_TRUE(i > 0 || station.prepare());
      const double from = real_clock().now_s();
      ASSERT_TRUE(station.measure(order("2", i), {}));
      ms[far] = 1e3 * (real_clock().now_s() - from);
    }
    over_ms.push_back(ms[1] - ms[0]);
  }
  std::sort(over_ms.begin(), over_ms.end());
  std::printf("an order over SSH takes %.2f ms longer (median of 60; quartiles %.2f to %.2f)\n",
              over_ms[30], over_ms[15], over_ms[45]);
  EXPECT_LT(over_ms[30], 300);  // 30 are wanted; a busy machine takes longer
}

TEST_F(Remote, AResidentThatHasEndedIsReplaced) {
  const Task task = fake_task();
  const Stations there = remote_stations("box", task, StationSettings());
  ASSERT_TRUE(there.front()) << there.front().error().text();
  Station& station = **there.front();
  ASSERT_TRUE(station.prepare());
  ASSERT_TRUE(station.measure(order("2"), {}));
  EXPECT_EQ(kill_all("--reside"), 1);
  const auto again = station.measure(order("4"), {});
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_NE(again->evaluation->correct(), nullptr);
}

TEST_F(Remote, CancellingEndsTheWorkThere) {
  const Task task = fake_task();
  const Stations there = remote_stations("box", task, StationSettings());
  ASSERT_TRUE(there.front()) << there.front().error().text();
  Station& station = **there.front();
  ASSERT_TRUE(station.prepare());
  ASSERT_TRUE(write_file(dirname(log()) + "/slow", ""));
  std::atomic<bool> cancel{false};
  std::thread canceller([&] {
    ::usleep(50000);
    cancel = true;
  });
  const CancelScope scope(&cancel);
  const auto measured = station.measure(order("2"), {});
  canceller.join();
  ASSERT_TRUE(measured) << measured.error().text();
  EXPECT_FALSE(measured->evaluation);
}

TEST_F(Remote, WhatCannotBeReachedSaysWhyAtOnce) {
  const Stations there = remote_stations("none", fake_task(), StationSettings());
  ASSERT_EQ(there.size(), 1u);
  ASSERT_FALSE(there.front());
  EXPECT_EQ(there.front().error().kind, ErrorKind::kEnvironment);
  EXPECT_NE(there.front().error().message.find("no route"), std::string::npos)
      << there.front().error().message;
}

TEST_F(Remote, NoResidentStaysBehind) {
  {
    const Task task = fake_task();
    const Stations there = remote_stations("box", task, StationSettings());
    ASSERT_TRUE(there.front()) << there.front().error().text();
    EXPECT_EQ(all("--reside").size(), 1u);
  }
  EXPECT_TRUE(within(30, [&] { return all("--reside").empty(); }));
}

TEST_F(Remote, ASessionsNameIsNoPath) {
  for (const char* bad : {"", "../../etc/x", "0123", "0123456789abcdef0123456789abcdeg"}) {
    EXPECT_FALSE(relay(bad)) << bad;
    EXPECT_FALSE(reside(bad)) << bad;
  }
}

}  // namespace
}  // namespace kernelpro
