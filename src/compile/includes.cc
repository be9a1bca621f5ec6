// SPDX-License-Identifier: Apache-2.0
#include "compile/includes.h"

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

std::string hoisted(const std::vector<std::string>& names, const std::string& source,
                    const std::string& file) {
  std::string text;
  for (const std::string& name : names) text += "#include <" + name + ">\n";
  return text + "#pragma nv_hdrstop\n#line 1 \"" + file + "\"\n" + source;
}

}  // namespace kernelpro
