// SPDX-License-Identifier: Apache-2.0
// On small trees made in temporary folders, with a real index.
#include "write/knowledge/knowledge_base.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/files.h"
#include "base/sqlite.h"
#include "base/text.h"

namespace kernelpro {
namespace {

class Knowledge : public ::testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    const std::string full = join(tree_.path(), path);
    ASSERT_TRUE(make_dirs(dirname(full)));
    ASSERT_TRUE(write_file(full, text));
  }

  IndexReport add(bool update = false) {
    const auto report = base_.add("small", tree_.path(), update);
    EXPECT_TRUE(report) << report.error().text();
    return report ? *report : IndexReport();
  }

  std::vector<Hit> search(const std::string& words, bool one_per_file = true) {
    SearchSettings settings;
    settings.one_per_file = one_per_file;
    const auto hits = base_.search_code(words, "", settings);
    EXPECT_TRUE(hits) << hits.error().text();
    return hits ? *hits : std::vector<Hit>();
  }

  void fill() {
    write("include/pipe.hpp",
          "// Moves tiles.\n#pragma once\n\nnamespace p {\n\n"
          "/// Lets producers and consumers take turns at a ring of buffers.\n"
          "template <int Stages>\nclass TilePipelineAsync {\n public:\n"
          "  void producer_acquire() {\n    wait();\n    go();\n    done();\n  }\n};\n\n}\n");
    write("include/copy_tma.hpp",
          "/// Loads a box of a tensor to several blocks of a cluster.\n"
          "struct TMA_LOAD_MULTICAST {\n  static void copy(void* from) {\n    use(from);\n"
          "    more(from);\n    most(from);\n  }\n};\n");
    write("examples/user.cu",
          "#include \"include/pipe.hpp\"\n"
          "void user() {\n  TilePipelineAsync<3> a;\n  TilePipelineAsync<4> b;\n"
          "  TilePipelineAsync<5> c;\n  a.producer_acquire();\n}\n");
    write("README.md", "# Small\n\nA tree for tests.\n");
  }

  std::string first_path(const std::string& words, const std::string& language) {
    SearchSettings settings;
    settings.language = language;
    const auto hits = base_.search_code(words, "", settings);
    return hits && !hits->empty() ? hits->at(0).path : "";
  }

  TempDir state_;
  TempDir tree_;
  KnowledgeBase base_{state_.path()};
};

TEST_F(Knowledge, DefinitionsStandBeforeUses) {
  fill();
  EXPECT_EQ(add().files, 4);
  const std::vector<Hit> hits = search("TilePipelineAsync");
  ASSERT_GE(hits.size(), 2u);
  EXPECT_EQ(hits[0].path, "include/pipe.hpp");
  EXPECT_EQ(hits[0].symbol, "TilePipelineAsync");
  EXPECT_EQ(hits[0].first, 6);
  EXPECT_EQ(hits[0].library, "small");
  EXPECT_TRUE(contains(hits[0].doc, "ring of buffers"));
  EXPECT_TRUE(contains(hits[0].excerpt, "TilePipelineAsync")) << hits[0].excerpt;
  EXPECT_EQ(hits[1].path, "examples/user.cu");
}

TEST_F(Knowledge, PartsEndingsAndSynonymsAreFound) {
  fill();
  add();
  for (const char* words :
       {"pipeline async", "producing buffers", "tilepipelineasync", "the consumer's buffer"}) {
    const std::vector<Hit> hits = search(words);
    ASSERT_FALSE(hits.empty()) << words;
    EXPECT_EQ(hits[0].path, "include/pipe.hpp") << words;
  }
  const std::vector<Hit> hits = search("tensor memory accelerator");
  ASSERT_FALSE(hits.empty());
  EXPECT_EQ(hits[0].path, "include/copy_tma.hpp");
}

