// SPDX-License-Identifier: Apache-2.0
#include "build/includes.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/files.h"
#include "base/hash.h"
#include "base/text.h"

namespace kernelpro {

namespace fs = std::filesystem;

std::vector<std::string> included_names(std::string_view source) {
  std::vector<std::string> names;
  bool comment = false;  // within /* */
  for (const std::string& line : lines(std::string(source))) {
    std::string_view rest = line;
    if (comment) {
      const std::size_t end = rest.find("*/");
      if (end == std::string_view::npos) continue;
      rest.remove_prefix(end + 2);
      comment = false;
    }
    const std::string_view code = trim(rest);
    const std::size_t begin = code.rfind("/*");
    comment = begin != std::string_view::npos && code.find("*/", begin) == std::string_view::npos;
    if (!code.starts_with('#')) continue;
    std::string_view directive = trim(code.substr(1));
    if (!directive.starts_with("include")) continue;
    directive = trim(directive.substr(7));
    if (directive.empty() || (directive[0] != '<' && directive[0] != '"')) continue;
    const std::size_t end = directive.find(directive[0] == '<' ? '>' : '"', 1);
    if (end != std::string_view::npos) names.emplace_back(directive.substr(1, end - 1));
  }
  return names;
}

std::vector<std::string> IncludeDirs::used_by(std::string_view source) const {
  std::vector<std::string> used;
  if (folders_.empty()) return used;
  for (const std::string& name : included_names(source)) {
    if (name.empty() || name[0] == '/' || contains(name, "..")) continue;
    for (const std::string& folder : folders_) {
      if (!exists(join(folder, name))) continue;
      used.push_back(name);
      break;
    }
  }
  return used;
}

std::string IncludeDirs::fingerprint() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (fingerprint_) return *fingerprint_;
  std::vector<std::string> files;
  for (const std::string& folder : folders_) {
    std::error_code error;
    for (auto it = fs::recursive_directory_iterator(folder, error);
         !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
      std::error_code ignored;
      if (!it->is_regular_file(ignored)) continue;
      const auto time = it->last_write_time(ignored).time_since_epoch().count();
      files.push_back(it->path().string() + " " + std::to_string(it->file_size(ignored)) + " " +
                      std::to_string(time));
    }
    files.push_back(folder);
  }
  std::sort(files.begin(), files.end());
  fingerprint_ = folders_.empty() ? "" : hash_hex({join_text(files, "\n")});
  return *fingerprint_;
}

std::vector<std::string> IncludeDirs::options() const {
  std::vector<std::string> options;
  for (const std::string& folder : folders_) options.push_back("-I" + folder);
  return options;
}

Hoisted hoisted(const std::vector<std::string>& names, const std::string& source) {
  Hoisted result;
  for (const std::string& name : names) result.library += "#include <" + name + ">\n";
  const std::vector<std::string> all = lines(source);
  std::vector<std::string> others;  // other leading includes
  std::size_t first = 0;            // line after the first comments and includes
  for (; first < all.size(); ++first) {
    const std::string_view line = trim(all[first]);
    if (line.empty() || line.starts_with("//")) continue;
    const std::vector<std::string> included = included_names(line);
    if (included.empty()) break;
    const bool library = std::find(names.begin(), names.end(), included[0]) != names.end();
    if (!library) others.push_back(all[first]);
  }
  std::vector<std::string> head = {"#include \"" + std::string(kLibraryHeader) + "\"",
                                   "#pragma nv_hdrstop"};
  head.insert(head.end(), others.begin(), others.end());
  result.shift = static_cast<int>(head.size()) - static_cast<int>(first);
  if (result.shift < 0) {
    head.resize(first);
    result.shift = 0;
  }
  for (const std::string& line : head) result.text += line + "\n";
  for (std::size_t i = first; i < all.size(); ++i) result.text += all[i] + "\n";
  return result;
}

std::string shifted_back(const std::string& log, const std::string& file, int shift) {
  if (shift == 0) return log;
  std::string result;
  std::size_t from = 0;
  const std::string sign = file + "(";
  for (;;) {
    const std::size_t at = log.find(sign, from);
    if (at == std::string::npos) return result + log.substr(from);
    const std::size_t begin = at + sign.size();
    const std::size_t end = log.find_first_not_of("0123456789", begin);
    result += log.substr(from, begin - from);
    const std::string number = log.substr(begin, end - begin);
    if (!number.empty() && number.size() < 9) {
      result += std::to_string(std::max(1, std::stoi(number) - shift));
    } else {
      result += number;
    }
    from = end == std::string::npos ? log.size() : end;
  }
}

}  // namespace kernelpro
