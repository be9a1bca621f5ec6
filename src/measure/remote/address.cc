// SPDX-License-Identifier: Apache-2.0
#include "measure/remote/address.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <sstream>

#include "base/files.h"
#include "base/toml.h"

namespace kernelpro {

namespace {

constexpr std::string_view kSsh = "ssh://";
constexpr std::int64_t kMostConfig = 1 << 20;

std::vector<std::string> ssh_program() {
  const char* set = std::getenv("KERNELPRO_SSH");
  std::istringstream words(set != nullptr ? set : "");
  std::vector<std::string> program;
  for (std::string word; words >> word;) program.push_back(word);
  if (program.empty()) program.push_back("ssh");
  return program;
}

// What may stand in a host or user name: nothing that ssh or a shell could take for something else.
bool plain(const std::string& name) {
  return !name.empty() && name.front() != '-' &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_' || c == ':';
         });
}

bool plain_path(const std::string& path) {
  return std::all_of(path.begin(), path.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("/._+-~").find(static_cast<char>(c)) != std::string_view::npos;
  });
}

tl::unexpected<Error> bad_address(const std::string& text) {
  return fail(ErrorKind::kBadInput, "\"" + text + "\" is not the address of a station",
              "write ssh://USER@HOST, ssh://USER@HOST:PORT/PATH/TO/kernelpro, or a name from " +
                  stations_file());
}

Result<StationAddress> over_ssh(const std::string& text) {
  std::string rest = text.substr(kSsh.size());
  std::string program = "kernelpro", user, port;
  if (const auto slash = rest.find('/'); slash != std::string::npos) {
    program = rest.substr(slash);
    // ~ is the home folder there: ssh://host/~/bin/kernelpro
    if (program.starts_with("/~/")) program = program.substr(1);
    rest.resize(slash);
  }
  if (const auto at = rest.rfind('@'); at != std::string::npos) {
    user = rest.substr(0, at);
    rest = rest.substr(at + 1);
    if (!plain(user)) return bad_address(text);
  }
  if (rest.starts_with("[")) {  // an IPv6 address
    const auto end = rest.find(']');
    if (end == std::string::npos) return bad_address(text);
    port = rest.substr(end + 1);
    rest = rest.substr(1, end - 1);
    if (!port.empty() && port.front() != ':') return bad_address(text);
    if (!port.empty()) port.erase(0, 1);
  } else if (const auto colon = rest.find(':'); colon != std::string::npos) {
    port = rest.substr(colon + 1);
    rest.resize(colon);
    if (port.empty()) return bad_address(text);
  }
  const bool digits =
      std::all_of(port.begin(), port.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  if (!plain(rest) || !plain_path(program) || !digits) return bad_address(text);
  StationAddress address;
  address.name = user.empty() ? rest : user + "@" + rest;
  address.command = ssh_program();
  // Nobody can answer a question; a dead connection is noticed within a quarter of a minute.
  for (const char* option : {"-T", "-oBatchMode=yes", "-oServerAliveInterval=5",
                             "-oServerAliveCountMax=3", "-oConnectTimeout=15"}) {
    address.command.push_back(option);
  }
  if (!port.empty()) address.command.insert(address.command.end(), {"-p", port});
  address.command.insert(address.command.end(),
                         {"--", address.name, program, "station", "--stdio"});
  return address;
}

Result<StationAddress> named(const std::string& name) {
  const std::string file = stations_file();
  if (!exists(file)) return bad_address(name);
  KP_ASSIGN(const auto text, read_file(file, kMostConfig));
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    return fail(ErrorKind::kBadInput,
                file + ": " + std::string(parsed.error().description()) + ", in line " +
                    std::to_string(parsed.error().source().begin.line),
                "correct the file, or give the address itself: ssh://USER@HOST");
  }
  const toml::table* table = parsed.table()[name].as_table();
  if (table == nullptr) return bad_address(name);
  if (const auto address = (*table)["address"].value<std::string>()) {
    if (!address->starts_with(kSsh)) return bad_address(*address);
    KP_ASSIGN(auto found, over_ssh(*address));
    found.name = name;
    return found;
  }
  StationAddress found{name, {}};
  if (const toml::array* words = (*table)["command"].as_array()) {
    for (const toml::node& word : *words) {
      if (const auto value = word.value<std::string>()) found.command.push_back(*value);
    }
    if (!found.command.empty() && found.command.size() == words->size()) return found;
  }
  return fail(ErrorKind::kBadInput,
              file + ": the station " + name + " has neither an address nor a command",
              "write address = \"ssh://USER@HOST\", or command = [\"PROGRAM\", ...]");
}

}  // namespace

std::string stations_file() { return config_file("stations.toml"); }

Result<StationAddress> station_address(const std::string& text) {
  return text.starts_with(kSsh) ? over_ssh(text) : named(text);
}

}  // namespace kernelpro
