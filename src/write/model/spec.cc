// SPDX-License-Identifier: Apache-2.0
#include "write/model/spec.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <vector>

#include "base/text.h"
#include "write/model/apis.h"

namespace kernelpro {
namespace {

bool starts_with(std::string_view text, std::string_view part) {
  return text.substr(0, part.size()) == part;
}

tl::unexpected<Error> refused(std::string message) {
  return fail(ErrorKind::kBadInput, std::move(message),
              "write " + model_forms() +
                  ", and options after a comma: temperature=0.7 or max_tokens=16000");
}

// Trailing characters are an error too: "1e3x", "7,5".
template <class T>
bool read_number(std::string_view text, T* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

Result<void> read_option(std::string_view option, ModelSpec* spec) {
  const std::size_t equals = option.find('=');
  const std::string_view name = trim(option.substr(0, equals));
  const std::string_view value =
      equals == std::string_view::npos ? "" : trim(option.substr(equals + 1));
  if (name == "temperature") {
    double temperature = 0;
    if (!read_number(value, &temperature) || !(temperature >= 0 && temperature <= 2)) {
      return refused("temperature is a number from 0 to 2, not \"" + std::string(value) + "\"");
    }
    spec->temperature = temperature;
  } else if (name == "max_tokens") {
    int tokens = 0;
    if (!read_number(value, &tokens) || tokens < 1) {
      return refused("max_tokens is a whole number above 0, not \"" + std::string(value) + "\"");
    }
    spec->max_tokens = tokens;
  } else {
    return refused("a model has no option \"" + std::string(name) + "\"");
  }
  return {};
}

std::string_view host_of(std::string_view url) {
  const std::size_t scheme = url.find("://");
  if (scheme == std::string_view::npos) return "";
  url.remove_prefix(scheme + 3);
  url = url.substr(0, url.find_first_of("/?"));
  if (!url.empty() && url.front() == '[') return url.substr(0, url.find(']') + 1);
  return url.substr(0, url.find(':'));
}

Result<void> read_address(std::string_view rest, ModelSpec* spec) {
  const std::size_t hash = rest.find('#');
  if (hash == std::string_view::npos) {
    return refused("\"" + printable(rest) + "\" does not name a model after a #");
  }
  std::string_view url = rest.substr(0, hash);
  while (!url.empty() && url.back() == '/') url.remove_suffix(1);
  const bool odd =
      std::any_of(url.begin(), url.end(), [](unsigned char c) { return c <= 0x20 || c >= 0x7f; });
  if (odd || host_of(url).empty()) {
    return refused("\"" + printable(url) + "\" is not a server's address");
  }
  if (url.find('@') != std::string_view::npos || url.find('?') != std::string_view::npos) {
    return fail(ErrorKind::kBadInput, "an address holds no password and no parameters",
                "put the key into KERNELPRO_API_KEY");
  }
  spec->base_url = url;
  spec->model = rest.substr(hash + 1);
  return {};
}

}  // namespace

bool ModelSpec::loopback() const {
  const std::string_view host = host_of(base_url);
  if (host == "localhost" || host == "[::1]") return true;
  const std::vector<std::string> parts = split(host, '.');
  return parts.size() == 4 && parts[0] == "127" &&
         std::all_of(parts.begin(), parts.end(), [](const std::string& part) {
           int value = -1;
           return read_number(std::string_view(part), &value) && value >= 0 && value <= 255;
         });
}

bool ModelSpec::first_hand() const { return base_url == api_row(api).base_url; }

Result<ModelSpec> parse_model_spec(std::string_view text) {
  ModelSpec spec;
  const std::vector<std::string> parts = split(trim(text), ',');
  const std::string first(trim(parts.empty() ? std::string_view() : parts[0]));
  std::string_view rest = first;
  spec.name = first;
  for (const ApiRow& row : apis()) {
    if (!starts_with(rest, std::string(row.name) + ":")) continue;
    spec.api = row.name;
    spec.base_url = row.base_url;
    rest.remove_prefix(row.name.size() + 1);
    break;
  }
  if (spec.base_url.empty() && !starts_with(rest, "http://") && !starts_with(rest, "https://")) {
    return refused("\"" + printable(text) + "\" names no model");
  }
  if (starts_with(rest, "http://") || starts_with(rest, "https://")) {
    KP_TRY(read_address(rest, &spec));
  } else {
    spec.model = rest;
  }
  const bool odd = std::any_of(spec.model.begin(), spec.model.end(),
                               [](unsigned char c) { return c <= 0x20 || c == 0x7f; });
  if (spec.model.empty() || odd || printable(spec.model) != spec.model) {
    return refused("\"" + printable(text) + "\" has no model's name, or one with odd characters");
  }
  for (std::size_t i = 1; i < parts.size(); ++i) KP_TRY(read_option(parts[i], &spec));
  return spec;
}

const char* key_variable(const ModelSpec& spec) {
  return spec.first_hand() ? api_row(spec.api).key_variable : "KERNELPRO_API_KEY";
}

Result<std::string> key_of(const ModelSpec& spec) {
  const char* name = key_variable(spec);
  const char* value = std::getenv(name);
  const std::string key(trim(value != nullptr ? value : ""));
  if (key.empty()) {
    if (spec.loopback()) return std::string();
    return fail(ErrorKind::kEnvironment, "there is no key for " + spec.base_url,
                "set " + std::string(name) + " in the environment" +
                    (spec.first_hand() ? "" : " (any word, where the server asks for none)"));
  }
  const bool odd =
      std::any_of(key.begin(), key.end(), [](unsigned char c) { return c <= 0x20 || c >= 0x7f; });
  if (odd) {
    return fail(ErrorKind::kEnvironment, std::string(name) + " holds blanks or odd characters",
                "set it to the key alone, on one line");
  }
  return key;
}

std::string scrub(std::string_view text, const std::string& key) {
  if (key.empty()) return std::string(text);
  const std::size_t window = std::min<std::size_t>(8, key.size());
  std::vector<std::string_view> parts;
  for (std::size_t i = 0; i + window <= key.size(); ++i) {
    parts.push_back(std::string_view(key).substr(i, window));
  }
  std::string result;
  std::size_t hidden_to = 0;  // bytes before this are part of the key
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool begins =
        std::find(parts.begin(), parts.end(), text.substr(at, window)) != parts.end();
    if (begins && at >= hidden_to) result += "[key]";
    if (begins) hidden_to = at + window;
    if (at >= hidden_to) result += text[at];
  }
  return result;
}

}  // namespace kernelpro