TEST_F(Knowledge, OneFileOnceUnlessAskedAndCopiesFolded) {
  std::string text = "/// Rotates a vector by quaternions.\n";
  for (const char* name : {"rotate_one", "rotate_two"}) {
    text += std::string("void ") + name + "() {\n  load_vector();\n  rotate_by_quaternion(" + name +
            ");\n  store_vector();\n}\n\n";
  }
  write("a.h", text + "void first_alone() {\n  a();\n  b();\n  c();\n}\n");
  write("b.h", text + "void first_alone() {\n  a();\n  b();\n  c();\n}\n");
  add();
  const std::vector<Hit> once = search("rotate quaternion");
  ASSERT_EQ(once.size(), 1u);
  ASSERT_EQ(once[0].copies.size(), 1u);
  EXPECT_NE(once[0].path, once[0].copies[0]);
  EXPECT_GE(search("rotate quaternion vector", false).size(), 2u);
}

TEST_F(Knowledge, UpdateReadsWhatChanged) {
  fill();
  EXPECT_EQ(add().read, 4);
  IndexReport report = add(true);
  EXPECT_EQ(report.read, 0);
  EXPECT_EQ(report.unchanged, 4);
  write("include/pipe.hpp", "struct EntirelyOther {\n  int a;\n  int b;\n  int c;\n};\n");
  ASSERT_EQ(::unlink(join(tree_.path(), "include/copy_tma.hpp").c_str()), 0);
  write("new.py", "def brand_new():\n    \"\"\"Paints.\"\"\"\n    return 1\n");
  report = add(true);
  EXPECT_EQ(report.read, 2);
  EXPECT_EQ(report.unchanged, 2);
  EXPECT_EQ(report.removed, 1);
  EXPECT_EQ(report.files, 4);
  EXPECT_EQ(search("EntirelyOther")[0].path, "include/pipe.hpp");
  EXPECT_EQ(search("brand_new")[0].path, "new.py");
  for (const Hit& hit : search("TMA_LOAD_MULTICAST cluster box")) {
    EXPECT_NE(hit.path, "include/copy_tma.hpp");
  }
  EXPECT_FALSE(base_.read_code("small", "include/copy_tma.hpp", 1, 0));
  // Repeatedly: deleted files must not accumulate.
  for (int i = 0; i < 12; ++i) {
    write("new.py", "def brand_new_" + std::to_string(i) + "():\n    return 1\n");
    EXPECT_EQ(add(true).files, 4);
  }
  EXPECT_EQ(search("brand_new_11")[0].path, "new.py");
  EXPECT_EQ(base_.list()[0].files, 4);
}

TEST_F(Knowledge, StrangeFiles) {
  write("crlf.h",
        "/// Winds a clock.\r\nvoid wind_clock() {\r\n  a();\r\n  b();\r\n  c();\r\n}\r\n");
  write("latin.h",
        "// gr\xfc\xdf Gott \xff\xfe\nvoid greet_everyone() {\n  a();\n  b();\n  c();\n}\n");
  write("huge.h", "int huge_line = \"" + std::string(3 << 20, 'x') + "\";\nint after_huge = 1;\n");
  write("binary.h", std::string("\x7f"
                                "ELF\0\0\0 binary_symbol",
                                21));
  write("image.png", "not for us: image_symbol");
  write("empty.h", "");
  const IndexReport report = add();
  EXPECT_EQ(report.files, 4);
  EXPECT_EQ(report.skipped, 1);
  EXPECT_EQ(search("wind_clock")[0].path, "crlf.h");
  EXPECT_EQ(search("wind_clock")[0].doc, "Winds a clock.");
  EXPECT_EQ(search("greet_everyone")[0].path, "latin.h");
  EXPECT_EQ(search("after_huge")[0].path, "huge.h");
  EXPECT_TRUE(search("binary_symbol").empty());
  EXPECT_TRUE(search("image_symbol").empty());
  const auto code = base_.read_code("small", "latin.h", 1, 1);
  ASSERT_TRUE(code);
  EXPECT_EQ(code->text, "// gr?? Gott ??\n");
}

