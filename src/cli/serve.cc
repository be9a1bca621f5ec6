// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/live.h"
#include "cli/served.h"
#include "cli/tasks.h"
#include "serve/http/server.h"

namespace kernelpro {

namespace {

constexpr OptionSpec kServeOptions[] = {
    kServedTasks,
    {"--port", "N", "8341", "Port to listen on; 0 picks a free one."},
    {"--host", "ADDRESS", "127.0.0.1", "Address to listen on."},
    {"--allow-remote", "", "",
     "Allow a --host that other machines can reach. Anyone with the token can run code here."},
    {"--allow-host", "NAME...", "", "Also accept requests for this host name, such as a proxy's."},
    {"--allow-origin", "URL...", "", "Also accept requests from browser pages of this origin."},
    kServedRuns,
    {"--unused", "S", "0", "End after S seconds without a client; 0 means never."},
    kServedTarget,
    kServedGpu,
    kStationOption,
    kPythonOption,
    profile_option("full"),
    kServedTimeout,
    kServedRecord};

int run_serve(const Options& options) {
  HttpSettings http;
  http.host = options.text("--host");
  const long long port = options.integer("--port");
  if (port > 65535) {
    throw Fatal({ErrorKind::kBadInput, "there is no port " + options.text("--port"),
                 "give one from 0 to 65535"});
  }
  http.port = static_cast<int>(port);
  http.remote = options.flag("--allow-remote");
  if (options.has("--allow-host")) http.hosts = lines(options.text("--allow-host"));
  if (options.has("--allow-origin")) http.origins = lines(options.text("--allow-origin"));
  const char* token = std::getenv("KERNELPRO_TOKEN");
  http.token = token != nullptr ? token : "";
  const bool made = http.token.empty();
  if (made) http.token = random_token();
  // Hide it from child processes (compilers, candidates).
  ::unsetenv("KERNELPRO_TOKEN");
  http.unused_s = options.real("--unused");
  const DeskSettings desk = read_desk_settings(options);
  std::optional<LiveNotice> notice;
  const auto ready = [&](const std::string& url) {
    notice.emplace(desk.runs, LiveServer{url, http.token});
    std::printf("MCP at %s/mcp\n", url.c_str());
    if (made) {
      std::printf(
          "token: %s\n(shown once; clients send it as Authorization: Bearer TOKEN. Set "
          "KERNELPRO_TOKEN to choose your own.)\n",
          http.token.c_str());
    }
    std::printf("page: %s\n", live_link({url, made ? http.token : ""}, "").c_str());
    std::fflush(stdout);
  };
  require(serve_http(http, desk, ready));
  return 0;
}

}  // namespace

extern const Subcommand kServe{"serve",
                               "Show all runs on a live page, and serve tools over HTTP (MCP); by "
                               "default to this machine only.",
                               kServeOptions, run_serve};

}  // namespace kernelpro
