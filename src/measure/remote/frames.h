// SPDX-License-Identifier: Apache-2.0
// The frames between a connection and a resident, as JSON:
//
//   to the resident                             from it
//   {"hello": PROTOCOL, "waiting": [ID...]}     {"hello": PROTOCOL, "version": V, "known": [ID...]}
//   {"ask": VERB, "id": ID, "body": {...}}      {"id": ID, "phase": TEXT}, any number of times
//   {"cancel": ID}                              {"id": ID, "answer": {...}}
//   {"got": ID}                                 {"id": ID, "error": {...}}
//   {"bye": true}
//
// The first frame of either side is its hello. Either side may be damaged or of another version.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace kernelpro {

inline constexpr int kRemoteProtocol = 1;

std::string hello_frame(const std::vector<std::uint64_t>& waiting);
std::string ask_frame(std::uint64_t id, const std::string& verb, const std::string& body);
std::string number_frame(const char* what, std::uint64_t id);  // "cancel", "got"

std::string welcome_frame(const std::vector<std::uint64_t>& known);
std::string phase_frame(std::uint64_t id, const std::string& phase);
std::string answer_frame(std::uint64_t id, const Result<std::string>& answer);

std::string error_to_json(const Error& error);
Error error_from_json(const std::string& json);

}  // namespace kernelpro