TEST_F(Knowledge, ReadsStayInsideTheRoot) {
  TempDir outside;
  ASSERT_TRUE(write_file(join(outside.path(), "secret.h"), "int secret_value = 42;\n"));
  fill();
  ASSERT_EQ(
      ::symlink(join(outside.path(), "secret.h").c_str(), join(tree_.path(), "link.h").c_str()), 0);
  ASSERT_EQ(::symlink(outside.path().c_str(), join(tree_.path(), "linked").c_str()), 0);
  ASSERT_EQ(::mkfifo(join(tree_.path(), "pipe.h").c_str(), 0600), 0);
  EXPECT_EQ(add().files, 4);
  EXPECT_TRUE(search("secret_value").empty());
  for (const std::string& path :
       {std::string("link.h"), std::string("linked/secret.h"), std::string("../x.h"),
        std::string("include/../../x.h"), join(outside.path(), "secret.h"), std::string(""),
        std::string("include//pipe.hpp"), std::string("./README.md"), std::string("include"),
        std::string("pipe.h"), std::string("README.md\0x", 11)}) {
    const auto code = base_.read_code("small", path, 1, 0);
    ASSERT_FALSE(code) << path;
    EXPECT_EQ(code.error().kind, ErrorKind::kBadInput);
    EXPECT_FALSE(code.error().next.empty());
  }
  // A file that becomes a link after indexing.
  const std::string readme = join(tree_.path(), "README.md");
  ASSERT_TRUE(base_.read_code("small", "README.md", 1, 0));
  ASSERT_EQ(::unlink(readme.c_str()), 0);
  ASSERT_EQ(::symlink(join(outside.path(), "secret.h").c_str(), readme.c_str()), 0);
  EXPECT_FALSE(base_.read_code("small", "README.md", 1, 0));
  for (const Hit& hit : search("tree for tests")) EXPECT_FALSE(contains(hit.excerpt, "secret"));
}

TEST_F(Knowledge, ReadsAreCapped) {
  std::string text;
  for (int i = 1; i <= 1000; ++i) text += "line " + std::to_string(i) + "\n";
  write("long.txt", text);
  write("wide.txt", std::string(200000, 'y') + "\nend\n");
  add();
  auto code = base_.read_code("small", "long.txt", 11, 13);
  ASSERT_TRUE(code);
  EXPECT_EQ(code->text, "line 11\nline 12\nline 13\n");
  EXPECT_FALSE(code->clipped);
  EXPECT_FALSE(code->changed);
  code = base_.read_code("small", "long.txt", 1, 0);
  ASSERT_TRUE(code);
  EXPECT_EQ(code->last, 400);
  EXPECT_TRUE(code->clipped);
  EXPECT_EQ(code->lines, 1000);
  EXPECT_FALSE(base_.read_code("small", "long.txt", 1001, 0));
  EXPECT_FALSE(base_.read_code("small", "long.txt", 20, 10));
  code = base_.read_code("small", "wide.txt", 1, 0);
  ASSERT_TRUE(code);
  EXPECT_LE(code->text.size(), 65536u);
  EXPECT_TRUE(code->clipped);
  write("long.txt", text + "one more\n");
  EXPECT_TRUE(base_.read_code("small", "long.txt", 1, 1)->changed);
}

TEST_F(Knowledge, ListsFoldersAndFiles) {
  fill();
  add();
  const auto top = base_.list_code("small", "");
  ASSERT_TRUE(top);
  ASSERT_EQ(top->size(), 3u);
  EXPECT_EQ((*top)[0].path, "README.md");
  EXPECT_EQ((*top)[2].path, "include/");
  EXPECT_EQ((*top)[2].files, 2);
  const auto below = base_.list_code("small", "include");
  ASSERT_TRUE(below);
  EXPECT_EQ((*below)[0].path, "include/copy_tma.hpp");
  EXPECT_EQ((*below)[0].language, "c++");
  EXPECT_FALSE(base_.list_code("small", "nowhere"));
}

