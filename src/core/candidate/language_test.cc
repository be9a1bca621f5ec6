// SPDX-License-Identifier: Apache-2.0
#include "core/candidate/language.h"

#include <gtest/gtest.h>

#include <set>

#include "base/text.h"

namespace kernelpro {
namespace {

TEST(Language, RowsAreWhole) {
  std::set<std::string_view> names;
  for (const LanguageRow& row : languages()) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(&language_row(row.language), &row);
    EXPECT_EQ(language_from_name(row.name), row.language);
    EXPECT_TRUE(names.insert(row.name).second);
    EXPECT_EQ(row.kernel != nullptr, row.native);
    EXPECT_EQ(row.reference != nullptr, row.native);
    EXPECT_NE(row.compiled, row.in_python);
    EXPECT_FALSE(row.entries.empty());
    for (const EntryWord& entry : row.entries) EXPECT_FALSE(entry.word.empty());
    for (const std::string_view text :
         {row.title, row.extension, row.fence, row.entry, row.signature}) {
      EXPECT_FALSE(text.empty());
    }
    EXPECT_TRUE(contains(language_names(), row.name));
    EXPECT_TRUE(contains(language_help(), std::string(row.name) + ": "));
    EXPECT_TRUE(contains(language_files(), "." + std::string(row.extension) + " ("));
  }
  EXPECT_FALSE(language_from_name("latin"));
  EXPECT_FALSE(language_from_name(""));
}

TEST(Language, FilesAreKnownByTheirEnds) {
  const auto language = [](std::string_view file) -> std::optional<Language> {
    const LanguageRow* row = language_of_file(file);
    if (row == nullptr) return std::nullopt;
    return row->language;
  };
  for (const char* file : {"a.cpp", "b/a.cc", "a.b.cxx"}) EXPECT_EQ(language(file), Language::kCpp);
  EXPECT_EQ(language("dir.py/kernel.cu"), Language::kCuda);
  EXPECT_EQ(language("model.py"), Language::kPython);
  for (const char* file : {"", "cu", ".cu.txt", "kernel", "a.cu/kernel", "akernelcu"}) {
    EXPECT_FALSE(language(file)) << file;
  }
}

TEST(Language, EachTargetHasItsOwn) {
  Task task;
  task.kernel_cpp = "c";
  task.kernel_cu = "u";
  EXPECT_EQ(native_kernel(task, TargetKind::kCpu), "c");
  EXPECT_EQ(native_kernel(task, TargetKind::kCuda), "u");
  EXPECT_EQ(kernel_file_name(native_language(TargetKind::kCuda)), "kernel.cu");
}

}  // namespace
}  // namespace kernelpro
