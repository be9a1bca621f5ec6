// SPDX-License-Identifier: Apache-2.0
// For this room's tests and bench_suite_kill: a real single-machine Slurm cluster with its
// configuration, ports and files in a temporary folder and four GPUs that are plain files. It ends
// with the object. Sets SLURM_CONF for this process and its children.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "base/files.h"
#include "base/process/subprocess.h"
#include "base/testing.h"
#include "base/text.h"

namespace kernelpro::testing {

class SlurmCluster {
 public:
  // Why no cluster can be started here; "" if one can.
  static std::string missing() {
    for (const char* program : {"slurmctld", "slurmd", "sbatch", "squeue", "scancel"}) {
      if (find_daemon(program).empty()) {
        return std::string("there is no ") + program +
               " here; install Slurm: apt-get install slurm-wlm";
      }
    }
    return "";
  }

  SlurmCluster() {
    const std::string dir = folder_.path();
    char name[256] = {};
    ::gethostname(name, sizeof name - 1);
    const std::string host = split(name, '.').front(), user = output({"id", "-un"});
    std::string conf = "ClusterName=test\nSlurmctldHost=" + host + "(127.0.0.1)\nNodeName=" + host +
                       " NodeAddr=127.0.0.1 CPUs=4 Gres=gpu:4 State=UNKNOWN\nSlurmUser=" + user +
                       "\nSlurmdUser=" + user + "\nSlurmctldPort=" + std::to_string(free_port()) +
                       "\nSlurmdPort=" + std::to_string(free_port()) + "\n";
    for (const char* path :
         {"SlurmctldPidFile=ctld.pid", "SlurmdPidFile=slurmd.pid", "SlurmdSpoolDir=spool",
          "StateSaveLocation=state", "SlurmctldLogFile=ctld.log", "SlurmdLogFile=slurmd.log"}) {
      conf += replace_all(path, "=", "=" + dir + "/") + "\n";
    }
    // One user and one machine need no munge. cred_expire bounds how long a requeued job waits.
    conf +=
        "AuthType=auth/none\nCredType=cred/none\nAuthInfo=cred_expire=5\nMpiDefault=none\n"
        "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nReturnToService=2\n"
        "SwitchType=switch/none\nSchedulerType=sched/backfill\nSelectType=select/cons_tres\n"
        "SelectTypeParameters=CR_CPU\nGresTypes=gpu\nKillWait=2\nMinJobAge=2\n"
        "AccountingStorageType=accounting_storage/none\nSlurmdParameters=config_overrides\n"
        "SchedulerParameters=sched_interval=1,bf_interval=1,sched_min_interval=200000,"
        "batch_sched_delay=0\nPartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n";
    const bool written = make_dirs(dir + "/spool") && make_dirs(dir + "/state") &&
                         write_file(dir + "/gpu0", "") && write_file(dir + "/gpu1", "") &&
                         write_file(dir + "/gpu2", "") && write_file(dir + "/gpu3", "") &&
                         write_file(dir + "/gres.conf", "Name=gpu File=" + dir + "/gpu[0-3]\n") &&
                         write_file(dir + "/slurm.conf", conf);
    if (!written) return;
    ::setenv("SLURM_CONF", (dir + "/slurm.conf").c_str(), 1);
    controller_ = daemon("slurmctld");
    node_ = daemon("slurmd");
    up_ = eventually([&] {
      return contains(output({"sinfo", "--noheader", "--format=%T"}), "idle");
    });
  }
  ~SlurmCluster() {
    if (up_) {
      output({"scancel", "--quiet", "--user=" + output({"id", "-un"})});
      eventually([&] { return output({"squeue", "--noheader"}).empty(); }, 20);
    }
    node_.finish();
    controller_.finish();
    ::unsetenv("SLURM_CONF");
  }
  SlurmCluster(const SlurmCluster&) = delete;
  SlurmCluster& operator=(const SlurmCluster&) = delete;

  bool up() const { return up_; }
  // The last part of the daemons' logs.
  std::string why() const {
    std::string text;
    for (const char* name : {"ctld.log", "slurmd.log"}) {
      const auto log = read_file(join(folder_.path(), name));
      if (log) text += log->substr(log->size() > 1500 ? log->size() - 1500 : 0);
    }
    return text;
  }

  // A command's output without surrounding white space.
  static std::string output(const std::vector<std::string>& argv) {
    Command command;
    command.argv = argv;
    const auto exit = run(command);
    return exit ? std::string(trim(exit->output)) : "";
  }

 private:
  static std::string find_daemon(const std::string& program) {
    const std::string sbin = "/usr/sbin/" + program;
    const std::string found = find_program(program);
    return found.empty() && exists(sbin) ? sbin : found;
  }

  static int free_port() {
    const Fd fd(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    ::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), length);
    ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &length);
    return ntohs(address.sin_port);
  }

  // In the foreground, so that it dies with us; it writes a log file.
  static Child daemon(const std::string& program) {
    Command command;
    command.argv = {"/bin/sh", "-c", "exec " + find_daemon(program) + " -D > /dev/null 2>&1"};
    command.limits.wall_seconds = 1e9;
    auto child = Child::start(command);
    return child ? std::move(*child) : Child();
  }

  TempDir folder_;
  Child controller_, node_;
  bool up_ = false;
};

}  // namespace kernelpro::testing