TEST_F(Knowledge, ClearErrors) {
  SearchSettings settings;
  EXPECT_EQ(base_.search_code("a question", "", settings).error().kind, ErrorKind::kBadInput);
  fill();
  add();
  const auto unknown = base_.search_code("pipeline", "other", settings);
  ASSERT_FALSE(unknown);
  EXPECT_TRUE(contains(unknown.error().message, "no library \"other\""));
  EXPECT_TRUE(contains(unknown.error().next, "small"));
  EXPECT_FALSE(base_.search_code("  ?! the of", "", settings));
  EXPECT_FALSE(base_.add("small", tree_.path(), false));
  EXPECT_FALSE(base_.add("../up", tree_.path(), false));
  EXPECT_FALSE(base_.add("other", join(tree_.path(), "nowhere"), false));
  EXPECT_FALSE(base_.add("other", join(tree_.path(), "README.md"), false));
  EXPECT_FALSE(base_.add("small", state_.path(), true));
  EXPECT_FALSE(base_.remove("other"));
  EXPECT_FALSE(base_.remove("../small"));
  // Quotes and operators of the query language are ordinary words.
  EXPECT_TRUE(base_.search_code("\"pipeline\" OR ( NEAR * ^ - symbol:x", "", settings));
  ASSERT_TRUE(base_.remove("small"));
  EXPECT_TRUE(base_.list().empty());
}

TEST_F(Knowledge, EmptyTreeAndDamagedIndex) {
  EXPECT_EQ(add().files, 0);
  EXPECT_TRUE(search("anything").empty());
  ASSERT_TRUE(write_file(join(state_.path(), "broken.db"), "this is no database"));
  KnowledgeBase again(state_.path());
  SearchSettings settings;
  const auto hits = again.search_code("anything", "broken", settings);
  ASSERT_FALSE(hits);
  EXPECT_EQ(hits.error().kind, ErrorKind::kStore);
  // The other libraries still answer.
  EXPECT_TRUE(again.search_code("anything", "", settings));
  const std::vector<Library> all = again.list();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_FALSE(all[0].fault.empty());
  // If it is the only one, a search over all reports it too, with advice.
  EXPECT_TRUE(again.remove("small"));
  const auto over_all = again.search_code("anything", "", settings);
  ASSERT_FALSE(over_all);
  EXPECT_NE(over_all.error().message.find("damaged"), std::string::npos);
  EXPECT_NE(over_all.error().next.find("remove"), std::string::npos);
  EXPECT_TRUE(again.remove("broken"));
}

TEST_F(Knowledge, PrefersTheLanguageAskedFor) {
  write("sort.py",
        "def sort_rows(rows):\n    \"\"\"Sorts rows by weight.\"\"\"\n    return rows\n");
  write("sort.cu", "// Sorts rows by weight.\nvoid sort_rows(int* rows) {\n  go(rows);\n}\n");
  add();
  EXPECT_EQ(first_path("sorts rows by weight", "python"), "sort.py");
  EXPECT_EQ(first_path("sorts rows by weight", "cuda"), "sort.cu");
  EXPECT_EQ(first_path("sorts rows by weight language:python", "cuda"), "sort.py");
  EXPECT_EQ(first_path("language:cpp sorts rows by weight", ""), "sort.cu");
  const auto none = base_.search_code("sorts language:cobol", "", {});
  ASSERT_FALSE(none);
  EXPECT_TRUE(contains(none.error().text(), "language:cuda"));
}

TEST_F(Knowledge, NamesWhatIsAroundAHitAndInABlock) {
  fill();
  write("names.hpp", "using FastTileType = int;\nusing SlowTileType = long;\n");
  add();
  EXPECT_EQ(full_name(search("producer_acquire").at(0)), "TilePipelineAsync::producer_acquire");
  EXPECT_EQ(search("SlowTileType").at(0).symbol, "FastTileType, SlowTileType");
}

TEST_F(Knowledge, FoldsADefinitionCopiedToAnotherFile) {
  const std::string body =
      "void spread_rows(int* rows) {\n  first(rows);\n  second(rows);\n  third(rows);\n"
      "  fourth(rows);\n  fifth(rows);\n  sixth(rows);\n}\n";
  write("a.cu", body + "void one() {\n  alone(1);\n}\n");
  write("b.cu", "int apples(int ripe);\nvoid pears() {\n  eat(2);\n  cook(3);\n}\n" + body);
  add();
  const auto hits = search("spread_rows");
  ASSERT_EQ(hits.size(), 1u);
  EXPECT_EQ(hits[0].copies.size(), 1u);
}

}  // namespace
}  // namespace kernelpro
